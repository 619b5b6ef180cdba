package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	contract = "../../host/api/openapi.json"
	made     = "../../sdk/typescript/openskill.d.ts"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The types that are checked in are those of the contract.
func TestTypesOfTheContract(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out.d.ts")
	if err := convert(contract, out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(read(t, made)), string(read(t, out))); diff != "" {
		t.Errorf("go run ./scripts/opentypes host/api/openapi.json sdk/typescript/openskill.d.ts (-checked in +made):\n%s", diff)
	}
}

var (
	comments = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	literals = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	declared = regexp.MustCompile(`(?m)^export (?:type|interface) (\w+)`)
	words    = regexp.MustCompile(`\b[A-Z]\w+\b`)
)

// Where there is no compiler: brackets come in pairs, and every type that is used is
// declared, once.
func TestTypesAreWhole(t *testing.T) {
	t.Parallel()
	text := literals.ReplaceAllString(comments.ReplaceAllString(string(read(t, made)), ""), `""`)
	var open []rune
	pairs := map[rune]rune{'}': '{', ']': '[', ')': '('}
	for _, r := range text {
		switch r {
		case '{', '[', '(':
			open = append(open, r)
		case '}', ']', ')':
			if len(open) == 0 || open[len(open)-1] != pairs[r] {
				t.Fatalf("%q closes nothing", r)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("%q is not closed", open)
	}
	types := map[string]bool{"Record": true, "Blob": true, "FormData": true}
	for _, m := range declared.FindAllStringSubmatch(text, -1) {
		if types[m[1]] {
			t.Errorf("%s is declared twice", m[1])
		}
		types[m[1]] = true
	}
	if len(types) < 40 {
		t.Errorf("%d types", len(types))
	}
	properties := regexp.MustCompile(`\b\w+\??:`)
	for _, name := range words.FindAllString(properties.ReplaceAllString(text, ""), -1) {
		if !types[name] {
			t.Errorf("%s is used, and not declared", name)
		}
	}
}

// The compiler of TypeScript takes them, and a program that uses them.
func TestTypesCompile(t *testing.T) {
	t.Parallel()
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if !filepath.IsAbs(state) {
		state = filepath.Join("..", "..", firstOf(state, ".openskill"))
	}
	tsc := filepath.Join(state, "typescript", "node_modules", "typescript", "bin", "tsc")
	if _, err := os.Stat(tsc); err != nil {
		t.Skip("the compiler of TypeScript is not set up: run scripts/typescript.sh .openskill/typescript, which needs node and npm")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not here")
	}
	dir := t.TempDir()
	for from, to := range map[string]string{made: "openskill.d.ts", "testdata/use.ts": "use.ts"} {
		if err := os.WriteFile(filepath.Join(dir, to), read(t, from), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if tsc, err = filepath.Abs(tsc); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), node, tsc, "--strict", "--noEmit", "--exactOptionalPropertyTypes", "--target", "es2022", "--module", "es2022",
		"--moduleResolution", "bundler", "--lib", "es2022,dom", "use.ts", "openskill.d.ts")
	run.Dir = dir
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{}`:                                     "unknown",
		`{"description": "x"}`:                   "unknown",
		`{"type": "string"}`:                     "string",
		`{"type": "string", "format": "uuid"}`:   "string",
		`{"type": "string", "format": "binary"}`: "Blob",
		`{"type": "integer", "minimum": 1}`:      "number",
		`{"type": ["string", "null"]}`:           "string | null",
		`{"const": true}`:                        "true",
		`{"enum": ["a", 1, null, "a"]}`:          `"a" | 1 | null`,
		`{"type": "array"}`:                      "unknown[]",
		`{"type": "array", "items": {"type": ["string", "null"]}}`: "(string | null)[]",
		`{"type": "array", "items": {"enum": ["a|b"]}}`:            `("a|b")[]`,
		`{"type": "object"}`: "Record<string, unknown>",
		`{"type": "object", "additionalProperties": false}`:                                                                "Record<string, never>",
		`{"type": "object", "additionalProperties": {"type": "number"}}`:                                                   "Record<string, number>",
		`{"type": "array", "items": {"$ref": "#/components/schemas/A"}}`:                                                   "A[]",
		`{"oneOf": [{"type": "string"}, {"$ref": "#/components/schemas/A"}]}`:                                              "string | A",
		`{"type": "object", "oneOf": [{"$ref": "#/components/schemas/A"}]}`:                                                "A",
		`{"properties": {"a": {}, "b c": {"type": "null"}}, "required": ["a"]}`:                                            "{\n  a: unknown;\n  \"b c\"?: null;\n}",
		`{"type": "object", "properties": {"a": {"type": "string", "description": "*/ x"}}, "additionalProperties": true}`: "{\n  /** *\\/ x */\n  a?: string;\n  [key: string]: unknown;\n}",
		`{"anyOf": [{"type": "string"}, {"type": "null"}], "properties": {"a": {"type": "string"}}}`:                       "(string | null) & {\n  a?: string;\n}",
	} {
		var s schema
		if err := json.Unmarshal([]byte(in), &s); err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		w := &writer{doc: &document{}}
		w.doc.Components.Schemas = map[string]schema{"A": {}}
		if got := w.schema(&s, ""); got != want || w.err != nil {
			t.Errorf("%s: %s, want %s; %v", in, got, want, w.err)
		}
	}
}

// What would come out wrong is refused: whoever changes the contract changes this too.
func TestRefused(t *testing.T) {
	t.Parallel()
	schemas := func(s string) string { return `{"components": {"schemas": {"A": ` + s + `}}}` }
	path := func(s string) string { return `{"paths": {"/a": ` + s + `}}` }
	for in, want := range map[string]string{
		`{`:                                                 "unexpected end",
		schemas(`{"allOf": []}`):                            `"allOf" of a schema is not known`,
		schemas(`{"items": {"not": {}}}`):                   `"not" of a schema is not known`,
		schemas(`{"type": "date"}`):                         `the type "date"`,
		schemas(`{"$ref": "other.json"}`):                   "leads to no schemas",
		schemas(`{"$ref": "#/components/schemas/B"}`):       "no schema B",
		`{"components": {"schemas": {"a b": {}}}}`:          "cannot be the name",
		path(`{"parameters": []}`):                          "[parameters] is not known",
		path(`{"get": {"parameters": [{"in": "cookie"}]}}`): `a parameter in "cookie"`,
		path(`{"get": {"responses": {"200": {"$ref": "#/components/responses/B"}}}}`):             "no response B",
		path(`{"get": {"parameters": [{"$ref": "#/components/parameters/B"}]}}`):                  "no parameter B",
		path(`{"get": {"parameters": [{"in": "path", "schema": {"prefixItems": []}}]}}`):          "get /a: ",
		path(`{"get": {"responses": {"200": {"content": {"application/json": {"schema": 5}}}}}}`): "get /a: ",
	} {
		if out, err := types([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %s; want %q", in, err, out, want)
		}
	}
}
