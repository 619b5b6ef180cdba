package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model is a provider that answers as the function does.
type model func(ctx context.Context, r *llm.Request, text func(string)) (*llm.Reply, error)

func (f model) Chat(ctx context.Context, r *llm.Request, text func(string)) (*llm.Reply, error) {
	return f(ctx, r, text)
}

// script is a provider that answers with these in turn, whatever it is asked, and keeps
// the questions.
type script struct {
	mu      sync.Mutex
	replies []step
	asked   []llm.Request
}

type step = func(ctx context.Context, r *llm.Request, text func(string)) (*llm.Reply, error)

func scripted(replies ...step) *script { return &script{replies: replies} }

func (s *script) Chat(ctx context.Context, r *llm.Request, text func(string)) (*llm.Reply, error) {
	s.mu.Lock()
	n := len(s.asked)
	s.asked = append(s.asked, *r)
	s.mu.Unlock()
	if n >= len(s.replies) {
		return nil, errors.New("the script has no more answers")
	}
	return s.replies[n](ctx, r, text)
}

// used is what each answer of the tests takes.
var used = llm.Usage{Prompt: 10, Completion: 5}

// says answers with a text, in two parts.
func says(s string) step {
	return func(_ context.Context, _ *llm.Request, text func(string)) (*llm.Reply, error) {
		if text != nil && s != "" {
			text(s[:len(s)/2])
			text(s[len(s)/2:])
		}
		return &llm.Reply{Text: s, Stop: llm.StopEnd, Usage: used}, nil
	}
}

// calls answers with calls of tools: names and arguments in turn.
func calls(namesAndArgs ...string) step {
	return func(context.Context, *llm.Request, func(string)) (*llm.Reply, error) {
		r := &llm.Reply{Stop: llm.StopCalls, Usage: used}
		for i := 0; i < len(namesAndArgs); i += 2 {
			r.Calls = append(r.Calls, llm.Call{ID: "c" + string(rune('1'+i/2)), Name: namesAndArgs[i], Arguments: namesAndArgs[i+1]})
		}
		return r, nil
	}
}

// saysAndCalls answers with both.
func saysAndCalls(s string, namesAndArgs ...string) step {
	return func(ctx context.Context, r *llm.Request, text func(string)) (*llm.Reply, error) {
		reply, err := calls(namesAndArgs...)(ctx, r, text)
		reply.Text = s
		return reply, err
	}
}

func fails(err error) step {
	return func(context.Context, *llm.Request, func(string)) (*llm.Reply, error) { return nil, err }
}

// waits answers when its context ends, as providers do.
func waits(begun chan<- struct{}) step {
	return func(ctx context.Context, _ *llm.Request, text func(string)) (*llm.Reply, error) {
		if text != nil {
			text("Let me")
		}
		if begun != nil {
			begun <- struct{}{}
		}
		<-ctx.Done()
		return nil, llm.Ended(ctx)
	}
}

// box is the tools of tests: functions by name. Other names are no tools.
type box struct {
	tools map[string]func(ctx context.Context, c tools.Call) *tools.Outcome

	mu    sync.Mutex
	calls []tools.Call
	who   []skill.Principal
}

func newBox() *box {
	return &box{tools: map[string]func(context.Context, tools.Call) *tools.Outcome{
		"echo": func(_ context.Context, c tools.Call) *tools.Outcome { return works(c, c.Arguments) },
		"fail": func(_ context.Context, c tools.Call) *tools.Outcome {
			return goesWrong(c, skill.GuestExit, "it did not work")
		},
		"wait": func(ctx context.Context, c tools.Call) *tools.Outcome {
			<-ctx.Done()
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return goesWrong(c, skill.Timeout, "the caller's deadline expired")
			}
			return goesWrong(c, skill.Cancelled, "the call was cancelled")
		},
		"burn": func(_ context.Context, c tools.Call) *tools.Outcome {
			o := works(c, "burnt")
			o.Result.Meta.FuelUsed = 600
			return o
		},
	}}
}

func works(c tools.Call, text string) *tools.Outcome {
	args := json.RawMessage(c.Arguments)
	if !json.Valid(args) {
		args = json.RawMessage(`{}`)
	}
	return &tools.Outcome{
		Call: c, Skill: c.Name, Arguments: args, Text: "<tool_result>" + text + "</tool_result>", Took: 3 * time.Millisecond,
		Result: &skill.Result{Success: true, SkillID: skill.ID(c.Name), TraceID: c.Trace, Data: json.RawMessage(`{}`), Meta: skill.Meta{Ran: true, ExecutionID: "run-" + c.ID}},
	}
}

func goesWrong(c tools.Call, code skill.Code, message string) *tools.Outcome {
	return &tools.Outcome{
		Call: c, Skill: c.Name, Arguments: json.RawMessage(`{}`), Text: message, Took: time.Millisecond,
		Result: skill.Failure(skill.ID(c.Name), c.Trace, skill.Meta{Ran: true, ExecutionID: "run-" + c.ID}, &skill.Error{Code: code, Message: message}),
	}
}

func (b *box) For(_ context.Context, p skill.Principal, _ []skill.ID, _ tools.Form) (tools.Set, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.who = append(b.who, p)
	return b, nil
}

