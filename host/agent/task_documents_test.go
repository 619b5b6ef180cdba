package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"openskill/host/agent"
	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/sdk/skill"
)

// TestDocuments has the tests of the agent-service documents (section 8, and the list of
// 9.4) that are about the loop, each by the name that it has there. What a registry, a
// counter of tokens and an HTTP edge have to do is tested with these.
func TestDocuments(t *testing.T) {
	const search = `{"action": {"type": "skill_call", "skill": "echo", "params": {"query": "test"}}, "thought": "search"}`
	for name, test := range map[string]func(t *testing.T){
		"test_successful_execution": func(t *testing.T) {
			h := newHouse(t, settings{model: func(_ context.Context, n int, _ *llm.Request) (*llm.Reply, error) {
				if n == 0 {
					return reply(search, 500), nil
				}
				return reply(`{"action": {"type": "finish", "result": {"summary": "分析完成"}}, "thought": "enough"}`, 300), nil
			}})
			out := h.do(t, agent.Task{Text: "分析支付问题"})
			if r := result(t, out); out.Status != agent.TaskCompleted || out.Iterations != 1 || out.TotalTokens != 800 || r.Summary != "分析完成" {
				t.Errorf("%+v: %s", out, out.Result)
			}
		},
		"test_max_iterations_termination": func(t *testing.T) {
			h := newHouse(t, settings{model: always(search, 50)})
			out := h.do(t, agent.Task{Text: "无限任务"})
			if r := result(t, out); out.Status != agent.TaskTerminated || out.Iterations != 10 || out.TotalTokens != 500 || r.Error.Code != skill.AgentMaxIterations {
				t.Errorf("%+v: %s", out, out.Result)
			}
			if len(h.asked) != 10 || len(h.made) != 10 {
				t.Errorf("%d questions, %d calls", len(h.asked), len(h.made))
			}
		},
		"test_budget_exhaustion": func(t *testing.T) { // what is left is never below zero
			h := newHouse(t, settings{model: always(search, 10_000_000)})
			out := h.do(t, agent.Task{})
			if r := result(t, out); out.Status != agent.TaskTerminated || out.Iterations != 1 || out.TotalTokens != 10_000_000 || r.Error.Code != skill.AgentTokenExhausted {
				t.Errorf("%+v: %s", out, out.Result)
			}
		},
		"the threshold of 500": func(t *testing.T) {
			for used, rounds := range map[int]int{7692: 2, 7693: 1} { // 8192 - 500 are enough, one more is too much
				h := newHouse(t, settings{model: func(_ context.Context, n int, _ *llm.Request) (*llm.Reply, error) {
					if n == 0 {
						return reply(search, used), nil
					}
					return reply(search, 1), nil
				}, options: options{Tools: bare, MaxIterations: 2}})
				out := h.do(t, agent.Task{Text: "x"})
				if r := result(t, out); len(h.asked) != rounds || out.Status != agent.TaskTerminated || (r.Error.Code == skill.AgentTokenExhausted) != (rounds == 1) {
					t.Errorf("after %d tokens: %d questions, %s", used, len(h.asked), out.Result)
				}
			}
		},
		"one whole round": func(t *testing.T) { // reasoning, action, observation, finish
			h := newHouse(t, settings{model: says(callEcho, finish)})
			h.do(t, agent.Task{})
			last := h.asked[1].Messages[0].Text
			if !strings.Contains(last, `echo({"text":"hi"})`) || !strings.Contains(last, "<result of call 0>") {
				t.Errorf("the observation is missing: %s", last)
			}
		},
		"a skill that there is not": func(t *testing.T) {
			h := newHouse(t, settings{model: says(strings.Replace(callEcho, `"echo"`, `"ecko"`, 1), callEcho, finish)})
			out := h.do(t, agent.Task{})
			r := result(t, out)
			if out.Status != agent.TaskCompleted || r.Calls[0].Status != "failed" || r.Calls[0].Skill != "ecko" || r.Calls[0].ExecutionID != "" || r.Calls[1].Status != "success" {
				t.Errorf("%s", out.Result)
			}
			if told := h.asked[1].Messages[0].Text; !strings.Contains(told, "Available skills: calculator, echo.") {
				t.Errorf("the model is told: %s", told)
			}
		},
		"params that are wrong": func(t *testing.T) {
			h := newHouse(t, settings{model: says(callEcho, callEcho, finish), call: func(ctx context.Context, n int, c tools.Call) *tools.Outcome {
				if n == 0 {
					return failed(c, skill.InvalidArgument, "/text is a number; expected string", true)
				}
				return works(ctx, n, c)
			}})
			out := h.do(t, agent.Task{})
			r := result(t, out)
			if out.Status != agent.TaskCompleted || r.Calls[0].Error != "INVALID_ARGUMENT: /text is a number; expected string" || r.Calls[1].Status != "success" {
				t.Errorf("%s", out.Result)
			}
			if told := h.asked[1].Messages[0].Text; !strings.Contains(told, "/text is a number; expected string") || strings.Contains(told, "Skills that there are") {
				t.Errorf("the model is told: %s", told)
			}
		},
		"a skill that fails": func(t *testing.T) {
			h := newHouse(t, settings{model: says(callEcho, finish), call: func(_ context.Context, _ int, c tools.Call) *tools.Outcome {
				return failed(c, skill.Timeout, "it ran longer than 15 s", false)
			}})
			out := h.do(t, agent.Task{})
			if r := result(t, out); out.Status != agent.TaskCompleted || r.Calls[0].Status != "failed" || !strings.Contains(h.asked[1].Messages[0].Text, "longer than 15 s") {
				t.Errorf("%s", out.Result)
			}
		},
		"an answer that is no JSON": func(t *testing.T) {
			h := newHouse(t, settings{model: says("I think that all is well.")})
			out := h.do(t, agent.Task{Trace: "t-1"})
			if r := result(t, out); out.Status != agent.TaskCompleted || r.Summary != "I think that all is well." {
				t.Errorf("%s", out.Result)
			}
			if log := h.log.String(); !strings.Contains(log, "AGENT_LLM_PARSE_ERROR") || strings.Contains(log, "all is well") {
				t.Errorf("the log: %s", log)
			}
		},
		"what the model is asked with": func(t *testing.T) {
			h := newHouse(t, settings{model: says(callEcho, finish), options: options{MaxTokens: 2000}})
			h.do(t, agent.Task{Trace: "t-1"})
			first, second := h.asked[0], h.asked[1]
			if first.Slot != llm.Reasoning || !first.JSON || first.Trace != "t-1" || first.Tools != nil || first.Temperature == nil || *first.Temperature != 0.3 {
				t.Errorf("%+v", first)
			}
			if first.MaxTokens >= 2000 || second.MaxTokens >= first.MaxTokens-100 { // what is left, without what the prompt takes
				t.Errorf("%d and %d tokens", first.MaxTokens, second.MaxTokens)
			}
			h = newHouse(t, settings{model: says(finish)})
			h.do(t, agent.Task{})
			if h.asked[0].MaxTokens != 2048 {
				t.Errorf("%d tokens", h.asked[0].MaxTokens)
			}
		},
		"what a call is made with": func(t *testing.T) {
			h := newHouse(t, settings{model: always(callEcho, 123), options: options{MaxIterations: 2, Fuel: 5000}})
			out := h.do(t, agent.Task{Trace: "t-1"})
			for i, fuel := range []uint64{5000, 4000} {
				want := skill.Turn{Session: out.SessionID, Iteration: i, Tokens: 123}
				if c := h.made[i]; c.Turn != want || c.Limits != (skill.Limits{Fuel: fuel}) || c.Trace != "t-1" || c.Arguments != `{"text":"hi"}` {
					t.Errorf("%+v", c)
				}
			}
			if h.made[0].ID == h.made[1].ID {
				t.Error("two calls of one id")
			}
		},
	} {
		t.Run(name, test)
	}
}

