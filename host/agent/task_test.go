package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/agent"
	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

var update = flag.Bool("update", false, "write the golden files")

// model is a provider that is one function. n counts its answers from 0.
type model func(ctx context.Context, n int, r *llm.Request) (*llm.Reply, error)

// says is a model that gives these answers in turn, for 100 tokens each.
func says(answers ...string) model {
	return func(_ context.Context, n int, _ *llm.Request) (*llm.Reply, error) {
		return reply(answers[n], 100), nil
	}
}

// always is a model that gives one answer again and again.
func always(answer string, tokens int) model {
	return func(context.Context, int, *llm.Request) (*llm.Reply, error) { return reply(answer, tokens), nil }
}

func reply(text string, tokens int) *llm.Reply {
	return &llm.Reply{Text: text, Stop: llm.StopEnd, Usage: llm.Usage{Prompt: tokens - tokens/4, Completion: tokens / 4}}
}

// What models say.
const (
	callEcho = `{"thought": "say it", "action": {"type": "skill_call", "skill": "echo", "params": {"text": "hi"}}}`
	finish   = `{"thought": "done", "action": {"type": "finish", "result": {"summary": "it said hi", "findings": [{"n": 1.50}]}}}`
)

// box is what a caller's model can call.
type box struct {
	list         []skill.Tool
	instructions string
	call         func(ctx context.Context, n int, c tools.Call) *tools.Outcome
	made         *[]tools.Call
	mu           *sync.Mutex
}

func (b box) List() []skill.Tool   { return b.list }
func (b box) Instructions() string { return b.instructions }

func (b box) Call(ctx context.Context, c tools.Call) *tools.Outcome {
	b.mu.Lock()
	n := len(*b.made)
	*b.made = append(*b.made, c)
	b.mu.Unlock()
	if !slices.ContainsFunc(b.list, func(t skill.Tool) bool { return t.Name == c.Name }) {
		return failed(c, skill.NotFound, "there is no skill of this name", true)
	}
	return b.call(ctx, n, c)
}

// works is a skill that gives something after 120 ms, by its own account.
func works(_ context.Context, n int, c tools.Call) *tools.Outcome {
	return &tools.Outcome{
		Call: c, Skill: c.Name, Arguments: json.RawMessage(c.Arguments), Took: 120 * time.Millisecond,
		Text: fmt.Sprintf("<result of call %d>", n),
		Result: &skill.Result{
			Success: true, SkillID: skill.ID(c.Name), Data: json.RawMessage(`{"echoed":"hi"}`),
			Meta: skill.Meta{Ran: true, ExecutionID: fmt.Sprintf("00000000-0000-7000-8000-%012d", n), FuelUsed: 1000},
		},
	}
}

func failed(c tools.Call, code skill.Code, message string, invalid bool) *tools.Outcome {
	return &tools.Outcome{
		Call: c, Skill: c.Name, Arguments: json.RawMessage(c.Arguments), Invalid: invalid, Text: "<" + message + ">",
		Result: skill.Failure(skill.ID(c.Name), c.Trace, skill.Meta{}, &skill.Error{Code: code, Message: message}),
	}
}

// house is an agent with a model, skills and a memory of sessions.
type house struct {
	*agent.Agent
	sessions conversations.Rows
	log      *bytes.Buffer

	mu    sync.Mutex
	asked []*llm.Request
	made  []tools.Call
}

// settings are those of a house that differ from the agent's own.
type settings struct {
	model model
	call  func(ctx context.Context, n int, c tools.Call) *tools.Outcome
	price llm.Price
	count func(model string) llm.Counter
	options
}

// options are those of the agent that differ from the usual ones.
type options struct {
	Tools                                                        func(ctx context.Context, p skill.Principal, only []skill.ID, form tools.Form) (tools.Set, error)
	Sessions                                                     conversations.Sessions
	MaxIterations, MaxTokens, MinTokens, ReplyTokens, Concurrent int
	Cost                                                         llm.Money
	Fuel                                                         uint64
	Alone                                                        bool
	Kinds                                                        map[string]agent.TaskKind
}

func newHouse(t testing.TB, s settings) *house {
	t.Helper()
	h := &house{sessions: conversations.NewStore(storetest.SQLite(t)), log: &bytes.Buffer{}}
	quiet := slog.New(slog.DiscardHandler)
	models, err := llm.NewModels(llm.Options{
		Backends: []llm.Backend{{Name: "fake", Model: "one", Provider: provider{h, s.model}, Counter: s.count, Timeout: time.Hour}},
		Prices:   llm.Prices{"one": s.price}, Log: quiet,
	})
	musttest.Do(t, err)
	call := s.call
	if call == nil {
		call = works
	}
	sessions := s.Sessions
	if sessions == nil {
		sessions = h.sessions
	}
	o := agent.Options{
		Models: models, Tools: s.Tools, Store: h.sessions, Sessions: sessions, Log: slog.New(slog.NewJSONHandler(h.log, nil)),
		Concurrent: or(s.Concurrent, 1024), Alone: s.Alone, ToolCalls: or(s.MaxIterations, 10), Cost: or(s.Cost, llm.Dollar),
		Fuel: or(s.Fuel, 100_000_000_000), Days: 1,
		Chat: agent.ChatOptions{Iterations: 1, Tokens: 1000, Time: time.Minute, ReplyTokens: 100, History: 20, Keep: 200, Retries: 3, Conversations: 100},
		Task: agent.TaskLimits{
			Iterations: or(s.MaxIterations, 10), Tokens: or(s.MaxTokens, 8192), MinTokens: or(s.MinTokens, min(500, or(s.MaxTokens, 8192))),
			ReplyTokens: or(s.ReplyTokens, 2048), IterationTimeout: time.Minute, Timeout: 5 * time.Minute, MaxTimeout: 10 * time.Minute,
			History: 5, ShortHistory: 3, Kinds: s.Kinds,
		},
	}
	if o.Tools == nil {
		o.Tools = func(_ context.Context, _ skill.Principal, only []skill.ID, _ tools.Form) (tools.Set, error) {
			b := box{list: catalogue(), call: call, made: &h.made, mu: &h.mu}
			for _, id := range only {
				if !slices.ContainsFunc(b.list, func(t skill.Tool) bool { return t.Name == string(id) }) {
					return nil, &skill.Error{Op: "test", Code: skill.AgentSkillNotFound, Subject: string(id), Message: "there is no such skill; available are calculator, echo"}
				}
			}
			if only != nil {
				b.list = slices.DeleteFunc(b.list, func(t skill.Tool) bool { return !slices.Contains(only, skill.ID(t.Name)) })
			}
			return b, nil
		}
	}
	if h.Agent, err = agent.New(o); err != nil {
		t.Fatal(err)
	}
	return h
}

