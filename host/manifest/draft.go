package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// draftOf gives the draft that a schema is of.
func draftOf(doc any) (*jsonschema.Draft, error) {
	o, _ := doc.(map[string]any)
	switch name := o["$schema"].(type) {
	case nil:
		return jsonschema.Draft2020, nil
	case string:
		return draftNamed(name)
	}
	return nil, errDraft
}

var errDraft = fmt.Errorf("unknown $schema; accepted are %s, 2019-09, and http://json-schema.org/draft-07/schema#, 06 and 04; default: 2020-12", jsonschema.Draft2020)

// draftNamed gives the draft of an address, with http or https and with a # at its end or not.
func draftNamed(address string) (*jsonschema.Draft, error) {
	plain := func(s string) string {
		return strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(s, "https://"), "http://"), "#")
	}
	for _, d := range []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft2019, jsonschema.Draft7, jsonschema.Draft6, jsonschema.Draft4} {
		if plain(address) == plain(d.String()) {
			return d, nil
		}
	}
	return nil, errDraft
}

// refAlone reports whether what stands beside a reference does not count, as before 2019-09.
func refAlone(d *jsonschema.Draft) bool {
	return d == jsonschema.Draft7 || d == jsonschema.Draft6 || d == jsonschema.Draft4
}

// wrapRef puts a reference into allOf, so that something can stand beside it that counts. What
// stood there did not, but for what other references lead to.
func wrapRef(o map[string]any) {
	ref, ok := o["$ref"].(string)
	if !ok {
		return
	}
	maps.DeleteFunc(o, func(key string, _ any) bool { return key != "$schema" && key != "definitions" && key != "$defs" })
	o["allOf"] = []any{map[string]any{"$ref": ref}}
}

// allowNull has a type that is nullable, as OpenAPI 3.0 says it, accept null too.
func allowNull(o map[string]any) {
	if o["nullable"] != any(true) {
		return
	}
	list, ok := o["type"].([]any)
	if t, one := o["type"].(string); one {
		list, ok = []any{t}, true
	}
	if ok && !slices.Contains(list, any("null")) {
		o["type"] = append(slices.Clone(list), "null")
	}
}

// TakesObjects reports whether an object may be right. Of an input or a result that is an
// object, no other schema accepts anything.
func (s *Schema) TakesObjects() bool { return s.objects }

func takesObjects(s *jsonschema.Schema, known map[*jsonschema.Schema]bool) bool {
	if takes, ok := known[s]; ok {
		return takes
	}
	known[s] = true
	takes := func(t *jsonschema.Schema) bool { return takesObjects(t, known) }
	isObject := func(v any) bool {
		_, ok := v.(map[string]any)
		return ok
	}
	is := s.Bool == nil || *s.Bool
	is = is && (s.Types == nil || s.Types.IsEmpty() || slices.Contains(s.Types.ToStrings(), "object"))
	is = is && (s.Const == nil || isObject(*s.Const))
	is = is && (s.Enum == nil || slices.ContainsFunc(s.Enum.Values, isObject))
	is = is && (s.Ref == nil || takes(s.Ref))
	for _, t := range s.AllOf {
		is = is && takes(t)
	}
	for _, list := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		is = is && (len(list) == 0 || slices.ContainsFunc(list, takes))
	}
	known[s] = is
	return is
}
