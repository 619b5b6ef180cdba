package config

import (
	"bytes"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
)

// Shown is a setting as people may see it.
type Shown struct {
	Setting

	Value  string // as it holds, paths absolute; of a secret "set"; "" for none
	Source Source
	Where  string // the same with file and line, where it is a file
}

// Show lists all settings as they hold, in the order of [Table], without secrets.
func (s *Settings) Show() []Shown {
	rows := Table()
	out := make([]Shown, len(rows))
	v := reflect.ValueOf(s).Elem()
	for i, row := range rows {
		text := row.join(func(f field) string {
			field := v.Field(f.index)
			text := shown(f, field)
			if f.part != "" && field.IsZero() || f.short != "" && text == f.def {
				return "" // what no provider needs to be told
			}
			return text
		})
		out[i] = Shown{Setting: row, Value: text, Source: s.Origin(row.Env), Where: s.places[row.Env]}
	}
	return out
}

// shown is a value without what nobody may see.
func shown(f field, v reflect.Value) string {
	text := fmt.Sprint(v.Interface())
	switch {
	case text == "":
		return ""
	case f.secret:
		return "set"
	case v.Kind() == reflect.Bool:
		return map[bool]string{false: "0", true: "1"}[v.Bool()]
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n;,", r) })
	for _, w := range words { // an address may hold a password, or a token in its query
		if !strings.Contains(w, "://") {
			continue
		}
		u, err := url.Parse(w)
		switch {
		case err != nil:
			return "set"
		case u.User != nil || u.RawQuery != "" || u.Fragment != "":
			u.User, u.RawQuery, u.Fragment = nil, "", ""
			text = strings.ReplaceAll(text, w, u.String()+" (and what is not shown)")
		}
	}
	return text
}

// width is that of the lines of a sample.
const width = 100

// Sample is an openskill.yaml with every setting, all of them commented out.
func Sample() []byte {
	var b bytes.Buffer
	b.WriteString(`# Settings of openSkill. Every line is commented out and shows the default: take the # away to
# set something else. A flag, the environment and .env win over this file. What can change while
# the host runs is read again at SIGHUP (systemctl reload openskill); the rest waits for a restart.
# Written by: openskill config sample
`)
	for _, s := range Table() {
		b.WriteByte('\n')
		comment(&b, s.Doc)
		comment(&b, "accepted: "+s.Accepts)
		change := "a change waits for a restart"
		if s.Reloads {
			change = "read again at SIGHUP"
		}
		names := strings.Join(append([]string{s.Env}, s.Shorthand...), ", ")
		if s.Flag != "" {
			names += ", --" + s.Flag
		}
		comment(&b, names+"; "+change)
		fmt.Fprintf(&b, "#%s:", s.Key)
		b.WriteString(s.sample() + "\n")
	}
	return b.Bytes()
}

// sample is the default of a setting as YAML has it.
func (s *Setting) sample() string {
	switch {
	case s.Default == "":
		return ""
	case s.parts[0].part == "" || s.pair():
		return " " + scalar(s.Default)
	}
	var list []string
	for _, f := range s.parts {
		if f.def != "" {
			list = append(list, f.part+": "+scalar(f.def))
		}
	}
	return " {" + strings.Join(list, ", ") + "}"
}

// scalar is a value as YAML has it: quoted, unless it is a number or a plain word.
func scalar(text string) string {
	for _, r := range text {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && r != '-' && r != '_' && r != '.' && r != '/' {
			return strconv.Quote(text)
		}
	}
	return text
}

// comment writes text as lines of a comment.
func comment(b *bytes.Buffer, text string) {
	line := "#"
	for _, w := range strings.Fields(text) {
		if len(line)+1+len(w) > width && line != "#" {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + w
	}
	b.WriteString(line + "\n")
}
