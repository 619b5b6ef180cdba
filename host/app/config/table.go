package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Setting is one row of the table of settings.
type Setting struct {
	Env       string // name in the environment and in .env
	Flag      string // without dashes; "" of secrets, which everyone on the machine would see
	Key       string // in openskill.yaml
	Default   string // "" for none
	Accepts   string
	Doc       string
	Brief     string   // Doc with no more than the names of parts
	Secret    bool     // its value is shown to nobody
	Reloads   bool     // a running host takes a new value at SIGHUP; others wait for a restart
	Shorthand []string // names in the environment of its parts

	parts []field // one of most
}

// field is a field of [Settings]: a setting, or a part of one.
type field struct {
	env, part, short, def, accepts, doc string

	index    int    // in Settings
	min, max uint64 // of numbers
	number   bool
	oneof    []string
	path     string // "dir": must exist when given; "file": a file, if there is one; "any": a path; "": no path
	secret   bool
}

// name is what values are kept by.
func (f field) name() string {
	if f.part == "" {
		return f.env
	}
	return f.env + "." + f.part
}

// label is the name in messages.
func (f field) label() string {
	switch f.part {
	case "", "default", "all":
		return f.env
	}
	if f.short != "" {
		return f.short
	}
	return f.env + " " + f.part
}

// pair reports whether a setting is a default and a maximum.
func (s *Setting) pair() bool { return s.parts[0].part == "default" }

// Table lists all settings in the order of their declaration.
func Table() []Setting { return slices.Clone(table()) }

// table is made once: each command of the program asks for it when it starts.
var table = sync.OnceValue(func() (out []Setting) {
	for i := range reflect.TypeFor[Settings]().NumField() {
		t := reflect.TypeFor[Settings]().Field(i)
		tag := t.Tag.Get
		if env := tag("env"); env != "" {
			out = append(out, Setting{
				Env: env, Flag: tag("flag"), Key: keyOf(env),
				Doc: tag("about"), Reloads: tag("reload") == "yes", Secret: tag("flag") == "" || tag("secret") == "yes",
			})
		} else if tag("part") == "" {
			continue
		}
		s := &out[len(out)-1]
		f := field{
			env: s.Env, part: tag("part"), short: tag("short"), def: tag("default"), accepts: tag("accepts"), doc: tag("doc"),
			index: i, number: tag("max") != "", oneof: strings.Fields(tag("oneof")), path: tag("path"),
		}
		f.secret = tag("secret") == "yes" || s.Secret && f.part == ""
		f.min, _ = strconv.ParseUint(tag("min"), 10, 64)
		f.max, _ = strconv.ParseUint(tag("max"), 10, 64)
		switch n := len(f.oneof); {
		case f.number:
			f.accepts = fmt.Sprintf("a whole number from %d to %d", f.min, f.max)
		case n > 0:
			f.accepts = strings.Join(f.oneof[:n-1], ", ") + " or " + f.oneof[n-1]
		}
		if f.short != "" {
			s.Shorthand = append(s.Shorthand, f.short)
		}
		s.parts = append(s.parts, f)
	}
	for i := range out {
		out[i].describe()
	}
	return out
})

// describe says of a setting what its parts say.
func (s *Setting) describe() {
	first := s.parts[0]
	s.Default = s.join(func(f field) string { return f.def })
	switch {
	case first.part == "":
		s.Accepts, s.Doc, s.Brief = first.accepts, first.doc, first.doc
	case s.pair():
		s.Accepts, s.Doc = first.accepts+", or two, DEFAULT/MAXIMUM", first.doc
		s.Brief = first.doc
	default:
		var names, accepts, doc []string
		for _, f := range s.parts {
			a := f.accepts
			if f.number {
				a = fmt.Sprintf("%d to %d", f.min, f.max)
			}
			names = append(names, f.part)
			accepts, doc = append(accepts, f.part+" ("+a+")"), append(doc, f.part+": "+f.doc)
		}
		s.Accepts = "comma-separated parts NAME:VALUE: " + strings.Join(accepts, ", ")
		if first.part == "all" {
			s.Accepts += "; a value without a name is that of all"
		}
		s.Brief = s.Doc + ": " + strings.Join(names, ", ")
		s.Doc += ". " + strings.Join(doc, "; ")
	}
}

// join writes the values of the parts as one text, without those that are empty.
func (s *Setting) join(value func(field) string) string {
	var list []string
	for _, f := range s.parts {
		switch text := value(f); {
		case f.part == "" || s.pair():
			list = append(list, text)
		case text != "":
			list = append(list, f.part+":"+text)
		}
	}
	if s.pair() {
		return strings.Join(list, "/")
	}
	return strings.Join(list, ",")
}

// split gives the parts of a text; it gives false where one has no name that the setting
// knows.
func (s *Setting) split(text string) (map[string]string, bool) {
	if s.parts[0].part == "" {
		return map[string]string{"": text}, true
	}
	out := map[string]string{}
	if s.pair() {
		out["default"], out["max"], _ = strings.Cut(text, "/")
		return out, true
	}
	for entry := range strings.SplitSeq(text, ",") {
		part, value, named := strings.Cut(strings.TrimSpace(entry), ":")
		if !named {
			part, value = "all", part
		}
		part = strings.TrimSpace(part)
		if !slices.ContainsFunc(s.parts, func(f field) bool { return f.part == part }) {
			return nil, false
		}
		out[part] = strings.TrimSpace(value)
	}
	return out, true
}

const prefix = "OPENSKILL_"

// find gives a setting by its name in the environment.
func find(env string) *Setting { return targets()[env].setting }

// fieldOf gives a field by its name.
func fieldOf(name string) field {
	env, part, _ := strings.Cut(name, ".")
	s := find(env)
	return s.parts[slices.IndexFunc(s.parts, func(f field) bool { return f.part == part })]
}

// fields lists the fields of all settings.
func fields() (out []field) {
	for _, s := range table() {
		out = append(out, s.parts...)
	}
	return out
}

// keys lists the keys of openskill.yaml.
func keys() (out []string) {
	for _, s := range table() {
		out = append(out, s.Key)
	}
	slices.Sort(out)
	return out
}
