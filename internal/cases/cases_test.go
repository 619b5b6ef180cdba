package cases

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/sdk/skill"
)

func TestParse(t *testing.T) {
	list, problems := Parse([]byte(`
- name: all of it
  input: {b: 1, a: [x, null, 1.5]}
  limits: {timeout_ms: 20, memory_mb: 2, fuel: 3, output_kb: 4, scratch_mb: 5}
  data: {}
- {name: a code, error: TIMEOUT}
- {name: an error, error: {code: INVALID_ARGUMENT, message: m, details: {field: a}}}
`))
	want := []Case{
		{Name: "all of it", Line: 2, Input: json.RawMessage(`{"b":1,"a":["x",null,1.5]}`), Data: json.RawMessage(`{}`), Limits: skill.Limits{
			Timeout: 20 * time.Millisecond, Memory: 2 << 20, Fuel: 3, Output: 4 << 10, Scratch: 5 << 20,
		}},
		{Name: "a code", Line: 6, Input: json.RawMessage(`{}`), Error: &Error{Code: skill.Timeout}},
		{Name: "an error", Line: 7, Input: json.RawMessage(`{}`), Error: &Error{Code: skill.InvalidArgument, Message: "m", Details: json.RawMessage(`{"field":"a"}`)}},
	}
	if diff := cmp.Diff(want, list); diff != "" || problems != nil {
		t.Errorf("%v\n%s", problems, diff)
	}
	for src, want := range map[string]string{
		"":                                   "is empty",
		"a: 1":                               "must be a list",
		"[]":                                 "must be a list",
		"- 1":                                "must be a map",
		"- {name: a}":                        "either data or error",
		"- {name: a, data: {}, error: TRAP}": "either data or error",
		"- {name: a, data: []}":              "data must be an object",
		"- {name: a, input: 1, data: {}}":    "input must be an object",
		"- {name: 1, data: {}}":              "name must be a string",
		"- {data: {}}":                       "needs a name",
		"- {name: \"a\\nb\", data: {}}":      "needs a name",
		"- {name: a, error: {message: x}}":   "use a code",
		"- {name: a, data: {x: .nan}}":       "JSON",
		"- &a {name: a, data: {}}":           "anchor",
		"- {name: a, data: {}, limits: {fuel: -1}}": "limits.fuel",
		"- {name: a, data: {}, limits: {cpu: 1}}":   "not known in limits",
		strings.Repeat("x", MaxFile+1):              "the limit is 65536",
	} {
		list, problems := Parse([]byte(src))
		if len(problems) == 0 || list != nil || !strings.Contains(problems[0].String(), want) {
			t.Errorf("%.60q: %v, %v; want %q", src, list, problems, want)
		}
	}
}

func TestCompare(t *testing.T) {
	good := func(data string) *skill.Result { return &skill.Result{Success: true, Data: json.RawMessage(data)} }
	bad := func(code skill.Code, details map[string]any) *skill.Result {
		return &skill.Result{Error: &skill.ResultError{Code: code, Message: "why", Details: details}}
	}
	data := func(s string) Case { return Case{Data: json.RawMessage(s)} }
	for name, c := range map[string]struct {
		want Case
		got  *skill.Result
		list []Difference
	}{
		"same":               {data(`{"a": [1, "x", null, true], "b": {}}`), good(`{"b":{},"a":[1.0,"x",null,true]}`), nil},
		"numbers":            {data(`{"a": 100, "b": -0, "c": 0.1}`), good(`{"a": 1e2, "b": 0, "c": 0.10}`), nil},
		"beyond doubles":     {data(`{"a": 9007199254740993}`), good(`{"a": 9007199254740992}`), []Difference{{"data/a", "9007199254740993", "9007199254740992"}}},
		"out of doubles":     {data(`{"a": 1e999}`), good(`{"a": 2e999}`), []Difference{{"data/a", "1e999", "2e999"}}},
		"other types":        {data(`{"a": 1, "b": [], "c": {}, "d": null}`), good(`{"a": "1", "b": {}, "c": [], "d": false}`), []Difference{{"data/a", "1", `"1"`}, {"data/b", "[]", "{}"}, {"data/c", "{}", "[]"}, {"data/d", "null", "false"}}},
		"missing and more":   {data(`{"a/b": 1}`), good(`{"c~": null}`), []Difference{{"data/a~1b", "1", "nothing"}, {"data/c~0", "nothing", "null"}}},
		"lists":              {data(`{"a": [1, 2]}`), good(`{"a": [1, 3, 4]}`), []Difference{{"data/a/1", "2", "3"}, {"data/a/2", "nothing", "4"}}},
		"null is not absent": {data(`{"a": null}`), good(`{}`), []Difference{{"data/a", "null", "nothing"}}},
		"an error":           {data(`{}`), bad(skill.Timeout, nil), []Difference{{"", "data {}", "error TIMEOUT: why"}}},
		"no error":           {Case{Error: &Error{Code: skill.Timeout}}, good(`{}`), []Difference{{"", "error TIMEOUT", "data {}"}}},
		"its code":           {Case{Error: &Error{Code: skill.Timeout}}, bad(skill.Timeout, map[string]any{"a": 1}), nil},
		"another code":       {Case{Error: &Error{Code: skill.Timeout, Message: "x"}}, bad(skill.Trap, nil), []Difference{{"error/code", "TIMEOUT", "TRAP: why"}}},
		"message":            {Case{Error: &Error{Code: skill.Timeout, Message: "x"}}, bad(skill.Timeout, nil), []Difference{{"error/message", `"x"`, `"why"`}}},
		"details":            {Case{Error: &Error{Code: skill.Timeout, Details: json.RawMessage(`{"a": 1}`)}}, bad(skill.Timeout, map[string]any{"a": 1.0}), nil},
		"no details":         {Case{Error: &Error{Code: skill.Timeout, Details: json.RawMessage(`{"a": 1}`)}}, bad(skill.Timeout, nil), []Difference{{"error/details", `{"a":1}`, "nothing"}}},
	} {
		if diff := cmp.Diff(c.list, c.want.Compare(c.got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	many := data(`{"a": [` + strings.Repeat("1,", 99) + `1]}`)
	if got := many.Compare(good(`{"a": []}`)); len(got) != maxDifferences {
		t.Errorf("%d differences", len(got))
	}
	long := data(`{"a": ""}`)
	if got := long.Compare(good(`{"a": "\u001b[2J` + strings.Repeat("x", 9000) + `"}`)); len(got) != 1 || len(got[0].Got) > maxShown+4 || strings.Contains(got[0].Got, "\x1b") {
		t.Errorf("%+v", got)
	}
}
