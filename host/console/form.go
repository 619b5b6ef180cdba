package console

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"openskill/internal/ordered"
)

// form is what a page asks for to call something with an input schema.
type form struct {
	Fields []field
	// Whole is the input as JSON text, of a schema that no fields can be made of.
	Whole   string
	IsWhole bool
	Problem string // of Whole
}

// field is one property of the input.
type field struct {
	Name     string // as in the schema
	Key      string // in the form
	Label    string
	Help     string
	Kind     fieldKind
	Required bool
	Options  []string // of an enum, as JSON; chosen by their numbers
	Value    string   // what was given
	Problem  string
}

type fieldKind string

const (
	aText    fieldKind = "text"
	aLong    fieldKind = "long" // text of more lines
	aNumber  fieldKind = "number"
	anInt    fieldKind = "integer"
	aFlag    fieldKind = "boolean"
	anEnum   fieldKind = "enum"
	someJSON fieldKind = "json"
)

// The bounds of a form; a schema beyond them gets one field for the whole of its input.
const (
	mostFields  = 40
	mostOptions = 200
)

// formOf makes the form of a schema.
func formOf(schema json.RawMessage) *form {
	whole := &form{IsWhole: true, Whole: "{}"}
	o, err := ordered.DecodeObject(schema)
	if err != nil {
		return whole
	}
	props := o.Object("properties")
	if props == nil || len(props.Members) > mostFields || o.Has("$ref") || o.Has("oneOf") || o.Has("anyOf") || o.Has("allOf") {
		return whole
	}
	var required []string
	for _, r := range o.List("required") {
		if s, ok := r.(string); ok {
			required = append(required, s)
		}
	}
	f := &form{}
	for i, m := range props.Members {
		sub, _ := m.Value.(*ordered.Object)
		if sub == nil {
			sub = &ordered.Object{}
		}
		f.Fields = append(f.Fields, fieldOf(i, m.Key, sub, slices.Contains(required, m.Key)))
	}
	return f
}

func fieldOf(i int, name string, s *ordered.Object, required bool) field {
	f := field{
		Name: name, Key: "in." + strconv.Itoa(i), Label: oneLine(name, 80), Help: oneLine(s.Text("description"), 300),
		Kind: kindOf(s), Required: required,
	}
	if f.Kind == anEnum {
		for _, v := range s.List("enum") {
			if b, err := ordered.Encode(v); err == nil && len(f.Options) < mostOptions {
				f.Options = append(f.Options, string(b))
			}
		}
	}
	if d := s.Get("default"); d != nil {
		if b, err := ordered.Encode(d); err == nil && len(b) <= 4<<10 {
			if i := slices.Index(f.Options, string(b)); f.Kind == anEnum && i >= 0 {
				f.Value = strconv.Itoa(i)
			} else if value := valueOf(f.Kind, b); f.Kind != anEnum && visible(value, 4<<10) == value { // or it would not be what one sees
				f.Value = value
			}
		}
	}
	var facts []string
	for _, k := range []struct{ key, word string }{{"minimum", "at least "}, {"maximum", "at most "}, {"minLength", "at least "}, {"maxLength", "at most "}} {
		if n, ok := s.Get(k.key).(json.Number); ok && len(n) <= 24 {
			word := k.word + n.String()
			if strings.HasSuffix(k.key, "Length") {
				word += " characters"
			}
			facts = append(facts, word)
		}
	}
	if f.Kind == someJSON {
		what := s.Text("type")
		if what != "array" && what != "object" {
			what = "value"
		}
		facts = append(facts, what+" as JSON")
	}
	if len(facts) > 0 {
		f.Help = strings.TrimSpace(f.Help + " (" + strings.Join(facts, ", ") + ")")
	}
	return f
}

func kindOf(s *ordered.Object) fieldKind {
	if len(s.List("enum")) > 0 {
		return anEnum
	}
	switch s.Text("type") {
	case "string":
		if n, ok := s.Get("maxLength").(json.Number); ok && len(n) <= 2 { // up to 99: a line
			return aText
		}
		return aLong
	case "number":
		return aNumber
	case "integer":
		return anInt
	case "boolean":
		return aFlag
	}
	return someJSON
}

// valueOf is a JSON value as its field has it.
func valueOf(k fieldKind, raw []byte) string {
	if k == aText || k == aLong {
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return s
		}
	}
	return string(raw)
}

// read takes what was given, and makes the input of it; ok is false where fields have
// problems.
func (f *form) read(q url.Values) (input json.RawMessage, ok bool) {
	if f.IsWhole {
		f.Whole = q.Get("whole")
		if !json.Valid([]byte(f.Whole)) || !strings.HasPrefix(strings.TrimSpace(f.Whole), "{") {
			f.Problem = "Enter a JSON object, such as {\"key\": \"value\"}."
			return nil, false
		}
		return json.RawMessage(f.Whole), true
	}
	out := &ordered.Object{}
	ok = true
	for i := range f.Fields {
		p := &f.Fields[i]
		p.Value = strings.ReplaceAll(q.Get(p.Key), "\r\n", "\n")
		if p.Value == "" && !p.Required {
			continue
		}
		v, problem := p.take()
		if problem != "" {
			p.Problem, ok = problem, false
			continue
		}
		out.Set(p.Name, v)
	}
	if !ok {
		return nil, false
	}
	b, err := ordered.Encode(out)
	return b, err == nil
}

// take makes a value of what was given.
func (p *field) take() (v any, problem string) {
	text := p.Value
	if p.Kind != aText && p.Kind != aLong {
		text = strings.TrimSpace(text)
	}
	switch p.Kind {
	case aText, aLong:
		return text, ""
	case aNumber, anInt:
		n := json.Number(text)
		if _, err := n.Float64(); err != nil || !json.Valid([]byte(text)) {
			return nil, fmt.Sprintf("Enter a number, such as 12%s.", map[bool]string{true: "", false: " or 0.5"}[p.Kind == anInt])
		}
		return n, ""
	case aFlag:
		if text != "true" && text != "false" {
			return nil, "Choose yes or no."
		}
		return text == "true", ""
	case anEnum:
		i, err := strconv.Atoi(text)
		if err != nil || i < 0 || i >= len(p.Options) {
			return nil, "Choose one of the values."
		}
		text = p.Options[i]
	case someJSON:
		if !json.Valid([]byte(text)) {
			return nil, "Enter JSON, such as [1, 2] or {\"key\": \"value\"}; put text \"in quotes\"."
		}
	}
	v, err := ordered.Decode([]byte(text))
	if err != nil {
		return nil, "Invalid JSON: " + oneLine(err.Error(), 120)
	}
	return v, ""
}
