// Package tools makes tools for models of skills, writes them as vendors want them, and
// makes their calls for a caller.
//
// What skills say is untrusted. A [Toolbox] cleans and caps descriptions and schemas before
// a model sees them, and puts what a skill answers between marks that it cannot write, with
// characters that cannot be seen made visible, and cut to a length. None of that is relied
// on: the model is assumed to obey hostile text. What holds is that every call goes through
// the dispatcher as the caller, who can do through a model what the caller can do anyway, and
// nothing else.
//
// A [skill.Tool] has a name, a description and schemas that are fit to be shown: text that
// a stranger wrote has no character that cannot be seen, and no more than a model needs.
// [OpenAI], [Anthropic] and [MCP] write a list of them. What a vendor refuses in a schema
// is said in another way there, or left out; the dispatcher checks every call against the
// skill's own schema, whatever a model was shown:
//
//   - A schema of an older draft is said in the words of 2020-12; see [Modern].
//   - $schema, $id, $comment and the like are left out.
//   - References are replaced by what they refer to; where that contains itself, any value
//     stands in the third round. MCP keeps references.
//   - At the top, allOf, anyOf, oneOf and their kin are left out for OpenAI and Anthropic.
//     The properties of their parts join the others, and those that all parts require, or
//     one of allOf, are required.
//   - Every array has items for OpenAI: of prefixItems any of them.
//   - Properties that Anthropic refuses by their names (other than 1 to 64 of A-Z a-z 0-9
//     _ . -) are left out for it; a tool that requires one is left out itself, since no
//     call of it could be right. [Warnings] tells of both.
//   - Formats that are the host's own are left out.
package tools

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"openskill/host/manifest"
	"openskill/internal/ordered"
	"openskill/sdk/skill"
)

// The lengths in bytes at which text for models is cut. Vendors refuse descriptions of
// tools of more than 1,024 characters, or take them for costly.
const (
	longestDescription = 1024
	maxText            = 600 // of a description within a schema
)

// Of makes a tool of a skill. The name is the skill's id, which every vendor takes as it
// is; ids differ, and so no two skills of a catalogue make tools of one name.
func Of(d *skill.Descriptor) skill.Tool {
	return skill.Tool{
		Name: string(d.ID), Description: skill.CleanText(d.Description, longestDescription),
		InputSchema: Schema(d.InputSchema), OutputSchema: outputSchema(d.OutputSchema), ReadOnly: readOnly(d), Cost: d.Cost,
	}
}

// All makes tools of the skills of a catalogue that can be called.
func All(list []skill.Descriptor) []skill.Tool {
	out := []skill.Tool{}
	for i := range list {
		if list[i].Callable() {
			out = append(out, Of(&list[i]))
		}
	}
	return out
}

// readOnly reports whether a skill can change nothing: it runs in the sandbox, also where
// its fallback runs, and asks for no requests but those that only read.
func readOnly(d *skill.Descriptor) bool {
	for _, kind := range []skill.Kind{d.Runner, d.Fallback} {
		if kind != "" && !strings.HasPrefix(string(kind), "wasm:") {
			return false
		}
	}
	if len(d.Permissions.Skills) > 0 { // which may change something
		return false
	}
	for _, rule := range d.Permissions.HTTP {
		for _, m := range rule.Methods {
			if m != "GET" && m != "HEAD" && m != "OPTIONS" {
				return false
			}
		}
	}
	return d.Runner != ""
}

// Schema makes a schema that a stranger wrote fit for models: of an object, cleaned of
// what is invisible, without what is for programs. One that cannot be read is that of any
// object.
func Schema(raw json.RawMessage) json.RawMessage {
	o, err := ordered.DecodeObject(raw)
	if err != nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	Modern(o)
	cleanSchema(o, 0)
	if o.Text("type") != "object" {
		o.First("type", "object")
	}
	b, err := ordered.Encode(o)
	if err != nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	return b
}

// outputSchema is nil for a schema that says nothing.
func outputSchema(raw json.RawMessage) json.RawMessage {
	if s := Schema(raw); string(s) != `{"type":"object"}` {
		return s
	}
	return nil
}

// forPrograms are keywords that say nothing to a model.
var forPrograms = []string{"$schema", "$id", "$comment", "$vocabulary", "contentSchema"}

// A schema's keywords by what their values are.
var (
	schemaKeys     = []string{"items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties"}
	schemaListKeys = []string{"prefixItems", "allOf", "anyOf", "oneOf"}
	namedKeys      = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)

const maxDepth = 32

// cleanSchema cleans a schema and those in it.
func cleanSchema(o *ordered.Object, depth int) {
	for _, key := range forPrograms {
		o.Delete(key)
	}
	for _, key := range []string{"description", "title"} {
		if text, ok := o.Get(key).(string); ok {
			if text = skill.CleanText(text, maxText); text == "" {
				o.Delete(key)
			} else {
				o.Set(key, text)
			}
		} else {
			o.Delete(key)
		}
	}
	if list := o.List("enum"); list != nil {
		// A value that hides something cannot be shown as it is, and another one is wrong.
		list = slices.DeleteFunc(slices.Clone(list), hides)
		if len(list) == 0 {
			o.Delete("enum")
		} else {
			o.Set("enum", list)
		}
	}
	for _, key := range []string{"default", "const", "examples", "pattern", "format"} {
		if o.Has(key) && hides(o.Get(key)) {
			o.Delete(key)
		}
	}
	if _, err := regexp.Compile(o.Text("pattern")); err != nil { // of another language
		o.Delete("pattern")
	}
	if o.Text("format") == manifest.DataPath { // the host's own
		o.Delete("format")
	}
	eachSchema(o, func(s *ordered.Object) *ordered.Object {
		if depth >= maxDepth {
			return &ordered.Object{}
		}
		cleanSchema(s, depth+1)
		return s
	})
	for _, key := range namedKeys {
		if named := o.Object(key); named != nil {
			named.Members = slices.DeleteFunc(slices.Clone(named.Members), func(m ordered.Member) bool { return hasHidden(m.Key) })
		}
	}
	if list := o.List("required"); list != nil {
		o.Set("required", slices.DeleteFunc(slices.Clone(list), hides))
	}
}

// hides reports whether a value holds text with characters that cannot be seen.
func hides(v any) bool {
	switch v := v.(type) {
	case string:
		return hasHidden(v)
	case []any:
		return slices.ContainsFunc(v, hides)
	case *ordered.Object:
		return slices.ContainsFunc(v.Members, func(m ordered.Member) bool { return hasHidden(m.Key) || hides(m.Value) })
	}
	return false
}

// hasHidden reports whether a text has what cannot be seen, ends of lines and tabs left
// aside, or what was no text.
func hasHidden(s string) bool {
	_, found := skill.Unseen(s)
	return found || strings.ContainsRune(s, utf8.RuneError)
}

// eachSchema replaces every schema directly within one.
func eachSchema(o *ordered.Object, by func(*ordered.Object) *ordered.Object) {
	for _, key := range schemaKeys {
		if s := o.Object(key); s != nil {
			o.Set(key, by(s))
		}
	}
	for _, key := range schemaListKeys {
		list := o.List(key)
		for i := range list {
			if s, ok := list[i].(*ordered.Object); ok {
				list[i] = by(s)
			}
		}
	}
	for _, key := range namedKeys {
		named := o.Object(key)
		if named == nil {
			continue
		}
		for i := range named.Members {
			if s, ok := named.Members[i].Value.(*ordered.Object); ok {
				named.Members[i].Value = by(s)
			}
		}
	}
}
