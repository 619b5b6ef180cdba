package manifest

import (
	"fmt"
	"strings"
	"testing"
)

// A schema is of the draft that it names, which is what its author and the tools that wrote it
// take it for.
func TestDrafts(t *testing.T) {
	const (
		d20 = "https://json-schema.org/draft/2020-12/schema"
		d19 = "https://json-schema.org/draft/2019-09/schema"
		d7  = "http://json-schema.org/draft-07/schema"
		d6  = "http://json-schema.org/draft-06/schema"
		d4  = "http://json-schema.org/draft-04/schema"
	)
	for _, c := range []struct {
		drafts       []string
		schema       string // without $schema
		right, wrong string
	}{
		{[]string{d20, d19, d7, d6, d4, ""}, `"properties": {"a": {"type": "integer"}}, "required": ["a"]`, `{"a": 1}`, `{"a": "x"}`},
		{[]string{d19, d7, d6, d4}, `"properties": {"a": {"items": [{"type": "string"}, {"type": "number"}], "additionalItems": false}}`, `{"a": ["x", 1]}`, `{"a": ["x", 1, 2]}`},
		{[]string{d20, ""}, `"properties": {"a": {"prefixItems": [{"type": "string"}], "items": false}}`, `{"a": ["x"]}`, `{"a": ["x", 1]}`},
		{[]string{d4}, `"properties": {"a": {"minimum": 1, "exclusiveMinimum": true}}`, `{"a": 2}`, `{"a": 1}`},
		{[]string{d20, d19, d7, d6, ""}, `"properties": {"a": {"exclusiveMinimum": 1}}`, `{"a": 2}`, `{"a": 1}`},
		{[]string{d7, d6, d4}, `"dependencies": {"a": ["b"], "c": {"required": ["d"]}}`, `{"a": 1, "b": 2}`, `{"a": 1}`},
		{[]string{d7, d6, d4}, `"dependencies": {"c": {"required": ["d"]}}`, `{"d": 2}`, `{"c": 1}`},
		// What is beside a reference does not count before 2019-09, and does after.
		{[]string{d7, d6, d4}, `"properties": {"a": {"$ref": "#/definitions/s", "maxLength": 1}}, "definitions": {"s": {"type": "string"}}`, `{"a": "long"}`, `{"a": 1}`},
		{[]string{d20, d19, ""}, `"properties": {"a": {"$ref": "#/definitions/s", "maxLength": 1}}, "definitions": {"s": {"type": "string"}}`, `{"a": "l"}`, `{"a": "long"}`},
		// As generators write a root.
		{[]string{d7, d6, d4}, `"$ref": "#/definitions/Root", "definitions": {"Root": {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/definitions/Root"}}}}`, "", `{"a": {}}`},
		{[]string{d7, d6, d4}, `"definitions": {"tree": {"type": "object", "properties": {"down": {"$ref": "#/definitions/tree"}}, "additionalProperties": false}}, "properties": {"t": {"$ref": "#/definitions/tree"}}`, `{"t": {"down": {"down": {}}}}`, `{"t": {"down": {"down": 1}}}`},
		{[]string{d19}, `"properties": {"down": {"$recursiveRef": "#"}, "n": {"type": "number"}}`, `{"down": {"n": 1}}`, `{"down": {"n": "x"}}`},
		{[]string{d7, d6}, `"properties": {"a": {"contains": {"type": "string"}}}, "propertyNames": {"maxLength": 1}`, `{"a": [1, "x"]}`, `{"a": [1]}`},
		{[]string{d7}, `"if": {"required": ["a"]}, "then": {"required": ["b"]}`, `{"a": 1, "b": 1}`, `{"a": 1}`},
		{[]string{d7, d4}, `"properties": {"p": {"type": "string", "format": "data-path"}}`, `{"p": "data/x"}`, `{"p": "../x"}`},
	} {
		for _, d := range c.drafts {
			for _, named := range []string{d, d + "#", strings.Replace(d, "https:", "http:", 1), strings.Replace(d, "http:", "https:", 1)} {
				text := fmt.Sprintf(`{"$schema": %q, %s}`, named, c.schema)
				if d == "" {
					text = "{" + c.schema + "}"
				}
				s := compile(t, text)
				if c.right != "" {
					if f := s.Check(value(t, c.right), MaxSteps); f != nil {
						t.Errorf("%s: %s is refused: %s", text, c.right, f.Summary())
					}
				}
				if s.Check(value(t, c.wrong), MaxSteps) == nil {
					t.Errorf("%s: %s is accepted", text, c.wrong)
				}
			}
		}
	}
}

