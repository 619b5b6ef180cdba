// Package skills_test holds the skills that come with openSkill to one table of
// cases, in every form that they have.
package skills_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// A testCase is one call and what it must answer, written by hand in
// testdata/cases/SKILL.json and never made from a skill's output.
type testCase struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"` // the value of "input" …
	Stdin *string         `json:"stdin"` // … or all of standard input
	Want  json.RawMessage `json:"want"`  // data, or
	Error *wantError      `json:"error"`
	File  *wantFile       `json:"file"` // what must be in scratch; without it nothing may

	anyFiles bool // whatever is in scratch, only all forms must leave the same
}

type wantError struct {
	Code   string `json:"code"`
	Field  string `json:"field"`
	Reason string `json:"reason"`
}

type wantFile struct {
	Name  string   `json:"name"`
	Lines []string `json:"lines"`
}

func (c testCase) stdin() []byte {
	if c.Stdin != nil {
		return []byte(*c.Stdin)
	}
	return fmt.Appendf(nil, `{"input":%s,"skill_id":"s","trace_id":"t-1"}`, c.Input)
}

type envelope struct {
	Success bool            `json:"success"`
	Data    json.RawMessage `json:"data"`
	Error   *struct {
		Code    string            `json:"code"`
		Message string            `json:"message"`
		Details map[string]string `json:"details"`
	} `json:"error"`
}

var skillIDs = []string{"echo", "file_search", "calculator", "log_transform"}

func readCases(t *testing.T, id string) []testCase {
	t.Helper()
	raw := musttest.Get(os.ReadFile(filepath.Join("testdata", "cases", id+".json")))(t)
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var cases []testCase
	if err := dec.Decode(&cases); err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	names := map[string]bool{}
	for _, c := range cases {
		if names[c.Name] {
			t.Errorf("%s: two cases are named %q", id, c.Name)
		}
		names[c.Name] = true
		if (c.Want == nil) == (c.Error == nil) {
			t.Errorf("%s: %q needs a want or an error", id, c.Name)
		}
	}
	return cases
}

// TestCases runs the whole table through all forms of each skill. They must answer
// what the table says, and the same.
func TestCases(t *testing.T) {
	t.Parallel()
	for _, id := range skillIDs {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			data := dataFolder(t)
			forms := formsOf(t, id)
			for _, c := range readCases(t, id) {
				t.Run(c.Name, func(t *testing.T) {
					t.Parallel()
					alike(t, forms, id, data, c)
				})
			}
		})
	}
}

// answerAlike holds all forms that can be run here to one case.
func answerAlike(t *testing.T, id, data string, c testCase) {
	t.Helper()
	alike(t, formsOf(t, id), id, data, c)
}

func alike(t *testing.T, forms []form, id, data string, c testCase) {
	t.Helper()
	if len(forms) == 0 {
		t.Skip("no form of this skill can be run here")
	}
	var first *outcome
	for _, f := range forms {
		got := f.run(t, id, data, c)
		check(t, f, c, got)
		checkResult(t, f, id, c, got)
		if first == nil {
			first = &got
			continue
		}
		sameAnswer(t, f, *first, got)
	}
}

// checkResult holds what the caller got to the case.
func checkResult(t *testing.T, f form, id string, c testCase, got outcome) {
	t.Helper()
	r := got.result
	if r == nil {
		return
	}
	if want := kinds[f][id]; r.Meta.Runner != want {
		t.Errorf("%s: answered by %q, want %q", f, r.Meta.Runner, want)
	}
	if c.Error == nil {
		if !r.Success || r.Error != nil {
			t.Errorf("%s: the caller got %+v", f, r.Error)
			return
		}
		if d := diff(canonical(t, c.Want), canonical(t, r.Data)); d != "" {
			t.Errorf("%s: the caller's data (-want +got):\n%s", f, d)
		}
		return
	}
	if r.Success || r.Data != nil || r.Error == nil || string(r.Error.Code) != c.Error.Code {
		t.Errorf("%s: the caller got %+v, %s; want %s", f, r.Error, r.Data, c.Error.Code)
		return
	}
	if !got.inside {
		return // refused at the door, which has other words
	}
	if field, _ := r.Error.Details["field"].(string); field != c.Error.Field {
		t.Errorf("%s: the caller is told the field %q, want %q", f, field, c.Error.Field)
	}
	if reason, _ := r.Error.Details["reason"].(string); reason != c.Error.Reason {
		t.Errorf("%s: the caller is told the reason %q, want %q", f, reason, c.Error.Reason)
	}
}

