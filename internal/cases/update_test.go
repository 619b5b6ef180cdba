package cases

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/sdk/skill"
)

func answer(data string) *skill.Result {
	return &skill.Result{Success: true, Data: json.RawMessage(data)}
}

func failure(code skill.Code, details map[string]any) *skill.Result {
	return &skill.Result{Error: &skill.ResultError{Code: code, Message: "why", Details: details}}
}

func TestOwn(t *testing.T) {
	t.Parallel()
	own := map[skill.Code]bool{
		skill.InvalidArgument: true, skill.ForbiddenPath: true, skill.NetworkDenied: true, skill.NotFound: true, skill.Conflict: true,
	}
	for code := range skill.Codes() {
		if got := Own(failure(code, nil)); got != own[code] {
			t.Errorf("%s: %t", code, got)
		}
	}
	said := map[string]any{"guest_code": "SOLD_OUT"}
	if !Own(answer(`{}`)) || !Own(failure(skill.Internal, said)) || Own(failure(skill.Timeout, said)) {
		t.Error("data and codes of the skill's own are its answers, whatever a limit is said to be")
	}
}

func TestExpecting(t *testing.T) {
	t.Parallel()
	details := map[string]any{"n": 1}
	data := Case{Data: json.RawMessage(`{}`)}
	expects := func(e Error) Case { return Case{Error: &e} }
	for name, c := range map[string]struct {
		before Case
		got    *skill.Result
		want   Case
	}{
		"data":                  {data, answer(`{"a":1}`), Case{Data: json.RawMessage(`{"a":1}`)}},
		"data for an error":     {expects(Error{Code: skill.Timeout}), answer(`{"a":1}`), Case{Data: json.RawMessage(`{"a":1}`)}},
		"an error for data":     {data, failure(skill.NotFound, details), expects(Error{Code: skill.NotFound, Details: json.RawMessage(`{"n":1}`)})},
		"a code stays alone":    {expects(Error{Code: skill.Conflict}), failure(skill.NotFound, details), expects(Error{Code: skill.NotFound})},
		"a message stays one":   {expects(Error{Code: skill.NotFound, Message: "old"}), failure(skill.NotFound, nil), expects(Error{Code: skill.NotFound, Message: "why"})},
		"details stay":          {expects(Error{Code: skill.NotFound, Details: json.RawMessage(`{}`)}), failure(skill.NotFound, details), expects(Error{Code: skill.NotFound, Details: json.RawMessage(`{"n":1}`)})},
		"details that are gone": {expects(Error{Code: skill.NotFound, Details: json.RawMessage(`{}`)}), failure(skill.NotFound, nil), expects(Error{Code: skill.NotFound})},
	} {
		got, err := c.before.Expecting(c.got)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		if left := got.Compare(c.got); len(left) > 0 {
			t.Errorf("%s: the answer is not what is expected now: %v", name, left)
		}
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	const file = "- name: a # first\n  data: {x: 1}\n- {name: b, error: {code: TRAP, message: m}}\n"
	for name, c := range map[string]struct {
		now       Case
		want, err string
	}{
		"data":              {Case{Name: "a", Data: json.RawMessage(`{"x":2}`)}, strings.Replace(file, "1", "2", 1), ""},
		"a code":            {Case{Name: "a", Error: &Error{Code: skill.NotFound}}, strings.Replace(file, "data: {x: 1}", "error: NOT_FOUND", 1), ""},
		"less than before":  {Case{Name: "b", Error: &Error{Code: skill.NotFound}}, strings.Replace(file, "{code: TRAP, message: m}", "{code: NOT_FOUND}", 1), ""},
		"another message":   {Case{Name: "b", Error: &Error{Code: skill.Trap, Message: "it's"}}, strings.Replace(file, "message: m", `message: "it's"`, 1), ""},
		"no such case":      {Case{Name: "c", Data: json.RawMessage(`{}`)}, "", "no longer exists"},
		"text of no file":   {Case{Name: "a", Data: json.RawMessage(`{"x":"\u202e"}`)}, "", "invisible"},
		"a number too long": {Case{Name: "a", Data: json.RawMessage(`{"x":1e9999}`)}, "", "cannot"},
		"a file too long":   {Case{Name: "a", Data: json.RawMessage(`{"x":"` + strings.Repeat("x", MaxFile) + `"}`)}, "", "the limit is"},
	} {
		got, err := Write([]byte(file), c.now)
		if c.err != "" {
			if err == nil || got != nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, %.80q; want %q", name, err, got, c.err)
			}
			continue
		}
		if diff := cmp.Diff(c.want, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if got, err := Write([]byte("a: ["), Case{}); err == nil || got != nil {
		t.Errorf("no file of cases: %q, %v", got, err)
	}
}

func TestParity(t *testing.T) {
	t.Parallel()
	with := func(r *skill.Result, files ...skill.Artifact) *skill.Result { r.Meta.Artifacts = files; return r }
	file := func(name, data string) skill.Artifact {
		return skill.Artifact{Name: name, Data: []byte(data), Size: int64(len(data))}
	}
	for name, c := range map[string]struct {
		a, b *skill.Result
		want []Disagreement
	}{
		"same":            {answer(`{"a": 1, "b": 2}`), answer(`{"b": 2.0, "a": 1}`), nil},
		"data":            {answer(`{"a": [1]}`), answer(`{"a": [2]}`), []Disagreement{{"data/a/0", "1", "2"}}},
		"one fails":       {answer(`{}`), failure(skill.GuestExit, nil), []Disagreement{{"", "data {}", "error GUEST_EXIT: why"}}},
		"another code":    {failure(skill.NotFound, nil), failure(skill.Conflict, nil), []Disagreement{{"error/code", "NOT_FOUND: why", "CONFLICT: why"}}},
		"details":         {failure(skill.NotFound, map[string]any{"a": 1}), failure(skill.NotFound, nil), []Disagreement{{"error/details", `{"a":1}`, "nothing"}}},
		"no details":      {failure(skill.NotFound, map[string]any{}), failure(skill.NotFound, nil), nil},
		"same files":      {with(answer(`{}`), file("a", "x")), with(answer(`{}`), file("a", "x")), nil},
		"another message": {failure(skill.NotFound, nil), &skill.Result{Error: &skill.ResultError{Code: skill.NotFound, Message: "other words"}}, nil},
		"other files": {
			with(answer(`{}`), file("a", "x"), file("b/c", "")), with(answer(`{}`), file("a", "y")),
			[]Disagreement{
				{"artifacts/a", `"1 bytes, sha256:2d711642b726b044"`, `"1 bytes, sha256:a1fce4363854ff88"`},
				{"artifacts/b~1c", `"0 bytes, sha256:e3b0c44298fc1c14"`, "nothing"},
			},
		},
	} {
		if diff := cmp.Diff(c.want, Parity(c.a, c.b)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for code := range skill.Codes() {
		ended := code == skill.Cancelled || code == skill.RateLimited || code == skill.AuditUnavailable || code == skill.WorkerCrashed ||
			code == skill.Timeout || strings.HasSuffix(string(code), "_LIMIT") || code == skill.FuelExhausted
		if Comparable(failure(code, nil)) == ended {
			t.Errorf("%s: compared: %t", code, !ended)
		}
	}
}

// Two long texts are shown from where they differ.
func TestDifferInLongText(t *testing.T) {
	t.Parallel()
	same := strings.Repeat("é ", 5000)
	c := Case{Data: json.RawMessage(`{"a":"` + same + `one"}`)}
	got := c.Compare(answer(`{"a":"` + same + `two"}`))
	tail := "…" + strings.Repeat(" é", 13) + " "
	if diff := cmp.Diff([]Difference{{"data/a", tail + `one"`, tail + `two"`}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
