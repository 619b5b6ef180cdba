package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/agent"
	"openskill/host/agent/conversations"
	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// working starts an edge whose agent works on tasks as work says; nil: as they say.
func working(t *testing.T, work func(context.Context, agent.Task) (*agent.Outcome, error)) (*server, *apitest.React) {
	t.Helper()
	fake := &apitest.React{Work: work}
	return start(t, func(o *api.Options) { o.React = fake }), fake
}

// The bodies of tasks: what is taken, as what, and what of the rest is named.
func TestBodiesOfTasks(t *testing.T) {
	s, fake := working(t, func(context.Context, agent.Task) (*agent.Outcome, error) {
		return &agent.Outcome{Status: agent.TaskCompleted, Result: json.RawMessage("{}")}, nil
	})
	for name, tc := range map[string]struct {
		body string
		want agent.Task
	}{
		"the least":   {`{"task":"x"}`, agent.Task{Text: "x"}},
		"all of it":   {`{"task":"x","context":{ "a" : [1] },"options":{"max_iterations":5,"timeout_seconds":300.0,"skills":["echo","\u0061"],"kind":"short"}}`, agent.Task{Text: "x", Context: json.RawMessage(`{ "a" : [1] }`), Options: agent.TaskOptions{MaxIterations: 5, TimeoutSeconds: 300, Skills: []string{"echo", "a"}, Kind: "short"}}},
		"nulls":       {`{"task":"x","context":null,"options":null}`, agent.Task{Text: "x"}},
		"nulls below": {`{"task":"x","options":{"max_iterations":null,"timeout_seconds":null,"skills":null,"kind":null}}`, agent.Task{Text: "x"}},
		"no options":  {`{"task":"x","options":{}}`, agent.Task{Text: "x"}},
		"no skill":    {`{"task":"x","options":{"skills":[]}}`, agent.Task{Text: "x", Options: agent.TaskOptions{Skills: []string{}}}}, // and not all of them
	} {
		resp, body := s.do(t, "POST", "/api/agent/execute", tc.body, "X-Trace-Id", "t-1")
		if resp.StatusCode != 200 {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
			continue
		}
		tasks := fake.Tasks()
		tc.want.Trace = "t-1"
		if diff := cmp.Diff(tc.want, tasks[len(tasks)-1]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	taken := len(fake.Tasks())
	for _, tc := range []struct{ body, field, problem string }{
		{"", "body", "is empty"},
		{"task=x", "body", "expected a JSON object"},
		{`{}`, "task", "is missing"},
		{`{"task":null}`, "task", "must be a string"},
		{`{"task":["x"]}`, "task", "must be a string"},
		{`{"task":"x","task":"y"}`, "task", "appears more than once"},
		{`{"task":"x","Task":"y"}`, "Task", "is not a known key; task, context and options are"},
		{`{"task":"x","context":[]}`, "context", "must be an object"},
		{`{"task":"x","context":"x"}`, "context", "must be an object"},
		{`{"task":"x","context":{"a":1,"a":2}}`, "context.a", "appears more than once"},
		{`{"task":"x","options":[]}`, "options", "must be an object"},
		{`{"task":"x","options":{"max_tokens":1}}`, "options.max_tokens", "is not a known key; max_iterations, timeout_seconds, skills and kind are"},
		{`{"task":"x","options":{"max_iterations":0}}`, "options.max_iterations", "must be a whole number, 1 or more"},
		{`{"task":"x","options":{"max_iterations":"5"}}`, "options.max_iterations", "must be a whole number, 1 or more"},
		{`{"task":"x","options":{"timeout_seconds":0.5}}`, "options.timeout_seconds", "must be a whole number, 1 or more"},
		{`{"task":"x","options":{"kind":1}}`, "options.kind", "must be a string"},
		{`{"task":"x","options":{"kind":""}}`, "options.kind", "must be 1 to 64 characters long"},
		{`{"task":"x","options":{"skills":"echo"}}`, "options.skills", "must be a list of skill ids"},
		{`{"task":"x","options":{"skills":{}}}`, "options.skills", "must be a list of skill ids"},
		{`{"task":"x","options":{"skills":[1]}}`, "options.skills", "must be a list of skill ids"},
		{`{"task":"x","options":{"skills":["a",null]}}`, "options.skills", "must be a list of skill ids"},
		{"{\"task\":\"\xff\"}", "task", ""},
		{"{\"task\":\"a\x00b\"}", "task", ""},
		{`{"task":"x"`, "body", ""},
		{`{"context":` + strings.Repeat(`{"a":`, 100_000), "", "nested deeper than 256"},
	} {
		resp, got := s.do(t, "POST", "/api/agent/execute", tc.body)
		checkField(t, tc.body, resp, got, 422, skill.AgentValidationError, tc.field, tc.problem)
	}
	// What the agent itself finds wrong has its own code.
	for _, body := range []string{`{"task":""}`, `{"task":"  \n"}`, `{"task":"` + strings.Repeat("x", 1_000_000) + `"}`} {
		if resp, got := s.do(t, "POST", "/api/agent/execute", body); resp.StatusCode != 400 || !bytes.Contains(got, []byte(`"AGENT_INVALID_TASK"`)) {
			t.Errorf("%.20s: %d %s", body, resp.StatusCode, got)
		}
	}
	if n := len(fake.Tasks()) - taken; n > 0 {
		t.Errorf("%d of what was refused reached the agent", n)
	}
}

// A task that fails in a way of its own is answered with what it reached, and with no
// word of why that is for the log.
func TestTasksThatFail(t *testing.T) {
	outcome := func(code skill.Code) *agent.Outcome {
		return &agent.Outcome{
			SessionID: "00000000-0000-7000-a000-000000000001", Status: agent.TaskFailed, Result: json.RawMessage(`{"partial":true,"skill_calls":[]}`),
			Err: &skill.Error{Code: code, Message: "what\nhappened", Details: map[string]any{"retry_after_ms": 10}, Err: context.DeadlineExceeded},
		}
	}
	for _, tc := range []struct {
		name   string
		out    *agent.Outcome
		err    error
		status int
		want   string
	}{
		{"late", outcome(skill.AgentExecutionTimeout), nil, 408, `"AGENT_EXECUTION_TIMEOUT"`},
		{"no model", outcome(skill.AgentLLMUnavailable), nil, 503, `"AGENT_LLM_UNAVAILABLE"`},
		{"broken", outcome(skill.AgentLoopError), nil, 500, `"AGENT_LOOP_ERROR"`},
		{"no skill", nil, &skill.Error{Code: skill.AgentSkillNotFound, Message: "there is no skill x", Details: map[string]any{"available": []string{"echo"}}}, 404, `"available":["echo"]`},
		{"busy", nil, &skill.Error{Code: skill.RateLimited, Message: "too many tasks", Details: map[string]any{"retry_after_ms": 10}}, 429, `"RATE_LIMITED"`},
		{"no record", nil, &skill.Error{Code: skill.AuditUnavailable, Message: "the session cannot be written"}, 503, `"AUDIT_UNAVAILABLE"`},
		{"not allowed", nil, &skill.Error{Code: skill.Forbidden, Message: "missing scope agent:run"}, 403, `"FORBIDDEN"`},
		{"a range", nil, &skill.Error{Code: skill.AgentValidationError, Message: "options.max_iterations: must be 1 to 10"}, 422, `"AGENT_VALIDATION_ERROR"`},
		{"nothing", nil, nil, 500, `"INTERNAL"`},
		{"an error of no kind", nil, context.DeadlineExceeded, 500, `"INTERNAL"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, _ := working(t, func(context.Context, agent.Task) (*agent.Outcome, error) { return tc.out, tc.err })
			resp, body := s.do(t, "POST", "/api/agent/execute", `{"task":"x"}`)
			if resp.StatusCode != tc.status || !bytes.Contains(body, []byte(tc.want)) || bytes.Contains(body, []byte("deadline")) || bytes.Contains(body, []byte(`"data"`)) != (tc.out != nil) {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
			if has := resp.Header.Get("Retry-After") != ""; has != (tc.status == 429) {
				t.Errorf("headers %v", resp.Header)
			}
		})
	}
}

// E25, of a task.
func TestATaskEndsWhenItsClientLeaves(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	begun, ended := make(chan struct{}), make(chan error, 1)
	s, _ := working(t, func(ctx context.Context, _ agent.Task) (*agent.Outcome, error) {
		close(begun)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, &skill.Error{Code: skill.Cancelled, Message: "the caller left"}
	})
	c := s.dial(t)
	const body = `{"task":"x"}`
	c.send(t, "POST /api/agent/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+body)
	wait(t, "the task", begun)
	_ = c.Close()
	if err := wait(t, "the task's end", ended); err == nil || err.Error() != "the client closed its connection" {
		t.Errorf("the task ended with %v", err)
	}
}

// What is kept of a task and what the records tell of it become one answer.
func TestSessionsOfTasks(t *testing.T) {
	w := newWorld(t)
	run := w.run(t, "ann", "mark-skill", `{}`) // its session is itself
	none := "00000000-0000-7000-a000-000000000001"
	kept := func(id, status string) conversations.Session {
		return conversations.Session{
			ID: id, Owner: conversations.Owner{Tenant: ours, Principal: "mark-ann"}, PrincipalType: "agent", Task: "mark", Status: status,
			Iterations: 3, Tokens: 4520, DurationMS: 12350, CreatedAt: worldTime.Add(-time.Minute),
		}
	}
	type answer struct {
		PrincipalID   string `json:"principal_id"`
		PrincipalType string `json:"principal_type"`
		Status        string
		Iterations    []json.RawMessage
		Tokens        int       `json:"total_token_usage"`
		Duration      int       `json:"total_duration_ms"`
		CreatedAt     time.Time `json:"created_at"`
	}
	ask := func(key, id string, status int) (out answer) {
		t.Helper()
		resp, body := w.as(t, key, "GET", "/api/agent/executions/"+id, "")
		if resp.StatusCode != status {
			t.Fatalf("%s by %s: %d %s", id, key, resp.StatusCode, body)
		}
		musttest.Do(t, json.Unmarshal(body, &struct{ Data any }{&out}))
		return out
	}
	if got := ask("ann", run, 200); got.Status != "completed" || got.Tokens != 0 || len(got.Iterations) != 1 {
		t.Errorf("records alone: %+v", got)
	}
	ask("ann", none, 404)

	w.react.Keep(kept(none, "failed"))
	if got := ask("ann", none, 200); got.Status != "failed" || got.Tokens != 4520 || got.Duration != 12350 || got.Iterations == nil || len(got.Iterations) != 0 ||
		got.PrincipalID != "mark-ann" || got.PrincipalType != "agent" || !got.CreatedAt.Equal(worldTime.Add(-time.Minute)) {
		t.Errorf("a task without calls: %+v", got)
	}
	w.react.Keep(kept(run, "terminated"))
	if got := ask("ann", strings.ToUpper(run), 200); got.Status != "terminated" || got.Tokens != 4520 || got.Duration != 12350 || len(got.Iterations) != 1 || !got.CreatedAt.Equal(worldTime.Add(-time.Minute)) {
		t.Errorf("both: %+v", got)
	}
	ask("operator", run, 200)
	ask("bob", run, 404)
	ask("bob", none, 404)

	running := w.run(t, "ann", "mark-skill", `{}`)
	w.react.Keep(kept(running, "running"))
	if got := ask("ann", running, 200); got.Status != "running" || got.Tokens != 0 || got.Duration != 0 || len(got.Iterations) != 1 {
		t.Errorf("a task at work counts what is on record: %+v", got)
	}

	// An agent that cannot tell is no reason to answer with half of it.
	broken := start(t, func(o *api.Options) { o.React, o.Executions = unreadable{}, w.manager })
	if resp, body := broken.do(t, "GET", "/api/agent/executions/"+run, ""); resp.StatusCode != 503 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	// A host without records tells of tasks all the same.
	alone := start(t, func(o *api.Options) {
		fake := &apitest.React{}
		s := kept(none, "completed")
		s.Owner = conversations.Owner{Tenant: "local", Principal: "local"}
		fake.Keep(s)
		o.React = fake
	})
	if resp, body := alone.do(t, "GET", "/api/agent/executions/"+none, ""); resp.StatusCode != 200 || !bytes.Contains(body, []byte(`"iterations":[]`)) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// unreadable is an agent whose tasks cannot be read.
type unreadable struct{ api.React }

func (unreadable) Session(context.Context, skill.Principal, string) (*conversations.Session, error) {
	return nil, &skill.Error{Code: skill.AuditUnavailable, Message: "the database cannot be read"}
}