func (b *box) Instructions() string { return "There are Agent Skills." }

func (b *box) List() []skill.Tool {
	var list []skill.Tool
	for name := range b.tools {
		list = append(list, skill.Tool{Name: name, Description: "Does " + name + ".", InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
	slices.SortFunc(list, func(a, b skill.Tool) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (b *box) Call(ctx context.Context, c tools.Call) *tools.Outcome {
	b.mu.Lock()
	b.calls = append(b.calls, c)
	run := b.tools[c.Name]
	b.mu.Unlock()
	if run == nil || c.Arguments == "wrong" {
		o := goesWrong(c, skill.InvalidArgument, "text is missing; send {\"text\": …}")
		o.Invalid = true
		o.Result.Meta.ExecutionID = ""
		return o
	}
	return run(ctx, c)
}

// logs is what was logged; it may be written by many.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// bench is a chat of tests with its parts.
type bench struct {
	*Agent
	box   *box
	store conversations.Store
	log   *logs
}

var someone = skill.Principal{ID: "ann", Type: skill.Human, Tenant: "acme", Scopes: []string{skill.ScopeAgent, skill.ScopeInvoke, skill.ScopeRead}}

func newBench(t testing.TB, p llm.Provider, changes ...func(*Options)) *bench {
	t.Helper()
	return benchOf(t, []llm.Backend{{Name: "fake", Provider: p, Model: "m1", Timeout: time.Hour}}, changes...)
}

func benchOf(t testing.TB, backends []llm.Backend, changes ...func(*Options)) *bench {
	t.Helper()
	b := &bench{box: newBox(), log: &logs{}}
	log := slog.New(slog.NewJSONHandler(b.log, nil))
	models, err := llm.NewModels(llm.Options{Backends: backends, Prices: llm.Prices{"m1": {Prompt: 100, Completion: 200}}, Pause: time.Millisecond, Log: log})
	musttest.Do(t, err)
	store := conversations.NewStore(storetest.SQLite(t))
	o := Options{
		Models: models, Tools: b.box.For, Store: store, Sessions: store, Log: log,
		Concurrent: 1024, ToolCalls: 20, Cost: llm.Dollar, Fuel: 1000, Days: 30,
		Chat: ChatOptions{
			Iterations: 10, Tokens: 100_000, Time: time.Minute, ReplyTokens: 4096, History: 20, Keep: 200, Retries: 3, Conversations: 1000,
		},
		Task: TaskLimits{
			Iterations: 10, Tokens: 8192, MinTokens: 500, ReplyTokens: 2048, IterationTimeout: time.Minute, Timeout: 5 * time.Minute, MaxTimeout: 10 * time.Minute,
			History: 5, ShortHistory: 3,
		},
	}
	for _, c := range changes {
		c(&o)
	}
	b.store = o.Store
	if b.Agent, err = New(o); err != nil {
		t.Fatal(err)
	}
	return b
}

// heard collects events; its Hear is what turns are given.
type heard struct{ events []Event }

func (h *heard) Hear(e Event) { h.events = append(h.events, e) }

// kinds are the events in a line: of texts that follow each other, one.
func (h *heard) kinds() string {
	var list []string
	for i, e := range h.events {
		if e.Kind == EventText && i > 0 && h.events[i-1].Kind == EventText {
			continue
		}
		k := string(e.Kind)
		if e.Tool != nil {
			k += ":" + e.Tool.ID
		}
		list = append(list, k)
	}
	return strings.Join(list, " ")
}

func (h *heard) last() Event {
	if len(h.events) == 0 {
		return Event{}
	}
	return h.events[len(h.events)-1]
}

// turn takes a turn that must not fail.
func (b *bench) turn(t testing.TB, r ChatRequest, hear func(Event)) *Answer {
	t.Helper()
	r.Trace = "trace-1"
	a, err := b.Turn(t.Context(), someone, r, hear)
	if err != nil {
		t.Fatalf("the turn failed: %v", err)
	}
	return a
}

// kept are the messages of a conversation in short: a letter for the role, the text, and
// calls as name(id) or the id that is answered.
func (b *bench) kept(t testing.TB, id string) []string {
	t.Helper()
	list := musttest.Get(b.store.Messages(t.Context(), ownerOf(someone), id, 1000))(t)
	return inLines(bodies(list))
}

func inLines(list []llm.Message) []string {
	out := make([]string, len(list))
	for i, m := range list {
		s := string(m.Role)[:1] + ":" + m.Text
		for _, c := range m.Calls {
			s += " " + c.Name + "(" + c.ID + ")"
		}
		if m.CallID != "" {
			s += " ->" + m.CallID
		}
		if m.Failed {
			s += " failed"
		}
		out[i] = s
	}
	return out
}

func code(t testing.TB, err error, want skill.Code) {
	t.Helper()
	if e, ok := errors.AsType[*skill.Error](err); !ok || e.Code != want || e.Message == "" && want != skill.Internal {
		t.Fatalf("the error is %v, want %s with a message", err, want)
	}
}

func same[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func sameLines(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got\n\t%s\nwant\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}