func TestRefusesUnknownDrafts(t *testing.T) {
	for src, want := range map[string]string{
		`{"$schema": "http://json-schema.org/draft-03/schema#"}`: "unknown $schema",
		`{"$schema": "https://example.com/schema"}`:              "unknown $schema",
		`{"$schema": 7}`: "unknown $schema",
		`{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$id": "b", "$schema": "http://json-schema.org/draft-04/schema#"}}}`: "use one draft",
		// Of another draft than it says: told, not taken for something else.
		`{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"minimum": 1, "exclusiveMinimum": true}}}`: "is a boolean",
		`{"properties": {"a": {"items": [{"type": "string"}]}}}`:                                                                "/properties/a/items",
		`{"$schema": "https://json-schema.org/draft/2019-09/schema", "properties": {"a": {"$recursiveRef": "#/b"}}}`:            "must be #",
		`{"$schema": "https://json-schema.org/draft/2019-09/schema", "properties": {"a": {"$id": "b", "$recursiveRef": "#"}}}`:  "only without $id",
		`{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$ref": "file:///etc/passwd"}}}`:           "stay in this schema",
		`{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#"}`:                                                   "loops without descending",
		`{"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveAnchor": true, "$recursiveRef": "#"}`:           "loops without descending",
	} {
		s, problems := CompileSchema([]byte(src))
		if s != nil || len(problems) == 0 || !strings.Contains(problems[0].Error(), want) {
			t.Errorf("%s: %v", src, problems)
		}
	}
}

// A check of an older draft costs what one of the newest does: references are counted there too,
// where nothing beside them is looked at.
func TestReferencesOfOlderDraftsAreCounted(t *testing.T) {
	var defs, members []string
	for i := range 40 {
		defs = append(defs, fmt.Sprintf(`"c%d": {"$ref": "#/definitions/c%d"}`, i, i+1))
	}
	for i := range 1000 {
		members = append(members, fmt.Sprintf(`"m%d": 1`, i))
	}
	v := value(t, "{"+strings.Join(members, ",")+"}")
	for _, draft := range []string{"http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"} {
		s := compile(t, `{"$schema": "`+draft+`", "definitions": {`+strings.Join(defs, ",")+`, "c40": {}}, "additionalProperties": {"$ref": "#/definitions/c0"}}`)
		const evaluations = 1000 * 40
		if f := s.Check(v, evaluations*stepsOfOne); f == nil || !f.Over {
			t.Errorf("%s: %+v", draft, f)
		}
		if f := s.Check(v, MaxSteps); f != nil {
			t.Errorf("%s: %+v", draft, f)
		}
	}
}

// Of nullable, which OpenAPI has and JSON Schema has not, is made what its authors mean.
func TestNullable(t *testing.T) {
	s := compile(t, `{"properties": {"a": {"type": "string", "nullable": true}, "b": {"type": ["string", "null"], "nullable": true},
		"c": {"type": "string", "nullable": false}, "d": {"nullable": true, "enum": ["x"]}, "nullable": {"type": "boolean"}, "e": {"const": {"nullable": true, "type": "string"}}}}`)
	for text, right := range map[string]bool{
		`{"a": null}`: true, `{"a": "x"}`: true, `{"a": 1}`: false, `{"b": null}`: true, `{"c": null}`: false, `{"d": null}`: false, `{"nullable": true}`: true,
		`{"e": {"nullable": true, "type": "string"}}`: true,
	} {
		if f := s.Check(value(t, text), MaxSteps); (f == nil) != right {
			t.Errorf("%s: %+v", text, f)
		}
	}
}

func TestTakesObjects(t *testing.T) {
	for src, want := range map[string]bool{
		`{}`: true, `{"type": "object"}`: true, `{"type": ["array", "object"]}`: true, `{"properties": {"a": {"type": "array"}}}`: true,
		`{"type": "array"}`: false, `{"type": ["string", "null"]}`: false, `{"const": 1}`: false, `{"enum": [1, "x"]}`: false, `{"enum": [1, {}]}`: true,
		`{"$ref": "#/$defs/a", "$defs": {"a": {"type": "array"}}}`: false,
		`{"allOf": [{}, {"type": "array"}]}`:                       false,
		`{"anyOf": [{"type": "array"}, {"type": "string"}]}`:       false,
		`{"anyOf": [{"type": "array"}, {"type": "object"}]}`:       true,
		`{"oneOf": [{"type": "array"}]}`:                           false,
		`{"anyOf": [false]}`:                                       false,
		`{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "definitions": {"a": {"type": "array"}}}`: false,
		`{"type": "array", "nullable": true}`: false,
	} {
		if got := compile(t, src).TakesObjects(); got != want {
			t.Errorf("%s: %v", src, got)
		}
	}
}
