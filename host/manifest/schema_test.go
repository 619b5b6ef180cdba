package manifest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"openskill/internal/musttest"
)

func compile(t *testing.T, src string) *Schema {
	t.Helper()
	s, problems := CompileSchema([]byte(src))
	if len(problems) > 0 {
		t.Fatalf("the schema is refused: %v", problems)
	}
	return s
}

func value(t *testing.T, src string) any {
	t.Helper()
	return musttest.Get(jsonschema.UnmarshalJSON(strings.NewReader(src)))(t)
}

const calculator = `{
	"type": "object", "required": ["numbers", "ops"], "additionalProperties": false,
	"properties": {
		"numbers": {"type": "array", "minItems": 1, "items": {"type": "number"}},
		"ops": {"type": "array", "items": {"enum": ["mean", "median"]}},
		"compare": {"anyOf": [{"type": "object"}, {"type": "null"}]},
		"limit": {"type": "integer", "minimum": 1, "maximum": 100},
		"root_dir": {"type": "string", "format": "data-path"},
		"name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 3}
	}}`

func TestEveryWrongFieldIsNamed(t *testing.T) {
	s := compile(t, calculator)
	for name, c := range map[string]struct {
		value string
		want  []Field
	}{
		"right":   {`{"numbers": [1, 2.5], "ops": ["mean"], "compare": null, "limit": 1}`, nil},
		"missing": {`{}`, []Field{{"/numbers", "is missing", "array of number"}, {"/ops", "is missing", `array of one of "mean", "median"`}}},
		"types":   {`{"numbers": "1", "ops": [3]}`, []Field{{"/numbers", "is a string", "array"}, {"/ops/0", "is not one of the accepted values", `one of "mean", "median"`}}},
		"items":   {`{"numbers": [1, "x", null], "ops": []}`, []Field{{"/numbers/1", "is a string", "number"}, {"/numbers/2", "is null", "number"}}},
		"empty":   {`{"numbers": [], "ops": []}`, []Field{{"/numbers", "is too short", "at least 1 item"}}},
		"unknown": {`{"numbers": [1], "ops": [], "a/b~c": 1}`, []Field{{"/a~1b~0c", "is not known", "one of compare, limit, name, numbers, ops, root_dir"}}},
		"choice":  {`{"numbers": [1], "ops": [], "compare": 1}`, []Field{{"/compare", "matches none of the accepted forms", "object, or null"}}},
		"range":   {`{"numbers": [1], "ops": [], "limit": 101}`, []Field{{"/limit", "is too large", "at most 100"}}},
		"pattern": {`{"numbers": [1], "ops": [], "name": "S3CRET"}`, []Field{
			{"/name", "does not match the pattern", "text that matches ^[a-z]+$"}, {"/name", "is too long", "at most 3 characters"},
		}},
		"path": {`{"numbers": [1], "ops": [], "root_dir": "/etc"}`, []Field{{"/root_dir", "leaves the data folder", dataPathExpected}}},
	} {
		t.Run(name, func(t *testing.T) {
			faults := s.Check(value(t, c.value), MaxSteps)
			var got []Field
			if faults != nil {
				got = faults.Fields
				if strings.Contains(faults.Summary(), "S3CRET") {
					t.Error("the message repeats the value")
				}
				if faults.Forbidden != (name == "path") {
					t.Errorf("Forbidden is %v", faults.Forbidden)
				}
			}
			byField := func(l []Field) map[string]string {
				m := map[string]string{}
				for _, f := range l {
					m[f.Field+" "+f.Problem] = f.Expected
				}
				return m
			}
			if diff := cmp.Diff(byField(c.want), byField(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFieldsAreCapped(t *testing.T) {
	s := compile(t, `{"items": {"type": "string"}}`)
	faults := s.Check(value(t, "["+strings.Repeat("1,", 99)+"1]"), MaxSteps)
	if faults == nil || len(faults.Fields) != MaxFields || faults.Total != 100 {
		t.Fatalf("got %+v", faults)
	}
	if !strings.HasSuffix(faults.Summary(), "and 97 more") {
		t.Errorf("message %q", faults.Summary())
	}
}

// TestManyFaultsAreQuick: a value that is wrong in very many places is told so at
// the price of reading it.
func TestManyFaultsAreQuick(t *testing.T) {
	s := compile(t, `{"additionalProperties": false, "properties": {
		"list": {"items": {"anyOf": [{"type": "string", "format": "data-path"}, {"type": "null"}]}},
		"paths": {"items": {"type": "string", "format": "data-path"}}}}`)
	var keys strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&keys, `,"k%d":0`, i)
	}
	for name, c := range map[string]struct {
		value     string
		total     int
		forbidden bool
	}{
		"unknown names": {`{` + keys.String()[1:] + `}`, 100_000, false},
		"wrong items":   {`{"list": [` + strings.Repeat("1,", 99_999) + `1]}`, 100_000, false},
		"paths at last": {`{"paths": [` + strings.Repeat("1,", 99_999) + `"/etc"]}`, 100_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			v := value(t, c.value)
			begun := time.Now()
			faults := s.Check(v, MaxSteps)
			if faults == nil || faults.Total != c.total || len(faults.Fields) != MaxFields || faults.Forbidden != c.forbidden {
				t.Fatalf("got %+v", faults)
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("took %v", took)
			} else {
				t.Logf("took %v", took)
			}
		})
	}
}

func TestInData(t *testing.T) {
	for path, want := range map[string]bool{
		"data": true, "./data": true, "data/": true, "./data/docs": true, "data/logs/app.log": true, "./data//x": true,
		"": false, ".": false, "docs": false, "/data": false, "/data/x": false, "/etc/passwd": false, "database/x": false,
		"data/../etc": false, "../data": false, "./data/..": false, "data/a..b": false, "data\\..\\x": false, "data/x\\y": false,
		"data/\x00": false, "data/a\nb": false, "~/data": false, "C:/data": false, "file:///data/x": false, "Data/x": false,
		"data" + strings.Repeat("/x", 2100): false, "\xffdata": false,
	} {
		if got := InData(path); got != want {
			t.Errorf("InData(%.40q) = %v", path, got)
		}
	}
}

func TestSchemasThatAreRefused(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.json")
	musttest.Do(t, os.WriteFile(secret, []byte(`{"type": "string"}`), 0o600))
	deep := strings.Repeat(`{"not":`, 40) + "{}" + strings.Repeat("}", 40)
	for name, c := range map[string]struct{ schema, pointer, want string }{
		"a file":         {`{"$ref": "file://` + secret + `"}`, "/$ref", "stay in this schema"},
		"a path":         {`{"properties": {"a": {"$ref": "` + secret + `"}}}`, "/properties/a/$ref", "stay in this schema"},
		"an address":     {`{"$ref": "http://127.0.0.1:1/x"}`, "/$ref", "stay in this schema"},
		"a base address": {`{"$id": "http://127.0.0.1:1/", "$dynamicRef": "x"}`, "/$dynamicRef", "stay in"},
		"another draft":  {`{"$schema": "http://json-schema.org/draft-03/schema#"}`, "/$schema", "unknown $schema; accepted are https://json-schema.org/draft/2020-12/schema"},
		"lookahead":      {`{"properties": {"a": {"pattern": "(?=x)"}}}`, "/properties/a/pattern", "RE2"},
		"large patterns": {
			`{"properties": {"a": {"pattern": "^` + strings.Repeat("(?:a?){99}", 30) + `$"}, "b": {"pattern": "^` + strings.Repeat("(?:a?){99}", 30) + `$"}}}`,
			"/properties/b/pattern", "10000 instructions together",
		},
		"large names":        {`{"patternProperties": {"(a?){999}(b?){999}(c?){999}(d?){999}": {}}}`, "/patternProperties/(a?){999}(b?){999}(c?){999}(d?){999}", "10000 instructions together"},
		"a large number":     {`{"minimum": 1e999999}`, "/minimum", "range of a double"},
		"a tiny number":      {`{"enum": [1e-999999]}`, "/enum/0", "range of a double"},
		"a huge repetition":  {`{"pattern": "((a{1000}){1000}){1000}"}`, "/pattern", "RE2"},
		"a wrong type":       {`{"properties": {"a": {"type": "text"}}}`, "/properties/a/type", "one of"},
		"a loop":             {`{"anyOf": [{"type": "null"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#"}}}}`, "", "loops without descending"},
		"a dynamic loop":     {`{"$dynamicAnchor": "a", "allOf": [{"$dynamicRef": "#a"}]}`, "", "loops without descending"},
		"a long chain":       {`{"$ref": "#/$defs/1", "$defs": {` + chainOf(101) + `}}`, "", "more than 100 chained subschemas"},
		"no such definition": {`{"$ref": "#/$defs/x"}`, "", "not a valid JSON Schema"},
		"depth":              {deep, strings.Repeat("/not", 32), "nested more than 32 deep"},
		"size":               {`{"description": "` + strings.Repeat("x", MaxSchemaBytes) + `"}`, "", "the limit is 32768"},
		"not an object":      {`true`, "", "a schema is an object"},
		"not JSON":           {`{`, "", "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := CompileSchema([]byte(c.schema))
			for _, p := range problems {
				if p.Pointer == c.pointer && strings.Contains(p.Message, c.want) {
					return
				}
			}
			t.Errorf("got %v, want one at %q with %q", problems, c.pointer, c.want)
		})
	}
}

// chainOf are n definitions, each a reference to the next; the last goes into the value, and
// to the first.
func chainOf(n int) string {
	var b strings.Builder
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, `"%d": {"$ref": "#/$defs/%d"}, `, i, i+1)
	}
	return fmt.Sprintf(`%s"%d": {"items": {"$ref": "#/$defs/1"}}`, b.String(), n)
}

