package tools

import (
	"encoding/json"
	"strings"
	"testing"

	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/internal/ordered"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

const converts = `{
	"type": "object", "additionalProperties": false, "required": ["text", "count"],
	"properties": {
		"text": {"type": "string", "description": "What to convert.", "minLength": 1},
		"count": {"type": "integer", "minimum": 1},
		"format": {"enum": ["csv", "json", 7], "description": "Of the output."},
		"strict": {"type": "boolean"},
		"ratio": {"type": ["number", "null"]},
		"tags": {"type": "array", "items": {"type": "string"}},
		"options": {"type": "object", "additionalProperties": false, "properties": {"depth": {"$ref": "#/$defs/depth"}, "width": {"type": "integer"}}, "required": ["depth"]},
		"path": {"type": "string", "format": "data-path"},
		"choice": {"anyOf": [{"type": "object", "required": ["left"], "properties": {"left": {"type": "integer"}}}, {"type": "integer"}]}
	},
	"$defs": {"depth": {"type": "integer", "description": "How deep."}}
}`

// What a model is told of each mistake, by the words of the schema's own check.
func TestSuggestions(t *testing.T) {
	compiled, problems := manifest.CompileSchema([]byte(converts))
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	shown := schemaOf(json.RawMessage(converts))
	for name, c := range map[string]struct{ args, field, want string }{
		"missing":                  {`{"count": 1}`, "/text", `add "text", a string: What to convert.`},
		"missing without words":    {`{"text": "x"}`, "/count", `add "count", an integer`},
		"missing below, by $ref":   {`{"text": "x", "count": 1, "options": {}}`, "/options/depth", `add "depth", an integer: How deep.`},
		"unknown, near":            {`{"text": "x", "count": 1, "fromat": "csv"}`, "/fromat", `did you mean "format"?`},
		"unknown, another case":    {`{"text": "x", "count": 1, "Strict": true}`, "/Strict", `did you mean "strict"?`},
		"unknown, far":             {`{"text": "x", "count": 1, "zzzzzzzz": 1}`, "/zzzzzzzz", `leave "zzzzzzzz" out`},
		"unknown, near one given":  {`{"text": "x", "count": 1, "texts": "y"}`, "/texts", `leave "texts" out`},
		"unknown below":            {`{"text": "x", "count": 1, "options": {"depth": 1, "widht": 2}}`, "/options/widht", `did you mean "width"?`},
		"a number in a text":       {`{"text": "x", "count": "3"}`, "/count", `send 3 instead of "3"`},
		"half a number in a text":  {`{"text": "x", "count": "3.5"}`, "/count", ""},
		"words for a number":       {`{"text": "x", "count": "three"}`, "/count", ""},
		"a whole number":           {`{"text": "x", "count": 1, "options": {"depth": 3.5}}`, "/options/depth", ""},
		"a number for a text":      {`{"text": 3, "count": 1}`, "/text", `send "3" instead of 3`},
		"a flag for a text":        {`{"text": true, "count": 1}`, "/text", `send "true" instead of true`},
		"a list of one for a text": {`{"text": ["x"], "count": 1}`, "/text", `send "x" instead of ["x"]`},
		"null for a text":          {`{"text": null, "count": 1}`, "/text", `leave it out, or give a string`},
		"a flag in a text":         {`{"text": "x", "count": 1, "strict": "True"}`, "/strict", `send true instead of "True"`},
		"null in a text":           {`{"text": "x", "count": 1, "ratio": "null"}`, "/ratio", `send null instead of "null"`},
		"one for a list":           {`{"text": "x", "count": 1, "tags": "a"}`, "/tags", `send ["a"] instead of "a"`},
		"a list in a text":         {`{"text": "x", "count": 1, "tags": "[\"a\"]"}`, "/tags", `send the array itself, and not a text that holds it`},
		"an object in a text":      {`{"text": "x", "count": 1, "options": "{\"depth\": 1}"}`, "/options", `send the object itself, and not a text that holds it`},
		"within a list":            {`{"text": "x", "count": 1, "tags": ["a", 2]}`, "/tags/1", `send "2" instead of 2`},
		"near a value":             {`{"text": "x", "count": 1, "format": "CSV"}`, "/format", `did you mean "csv"?`},
		"a value in a text":        {`{"text": "x", "count": 1, "format": "7"}`, "/format", `send 7 instead of "7"`},
		"far from all values":      {`{"text": "x", "count": 1, "format": "xylophone"}`, "/format", ""},
		"no text for a value":      {`{"text": "x", "count": 1, "format": 8}`, "/format", ""},
		"too small":                {`{"text": "x", "count": 0}`, "/count", ""},
		"long":                     {`{"text": "x", "count": "` + strings.Repeat("9", 100) + `"}`, "/count", ""},
	} {
		v := musttest.Get(strictjson.Decode([]byte(c.args), 64, nil))(t)
		faults := compiled.Check(v, manifest.MaxSteps)
		if faults == nil {
			t.Errorf("%s: nothing is wrong", name)
			continue
		}
		list := fieldsOf(&skill.ResultError{Details: map[string]any{"fields": faults.Fields}})
		advise(shown, json.RawMessage(c.args), list)
		found := false
		for _, f := range list {
			if f.Field == c.field {
				found = true
				if f.Suggestion != c.want || f.Problem == "" {
					t.Errorf("%s: %s %s: %q, want %q", name, f.Field, f.Problem, f.Suggestion, c.want)
				}
			}
		}
		if !found {
			t.Errorf("%s: %+v", name, list)
		}
	}
	list := []field{
		{Field: "/path", Problem: "leaves the data folder"},
		{Field: "", Problem: "is not an object"},
		{Field: "/choice/left", Problem: "is missing"},
		{Field: "/no/such/place", Problem: "is a string", Expected: "integer"},
		{Field: "/tags/9", Problem: "is a string", Expected: "integer"},
		{Field: "/text/x", Problem: "is missing"},
		{Field: "/text", Problem: "is a string", Expected: "integer", Suggestion: "as it was"},
		{Field: "/format", Problem: "is missing"},
	}
	advise(shown, json.RawMessage(`{"text":"x","tags":[]}`), list)
	for i, want := range []string{
		"begin the path with ./data/", `send an object such as {"text":"…","count":1}`, `add "left", an integer`, "", "", `add "x"`, "as it was", `add "format", one of "csv", "json", 7: Of the output.`,
	} {
		if list[i].Suggestion != want {
			t.Errorf("%s %s: %q, want %q", list[i].Field, list[i].Problem, list[i].Suggestion, want)
		}
	}
}

// What a model is shown as an object that a schema may accept.
func TestExample(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:                                 `{}`,
		`{"properties": {}}`:                 `{}`,
		`{"properties": {"a": {}, "b": {}}}`: `{"a":"…"}`,
		`{"properties": {"a": {}}, "required": ["b"]}`: `{"b":"…"}`,
		`{"required": ["a","b","c","d","e","f","g","h","i"], "properties": {"a": {"type": "integer"}, "b": {"type": ["boolean", "null"]}, "c": {"type": "array"}, "d": {"type": "object"},
			"e": {"type": "null"}, "f": {"enum": ["x", "y"]}, "g": {"const": 3}, "h": {"type": "string", "default": "./data"}, "i": {}}}`: `{"a":1,"b":true,"c":[],"d":{},"e":null,"f":"x","g":3,"h":"./data"}`,
	} {
		o := musttest.Get(ordered.DecodeObject([]byte(in)))(t)
		if got := example(o); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// Names and places are found through choices, references and conditions.
func TestPlaces(t *testing.T) {
	s := json.RawMessage(`{"type":"object","$defs":{"p":{"type":"object","properties":{"deep":{"type":"integer"}}}},
		"then":{"properties":{"later":{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"boolean"}}}},
		"oneOf":[{"$ref":"#/$defs/p"},{"properties":{"else":{"$ref":"#/$defs/none"}}}],
		"additionalProperties":{"type":"object","properties":{"any":{"type":"integer"}}},"properties":{"loop":{"$ref":"#/properties/loop"}}}`)
	list := []field{
		{Field: "/deep", Problem: "is missing"},
		{Field: "/deeep", Problem: "is not known"},
		{Field: "/latter", Problem: "is not known"},
		{Field: "/x/any", Problem: "is missing"},
		{Field: "/else/y", Problem: "is missing"},
		{Field: "/loop/y", Problem: "is missing"},
		{Field: "/later/0", Problem: "is missing"},
		{Field: "/later/1", Problem: "is missing"},
		{Field: "/later/7", Problem: "is missing"},
		{Field: "/a~1b/0", Problem: "is a string", Expected: "integer"},
		{Field: "/a~1b/7", Problem: "is a string", Expected: "integer"},
		{Field: "/a~1b/0/x", Problem: "is a string", Expected: "integer"},
	}
	advise(s, json.RawMessage(`{"a/b":["7"]}`), list)
	for i, want := range []string{
		`add "deep", an integer`, `did you mean "deep"?`, `did you mean "later"?`, `add "any", an integer`, `add "y"`, `add "y"`,
		`add "0", an integer`, `add "1", a string`, `add "7", a boolean`, `send 7 instead of "7"`, "", "",
	} {
		if list[i].Suggestion != want {
			t.Errorf("%s %s: %q, want %q", list[i].Field, list[i].Problem, list[i].Suggestion, want)
		}
	}
}

// A schema of choices of references to choices is not looked through without end.
func TestSuggestionsEnd(t *testing.T) {
	refs := strings.TrimSuffix(strings.Repeat(`{"$ref":"#"},`, 400), ",")
	a := advisor{}
	list := []field{{Field: "/a/b/c", Problem: "is not known"}, {Field: "/x", Problem: "is missing"}}
	s := schemaOf(json.RawMessage(`{"anyOf":[` + refs + `],"oneOf":[{"$ref":"#/$defs/none"},{"$ref":"#/oneOf/0"}]}`))
	advise(s, json.RawMessage(`{}`), list)
	if list[0].Suggestion != `leave "c" out` || list[1].Suggestion != `add "x"` || a.spent != 0 {
		t.Errorf("%+v", list)
	}
	advise(json.RawMessage("no schema"), json.RawMessage("no arguments"), list)
}

// What a model writes as arguments, and what is understood.
func TestArguments(t *testing.T) {
	for in, c := range map[string]struct{ want, problem string }{
		"":                              {"{}", ""},
		" \n":                           {"{}", ""},
		"null":                          {"{}", ""},
		"{}":                            {"{}", ""},
		` {"a": 1} `:                    {`{"a": 1}`, ""},
		`"{\"a\": 1}"`:                  {`{"a": 1}`, ""},
		`"  {\"a\": \"\\u4e2d\"} "`:     {`{"a": "\u4e2d"}`, ""},
		`"\"{}\""`:                      {"", "is a text"},
		`"text"`:                        {"", "is a text"},
		`[{"a": 1}]`:                    {"", "is an array"},
		`7`:                             {"", "is a single value"},
		`{"a": 1, "a": 2}`:              {"", "a: appears more than once at byte 9"},
		`{"a": {"b": 1, "b": 2}}`:       {"", "a.b: appears more than once"},
		`{"a": 1`:                       {"", "is not JSON: "},
		`{"a": 1} {"b": 2}`:             {"", "is not JSON: "},
		`{a: 1}`:                        {"", "is not JSON: "},
		"```json\n{}\n```":              {"", "is not JSON: "},
		`"{\"a\": 1, \"a\": 2}"`:        {"", "a: appears more than once"},
		`{"a": "` + "\xff" + `"}`:       {"", "UTF-8"},
		strings.Repeat(`{"a":`, 100000): {"", "is not JSON: "},
		strings.Repeat(" ", 1<<20+1):    {"", "has 1048577 bytes"},
	} {
		raw, wrong := arguments(in)
		switch {
		case !json.Valid(raw):
			t.Errorf("%.40q: %s", in, raw)
		case c.problem == "":
			if wrong != nil || string(raw) != c.want {
				t.Errorf("%.40q: %s, %+v, want %s", in, raw, wrong, c.want)
			}
		case wrong == nil || string(raw) != "{}" || !strings.Contains(wrong.Problem, c.problem) || wrong.Expected == "":
			t.Errorf("%.40q: %s, %+v, want %s", in, raw, wrong, c.problem)
		}
	}
}

func FuzzArguments(f *testing.F) {
	f.Add(`"{\"a\":1}"`)
	f.Add(`{"a":[1,{"b":null}]}`)
	f.Fuzz(func(t *testing.T, in string) {
		raw, wrong := arguments(in)
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil || m == nil {
			t.Fatalf("%q: %v", raw, err)
		}
		if wrong != nil && string(raw) != "{}" {
			t.Fatalf("%q and %+v", raw, wrong)
		}
	})
}
