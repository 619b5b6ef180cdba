package capability

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"openskill/internal/ordered"
	"openskill/sdk/skill"
)

// Declared is what a tool_schema says of the parameters of a function.
type Declared struct {
	properties *ordered.Object
	required   []any
	described  bool // required was said
	returns    string
}

// ParseDeclared reads a tool_schema in any of its forms: {"parameters": [{"name", "type",
// "description", "required", "default", "enum"}], "returns": {…}}, a JSON Schema of an
// object, or a tool as vendors have it, with that under function.parameters, parameters
// or input_schema. It is nil for none.
func ParseDeclared(text json.RawMessage) (*Declared, error) {
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	o, err := ordered.DecodeObject(text)
	if err != nil {
		return nil, errors.New("it must be an object with parameters")
	}
	if f := o.Object("function"); f != nil {
		o = f
	}
	d := &Declared{properties: &ordered.Object{}}
	if r := o.Object("returns"); r != nil {
		d.returns = r.Text("description")
	}
	if list, ok := o.Get("parameters").([]any); ok {
		return d, d.list(list)
	}
	for _, key := range []string{"parameters", "input_schema", "inputSchema"} {
		if p := o.Object(key); p != nil {
			o = p
			break
		}
	}
	if len(o.Members) == 0 {
		return nil, nil
	}
	if p := o.Object("properties"); p != nil {
		d.properties, d.required, d.described = p, o.List("required"), true
		return d, nil
	}
	if o.Text("type") == "object" {
		return d, nil
	}
	return nil, errors.New(`it must have "parameters": a list of {"name", "type", "description"}, or a JSON Schema with properties`)
}

// words are the words for types in lists of parameters.
var words = map[string]string{
	"string": "string", "str": "string", "number": "number", "float": "number", "integer": "integer", "int": "integer",
	"boolean": "boolean", "bool": "boolean", "object": "object", "dict": "object", "array": "array", "list": "array", "null": "null",
}

func (d *Declared) list(list []any) error {
	d.described = true
	for _, v := range list {
		p, ok := v.(*ordered.Object)
		name := ""
		if ok {
			name = p.Text("name")
		}
		if name == "" {
			return errors.New(`each of its parameters must be an object with a "name"`)
		}
		s := &ordered.Object{}
		if word := words[p.Text("type")]; word != "" {
			s.Set("type", word)
		}
		if text := skill.CleanText(p.Text("description"), maxParameter); text != "" {
			s.Set("description", text)
		}
		if list := p.List("enum"); len(list) > 0 {
			s.Set("enum", list)
		}
		if v := p.Get("default"); v != nil {
			s.Set("default", v)
		}
		d.properties.Set(name, s)
		if needed, said := p.Get("required").(bool); needed || !said {
			d.required = append(d.required, name)
		}
	}
	return nil
}

// merge puts what is declared into what the code says. The code is right about names, type
// hints and what must be given; what was declared is better at the rest.
func (d *Declared) merge(f *Function) []Problem {
	input, err := ordered.DecodeObject(f.Input)
	if err != nil {
		return []Problem{at(f.Line, "the schema of "+f.Name+" cannot be read")}
	}
	props := input.Object("properties")
	open := input.Get("additionalProperties") != any(false)
	var problems []Problem
	for _, m := range d.properties.Members {
		declared, ok := m.Value.(*ordered.Object)
		if !ok {
			continue
		}
		s := props.Object(m.Key)
		switch {
		case s == nil && !open:
			problems = append(problems, at(f.Line, fmt.Sprintf("tool_schema has a parameter %s, which %s does not take", skill.CleanText(m.Key, 80), f.Name)))
			continue
		case s == nil: // taken by **kwargs
			props.Set(m.Key, declared)
			if slices.Contains(d.required, any(m.Key)) {
				input.Set("required", append(input.List("required"), m.Key))
			}
			continue
		}
		if text := skill.CleanText(declared.Text("description"), maxParameter); text != "" {
			s.Set("description", text)
		}
		if !slices.Contains(f.hinted, m.Key) && (declared.Has("type") || declared.Has("enum") || declared.Has("anyOf")) {
			// What a docstring or a default lets guess is less than what was declared.
			said := &ordered.Object{}
			for _, key := range []string{"type", "enum", "items", "properties", "required", "anyOf", "format", "minimum", "maximum"} {
				if declared.Has(key) {
					said.Set(key, declared.Get(key))
				}
			}
			for _, key := range []string{"default", "description"} {
				if s.Has(key) {
					said.Set(key, s.Get(key))
				}
			}
			s.Members = said.Members
		} else if list := declared.List("enum"); len(list) > 0 && !s.Has("enum") && s.Text("type") == declared.Text("type") {
			s.Set("enum", list)
		}
		if v := declared.Get("default"); v != nil && !s.Has("default") && !slices.Contains(input.List("required"), any(m.Key)) {
			s.Set("default", v)
		}
	}
	if len(problems) > 0 {
		return problems
	}
	if f.Input, err = ordered.Encode(input); err != nil {
		return []Problem{at(f.Line, "the schema of "+f.Name+" cannot be written")}
	}
	if text := skill.CleanText(d.returns, maxParameter); text != "" {
		if out, err := ordered.DecodeObject(f.Output); err == nil {
			if r := out.Object("properties").Object("result"); r != nil && !r.Has("description") {
				r.Set("description", text)
				if b, err := ordered.Encode(out); err == nil {
					f.Output = b
				}
			}
		}
	}
	return nil
}
