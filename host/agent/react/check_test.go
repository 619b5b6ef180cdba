package react_test

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

	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/agent/react"
	"openskill/host/agent/toolbox"
	"openskill/host/store/storetest"
	"openskill/sdk/skill"
)

func asSkillError(err error, e **skill.Error) bool { return errors.As(err, e) }

func owner() conversations.Owner {
	return conversations.Owner{Tenant: caller.Tenant, Principal: caller.ID}
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		task   react.Task
		code   skill.Code
		fields string // of details, by a blank
	}{
		"empty":             {react.Task{}, skill.AgentInvalidTask, "task"},
		"blank":             {react.Task{Text: " \n\t\u3000"}, skill.AgentInvalidTask, "task"},
		"nothing visible":   {react.Task{Text: "\u200b\u2060\ufeff"}, skill.AgentInvalidTask, "task"},
		"too long":          {react.Task{Text: strings.Repeat("长", 2001)}, skill.AgentInvalidTask, "task"},
		"much too long":     {react.Task{Text: strings.Repeat("x", 1<<20)}, skill.AgentInvalidTask, "task"},
		"invalid UTF-8":     {react.Task{Text: "a\xff"}, skill.AgentInvalidTask, "task"},
		"as long as it may": {react.Task{Text: strings.Repeat("长", 2000)}, "", ""},
		"context":           {react.Task{Text: "x", Context: json.RawMessage(`{"a": {"b": [1]}}`)}, "", ""},
		"context null":      {react.Task{Text: "x", Context: json.RawMessage(`null`)}, "", ""},
		"context list":      {react.Task{Text: "x", Context: json.RawMessage(`[]`)}, skill.AgentValidationError, "context"},
		"context text":      {react.Task{Text: "x", Context: json.RawMessage(`"x"`)}, skill.AgentValidationError, "context"},
		"context twice":     {react.Task{Text: "x", Context: json.RawMessage(`{"a": 1, "a": 2}`)}, skill.AgentValidationError, "context"},
		"context cut off":   {react.Task{Text: "x", Context: json.RawMessage(`{"a": `)}, skill.AgentValidationError, "context"},
		"context deep":      {react.Task{Text: "x", Context: json.RawMessage(`{"a": ` + strings.Repeat("[", 30_000))}, skill.AgentValidationError, "context"},
		"context huge":      {react.Task{Text: "x", Context: json.RawMessage(`{"a": "` + strings.Repeat("x", 1<<20) + `"}`)}, skill.AgentValidationError, "context"},
		"rounds":            {react.Task{Text: "x", Options: react.TaskOptions{MaxIterations: 11}}, skill.AgentValidationError, "options.max_iterations"},
		"rounds below":      {react.Task{Text: "x", Options: react.TaskOptions{MaxIterations: -1}}, skill.AgentValidationError, "options.max_iterations"},
		"most rounds":       {react.Task{Text: "x", Options: react.TaskOptions{MaxIterations: 10}}, "", ""},
		"time":              {react.Task{Text: "x", Options: react.TaskOptions{TimeoutSeconds: 9}}, skill.AgentValidationError, "options.timeout_seconds"},
		"time above":        {react.Task{Text: "x", Options: react.TaskOptions{TimeoutSeconds: math.MaxInt}}, skill.AgentValidationError, "options.timeout_seconds"},
		"least time":        {react.Task{Text: "x", Options: react.TaskOptions{TimeoutSeconds: 10}}, "", ""},
		"most time":         {react.Task{Text: "x", Options: react.TaskOptions{TimeoutSeconds: 600}}, "", ""},
		"no skills":         {react.Task{Text: "x", Options: react.TaskOptions{Skills: []string{}}}, skill.AgentValidationError, "options.skills"},
		"many skills":       {react.Task{Text: "x", Options: react.TaskOptions{Skills: make([]string, 257)}}, skill.AgentValidationError, "options.skills"},
		"another skill":     {react.Task{Text: "x", Options: react.TaskOptions{Skills: []string{"echo", "../x"}}}, skill.AgentSkillNotFound, ""},
		"one skill":         {react.Task{Text: "x", Options: react.TaskOptions{Skills: []string{"echo"}}}, "", ""},
		"all wrong": {
			react.Task{Text: "x", Context: json.RawMessage("1"), Options: react.TaskOptions{MaxIterations: 99, TimeoutSeconds: 1, Skills: []string{}}},
			skill.AgentValidationError, "context options.max_iterations options.timeout_seconds options.skills",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, settings{model: says(finish), Options: react.Options{MaxTokens: 100_000}})
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
		options react.TaskOptions
		rounds  int // that the model is asked for
		fields  string
		says    string
	}{
		"none":                {react.TaskOptions{}, 6, "", ""},
		"a kind":              {react.TaskOptions{Kind: "short"}, 2, "", ""},
		"another":             {react.TaskOptions{Kind: "slow"}, 6, "", ""},
		"lower":               {react.TaskOptions{Kind: "short", MaxIterations: 1, TimeoutSeconds: 30}, 1, "", ""},
		"above all":           {react.TaskOptions{Kind: "wide"}, 6, "", ""},
		"few tokens":          {react.TaskOptions{Kind: "poor"}, 0, "", ""},
		"rounds above":        {react.TaskOptions{Kind: "short", MaxIterations: 3}, 0, "options.max_iterations", "from 1 to 2"},
		"time above":          {react.TaskOptions{Kind: "short", TimeoutSeconds: 31}, 0, "options.timeout_seconds", "from 10 to 30"},
		"time above of all":   {react.TaskOptions{Kind: "wide", TimeoutSeconds: 601}, 0, "options.timeout_seconds", "from 10 to 600"},
		"unknown":             {react.TaskOptions{Kind: "tall"}, 0, "options.kind", "poor, short, slow, wide"},
		"unknown and hostile": {react.TaskOptions{Kind: "x\x1b[31m" + strings.Repeat("x", 1<<20)}, 0, "options.kind", "poor, short, slow, wide"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, settings{model: always(callEcho, 1), Options: react.Options{
				MaxIterations: 6, MaxTokens: 100_000, MinTokens: 500,
				Kinds: map[string]react.Kind{
					"short": {Iterations: 2, Timeout: 30 * time.Second}, "slow": {Timeout: 10 * time.Minute},
					"wide": {Iterations: 60, Tokens: 1 << 30, Timeout: time.Hour}, "poor": {Tokens: 500},
				},
			}})
			out, err := h.Execute(t.Context(), caller, react.Task{Text: "x", Options: c.options})
			if c.fields != "" {
				var e *skill.Error
				if !asSkillError(err, &e) || e.Code != skill.AgentValidationError || len(e.Message) > skill.MaxMessage || !strings.Contains(e.Message, c.fields) || !strings.Contains(e.Message, c.says) || len(h.asked) > 0 {
					t.Fatalf("%v", err)
				}
				return
			}
			if err != nil || out.Status != react.Terminated || len(h.asked) != c.rounds {
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
		"without a scope": {skill.Principal{ID: "a", Tenant: "t", Scopes: []string{skill.ScopeInvoke, skill.ScopeHost}}, skill.Forbidden},
		"of no tenant":    {skill.Principal{ID: "a", Scopes: []string{skill.ScopeAgent}}, skill.Forbidden},
	} {
		if out, err := h.Execute(t.Context(), c.p, react.Task{Text: "x"}); out != nil || code(err) != c.code {
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
	h := newHouse(t, settings{model: always(finish, 1), Options: react.Options{Tools: func(_ context.Context, p skill.Principal, only []skill.ID) (toolbox.Tools, error) {
		who, chosen = p, only
		return one{}, nil
	}}})
	h.do(t, react.Task{Options: react.TaskOptions{Skills: []string{"echo"}}})
	if who.ID != caller.ID || len(chosen) != 1 || chosen[0] != "echo" {
		t.Errorf("%+v, %v", who, chosen)
	}
	h.do(t, react.Task{})
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
	h := newHouse(t, settings{model: says(finish), Options: react.Options{Sessions: broken{Sessions: storetest.NewMemory(), begin: disk}}})
	out, err := h.Execute(t.Context(), caller, react.Task{Text: "x"})
	var e *skill.Error
	if out != nil || !asSkillError(err, &e) || e.Code != skill.AuditUnavailable || strings.Contains(e.Message, "disk") || !errors.Is(err, disk) || len(h.asked) != 0 {
		t.Errorf("%v, %d questions", err, len(h.asked))
	}

	h = newHouse(t, settings{model: says(finish), Options: react.Options{Sessions: broken{Sessions: storetest.NewMemory(), end: disk}}})
	if out := h.do(t, react.Task{}); out.Status != react.Completed || !strings.Contains(h.log.String(), "disk full") {
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
	}, Options: react.Options{Concurrent: 2, Alone: true}})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { h.do(t, react.Task{}) })
	}
	<-begun
	<-begun
	_, err := h.Execute(t.Context(), caller, react.Task{Text: "x"})
	var e *skill.Error
	if !asSkillError(err, &e) || e.Code != skill.RateLimited || e.Details["retry_after_ms"] == nil {
		t.Error(err)
	}
	close(held)
	all.Wait()
	if out := h.do(t, react.Task{}); out.Status != react.Completed {
		t.Errorf("%+v", out)
	}

	h = newHouse(t, settings{model: func(_ context.Context, _ int, r *llm.Request) (*llm.Reply, error) {
		if strings.Contains(r.Messages[0].Text, "--- round 1 ---") {
			name := strings.TrimPrefix(strings.SplitN(r.Messages[0].Text, "\n", 2)[0], "Task: ")
			return reply(fmt.Sprintf(`{"action": {"type": "finish", "result": {"summary": %q}}}`, name), 10), nil
		}
		return reply(callEcho, 10), nil
	}, Options: react.Options{Alone: true}})
	for i := range 1000 {
		all.Go(func() {
			name := fmt.Sprintf("task %d", i)
			out := h.do(t, react.Task{Text: name})
			if r := result(t, out); r.Summary != name || out.Iterations != 2 || out.TotalTokens != 30 {
				t.Errorf("%s: %s", name, out.Result)
			}
		})
	}
	all.Wait()
}

