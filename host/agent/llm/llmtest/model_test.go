package llmtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/agent/llm"
	"openskill/host/agent/llm/llmtest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// user is a request with one message.
func user(text string) *llm.Request {
	return &llm.Request{Model: "scripted", MaxTokens: 100, Messages: []llm.Message{{Role: llm.User, Text: text}}}
}

// after is a request in which a tool has answered what the user asked for.
func after(text, tool, result string) *llm.Request {
	r := user(text)
	r.Messages = append(r.Messages,
		llm.Message{Role: llm.Assistant, Calls: []llm.Call{{ID: "call_1_0", Name: tool, Arguments: "{}"}}},
		llm.Message{Role: llm.Tool, CallID: "call_1_0", Text: result})
	return r
}

func said(say string) []llmtest.Rule { return []llmtest.Rule{{Say: say}} }

func TestRules(t *testing.T) {
	t.Parallel()
	one, zero, yes := 1, 0, true
	rules := func(r ...llmtest.Rule) []llmtest.Rule { return r }
	json := user("x")
	json.JSON, json.System, json.Model = true, "You are terse.", "big"
	for name, c := range map[string]struct {
		rules []llmtest.Rule
		ask   *llm.Request
		want  string // text, then each call
	}{
		"the first that fits":    {rules(llmtest.Rule{When: llmtest.When{User: "b"}, Say: "no"}, llmtest.Rule{When: llmtest.When{User: "a"}, Say: "1"}, llmtest.Rule{Say: "2"}), user("a"), "1"},
		"a capture":              {rules(llmtest.Rule{When: llmtest.When{User: `(\w+) and (?P<last>\w+)`}, Say: "${last}, $1, $0, $$1"}), user("salt and pepper"), "pepper, salt, salt and pepper, $1"},
		"no pattern, no capture": {said("$1 costs $2"), user("x"), "$1 costs $2"},
		"user is not for results": {
			rules(llmtest.Rule{When: llmtest.When{User: "a"}, Calls: []llmtest.Call{{Name: "t"}}}, llmtest.Rule{When: llmtest.When{AfterTool: "t"}, Say: "done"}),
			after("a", "t", "r"), "done",
		},
		"user and tool":  {rules(llmtest.Rule{When: llmtest.When{User: "b", AfterTool: "t"}, Say: "no"}, llmtest.Rule{When: llmtest.When{User: "(a)", AfterTool: "t"}, Say: "$1!"}), after("a", "t", "r"), "a!"},
		"another tool":   {rules(llmtest.Rule{When: llmtest.When{AfterTool: "u"}, Say: "no"}, llmtest.Rule{Say: "yes"}), after("a", "t", "r"), "yes"},
		"result":         {rules(llmtest.Rule{When: llmtest.When{Result: "q"}, Say: "no"}, llmtest.Rule{When: llmtest.When{Result: "(r+)"}, Say: "$1"}), after("a", "t", "xrrx"), "rr"},
		"result of user": {rules(llmtest.Rule{When: llmtest.When{Result: "r"}, Say: "no"}, llmtest.Rule{Say: "yes"}), user("r"), "yes"},
		"steps":          {rules(llmtest.Rule{When: llmtest.When{Step: &zero}, Say: "first"}, llmtest.Rule{When: llmtest.When{Step: &one}, Say: "second"}), after("a", "t", "r"), "second"},
		"step, user":     {rules(llmtest.Rule{When: llmtest.When{Step: &one, User: "a"}, Say: "second"}), after("a", "t", "r"), "second"},
		"the request":    {rules(llmtest.Rule{When: llmtest.When{System: "terse", Model: "big", JSON: &yes}, Say: "{}"}), json, "{}"},
		"another model":  {rules(llmtest.Rule{When: llmtest.When{Model: "bi"}, Say: "no"}, llmtest.Rule{Say: "yes"}), json, "yes"},
		"calls": {
			rules(llmtest.Rule{Say: "wait", Calls: []llmtest.Call{{Name: "a", Arguments: `{"n":1}`}, {Name: "b", Repeat: 2}}}), user("x"),
			`wait call_1_0:a({"n":1}) call_1_1:b() call_1_2:b()`,
		},
		"ids go on": {rules(llmtest.Rule{Calls: []llmtest.Call{{Name: "a"}}}), after("x", "t", "r"), ` call_2_0:a()`},
		"text in a string": {
			rules(llmtest.Rule{When: llmtest.When{Result: "(?s)CALL (.*)"}, Calls: []llmtest.Call{{Name: "a", Arguments: `{"say \"$1\"":["$1\\"],"n":1}`}}}),
			after("x", "t", "CALL \"}{\\\n"), ` call_2_0:a({"say \"\"}{\\\n\"":["\"}{\\\n\\"],"n":1})`,
		},
		"arguments that were found": {
			rules(llmtest.Rule{When: llmtest.When{Result: `CALL (\w+) ({.*})`}, Calls: []llmtest.Call{{Name: "a", Arguments: `$2`}}}),
			after("x", "t", `CALL admin {"all": true}`), ` call_2_0:a({"all": true})`,
		},
		"no JSON": {rules(llmtest.Rule{When: llmtest.When{User: "(x)"}, Calls: []llmtest.Call{{Name: "a", Arguments: `{"n": $1`}}}), user("x"), ` call_1_0:a({"n": x)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reply := musttest.Get(llmtest.Provider(llmtest.Script{Rules: c.rules}).Chat(t.Context(), c.ask, nil))(t)
			got := reply.Text
			for _, call := range reply.Calls {
				got += fmt.Sprintf(" %s:%s(%s)", call.ID, call.Name, call.Arguments)
			}
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if want := len(reply.Calls) > 0; (reply.Stop == llm.StopCalls) != want {
				t.Errorf("stop %q", reply.Stop)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	m := llmtest.Provider(llmtest.Script{Rules: []llmtest.Rule{{Times: 1, Status: 503, RetryAfter: 3, Say: "busy"}, {Say: "there"}}})
	_, err := m.Chat(t.Context(), user("x"), nil)
	if busy, ok := errors.AsType[*llm.BusyError](err); !ok || busy.After != 3*time.Second || skill.CodeOf(err) != skill.AgentLLMUnavailable {
		t.Errorf("%v; want it to be busy for 3 s", err)
	}
	if r, err := m.Chat(t.Context(), user("x"), nil); err != nil || r.Text != "there" {
		t.Errorf("%+v, %v", r, err)
	}
	if all := m.Requests(); m.Asked() != 2 || len(all) != 2 || all[0].Rule != 0 || all[1].Rule != 1 || all[1].Ask.Messages[0].Text != "x" {
		t.Errorf("%d requests: %+v", m.Asked(), all)
	}
}

// TestUnscripted: what the script does not foresee is an error that tells what was asked,
// and one that nobody tries again after.
func TestUnscripted(t *testing.T) {
	t.Parallel()
	m := llmtest.Provider(llmtest.Script{Rules: []llmtest.Rule{{When: llmtest.When{User: "^x$"}}}})
	_, err := m.Chat(t.Context(), after("x", "echo", "strange"), nil)
	if _, ok := errors.AsType[*llm.BusyError](err); err == nil || ok || !strings.Contains(err.Error(), "no rule that fits; the last message is of the tool echo: strange") {
		t.Errorf("%v", err)
	}
	if all := m.Requests(); len(all) != 1 || all[0].Rule != -1 {
		t.Errorf("%+v", all)
	}
}

func TestStreamedParts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule llmtest.Rule
		want []string
		err  skill.Code
	}{
		"characters": {llmtest.Rule{Say: "αβγδε", Chunk: 2}, []string{"αβ", "γδ", "ε"}, ""},
		"by itself":  {llmtest.Rule{Say: strings.Repeat("x", 17)}, []string{strings.Repeat("x", 16), "x"}, ""},
		"nothing":    {llmtest.Rule{}, nil, ""},
		"cut off":    {llmtest.Rule{Say: "abcdef", Chunk: 2, CutAfter: 3}, []string{"ab", "c"}, skill.AgentLLMUnavailable},
		"cut later":  {llmtest.Rule{Say: "ab", CutAfter: 3}, []string{"ab"}, ""},
		"cut a call": {llmtest.Rule{Calls: []llmtest.Call{{Name: "a", Arguments: `{"a":1}`}}, CutAfter: 3}, nil, skill.AgentLLMUnavailable},
		"at once":    {llmtest.Rule{Say: "ab", CutAfter: -1}, nil, skill.AgentLLMUnavailable},
		"garbage":    {llmtest.Rule{Raw: "<html>"}, nil, skill.AgentLLMParseError},
		"refused":    {llmtest.Rule{Say: "no", Status: 401}, nil, skill.AgentLLMUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			_, err := llmtest.Provider(llmtest.Script{Rules: []llmtest.Rule{c.rule}}).Chat(t.Context(), user("x"), func(part string) { got = append(got, part) })
			if skill.CodeOf(err) != c.err {
				t.Errorf("%v; want %q", err, c.err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSlow(t *testing.T) {
	t.Parallel()
	m := llmtest.Provider(llmtest.Script{Rules: []llmtest.Rule{{Say: "abcdef", Chunk: 2, DelayMS: 1000, PauseMS: 500}}})
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		musttest.Get(m.Chat(t.Context(), user("x"), func(string) { at = append(at, time.Since(began)) }))(t)
		if diff := cmp.Diff([]time.Duration{time.Second, 1500 * time.Millisecond, 2 * time.Second}, at); diff != "" {
			t.Errorf("parts came (-want +got):\n%s", diff)
		}
		for _, within := range []time.Duration{0, 700 * time.Millisecond, 1200 * time.Millisecond} {
			ctx, stop := context.WithTimeout(t.Context(), within)
			_, err := m.Chat(ctx, user("x"), func(string) {})
			stop()
			if skill.CodeOf(err) != skill.AgentExecutionTimeout {
				t.Errorf("within %s: %v", within, err)
			}
		}
		ctx, leave := context.WithCancel(t.Context())
		if _, err := m.Chat(ctx, user("x"), func(string) { leave() }); skill.CodeOf(err) != skill.Cancelled {
			t.Errorf("%v; want it cancelled", err)
		}
	})
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		usage *llmtest.Usage
		want  llm.Usage
	}{
		"an estimate": {nil, llm.Usage{Prompt: 4 + 3, Completion: 2}},
		"as it says":  {&llmtest.Usage{Prompt: 70, Completion: 30}, llm.Usage{Prompt: 70, Completion: 30}},
		"unsaid":      {&llmtest.Usage{Unsaid: true}, llm.Usage{}},
	} {
		r, err := llmtest.Provider(llmtest.Script{Rules: []llmtest.Rule{{Say: "12345678", Usage: c.usage}}}).Chat(t.Context(), user("123456789012"), nil)
		if err != nil || r.Usage != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, r, err, c.want)
		}
	}
}

// TestManyAtOnce: conversations are told apart by what they hold, and rules with a number of
// times are used as often as that.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	const many = 1000
	m := llmtest.Provider(llmtest.Script{Rules: []llmtest.Rule{
		{Times: 10, Status: 503},
		{When: llmtest.When{User: `I am (\d+)`}, Calls: []llmtest.Call{{Name: "count", Arguments: `{"n": "$1"}`}}},
		{When: llmtest.When{AfterTool: "count", Result: `(.*)`}, Say: "$1"},
	}})
	var all sync.WaitGroup
	var mu sync.Mutex
	busy := 0
	for i := range many {
		all.Go(func() {
			r := user(fmt.Sprintf("I am %d", i))
			reply, err := m.Chat(t.Context(), r, nil)
			for ; err != nil; reply, err = m.Chat(t.Context(), r, nil) {
				mu.Lock()
				busy++
				mu.Unlock()
			}
			r.Messages = append(r.Messages,
				llm.Message{Role: llm.Assistant, Calls: reply.Calls},
				llm.Message{Role: llm.Tool, CallID: reply.Calls[0].ID, Text: reply.Calls[0].Arguments})
			if reply, err = m.Chat(t.Context(), r, nil); err != nil || reply.Text != fmt.Sprintf(`{"n": "%d"}`, i) {
				t.Errorf("%d: %+v, %v", i, reply, err)
			}
		})
	}
	all.Wait()
	if busy != 10 || m.Asked() != 2*many+10 {
		t.Errorf("%d requests, of which %d found it busy", m.Asked(), busy)
	}
}

// TestKept: the last requests are kept, and no more of them than there is room for.
func TestKept(t *testing.T) {
	t.Parallel()
	m := llmtest.Provider(llmtest.Script{Rules: said("")})
	ask := func(text string) {
		musttest.Get(m.Chat(t.Context(), user(text), nil))(t)
	}
	for i := range 6000 {
		ask(fmt.Sprint(i))
	}
	all := m.Requests()
	if n := len(all); n < 4096 || n > 5120 || all[n-1].Ask.Messages[0].Text != "5999" || all[0].Ask.Messages[0].Text != fmt.Sprint(6000-n) {
		t.Errorf("%d are kept", n)
	}
	large := strings.Repeat("x", 20<<20)
	for range 5 {
		ask(large)
	}
	if n := len(m.Requests()); n != 3 {
		t.Errorf("%d of 20 MiB are kept, of 64 MiB", n)
	}
	ask(strings.Repeat(large, 4))
	if n := len(m.Requests()); n != 1 {
		t.Errorf("%d are kept with one of 80 MiB", n)
	}
}

// TestKeptAsTheyWere: what callers do to their request afterwards changes nothing.
func TestKeptAsTheyWere(t *testing.T) {
	t.Parallel()
	m := llmtest.Provider(llmtest.Script{Rules: said("")})
	r := user("before")
	musttest.Get(m.Chat(t.Context(), r, nil))(t)
	r.Messages[0].Text = "after"
	if got := m.Requests()[0].Ask.Messages[0].Text; got != "before" {
		t.Errorf("it is %q now", got)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	const text = `{"rules": [
		{"when": {"user": "a", "step": 0, "json": true}, "times": 2, "say": "b", "status": 503, "retry_after_s": 1, "delay_ms": 2, "chunk": 3, "pause_ms": 4, "cut_after": -1},
		{"when": {"after_tool": "t", "result": "r", "system": "s", "model": "m"}, "stop": "length", "usage": {"prompt_tokens": 1, "completion_tokens": 2}, "calls": [
			{"name": "n", "arguments": {"z": 1, "a": [ "x" ]}, "repeat": 7}, {"name": "n", "arguments": "{broken"}, {"name": "n"}]},
		{"raw": "garbage", "usage": {"prompt_tokens": 0, "completion_tokens": 0, "unsaid": true}}
	]}`
	zero, yes := 0, true
	want := llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "a", Step: &zero, JSON: &yes}, Times: 2, Say: "b", Status: 503, RetryAfter: 1, DelayMS: 2, Chunk: 3, PauseMS: 4, CutAfter: -1},
		{
			When: llmtest.When{AfterTool: "t", Result: "r", System: "s", Model: "m"}, Stop: llm.StopLength, Usage: &llmtest.Usage{Prompt: 1, Completion: 2},
			Calls: []llmtest.Call{{Name: "n", Arguments: `{"z":1,"a":["x"]}`, Repeat: 7}, {Name: "n", Arguments: `{broken`}, {Name: "n"}},
		},
		{Raw: "garbage", Usage: &llmtest.Usage{Unsaid: true}},
	}}
	got := musttest.Get(llmtest.Parse([]byte(text)))(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := llmtest.New(got); err != nil {
		t.Error(err)
	}
	b := musttest.Get(json.Marshal(want))(t)
	if again, err := llmtest.Parse(b); err != nil || cmp.Diff(want, again) != "" {
		t.Errorf("written and read again: %s, %v", b, err)
	}
}

func TestWrongScripts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                          "it ends too early",
		`{"rules": [`:               "it ends too early",
		`[]`:                        "cannot be a array",
		`{"rules": [{"sya": "x"}]}`: `unknown field "sya"`,
		`{"rules": [{"say": 1}]}`:   "rules.say cannot be a number",
		`{"rules": []}`:             "it has no rules",
		`{"rules": [{}]} x`:         "there is more behind",
		`{"rules": [{}, {"when": {"user": "("}}]}`:                                               "rule 2: when.user: error parsing regexp",
		`{"rules": [{"when": {"result": "("}}]}`:                                                 "when.result",
		`{"rules": [{"when": {"system": "("}}]}`:                                                 "when.system",
		`{"rules": [{"status": 302}]}`:                                                           "status is 302; accepted are 200, and 400 to 599",
		`{"rules": [{"times": -1}]}`:                                                             "times is -1",
		`{"rules": [{"delay_ms": 600001}]}`:                                                      "delay_ms is 600001; accepted are 0 to 600000",
		`{"rules": [{"cut_after": -2}]}`:                                                         "cut_after is -2",
		`{"rules": [{"stop": "tired"}]}`:                                                         "accepted are end, calls, length, refused",
		`{"rules": [{"calls": [{}]}]}`:                                                           "calls[0] has no name",
		`{"rules": [{"calls": [{"name": "a", "repeat": -1}]}]}`:                                  "repeat is -1",
		`{"rules": [{"calls": [{"name": "a", "repeat": 99999}, {"name": "b"}, {"name": "b"}]}]}`: "more than 100000 calls",
		`{"rules": [{"calls": [{"name": "a", "repeat": 9223372036854775807}, {"name": "b"}]}]}`:  "more than 100000 calls",
		`{"rules": [{"raw": "x", "say": "y"}]}`:                                                  "say not with raw",
		`{"rules": [{"status": 503, "calls": [{"name": "a"}]}]}`:                                 "calls come with neither",
		`{"rules": [{"usage": {"prompt_tokens": -1, "completion_tokens": 0}}]}`:                  "usage is negative",
		`{"rules": [{"say": "` + strings.Repeat("x", 4<<20) + `"}]}`:                             "at most 4194304",
		`{"rules": [{"calls": [{"name": "a", "arguments": [}]}]}`:                                "invalid character",
	} {
		s, err := llmtest.Parse([]byte(text))
		if err == nil {
			_, err = llmtest.New(s)
		}
		if e, ok := errors.AsType[*skill.Error](err); !ok || e.Code != skill.InvalidArgument || !strings.HasPrefix(e.Message, "the script: ") || !strings.Contains(e.Message, want) {
			t.Errorf("%.60s: %v; want %q", text, err, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a wrong script in a test's code is no panic")
		}
	}()
	llmtest.Provider(llmtest.Script{})
}
