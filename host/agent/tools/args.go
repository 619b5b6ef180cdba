package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"openskill/internal/ordered"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// maxArguments is the size in bytes up to which arguments are read; doors take no more.
const maxArguments = 1 << 20

// field is one thing that is wrong with a call, in words by which a model mends it.
type field struct {
	Field      string `json:"field"` // JSON pointer; "" is the whole value
	Problem    string `json:"problem"`
	Expected   string `json:"expected,omitempty"`
	Suggestion string `json:"suggestion,omitempty"`
}

// arguments reads what a model wrote as arguments. Nothing is none; an object within a
// text, which some models write, is that object. Otherwise they are {}, and the field says
// what is wrong.
func arguments(text string) (json.RawMessage, *field) {
	none := json.RawMessage("{}")
	if len(text) > maxArguments {
		return none, &field{Problem: fmt.Sprintf("has %d bytes", len(text)), Expected: fmt.Sprintf("at most %d", maxArguments)}
	}
	raw := []byte(strings.TrimSpace(text))
	if len(raw) > 0 && raw[0] == '"' {
		var inner string
		if json.Unmarshal(raw, &inner) == nil && strings.HasPrefix(strings.TrimSpace(inner), "{") {
			raw = []byte(strings.TrimSpace(inner))
		}
	}
	if len(raw) == 0 || string(raw) == "null" {
		return none, nil
	}
	err := strictjson.Object(raw, func(_, _ []byte) error { return nil })
	if err == nil {
		return raw, nil
	}
	problem := "is not JSON: " + skill.CleanText(err.Error(), 160)
	switch e, ok := errors.AsType[*strictjson.Error](err); {
	case !json.Valid(raw):
	case raw[0] == '[':
		problem = "is an array"
	case raw[0] == '"':
		problem = "is a text"
	case raw[0] != '{':
		problem = "is a single value"
	case ok: // JSON, but of the kind in which two readers see two things
		problem = skill.CleanText(e.Error(), 160)
	}
	return none, &field{Problem: problem, Expected: "one JSON object"}
}

// example is an object with what a schema requires, or else with what comes first in it.
func example(schema *ordered.Object) string {
	const most = 8
	props := schema.Object("properties")
	if props == nil {
		return "{}"
	}
	required := names(schema.List("required"))
	if len(required) == 0 && len(props.Members) > 0 {
		required = []string{props.Members[0].Key}
	}
	o := &ordered.Object{}
	for _, name := range required[:min(len(required), most)] {
		p := props.Object(name)
		if p == nil {
			p = &ordered.Object{}
		}
		o.Set(name, sample(p))
	}
	b, err := ordered.Encode(o)
	if err != nil {
		return "{}"
	}
	return string(b)
}

// sample is a value that a schema may accept.
func sample(o *ordered.Object) any {
	if list := o.List("enum"); len(list) > 0 {
		return list[0]
	}
	if o.Has("const") {
		return o.Get("const")
	}
	if o.Has("default") {
		return o.Get("default")
	}
	switch kindOf(o) {
	case "integer", "number":
		return json.Number("1")
	case "boolean":
		return true
	case "array":
		return []any{}
	case "object":
		return &ordered.Object{}
	case "null":
		return nil
	}
	return "…"
}

// kindOf is the type that a schema wants, the first one of several; "" where it says none.
func kindOf(o *ordered.Object) string {
	if list := names(o.List("type")); len(list) > 0 {
		return list[0]
	}
	return o.Text("type")
}

// compact writes a value of a model as it is told back: short, or not at all.
func compact(v any) (string, bool) {
	const most = 80
	b, err := ordered.Encode(v)
	if err != nil || len(b) > most {
		return "", false
	}
	return string(bytes.TrimSpace(b)), true
}