func TestNew(t *testing.T) {
	models, err := llm.NewModels(llm.Options{Backends: []llm.Backend{{Name: "fake", Model: "one", Provider: provider{}}}})
	if err != nil {
		t.Fatal(err)
	}
	good := func() react.Options {
		return react.Options{Models: models, Tools: bare, Sessions: storetest.NewMemory()}
	}
	if _, err := react.New(good()); err != nil {
		t.Error(err)
	}
	warm, nan := 2.1, math.NaN()
	for name, spoil := range map[string]func(o *react.Options){
		"Models":       func(o *react.Options) { o.Models = nil },
		"Tools":        func(o *react.Options) { o.Tools = nil },
		"Sessions":     func(o *react.Options) { o.Sessions = nil },
		"MaxTokens":    func(o *react.Options) { o.MaxTokens = -1 },
		"Timeout":      func(o *react.Options) { o.Timeout, o.MaxTimeout = time.Hour, time.Minute },
		"MinTokens":    func(o *react.Options) { o.MaxTokens, o.MinTokens = 100, 200 },
		"ShortHistory": func(o *react.Options) { o.History, o.ShortHistory = 2, 3 },
		"Temperature":  func(o *react.Options) { o.Temperature = &warm },
		"at most 2":    func(o *react.Options) { o.Temperature = &nan },
		"Cost":         func(o *react.Options) { o.Cost = -1 },
	} {
		o := good()
		spoil(&o)
		if _, err := react.New(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, some := range map[string]func(o *react.Options){
		"few tokens":  func(o *react.Options) { o.MaxTokens = 100 },
		"little time": func(o *react.Options) { o.MaxTimeout = time.Second },
		"much time":   func(o *react.Options) { o.Timeout = time.Hour },
		"history":     func(o *react.Options) { o.History = 1 },
	} {
		o := good()
		some(&o)
		if _, err := react.New(o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The temperature that an operator wants is the one of the questions.
func TestTemperature(t *testing.T) {
	half, own := 0.5, -1.0
	for want, set := range map[*float64]*float64{&half: &half, nil: &own} {
		h := newHouse(t, settings{model: says(finish), Options: react.Options{Temperature: set}})
		h.do(t, react.Task{})
		if got := h.asked[0].Temperature; (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