// bare gives a model one tool, and next to nothing to read.
func bare(context.Context, skill.Principal, []skill.ID, tools.Form) (tools.Set, error) {
	return one{}, nil
}

type one struct{}

func (one) List() []skill.Tool   { return []skill.Tool{{Name: "echo"}} }
func (one) Instructions() string { return "" }
func (one) Call(ctx context.Context, c tools.Call) *tools.Outcome {
	o := works(ctx, 0, c)
	o.Text = "ok"
	return o
}

// TestGarbage: whatever a model says, a task ends, with JSON, and nothing runs that it
// has not asked for.
func TestGarbage(t *testing.T) {
	for _, said := range []string{
		"", "null", "[]", "42", "{", `{"action": `, "<html><body>502</body></html>", "\x00\xff\xfe", strings.Repeat("{", 100_000),
		`{"action": {"type": "finish", "result": ` + strings.Repeat("[", 100_000), `{"action": "skill_call"`, "data: {\"x\": 1}\n\ndata: [DONE]",
		`{"tool_calls": [{"name": "echo", "arguments": "{}"}]}`,
	} {
		h := newHouse(t, settings{model: says(said)})
		out := h.do(t, agent.Task{})
		result(t, out)
		h.kept(t, out)
		if out.Status != agent.TaskCompleted || len(h.made) != 0 || !json.Valid(out.Result) {
			t.Errorf("%.60q: %s, %d calls, %.200s", said, out.Status, len(h.made), out.Result)
		}
	}
}
