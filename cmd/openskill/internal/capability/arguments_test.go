package capability

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"openskill/internal/ordered"
	"openskill/sdk/skill"
)

// Arguments is how the tests ask the script's own parser whether a schema is right: it makes
// the command line of an object: options first, then what goes by its
// place, and a subcommand before what is its own. Members that the parser does not have
// are refused, unless it was not followed to its end. The error is a *skill.Error.
func (s *Script) Arguments(object json.RawMessage) ([]string, error) {
	given, err := ordered.DecodeObject(object)
	if err != nil {
		return nil, refuse("the arguments must be a JSON object")
	}
	command, _ := given.Get(s.command).(string)
	var before, places, behind, last []string
	known := map[string]bool{}
	for i := range s.options {
		o := &s.options[i]
		v := given.Get(o.Name)
		if o.Subcommand != "" && o.Subcommand != command {
			continue
		}
		known[o.Name] = true
		if v == nil {
			continue
		}
		words, err := o.words(v)
		if err != nil {
			return nil, err
		}
		switch {
		case o.Subcommand == "" && o.Flag == "":
			places = append(places, words...)
		case o.Subcommand == "":
			before = append(before, words...)
		case o.Flag == "":
			last = append(last, words...)
		default:
			behind = append(behind, words...)
		}
	}
	var line []string
	for _, m := range given.Members {
		if known[m.Key] || m.Key == s.command {
			continue
		}
		if !s.Partial {
			return nil, refuse(fmt.Sprintf("%s is not an argument of this script; there are %s", skill.CleanText(m.Key, 80), strings.Join(s.names(command), ", ")))
		}
		o := option{Name: m.Key, Flag: "--" + m.Key}
		_, o.Set = m.Value.(bool)
		words, err := o.words(m.Value)
		if err != nil {
			return nil, err
		}
		line = append(line, words...)
	}
	line = append(line, before...)
	if endless(s.options, command) && len(places) > 0 || dashes(places) {
		line = append(line, "--") // or the last option would take the first place for its own
	}
	line = append(line, places...)
	if command != "" {
		line = append(line, command)
	}
	line = append(line, behind...)
	if len(last) > 0 && len(behind) > 0 || dashes(last) {
		line = append(line, "--")
	}
	return append(line, last...), nil
}

// dashes reports whether a word would be taken for an option.
func dashes(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") && len(w) > 1 })
}

// endless reports whether an option takes as many values as come.
func endless(list []option, command string) bool {
	return slices.ContainsFunc(list, func(o option) bool {
		return o.Flag != "" && o.List && !o.Repeat && o.Subcommand == "" && command == ""
	})
}

func (s *Script) names(command string) (names []string) {
	if s.command != "" {
		names = append(names, s.command)
	}
	for i := range s.options {
		if o := &s.options[i]; o.Subcommand == "" || o.Subcommand == command {
			names = append(names, o.Name)
		}
	}
	return names
}

func refuse(message string) error {
	return &skill.Error{Op: "capability.Arguments", Code: skill.InvalidArgument, Message: skill.CleanText(message, skill.MaxMessage)}
}

// words writes one argument.
func (o *option) words(v any) ([]string, error) {
	wrong := func(want string) error { return refuse(o.Name + " must be " + want) }
	switch {
	case o.Set:
		on, ok := v.(bool)
		switch {
		case !ok:
			return nil, wrong("true or false")
		case on:
			return []string{o.Flag}, nil
		case o.Off != "":
			return []string{o.Off}, nil
		}
		return nil, nil
	case o.Count:
		n, err := strconv.Atoi(fmt.Sprint(v))
		if err != nil || n < 0 || n > 100 {
			return nil, wrong("a whole number from 0 to 100")
		}
		return slices.Repeat([]string{o.Flag}, n), nil
	case !o.List:
		w, ok := word(v)
		if !ok {
			return nil, wrong("one value")
		}
		if o.Flag == "" {
			return []string{w}, nil
		}
		if strings.HasPrefix(w, "-") && strings.HasPrefix(o.Flag, "--") {
			return []string{o.Flag + "=" + w}, nil // or it would be taken for an option
		}
		return []string{o.Flag, w}, nil
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var out []string
	if !o.Repeat && o.Flag != "" {
		out = append(out, o.Flag)
	}
	for _, e := range list {
		inner, isList := e.([]any)
		if !isList {
			inner = []any{e}
		}
		if o.Repeat && o.Flag != "" {
			out = append(out, o.Flag)
		}
		for _, one := range inner {
			w, ok := word(one)
			if !ok {
				return nil, wrong("a list of texts, numbers or truth values")
			}
			out = append(out, w)
		}
	}
	return out, nil
}

// word writes a value as a word of the command line.
func word(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		if v {
			return "True", true
		}
		return "", true // bool("") is False, and bool("False") is not
	case nil:
		return "", false
	case *ordered.Object: // for type=json.loads
		b, err := ordered.Encode(v)
		return string(b), err == nil
	}
	return "", false
}