// check holds what a guest printed and left to the case.
func check(t *testing.T, form form, c testCase, got outcome) {
	t.Helper()
	e := decode(t, form, got)
	if c.Error != nil {
		if e.Success || string(e.Data) != "null" || e.Error == nil {
			t.Errorf("%s: want %s, got %s", form, c.Error.Code, got.stdout)
			return
		}
		have := wantError{e.Error.Code, e.Error.Details["field"], e.Error.Details["reason"]}
		if d := cmp.Diff(*c.Error, have); d != "" {
			t.Errorf("%s: error (-want +got):\n%s", form, d)
		}
		if n := len(e.Error.Message); n == 0 || n > 400 {
			t.Errorf("%s: a message of %d bytes: %q", form, n, e.Error.Message)
		}
		if got.exit != 1 {
			t.Errorf("%s: exit %d of a failure, want 1", form, got.exit)
		}
	} else {
		if !e.Success || e.Error != nil {
			t.Errorf("%s: want data, got %s", form, got.stdout)
			return
		}
		if d := diff(canonical(t, c.Want), canonical(t, e.Data)); d != "" {
			t.Errorf("%s: data (-want +got):\n%s", form, d)
		}
		if got.exit != 0 {
			t.Errorf("%s: exit %d of a success, want 0", form, got.exit)
		}
	}
	if c.anyFiles {
		return
	}
	want := map[string]string{}
	if c.File != nil {
		want[c.File.Name] = strings.Join(c.File.Lines, "\n") + "\n"
	}
	if d := cmp.Diff(want, got.files); d != "" {
		t.Errorf("%s: files in scratch (-want +got):\n%s", form, d)
	}
}

// decode reads an answer and checks that it is one JSON value in the contract's shape.
func decode(t *testing.T, form form, got outcome) envelope {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(got.stdout))
	dec.DisallowUnknownFields()
	var e envelope
	if err := dec.Decode(&e); err != nil {
		t.Fatalf("%s: standard output is no answer: %v: %.300q", form, err, got.stdout)
	}
	if dec.More() {
		t.Fatalf("%s: more than one value on standard output", form)
	}
	return e
}

// sameAnswer compares two forms whole: messages and files too.
func sameAnswer(t *testing.T, form form, first, got outcome) {
	t.Helper()
	if d := diff(canonical(t, first.stdout), canonical(t, got.stdout)); d != "" {
		t.Errorf("%s answers otherwise than the CLI form (-cli +%s):\n%s", form, form, d)
	}
	if d := cmp.Diff(first.files, got.files); d != "" {
		t.Errorf("%s leaves other files than the CLI form:\n%s", form, d)
	}
}

// canonical spells JSON so that equal values are equal texts: keys in order, and
// numbers by what they are (10, 10.0 and 1e1), exactly. Texts, because cmp takes
// exponential time over values nested 64 deep.
func canonical(t *testing.T, raw []byte) string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("not JSON: %v: %.300q", err, raw)
	}
	text := musttest.Get(json.MarshalIndent(exact(v), "", " "))(t)
	return string(text)
}

// diff is "" for equal texts. Of long ones it shows only where they part.
func diff(want, got string) string {
	if want == got {
		return ""
	}
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	at = max(0, at-200)
	return cmp.Diff(want[at:min(len(want), at+2000)], got[at:min(len(got), at+2000)])
}

func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		r, ok := new(big.Rat).SetString(v.String())
		if !ok {
			return v
		}
		return "number " + r.RatString()
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	}
	return v
}

// The schemas must say what the code does, so that the door and the skill refuse
// alike: every call that succeeds fits the input schema and its answer the output
// schema, and a call that fails for its shape fails at the schema as well, with
// the same code.
func TestSchemasAgreeWithTheTable(t *testing.T) {
	t.Parallel()
	known := musttest.Get(catalogue(".", skill.Builtin))(t)
	shape := []string{"missing", "type", "range", "length", "unknown", "unsupported", "line_break", "outside_data"}
	for _, id := range skillIDs {
		sk := musttest.Get(known.Get(skill.ID(id), ""))(t)
		for _, c := range readCases(t, id) {
			if c.Input == nil {
				continue
			}
			err := sk.CheckInput(value(t, c.Input), manifest.MaxSteps)
			switch {
			case c.Want != nil && err != nil:
				t.Errorf("%s: %q succeeds and yet its input does not fit the schema: %v", id, c.Name, err)
			case c.Error != nil && err == nil && slices.Contains(shape, c.Error.Reason) && !codeOnly(*c.Error):
				t.Errorf("%s: %q fails with %v and yet its input fits the schema", id, c.Name, *c.Error)
			case c.Error != nil && err != nil && !slices.Contains(shape, c.Error.Reason):
				t.Errorf("%s: %q is to fail with %v, but the schema refuses it before: %v", id, c.Name, *c.Error, err)
			case c.Error != nil && err != nil && string(skill.CodeOf(err)) != c.Error.Code:
				t.Errorf("%s: %q is to fail with %s, but the schema says %v", id, c.Name, c.Error.Code, err)
			}
			if c.Want != nil {
				if err := sk.CheckOutput(value(t, c.Want)); err != nil {
					t.Errorf("%s: %q: the wanted data does not fit the output schema: %v", id, c.Name, err)
				}
			}
		}
	}
}

// codeOnly names what a schema cannot say: a result beyond the doubles, and what
// a glob may hold.
func codeOnly(e wantError) bool {
	return e.Reason == "range" && (e.Field == "ops" || e.Field == "compare") || e.Field == "glob"
}

func value(t *testing.T, raw []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	musttest.Do(t, dec.Decode(&v))
	return v
}
