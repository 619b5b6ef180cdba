package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// always answers with the same for ever.
func always(s step) model { return model(s) }

// Every limit ends a turn with what there is, and says which one it was. The next turn of
// the conversation is as any other.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		model  llm.Provider
		r      ChatRequest
		set    func(*Options)
		reason StopReason
		rounds int
		calls  int
		answer string // "": the host's sentence
	}{
		{name: "iterations", model: always(calls("echo", "{}")), r: ChatRequest{MaxIterations: 3}, reason: StopIterations, rounds: 3, calls: 3},
		{name: "iterations of the host", model: always(saysAndCalls("Let me see.", "echo", "{}")), r: ChatRequest{MaxIterations: 300}, reason: StopIterations, rounds: 10, calls: 10, answer: "Let me see."},
		{name: "calls", model: always(calls("echo", "{}", "echo", "{}")), r: ChatRequest{MaxToolCalls: 3}, reason: StopToolCalls, rounds: 2, calls: 4},
		{name: "tokens", model: always(calls("echo", "{}")), set: func(o *Options) { o.Chat.Tokens = 900 }, reason: StopTokens, rounds: 19, calls: 19},
		{name: "tokens of the request", model: always(calls("echo", "{}")), r: ChatRequest{MaxTokens: 100}, reason: StopTokens, rounds: 0, calls: 0},
		{name: "money", model: always(calls("echo", "{}")), set: func(o *Options) { o.Cost = 3000 }, reason: StopCost, rounds: 2, calls: 2},
		{name: "fuel", model: always(calls("burn", "{}")), reason: StopFuel, rounds: 2, calls: 2},
		{name: "time in the model", model: scripted(calls("echo", "{}"), waits(nil)), reason: StopTime, rounds: 2, calls: 1},
		{name: "time in a tool", model: scripted(saysAndCalls("I wait.", "wait", "{}", "echo", "{}")), reason: StopTime, rounds: 1, calls: 2, answer: "I wait."},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.model, func(o *Options) {
					if c.name == "tokens" { // as many rounds as the tokens are for
						o.Chat.Iterations = 100
					}
					if c.set != nil {
						c.set(o)
					}
				})
				c.r.Message = "Go"
				h := &heard{}
				a := b.turn(t, c.r, h.Hear)
				same(t, "reason", a.StopReason, c.reason)
				if c.name != "tokens" {
					same(t, "rounds", a.Iterations, c.rounds)
					same(t, "calls", len(a.ToolCalls), c.calls)
				} else if a.Iterations < 3 || a.Usage.TotalTokens > 900 {
					t.Errorf("%d rounds with %d tokens", a.Iterations, a.Usage.TotalTokens)
				}
				same(t, "last event", h.last().Kind, EventDone)
				kept := b.kept(t, a.Conversation)
				last := kept[len(kept)-1]
				if !strings.HasPrefix(last, "a:The host ended this turn") {
					t.Errorf("what is kept at last: %s", last)
				}
				same(t, "answer", a.Answer, cmp.Or(c.answer, strings.TrimPrefix(last, "a:")))
				if c.name == "time in a tool" {
					same(t, "code of the call that waited", a.ToolCalls[0].Error.Code, skill.Timeout)
					same(t, "the other one", a.ToolCalls[1].Success, true)
				}
				next := newBench(t, scripted(says("On.")), func(o *Options) { o.Store = b.store })
				same(t, "the next turn", next.turn(t, ChatRequest{Message: "go on", Conversation: a.Conversation}, nil).Answer, "On.")
			})
		})
	}
}

// G04: an answer that asks for ten thousand calls gets as many as the budget allows, and
// what is told of the others does not grow with their number.
func TestTenThousandCalls(t *testing.T) {
	var list []string
	for range 10_000 {
		list = append(list, "echo", `{"text":"again"}`)
	}
	model := scripted(func(ctx context.Context, r *llm.Request, text func(string)) (*llm.Reply, error) {
		reply, err := calls(list...)(ctx, r, text)
		for i := range reply.Calls {
			reply.Calls[i].ID = "same"
		}
		return reply, err
	})
	b := newBench(t, model)
	h := &heard{}
	a := b.turn(t, ChatRequest{Message: "Do it ten thousand times"}, h.Hear)
	same(t, "reason", a.StopReason, StopToolCalls)
	same(t, "calls that were made", len(b.box.calls), 20)
	same(t, "calls that are told of", len(a.ToolCalls), 20+shownBeyond)
	ids := map[string]bool{}
	for i, c := range a.ToolCalls {
		ids[c.ID] = true
		if i < 20 {
			same(t, "success", c.Success, true)
			continue
		}
		same(t, "code", c.Error.Code, skill.ToolInvocationError)
		if !strings.Contains(c.Error.Message, "9980 calls") {
			t.Errorf("the message %q does not say how many", c.Error.Message)
		}
	}
	same(t, "ids", len(ids), len(a.ToolCalls))
	if !strings.Contains(a.Answer, "20 calls were made, and 9980 more") {
		t.Errorf("the answer does not say how many: %s", a.Answer)
	}
	same(t, "messages", len(b.kept(t, a.Conversation)), 1+1+20+shownBeyond+1)
	if n := len(h.events); n > 60 {
		t.Errorf("%d events", n)
	}
}

