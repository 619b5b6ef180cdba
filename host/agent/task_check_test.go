package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/host/agent"
	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/host/store/storetest"
	"openskill/sdk/skill"
)

func asSkillError(err error, e **skill.Error) bool { return errors.As(err, e) }

func owner() conversations.Owner {
	return conversations.Owner{Tenant: caller.Tenant, Principal: caller.ID}
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		task   agent.Task
		code   skill.Code
		fields string // of details, by a blank
	}{
		"empty":             {agent.Task{}, skill.AgentInvalidTask, "task"},
		"blank":             {agent.Task{Text: " \n\t\u3000"}, skill.AgentInvalidTask, "task"},
		"nothing visible":   {agent.Task{Text: "\u200b\u2060\ufeff"}, skill.AgentInvalidTask, "task"},
		"too long":          {agent.Task{Text: strings.Repeat("长", 2001)}, skill.AgentInvalidTask, "task"},
		"much too long":     {agent.Task{Text: strings.Repeat("x", 1<<20)}, skill.AgentInvalidTask, "task"},
		"invalid UTF-8":     {agent.Task{Text: "a\xff"}, skill.AgentInvalidTask, "task"},
		"as long as it may": {agent.Task{Text: strings.Repeat("长", 2000)}, "", ""},
		"context":           {agent.Task{Text: "x", Context: json.RawMessage(`{"a": {"b": [1]}}`)}, "", ""},
		"context null":      {agent.Task{Text: "x", Context: json.RawMessage(`null`)}, "", ""},
		"context list":      {agent.Task{Text: "x", Context: json.RawMessage(`[]`)}, skill.AgentValidationError, "context"},
		"context text":      {agent.Task{Text: "x", Context: json.RawMessage(`"x"`)}, skill.AgentValidationError, "context"},
		"context twice":     {agent.Task{Text: "x", Context: json.RawMessage(`{"a": 1, "a": 2}`)}, skill.AgentValidationError, "context"},
		"context cut off":   {agent.Task{Text: "x", Context: json.RawMessage(`{"a": `)}, skill.AgentValidationError, "context"},
		"context deep":      {agent.Task{Text: "x", Context: json.RawMessage(`{"a": ` + strings.Repeat("[", 30_000))}, skill.AgentValidationError, "context"},
		"context huge":      {agent.Task{Text: "x", Context: json.RawMessage(`{"a": "` + strings.Repeat("x", 1<<20) + `"}`)}, skill.AgentValidationError, "context"},
		"rounds":            {agent.Task{Text: "x", Options: agent.TaskOptions{MaxIterations: 11}}, skill.AgentValidationError, "options.max_iterations"},
		"rounds below":      {agent.Task{Text: "x", Options: agent.TaskOptions{MaxIterations: -1}}, skill.AgentValidationError, "options.max_iterations"},
		"most rounds":       {agent.Task{Text: "x", Options: agent.TaskOptions{MaxIterations: 10}}, "", ""},
		"time":              {agent.Task{Text: "x", Options: agent.TaskOptions{TimeoutSeconds: 9}}, skill.AgentValidationError, "options.timeout_seconds"},
		"time above":        {agent.Task{Text: "x", Options: agent.TaskOptions{TimeoutSeconds: math.MaxInt}}, skill.AgentValidationError, "options.timeout_seconds"},
		"least time":        {agent.Task{Text: "x", Options: agent.TaskOptions{TimeoutSeconds: 10}}, "", ""},
		"most time":         {agent.Task{Text: "x", Options: agent.TaskOptions{TimeoutSeconds: 600}}, "", ""},
		"no skills":         {agent.Task{Text: "x", Options: agent.TaskOptions{Skills: []string{}}}, skill.AgentValidationError, "options.skills"},
		"many skills":       {agent.Task{Text: "x", Options: agent.TaskOptions{Skills: make([]string, 257)}}, skill.AgentValidationError, "options.skills"},
		"another skill":     {agent.Task{Text: "x", Options: agent.TaskOptions{Skills: []string{"echo", "../x"}}}, skill.AgentSkillNotFound, ""},
		"one skill":         {agent.Task{Text: "x", Options: agent.TaskOptions{Skills: []string{"echo"}}}, "", ""},
		"all wrong": {
			agent.Task{Text: "x", Context: json.RawMessage("1"), Options: agent.TaskOptions{MaxIterations: 99, TimeoutSeconds: 1, Skills: []string{}}},
			skill.AgentValidationError, "context options.max_iterations options.timeout_seconds options.skills",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, settings{model: says(finish), options: options{MaxTokens: 100_000}})
			out, err := h.Execute(t.Context(), caller, c.task)
			if code(err) != c.code || (err == nil) == (out == nil) {
				t.Fatalf("%v, want %q", err, c.code)
			}
			if err == nil {
				return
			}
			if n, _ := h.sessions.PruneSessions(t.Context(), time.Now().Add(time.Hour)); len(h.asked) != 0 || n != 0 {
				t.Errorf("%d questions and %d sessions of what was refused", len(h.asked), n)
			}
			var e *skill.Error
			asSkillError(err, &e)
			b, _ := json.Marshal(e.Details["fields"])
			var fields []struct{ Field, Problem, Expected string }
			json.Unmarshal(b, &fields)
			var names []string
			for _, f := range fields {
				names = append(names, f.Field)
				if f.Problem == "" || f.Expected == "" {
					t.Errorf("%+v", f)
				}
			}
			if strings.Join(names, " ") != c.fields || e.Message == "" || len(e.Message) > skill.MaxMessage {
				t.Errorf("fields %s, message %q", b, e.Message)
			}
		})
	}
}

