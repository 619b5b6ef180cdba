package capability

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"openskill/host/pyast"
	"openskill/host/tools/ordered"
)

// union makes one schema of several types. Those that have no form in JSON are left out
// where others have one.
func (t *typer) union(of []*pyast.Expr) (*ordered.Object, error) {
	var list []*ordered.Object
	var refused error
	for _, e := range of {
		s, err := t.schema(e)
		if errors.Is(err, errTooMany) {
			return nil, err
		}
		if err != nil {
			refused = err
			continue
		}
		list = append(list, s)
	}
	onlyNull := len(list) == 1 && list[0].Text("type") == "null"
	if len(list) == 0 || refused != nil && onlyNull {
		if refused == nil {
			return &ordered.Object{}, nil
		}
		return nil, refused
	}
	return anyOf(list), nil
}

// anyOf is what any of the schemas takes, in as few words as that can be said.
func anyOf(list []*ordered.Object) *ordered.Object {
	var flat []*ordered.Object
	for _, s := range list {
		inner := s.List("anyOf")
		if inner == nil || len(s.Members) != 1 {
			flat = append(flat, s)
			continue
		}
		for _, e := range inner {
			if o, ok := e.(*ordered.Object); ok {
				flat = append(flat, o)
			}
		}
	}
	var words []any // where all are a type and nothing else
	var kept []any
	seen := map[string]bool{}
	simple := true
	for _, s := range flat {
		if len(s.Members) == 0 {
			return &ordered.Object{} // anything
		}
		text := encode(s)
		if seen[text] {
			continue
		}
		seen[text] = true
		kept = append(kept, s)
		if len(s.Members) > 1 || !s.Has("type") {
			simple = false
			continue
		}
		of, isList := s.Get("type").([]any)
		if !isList {
			of = []any{s.Get("type")}
		}
		for _, w := range of {
			if !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
	}
	if len(kept) == 1 {
		o, _ := kept[0].(*ordered.Object)
		return o
	}
	if !simple {
		return ordered.Of("anyOf", kept)
	}
	if slices.Contains(words, any("number")) { // a whole number is one
		words = slices.DeleteFunc(words, func(w any) bool { return w == "integer" })
	}
	if len(words) == 1 {
		return ordered.Of("type", words[0])
	}
	return ordered.Of("type", words)
}

// encode writes a schema. All that is put into one can be written.
func encode(o *ordered.Object) string {
	b, err := o.MarshalJSON()
	if err != nil {
		return fmt.Sprintf("%p", o)
	}
	return string(b)
}

// literal makes an enum of literals, of members of enums, and of names of literals.
func (t *typer) literal(of []*pyast.Expr) (*ordered.Object, error) {
	var values []json.RawMessage
	for _, e := range of {
		switch {
		case e.Value != nil:
			values = append(values, e.Value)
			continue
		case e.Kind == pyast.KindName:
			if v := t.member(e.Name); v != nil {
				values = append(values, v)
				continue
			}
		case e.Kind == pyast.KindGeneric && canonical(e.Name) == "Literal":
		default:
			return nil, without("Literal of " + e.Kind)
		}
		inner, err := t.schema(e)
		if err != nil {
			return nil, err
		}
		for _, v := range inner.List("enum") {
			if raw, ok := v.(json.RawMessage); ok {
				values = append(values, raw)
			}
		}
	}
	return enumOf(values), nil
}

// enumOf is the schema of one of several values.
func enumOf(values []json.RawMessage) *ordered.Object {
	s := &ordered.Object{}
	var words, list []any
	for _, v := range values {
		list = append(list, v)
		if w := wordOf(v); !slices.Contains(words, any(w)) {
			words = append(words, w)
		}
	}
	switch {
	case len(words) == 1:
		s.Set("type", words[0])
	case len(words) > 1:
		s.Set("type", words)
	}
	s.Set("enum", list)
	return s
}

// wordOf is the type of a JSON value.
func wordOf(v json.RawMessage) string {
	switch {
	case len(v) == 0 || v[0] == 'n':
		return "null"
	case v[0] == '"':
		return "string"
	case v[0] == 't' || v[0] == 'f':
		return "boolean"
	case v[0] == '[':
		return "array"
	case v[0] == '{':
		return "object"
	case strings.ContainsAny(string(v), ".eE"):
		return "number"
	}
	return "integer"
}