func TestWrongCalls(t *testing.T) {
	t.Run("mended", func(t *testing.T) {
		model := scripted(calls("echo", "wrong"), calls("no_such", "{}"), calls("echo", "wrong"), calls("echo", `{"text":"x"}`), calls("echo", "wrong"), says("Mended."))
		b := newBench(t, model)
		a := b.turn(t, ChatRequest{Message: "Go"}, nil)
		same(t, "answer", a.Answer, "Mended.")
		same(t, "calls", len(a.ToolCalls), 5)
		same(t, "code", a.ToolCalls[0].Error.Code, skill.InvalidArgument)
		if last := model.asked[1].Messages[2]; !last.Failed || !strings.Contains(last.Text, "text is missing") {
			t.Errorf("the model is told %+v", last)
		}
	})
	t.Run("never mended", func(t *testing.T) {
		b := newBench(t, always(calls("echo", `{}`, "echo", "wrong")), func(o *Options) { o.Chat.Retries = 2 })
		a := b.turn(t, ChatRequest{Message: "Go"}, nil)
		same(t, "reason", a.StopReason, StopInvalidCalls)
		same(t, "rounds", a.Iterations, 3)
		if !strings.Contains(a.Answer, "wrong calls 3 times in a row") {
			t.Errorf("answer: %s", a.Answer)
		}
	})
	t.Run("as often as the caller allows, at most as the host does", func(t *testing.T) {
		for asked, rounds := range map[int]int{1: 2, 2: 3, 300: 3} {
			b := newBench(t, always(calls("echo", "wrong")), func(o *Options) { o.Chat.Retries = 2 })
			a := b.turn(t, ChatRequest{Message: "Go", MaxRetries: asked}, nil)
			same(t, "reason", a.StopReason, StopInvalidCalls)
			same(t, "rounds", a.Iterations, rounds)
			if want := fmt.Sprintf("wrong calls %d times in a row", rounds); !strings.Contains(a.Answer, want) {
				t.Errorf("answer: %s, want %s", a.Answer, want)
			}
		}
	})
	t.Run("arguments without end", func(t *testing.T) {
		long := `{"text":"` + strings.Repeat("x", maxArguments) + `"}`
		half := `{"text":"` + strings.Repeat("\x01", maxArguments/2) + `"}`
		b := newBench(t, scripted(calls("echo", long), calls("echo", half, "echo", half, "echo", half, "echo", half, "echo", half), says("Done.")))
		a := b.turn(t, ChatRequest{Message: "Go"}, nil)
		same(t, "answer", a.Answer, "Done.")
		same(t, "first", a.ToolCalls[0].Error.Code, skill.InvalidArgument)
		made := 0
		for _, c := range a.ToolCalls[1:] {
			if c.Success {
				made++
			}
		}
		same(t, "calls of the second answer that were made", made, 3)
	})
}

// The time that a caller gives each call goes with it; the door lowers it to the host's.
func TestCallsHaveTheTimeOfTheirTurn(t *testing.T) {
	b := newBench(t, scripted(calls("echo", "{}", "echo", "{}"), says("Done."), calls("echo", "{}"), says("Done.")))
	a := b.turn(t, ChatRequest{Message: "Go", TimeoutMS: 1500}, nil)
	b.turn(t, ChatRequest{Message: "Go", Conversation: a.Conversation}, nil)
	for i, want := range []time.Duration{1500 * time.Millisecond, 1500 * time.Millisecond, 0} {
		same(t, "time", b.box.calls[i].Limits.Timeout, want)
	}
}