// A task of a kind has the limits that the operator gave the kind, and its caller may lower
// them; neither is above what all tasks have.
func TestKindsOfTasks(t *testing.T) {
	for name, c := range map[string]struct {
		options agent.TaskOptions
		rounds  int // that the model is asked for
		fields  string
		says    string
	}{
		"none":                {agent.TaskOptions{}, 6, "", ""},
		"a kind":              {agent.TaskOptions{Kind: "short"}, 2, "", ""},
		"another":             {agent.TaskOptions{Kind: "slow"}, 6, "", ""},
		"lower":               {agent.TaskOptions{Kind: "short", MaxIterations: 1, TimeoutSeconds: 30}, 1, "", ""},
		"above all":           {agent.TaskOptions{Kind: "wide"}, 6, "", ""},
		"few tokens":          {agent.TaskOptions{Kind: "poor"}, 0, "", ""},
		"rounds above":        {agent.TaskOptions{Kind: "short", MaxIterations: 3}, 0, "options.max_iterations", "from 1 to 2"},
		"time above":          {agent.TaskOptions{Kind: "short", TimeoutSeconds: 31}, 0, "options.timeout_seconds", "from 10 to 30"},
		"time above of all":   {agent.TaskOptions{Kind: "wide", TimeoutSeconds: 601}, 0, "options.timeout_seconds", "from 10 to 600"},
		"unknown":             {agent.TaskOptions{Kind: "tall"}, 0, "options.kind", "poor, short, slow, wide"},
		"unknown and hostile": {agent.TaskOptions{Kind: "x\x1b[31m" + strings.Repeat("x", 1<<20)}, 0, "options.kind", "poor, short, slow, wide"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, settings{model: always(callEcho, 1), options: options{
				MaxIterations: 6, MaxTokens: 100_000, MinTokens: 500,
				Kinds: map[string]agent.TaskKind{
					"short": {Iterations: 2, Timeout: 30 * time.Second}, "slow": {Timeout: 10 * time.Minute},
					"wide": {Iterations: 60, Tokens: 1 << 30, Timeout: time.Hour}, "poor": {Tokens: 500},
				},
			}})
			out, err := h.Execute(t.Context(), caller, agent.Task{Text: "x", Options: c.options})
			if c.fields != "" {
				var e *skill.Error
				if !asSkillError(err, &e) || e.Code != skill.AgentValidationError || len(e.Message) > skill.MaxMessage || !strings.Contains(e.Message, c.fields) || !strings.Contains(e.Message, c.says) || len(h.asked) > 0 {
					t.Fatalf("%v", err)
				}
				return
			}
			if err != nil || out.Status != agent.TaskTerminated || len(h.asked) != c.rounds {
				t.Errorf("%+v after %d rounds, %v", out, len(h.asked), err)
			}
		})
	}
}

