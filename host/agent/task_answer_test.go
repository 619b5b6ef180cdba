package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/internal/ordered"
	"openskill/internal/strictjson"
)

func TestDecide(t *testing.T) {
	call := func(params string) string { return `call echo ` + params }
	for text, want := range map[string]string{ // "call NAME PARAMS", "finish RESULT" or "prose RESULT"
		// What was asked for.
		`{"thought": "t", "action": {"type": "skill_call", "skill": "echo", "params": {"b": 1.0, "a": [2]}}}`: call(`{"b":1.0,"a":[2]}`),
		`{"thought": "t", "action": {"type": "finish", "result": {"summary": "s", "findings": []}}}`:          `finish {"summary":"s","findings":[]}`,

		// What the documents say of the rest.
		`{"action": {"type": "skill_call", "skill": "echo"}}`:                 call(`{}`),
		`{"action": {"type": "skill_call", "skill": "echo", "params": null}}`: call(`{}`),
		`{"action": {"type": "skill_call"}}`:                                  `call  {}`,
		`{"thought": "no action"}`:                                            `finish {}`,
		`{}`:                                                                  `finish {}`,
		`{"action": null}`:                                                    `finish {}`,
		`{"action": {}}`:                                                      `finish {}`,
		`{"action": {"type": "dance", "result": {"a": 1}}}`:                   `finish {"a":1}`,
		`{"action": {"skill": "echo", "params": {}}}`:                         `finish {}`,
		`{"action": {"type": "finish"}}`:                                      `finish {}`,
		`{"action": {"type": "finish", "result": null}}`:                      `finish {}`,
		`I have finished: nothing was found.`:                                 `prose {"summary":"I have finished: nothing was found."}`,

		// Results that are no objects.
		`{"action": {"type": "finish", "result": "just text"}}`:     `finish {"summary":"just text"}`,
		`{"action": {"type": "finish", "result": [1, {"a": 2.0}]}}`: `finish {"summary":"[1,{\"a\":2.0}]"}`,
		`{"action": {"type": "finish", "result": 42}}`:              `finish {"summary":"42"}`,
		`{"action": {"type": "finish", "result": false}}`:           `finish {"summary":"false"}`,

		`{"action": {"type": "finish", "result": {"a": 1e400}}}`: `finish {"summary":"{\"a\":1e400}"}`,
		`{"action": {"type": "finish", "result": {"a": ""}}}`:    `finish {"a":""}`,

		// Params that are no object are for the toolbox to judge, as they are.
		`{"action": {"type": "skill_call", "skill": "echo", "params": [1]}}`:            call(`[1]`),
		`{"action": {"type": "skill_call", "skill": "echo", "params": "{\"a\": 1}"}}`:   call(`"{\"a\": 1}"`),
		`{"action": {"type": "skill_call", "skill": ["echo"], "params": {}}}`:           `call  {}`,
		`{"action": {"type": "skill_call", "skill": "echo", "params": {"t": "<&>"}}}`:   call(`{"t":"<&>"}`),
		`{"action": {"type": "skill_call", "skill": "echo", "params": {"n": 1e999}}}`:   call(`{"n":1e999}`),
		`{"action": {"type": "skill_call", "skill": "echo", "params": {"a":1,"a":2}}}`:  call(`{"a":2}`),
		`{"action": {"type": "skill_call", "skill": "rm -rf \u0000 /", "params": {}}}`:  "call rm -rf \x00 / {}",
		`{"Action": {"type": "skill_call", "skill": "echo"}}`:                           `finish {"Action":{"type":"skill_call","skill":"echo"}}`,
		`{"action": {"type": "SKILL_CALL", "skill": "echo"}, "result": {"a": "other"}}`: `finish {"a":"other"}`,

		// A level that is left out.
		`{"action": "skill_call", "skill": "echo", "params": {"a": 1}}`: call(`{"a":1}`),
		`{"action": "finish", "result": {"a": 1}}`:                      `finish {"a":1}`,
		`{"type": "skill_call", "skill": "echo", "params": {"a": 1}}`:   call(`{"a":1}`),
		`{"thought": "t", "summary": "s", "findings": [1]}`:             `finish {"summary":"s","findings":[1]}`,
		`{"action": 7, "summary": "s"}`:                                 `finish {"summary":"s"}`,

		// Around one object.
		"```json\n{\"action\": {\"type\": \"skill_call\", \"skill\": \"echo\"}}\n```":                              call(`{}`),
		"```\n{\"summary\": \"s\"}\n```":                                                                           `finish {"summary":"s"}`,
		"```{\"summary\": \"s\"}```":                                                                               `finish {"summary":"s"}`,
		" \n\t{\"action\": {\"type\": \"skill_call\", \"skill\": \"echo\"}} \n":                                    call(`{}`),
		"I call it:\n```json\n{\"action\": {\"type\": \"skill_call\", \"skill\": \"echo\"}}\n```\nand wait.":       call(`{}`),
		`With {braces} and {"a": 1} first: {"action": {"type": "skill_call", "skill": "echo"}}`:                    call(`{}`),
		`{"thought": "one"} {"action": {"type": "skill_call", "skill": "echo"}}`:                                   call(`{}`),
		`{"action": {"type": "skill_call", "skill": "echo"}} {"action": {"type": "skill_call", "skill": "other"}}`: call(`{}`),
		`[{"action": {"type": "skill_call", "skill": "echo"}}]`:                                                    call(`{}`),
		`The config is {"a": 1}. Done.`:                                                                            `prose {"summary":"The config is {\"a\": 1}. Done."}`,
		"```python\nprint({})\n```":                                                                                "prose {\"summary\":\"```python\\nprint({})\\n```\"}",

		// Garbage.
		``:                             `prose {"summary":"The model answered with nothing."}`,
		" \n ":                         `prose {"summary":"The model answered with nothing."}`,
		`null`:                         `prose {"summary":"null"}`,
		`42`:                           `prose {"summary":"42"}`,
		`"text"`:                       `prose {"summary":"\"text\""}`,
		`[1, 2]`:                       `prose {"summary":"[1, 2]"}`,
		`{"action": {"type": "skill_c`: `prose {"summary":"{\"action\": {\"type\": \"skill_c"}`,
		`{action: finish}`:             `prose {"summary":"{action: finish}"}`,
		`{'action': 'finish'}`:         `prose {"summary":"{'action': 'finish'}"}`,
		`{"a": NaN}`:                   `prose {"summary":"{\"a\": NaN}"}`,
		"```":                          "prose {\"summary\":\"```\"}",
		"``````":                       "prose {\"summary\":\"``````\"}",
		`<tool_call>{"name": "echo"}`:  `prose {"summary":"<tool_call>{\"name\": \"echo\"}"}`,
	} {
		if got := told(t, decide(text)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

func told(t testing.TB, d decision) string {
	t.Helper()
	if d.call {
		return "call " + d.skill + " " + d.params
	}
	b := musttest.Get(ordered.Encode(d.result))(t)
	if d.prose {
		return "prose " + string(b)
	}
	return "finish " + string(b)
}

// An answer of any size takes a bounded time: each of these is read many times over
// where one looks for an object in it.
func TestDecideBounded(t *testing.T) {
	for name, text := range map[string]string{
		"braces":    strings.Repeat("{", 10<<20),
		"nested":    strings.Repeat(`{"a":`, 2<<20),
		"cut off":   `{"action": {"type": "finish", "result": {"summary": "` + strings.Repeat("x", 10<<20),
		"half runs": strings.Repeat("é", maxAnswer),
	} {
		d := decide(text)
		if got := told(t, d); !d.prose || len(got) > 6*maxAnswer {
			t.Errorf("%s: %.100s", name, got)
		}
	}
}

func FuzzDecide(f *testing.F) {
	for _, s := range []string{
		`{"action": {"type": "skill_call", "skill": "echo", "params": {"a": 1}}}`, `{"action": {"type": "finish", "result": {"summary": "s"}}}`,
		"```json\n{}\n```", `x {"action": 1} {`, `{"action": "finish", "result": [1]}`, `{"skill_calls": 1, "partial": 2}`, "\xff{", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := decide(text)
		if d.call {
			if d.result != nil || d.prose || !json.Valid([]byte(d.params)) {
				t.Fatalf("%+v", d)
			}
			return
		}
		if d.result == nil {
			t.Fatal("neither a call nor a result")
		}
		// And as an outcome it has the host's own members, once.
		r := taskRun{calls: []SkillCall{{Skill: "echo", Input: object(nil), Status: "success"}}}
		var out map[string]json.RawMessage
		b := r.result(&taskEnd{status: TaskCompleted, result: d.result})
		if _, err := strictjson.Decode(b, 2*maxDepth, nil); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		if err := json.Unmarshal(b, &out); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		var calls []SkillCall
		if err := json.Unmarshal(out["skill_calls"], &calls); err != nil || len(calls) != 1 || calls[0].Skill != "echo" || string(out["partial"]) != "false" {
			t.Fatalf("%s", b)
		}
	})
}