// What a model and its vendor can do beside answering.
func TestOddAnswers(t *testing.T) {
	reply := func(r llm.Reply) step {
		return func(context.Context, *llm.Request, func(string)) (*llm.Reply, error) { r.Usage = used; return &r, nil }
	}
	for _, c := range []struct {
		name   string
		steps  []step
		reason StopReason
		answer string // contained
		code   skill.Code
	}{
		{"nothing, and then an answer", []step{says(""), says("Here.")}, StopCompleted, "Here.", ""},
		{"nothing twice", []step{says(" \n"), says("")}, "", "", skill.AgentLLMParseError},
		{"nothing, a call, nothing", []step{says(""), calls("echo", "{}"), says(""), says("Late.")}, StopCompleted, "Late.", ""},
		{"cut off", []step{reply(llm.Reply{Text: "It is", Stop: llm.StopLength})}, StopLength, "It is", ""},
		{"cut off before it began", []step{reply(llm.Reply{Stop: llm.StopLength})}, StopLength, "cut off before", ""},
		{"withheld", []step{reply(llm.Reply{Stop: llm.StopRefused})}, StopRefused, "withheld", ""},
		{"withheld with calls", []step{reply(llm.Reply{Stop: llm.StopRefused, Text: "No.", Calls: []llm.Call{{Name: "echo"}}})}, StopRefused, "No.", ""},
		{"calls and the wrong reason", []step{reply(llm.Reply{Stop: llm.StopEnd, Calls: []llm.Call{{Name: "echo"}}}), says("Ok.")}, StopCompleted, "Ok.", ""},
		{"bytes", []step{reply(llm.Reply{Text: "a\xff\x00b", Stop: llm.StopEnd})}, StopCompleted, "ab", ""},
		{"garbage", []step{fails(llm.Unreadable("fake", "no JSON", nil))}, "", "", skill.AgentLLMParseError},
		{"not to be had", []step{fails(llm.Unavailable("fake", 500, "broken", 0, nil))}, "", "", skill.AgentLLMUnavailable},
		{"busy once", []step{fails(llm.Unavailable("fake", 503, "busy", 0, nil)), says("Now.")}, StopCompleted, "Now.", ""},
		{"busy for good", []step{fails(llm.Unavailable("fake", 503, "busy", 0, nil)), fails(llm.Unavailable("fake", 503, "busy", 0, nil))}, "", "", skill.AgentLLMUnavailable},
		{"an error of no kind", []step{fails(errors.New("at /srv/secret"))}, "", "", skill.AgentLoopError},
		{"no reply", []step{func(context.Context, *llm.Request, func(string)) (*llm.Reply, error) { return nil, nil }}, "", "", skill.AgentLoopError},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, scripted(c.steps...))
			h := &heard{}
			a, err := b.Turn(t.Context(), someone, ChatRequest{Message: "Go"}, h.Hear)
			if c.code != "" {
				code(t, err, c.code)
				same(t, "last event", h.last().Kind, EventError)
				same(t, "its code", h.last().Error.Code, c.code)
				if strings.Contains(h.last().Error.Message, "secret") {
					t.Errorf("a caller reads %s", h.last().Error.Message)
				}
				conversation := h.events[0].Conversation
				same(t, "what is kept first", b.kept(t, conversation)[0], "u:Go")
				next := newBench(t, scripted(says("On.")), func(o *Options) { o.Store = b.store })
				same(t, "the next turn", next.turn(t, ChatRequest{Message: "go on", Conversation: conversation}, nil).Answer, "On.")
				return
			}
			musttest.Do(t, err)
			same(t, "reason", a.StopReason, c.reason)
			if !strings.Contains(a.Answer, c.answer) {
				t.Errorf("the answer %q lacks %q", a.Answer, c.answer)
			}
		})
	}
}

// What calls gave is not lost when the model cannot be had afterwards.
func TestTheModelGoesAway(t *testing.T) {
	b := newBench(t, scripted(calls("echo", `{"n":1}`), fails(llm.Unavailable("fake", 500, "down", 0, nil))))
	h := &heard{}
	_, err := b.Turn(t.Context(), someone, ChatRequest{Message: "Go"}, h.Hear)
	code(t, err, skill.AgentLLMUnavailable)
	same(t, "events", h.kinds(), "start usage tool_start:c1 tool_end:c1 error")
	id := h.events[0].Conversation
	sameLines(t, "kept", b.kept(t, id), []string{"u:Go", "a: echo(c1)", `t:<tool_result>{"n":1}</tool_result> ->c1`})
	v := musttest.Get(b.Get(t.Context(), someone, id))(t)
	same(t, "rounds", v.Iterations, 2)
	same(t, "tokens", v.TotalTokens, 15)
}