func catalogue() []skill.Tool {
	return []skill.Tool{
		{Name: "calculator", Description: "Statistics over numbers.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		{
			Name: "echo", Description: "Says what it is told.", Cost: &skill.Cost{EstimatedDurationMS: 5},
			InputSchema: json.RawMessage(`{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`),
		},
	}
}

// provider makes an llm.Provider of a model.
type provider struct {
	h *house
	m model
}

func (p provider) Chat(ctx context.Context, r *llm.Request, _ func(string)) (*llm.Reply, error) {
	p.h.mu.Lock()
	n := len(p.h.asked)
	kept := *r
	p.h.asked = append(p.h.asked, &kept)
	p.h.mu.Unlock()
	return p.m(ctx, n, r)
}

var caller = skill.Principal{ID: "user-123", Type: skill.Human, Tenant: "acme", Scopes: []string{skill.ScopeAgent, skill.ScopeInvoke}}

// do works on a task that must become an outcome.
func (h *house) do(t testing.TB, task agent.Task) *agent.Outcome {
	t.Helper()
	if task.Text == "" {
		task.Text = "say hi"
	}
	return musttest.Get(h.Execute(t.Context(), caller, task))(t)
}

// result reads the result of an outcome.
func result(t testing.TB, out *agent.Outcome) (r struct {
	Summary  any               `json:"summary"`
	Findings any               `json:"findings"`
	Calls    []agent.SkillCall `json:"skill_calls"`
	Partial  *bool             `json:"partial"`
	Error    *struct {
		Code    skill.Code `json:"code"`
		Message string     `json:"message"`
	} `json:"error"`
},
) {
	t.Helper()
	if err := json.Unmarshal(out.Result, &r); err != nil {
		t.Fatalf("%v: %s", err, out.Result)
	}
	if r.Calls == nil || r.Partial == nil {
		t.Fatalf("skill_calls or partial is missing: %s", out.Result)
	}
	if *r.Partial != (out.Status != agent.TaskCompleted) || len(r.Calls) != out.Iterations {
		t.Errorf("status %s, %d iterations: %s", out.Status, out.Iterations, out.Result)
	}
	if (r.Error != nil) != *r.Partial {
		t.Errorf("partial and error: %s", out.Result)
	}
	return r
}

// kept is the session of an outcome, which must say the same.
func (h *house) kept(t testing.TB, out *agent.Outcome) {
	t.Helper()
	reader := caller
	reader.Scopes = []string{skill.ScopeExecutions}
	s := musttest.Get(h.Session(t.Context(), reader, out.SessionID))(t)
	if s.Status != string(out.Status) || s.Iterations != out.Iterations || s.Tokens != out.TotalTokens || s.DurationMS != out.TotalDuration {
		t.Errorf("kept %+v of %+v", s, out)
	}
}

func code(err error) skill.Code { return skill.CodeOf(err) }

// golden compares with a file of testdata, where the id of the session is SESSION.
func golden(t *testing.T, name string, out *agent.Outcome) {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(struct {
		HTTP int            `json:"http"`
		Code skill.Code     `json:"code,omitempty"`
		Said string         `json:"message,omitempty"`
		Data *agent.Outcome `json:"data"`
		Meta map[string]any `json:"details,omitempty"`
	}{status(out), code(asError(out.Err)), message(out.Err), out, details(out.Err)}); err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(b.String(), out.SessionID, "SESSION")
	got = takes.ReplaceAllString(got, "takes about N tokens") // which is for another test
	path := filepath.Join("testdata", name+".json")
	if *update {
		musttest.Do(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want := musttest.Get(os.ReadFile(path))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: %s", path, diff)
	}
}

var takes = regexp.MustCompile(`takes about \d+ tokens`)

// status is what an edge answers an outcome with.
func status(out *agent.Outcome) int {
	if out.Err != nil {
		return out.Err.Code.Status()
	}
	return 200
}

func asError(e *skill.Error) error {
	if e == nil {
		return nil
	}
	return e
}

func message(e *skill.Error) string {
	if e == nil {
		return ""
	}
	return e.Message
}

func details(e *skill.Error) map[string]any {
	if e == nil {
		return nil
	}
	return e.Details
}

var errVendor = errors.New("connection reset by 10.0.0.7")

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