func TestWhoMay(t *testing.T) {
	h := newHouse(t, settings{model: says(finish)})
	for name, c := range map[string]struct {
		p    skill.Principal
		code skill.Code
	}{
		"nobody":          {skill.Principal{}, skill.Unauthorized},
		"without a scope": {skill.Principal{ID: "a", Type: skill.Human, Tenant: "t", Scopes: []string{skill.ScopeInvoke, skill.ScopeHost}}, skill.Forbidden},
		"of no tenant":    {skill.Principal{ID: "a", Type: skill.Human, Scopes: []string{skill.ScopeAgent}}, skill.Forbidden},
	} {
		if out, err := h.Execute(t.Context(), c.p, agent.Task{Text: "x"}); out != nil || code(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(h.asked) != 0 {
		t.Error("a model was asked")
	}
}

// The skills that a task may use are chosen as the caller, and by what the task names.
func TestToolsAreTheCallers(t *testing.T) {
	var who skill.Principal
	var chosen []skill.ID
	h := newHouse(t, settings{model: always(finish, 1), options: options{Tools: func(_ context.Context, p skill.Principal, only []skill.ID, _ tools.Form) (tools.Set, error) {
		who, chosen = p, only
		return one{}, nil
	}}})
	h.do(t, agent.Task{Options: agent.TaskOptions{Skills: []string{"echo"}}})
	if who.ID != caller.ID || len(chosen) != 1 || chosen[0] != "echo" {
		t.Errorf("%+v, %v", who, chosen)
	}
	h.do(t, agent.Task{})
	if chosen != nil {
		t.Errorf("%v of a task that names none", chosen)
	}
}

// broken are sessions of a store that fails.
type broken struct {
	conversations.Sessions
	begin, end error
}

func (b broken) Begin(ctx context.Context, s *conversations.Session) error {
	if b.begin != nil {
		return b.begin
	}
	return b.Sessions.Begin(ctx, s)
}

func (b broken) End(ctx context.Context, s *conversations.Session) error {
	if b.end != nil {
		return b.end
	}
	return b.Sessions.End(ctx, s)
}

// What cannot be put on record does not begin; what has ended is answered all the same.
func TestStoreFails(t *testing.T) {
	disk := errors.New("disk full at somewhere")
	h := newHouse(t, settings{model: says(finish), options: options{Sessions: broken{Sessions: conversations.NewStore(storetest.SQLite(t)), begin: disk}}})
	out, err := h.Execute(t.Context(), caller, agent.Task{Text: "x"})
	var e *skill.Error
	if out != nil || !asSkillError(err, &e) || e.Code != skill.AuditUnavailable || strings.Contains(e.Message, "disk") || !errors.Is(err, disk) || len(h.asked) != 0 {
		t.Errorf("%v, %d questions", err, len(h.asked))
	}

	h = newHouse(t, settings{model: says(finish), options: options{Sessions: broken{Sessions: conversations.NewStore(storetest.SQLite(t)), end: disk}}})
	if out := h.do(t, agent.Task{}); out.Status != agent.TaskCompleted || !strings.Contains(h.log.String(), "disk full") {
		t.Errorf("%+v: %s", out, h.log)
	}
}

// As many tasks as may be under way are; one more is refused, and another one begins
// when one has ended. A thousand that work at once each have their own.
func TestConcurrent(t *testing.T) {
	held := make(chan struct{})
	begun := make(chan struct{}, 2)
	h := newHouse(t, settings{model: func(context.Context, int, *llm.Request) (*llm.Reply, error) {
		begun <- struct{}{}
		<-held
		return reply(finish, 10), nil
	}, options: options{Concurrent: 2, Alone: true}})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { h.do(t, agent.Task{}) })
	}
	<-begun
	<-begun
	_, err := h.Execute(t.Context(), caller, agent.Task{Text: "x"})
	var e *skill.Error
	if !asSkillError(err, &e) || e.Code != skill.RateLimited || e.Details["retry_after_ms"] == nil {
		t.Error(err)
	}
	close(held)
	all.Wait()
	if out := h.do(t, agent.Task{}); out.Status != agent.TaskCompleted {
		t.Errorf("%+v", out)
	}

	h = newHouse(t, settings{model: func(_ context.Context, _ int, r *llm.Request) (*llm.Reply, error) {
		if strings.Contains(r.Messages[0].Text, "--- round 1 ---") {
			name := strings.TrimPrefix(strings.SplitN(r.Messages[0].Text, "\n", 2)[0], "Task: ")
			return reply(fmt.Sprintf(`{"action": {"type": "finish", "result": {"summary": %q}}}`, name), 10), nil
		}
		return reply(callEcho, 10), nil
	}, options: options{Alone: true}})
	for i := range 1000 {
		all.Go(func() {
			name := fmt.Sprintf("task %d", i)
			out := h.do(t, agent.Task{Text: name})
			if r := result(t, out); r.Summary != name || out.Iterations != 2 || out.TotalTokens != 30 {
				t.Errorf("%s: %s", name, out.Result)
			}
		})
	}
	all.Wait()
}