// A client that leaves ends the model and the tools. What was complete is kept.
func TestTheClientLeaves(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps func(begun chan<- struct{}) []step
		kept  []string
	}{
		{"before", func(chan<- struct{}) []step { return nil }, nil},
		{"in the model", func(begun chan<- struct{}) []step { return []step{waits(begun)} }, []string{"u:Go"}},
		{
			"in the model, later", func(begun chan<- struct{}) []step { return []step{calls("echo", "{}"), waits(begun)} },
			[]string{"u:Go", "a: echo(c1)", "t:<tool_result>{}</tool_result> ->c1"},
		},
		{
			"in a tool", func(chan<- struct{}) []step { return []step{calls("echo", "{}", "hang", "{}")} },
			[]string{"u:Go", "a: echo(c1) hang(c2)", "t:<tool_result>{}</tool_result> ->c1", "t:the call was cancelled ->c2 failed"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			begun := make(chan struct{}, 1)
			b := newBench(t, scripted(c.steps(begun)...))
			ctx, leave := context.WithCancel(t.Context())
			b.box.tools["hang"] = func(ctx context.Context, c tools.Call) *tools.Outcome {
				begun <- struct{}{}
				return b.box.tools["wait"](ctx, c)
			}
			if c.kept == nil {
				leave()
			} else {
				go func() {
					<-begun
					leave()
				}()
			}
			defer leave()
			h := &heard{}
			_, err := b.Turn(ctx, someone, ChatRequest{Message: "Go"}, h.Hear)
			code(t, err, skill.Cancelled)
			if len(h.events) > 0 {
				same(t, "last event", h.last().Kind, EventError)
			}
			list, _, err := b.List(t.Context(), someone, "", 10)
			musttest.Do(t, err)
			if len(list) == 1 {
				got := b.kept(t, list[0].ID)
				if c.kept != nil || len(got) > 1 {
					sameLines(t, "kept", got, c.kept)
				}
			}
		})
	}
}

// Whoever panics, the turn ends with an error, its stack is in the log, and the
// conversation can be gone on with.
func TestPanics(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(b *bench, o *Options)
		hear func(Event)
		told bool // who listens hears of it
	}{
		{name: "the model", set: func(_ *bench, o *Options) {
			o.Models = modelsOf(t, model(func(context.Context, *llm.Request, func(string)) (*llm.Reply, error) { panic("ouch") }))
		}, told: true},
		{name: "a tool that gives nothing", set: func(b *bench, o *Options) {
			o.Models = modelsOf(t, always(calls("bad", "{}")))
			b.box.tools["bad"] = func(context.Context, tools.Call) *tools.Outcome { return nil }
		}, told: true},
		{name: "the tools", set: func(_ *bench, o *Options) {
			o.Tools = func(context.Context, skill.Principal, []skill.ID, tools.Form) (tools.Set, error) { panic("ouch") }
		}},
		{name: "who listens", hear: func(e Event) {
			if e.Kind == EventToolGo {
				panic("ouch")
			}
		}},
		{name: "who listens to a call", hear: func(e Event) {
			if e.Kind == EventToolEnd {
				panic("ouch")
			}
		}},
		{name: "who listens to the end", hear: func(e Event) {
			if e.Kind == EventDone || e.Kind == EventError {
				panic("ouch")
			}
		}},
		{name: "the store", set: func(b *bench, o *Options) {
			o.Store = &badStore{Store: o.Store, on: 2, do: func() error { panic("ouch") }}
		}, told: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, scripted(says("Hello.")))
			first := b.turn(t, ChatRequest{Message: "Hi"}, nil)
			o := b.o
			o.Models = modelsOf(t, scripted(calls("echo", "{}"), says("Done.")))
			if c.set != nil {
				c.set(b, &o)
			}
			broken, err := New(o)
			musttest.Do(t, err)
			h := &heard{}
			hear := h.Hear
			if c.hear != nil {
				hear = func(e Event) { h.Hear(e); c.hear(e) }
			}
			_, err = broken.Turn(t.Context(), someone, ChatRequest{Message: "Go", Conversation: first.Conversation, Trace: "trace-9"}, hear)
			code(t, err, skill.AgentLoopError)
			same(t, "who listens hears of it", h.last().Kind == EventError, c.told)
			if log := b.log.String(); !strings.Contains(log, "goroutine ") || !strings.Contains(log, "trace-9") || c.name != "a tool that gives nothing" && !strings.Contains(log, "ouch") {
				t.Errorf("the log lacks the stack: %s", log)
			}
			if strings.Contains(fmt.Sprint(h.last().Error), "ouch") {
				t.Error("a caller reads of it")
			}
			same(t, "turns under way", len(broken.running), 0)
			next := newBench(t, scripted(says("On.")), func(o *Options) { o.Store = b.store })
			same(t, "the next turn", next.turn(t, ChatRequest{Message: "go on", Conversation: first.Conversation}, nil).Answer, "On.")
		})
	}
}