// TestStackIsBounded: what a schema and a value come to together is known before the validator
// goes into them.
func TestStackIsBounded(t *testing.T) {
	nested := func(n int) any { return value(t, strings.Repeat("[", n)+strings.Repeat("]", n)) }
	s := compile(t, `{"$ref": "#/$defs/1", "$defs": {`+chainOf(90)+`}}`)
	if f := s.Check(nested(100), MaxSteps); f != nil {
		t.Errorf("a chain of 90 and a depth of 100: %v", f)
	}
	if f := s.Check(nested(500), MaxSteps); f == nil || !f.Over {
		t.Errorf("a chain of 90 and a depth of 500: %v", f)
	}
	tree := compile(t, `{"$dynamicAnchor": "a", "items": {"$dynamicRef": "#a"}}`)
	if f := tree.Check(nested(500), MaxSteps); f != nil {
		t.Errorf("a tree that is 500 deep: %v", f)
	}
}

// TestWorkIsBounded checks values against schemas whose work doubles at every
// level: each check must end with a refusal and not with the end of time.
func TestWorkIsBounded(t *testing.T) {
	var doubling strings.Builder
	doubling.WriteString(`{"$ref": "#/$defs/d0", "$defs": {`)
	for i := range 40 {
		fmt.Fprintf(&doubling, `"d%d": {"allOf": [{"$ref": "#/$defs/d%d"}, {"$ref": "#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubling.WriteString(`"d40": {"type": "object"}}}`)
	// Branches of which nobody wants to know what is wrong were not counted.
	silent := strings.NewReplacer(`"allOf"`, `"anyOf"`, `{"$ref": "#/$defs/d0"`, `{"not": {"$ref": "#/$defs/d0"}`, `"object"`, `"array"`).Replace(doubling.String())
	numbers := strings.Repeat("7,", 4000) + "7"
	many := func(item string, n int) string { return "[" + strings.Repeat(item+",", n) + item + "]" }
	colliding := make([]string, 1<<13)
	for i := range colliding { // all have one hash
		var parts strings.Builder
		for bit := range 13 {
			parts.WriteString("x" + map[bool]string{true: `","`, false: "\\u0004"}[i>>bit&1 == 1])
		}
		colliding[i] = `["` + parts.String() + `y"]`
	}
	for name, c := range map[string]struct{ schema, value string }{
		"a doubling chain":              {doubling.String(), `{}`},
		"a doubling chain behind not":   {silent, `{}`},
		"a doubling tree":               {`{"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]}`, strings.Repeat(`{"a":`, 50) + "1" + strings.Repeat("}", 50)},
		"an enum of numbers":            {`{"items": {"enum": [` + numbers + `]}}`, many("1", 5000)},
		"an enum that fails in silence": {`{"items": {"not": {"enum": [` + numbers + `]}}}`, many("1", 5000)},
		"a const of many numbers":       {`{"items": {"const": [` + numbers + `]}}`, many(many("7", 3999), 300)},
		"a pattern":                     {`{"items": {"pattern": "^(a?){999}$"}}`, many(`"`+strings.Repeat("a", 1000)+`"`, 300)},
		"patterns of names":             {`{"patternProperties": {"^(a?){999}$": {}}}`, `{"` + strings.Repeat("a", 300_000) + `": 1}`},
		"a pattern of names":            {`{"propertyNames": {"pattern": "^(a?){999}$"}}`, `{"` + strings.Repeat("a", 300_000) + `": 1}`},
		"values that are patterns":      {`{"items": {"format": "regex"}}`, many(`"`+strings.Repeat("a", 9000)+`"`, 300)},
		"items of one hash":             {`{"uniqueItems": true}`, "[" + strings.Join(colliding, ",") + "]"},
		"few and large items":           {`{"items": {"uniqueItems": true}}`, many("["+many("1", 9000)+","+many("1", 8999)+"]", 100)},
	} {
		t.Run(name, func(t *testing.T) {
			s := compile(t, c.schema)
			v := value(t, c.value)
			for range 2 { // the copy must be usable again
				begun := time.Now()
				faults := s.Check(v, MaxSteps)
				if faults == nil || faults.Fields[0].Problem != "takes too many steps to validate" {
					t.Errorf("got %v", faults)
				}
				t.Logf("took %v", time.Since(begun))
			}
		})
	}
	s := compile(t, `{"items": {"type": "number"}, "uniqueItems": true}`)
	var b bytes.Buffer
	for i := range 100_000 {
		fmt.Fprintf(&b, ",%d", i)
	}
	if faults := s.Check(value(t, "["+b.String()[1:]+"]"), MaxSteps); faults != nil {
		t.Errorf("an honest large value is refused: %v", faults)
	}
}

func TestChecksAtOnce(t *testing.T) {
	s := compile(t, calculator)
	good, bad := value(t, `{"numbers": [1], "ops": []}`), value(t, `{"ops": []}`)
	done := make(chan string, 16)
	for range cap(done) {
		go func() {
			for range 50 {
				if f := s.Check(good, MaxSteps); f != nil {
					done <- f.Summary()
					return
				}
				if f := s.Check(bad, MaxSteps); f == nil {
					done <- "a wrong value passed"
					return
				}
			}
			done <- ""
		}()
	}
	for range cap(done) {
		if msg := <-done; msg != "" {
			t.Error(msg)
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(calculator)
	f.Add(`{"$ref": "#/$defs/a", "$defs": {"a": {"$anchor": "b", "$dynamicAnchor": "c"}}}`)
	f.Add(`{"if": {}, "then": false, "unevaluatedProperties": false, "dependentRequired": {"a": ["b"]}}`)
	f.Add(`{"$id": "https://json-schema.org/draft/2020-12/schema"}`)
	f.Fuzz(func(t *testing.T, src string) {
		s, problems := CompileSchema([]byte(src))
		if (s == nil) == (len(problems) == 0) {
			t.Fatalf("schema %v, problems %v", s != nil, problems)
		}
		if s != nil {
			s.Check(map[string]any{"a": []any{}, "b": nil}, MaxSteps)
		}
	})
}