func modelsOf(t testing.TB, p llm.Provider) *llm.Models {
	t.Helper()
	return musttest.Get(llm.NewModels(llm.Options{Backends: []llm.Backend{{Name: "fake", Provider: p, Model: "m1"}}}))(t)
}

// badStore does something else in its place from one of its Appends on, counted from 1.
type badStore struct {
	conversations.Store
	on  int
	do  func() error
	got int
}

func (s *badStore) Append(ctx context.Context, c *conversations.Conversation, add []llm.Message, keep int) error {
	if s.got++; s.got >= s.on {
		return s.do()
	}
	return s.Store.Append(ctx, c, add, keep)
}

// downStore answers nothing.
type downStore struct{ conversations.Store }

var errDown = errors.New("dial tcp 10.0.0.7:5432: connection refused")

func (downStore) Create(context.Context, *conversations.Conversation) error { return errDown }
func (downStore) Get(context.Context, conversations.Owner, string) (*conversations.Conversation, error) {
	return nil, errDown
}

func (downStore) List(context.Context, conversations.Owner, conversations.Query) ([]*conversations.Conversation, string, error) {
	return nil, "", errDown
}
func (downStore) Delete(context.Context, conversations.Owner, string) error { return errDown }

// Without a database nothing is asked and nothing runs; when it goes away in between, the
// turn ends there.
func TestTheStoreIsDown(t *testing.T) {
	hidden := func(t *testing.T, err error) {
		t.Helper()
		code(t, err, skill.AuditUnavailable)
		var e *skill.Error
		if errors.As(err, &e); strings.Contains(e.Message, "10.0.0.7") {
			t.Errorf("a caller reads %s", e.Message)
		}
	}
	model := scripted(calls("echo", "{}"), calls("echo", "{}"), says("never"))
	b := newBench(t, model, func(o *Options) { o.Store = downStore{o.Store} })
	for _, id := range []string{"", "0198c0de-0000-7000-8000-000000000000"} {
		_, err := b.Turn(t.Context(), someone, ChatRequest{Message: "Go", Conversation: id}, nil)
		hidden(t, err)
	}
	_, _, err := b.List(t.Context(), someone, "", 10)
	hidden(t, err)
	_, err = b.Get(t.Context(), someone, "0198c0de-0000-7000-8000-000000000000")
	hidden(t, err)
	hidden(t, b.Delete(t.Context(), someone, "0198c0de-0000-7000-8000-000000000000"))
	same(t, "questions", len(model.asked), 0)

	b = newBench(t, model, func(o *Options) {
		o.Store = &badStore{Store: o.Store, on: 2, do: func() error { return errDown }}
	})
	h := &heard{}
	_, err = b.Turn(t.Context(), someone, ChatRequest{Message: "Go"}, h.Hear)
	hidden(t, err)
	same(t, "events", h.kinds(), "start usage tool_start:c1 tool_end:c1 error")
	same(t, "questions", len(model.asked), 1)
	if !strings.Contains(b.log.String(), "connection refused") {
		t.Errorf("the log does not say why: %s", b.log)
	}
}

// A conversation that is deleted ends the turn in it, and the model with it.
func TestDeletedMeanwhile(t *testing.T) {
	begun := make(chan struct{}, 1)
	b := newBench(t, scripted(waits(begun)))
	h := &heard{}
	ended := make(chan error)
	go func() {
		_, err := b.Turn(t.Context(), someone, ChatRequest{Message: "Go"}, h.Hear)
		ended <- err
	}()
	<-begun
	list, _, err := b.List(t.Context(), someone, "", 10)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	musttest.Do(t, b.Delete(t.Context(), someone, list[0].ID))
	code(t, <-ended, skill.NotFound)
	same(t, "last event", h.last().Kind, EventError)
}

// A turn may end by the deadline of its caller, which is no limit of the host's.
func TestTheCallersOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, scripted(waits(nil)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := b.Turn(ctx, someone, ChatRequest{Message: "Go"}, nil)
		code(t, err, skill.AgentExecutionTimeout)
	})
}
