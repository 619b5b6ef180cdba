package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// byHistory is a model that keeps no state: it calls echo with the text of the last user,
// and repeats what that gave.
func byHistory(_ context.Context, r *llm.Request, text func(string)) (*llm.Reply, error) {
	switch last := r.Messages[len(r.Messages)-1]; last.Role {
	case llm.User:
		args, _ := json.Marshal(map[string]string{"text": last.Text})
		return &llm.Reply{Stop: llm.StopCalls, Usage: used, Calls: []llm.Call{{Name: "echo", Arguments: string(args)}}}, nil
	default:
		if text != nil {
			text(last.Text)
		}
		return &llm.Reply{Stop: llm.StopEnd, Usage: used, Text: last.Text}, nil
	}
}

// A thousand conversations of many tenants at once: each hears of its own and of nothing
// else, and no place is left taken.
func TestManyConversations(t *testing.T) {
	n, turns := 1000, 3
	if testing.Short() { // each write of one database takes as long as ten under the race detector
		n = 100
	}
	// As many places as leave each of seven tenants its share of a thousand turns.
	// They share one database, which is slow under the race detector: time is not the question.
	b := newBench(t, model(byHistory), func(o *Options) { o.Concurrent, o.Chat.Time = 2*n, time.Hour })
	var all sync.WaitGroup
	errs := make(chan error, n)
	for i := range n {
		all.Go(func() {
			who := someone
			who.Tenant, who.ID = fmt.Sprintf("t%d", i%7), fmt.Sprintf("p%d", i%31)
			id := ""
			for k := range turns {
				mark := fmt.Sprintf("mark-%d-%d;", i, k)
				h := &heard{}
				a, err := b.Turn(t.Context(), who, ChatRequest{Message: mark, Conversation: id}, h.Hear)
				switch {
				case err != nil:
				case !strings.Contains(a.Answer, mark) || strings.Count(a.Answer, "mark-") != 1:
					err = fmt.Errorf("the answer to %s is %s", mark, a.Answer)
				case h.kinds() != fmt.Sprintf("start usage tool_start:%s tool_end:%[1]s text usage done", a.ToolCalls[0].ID):
					err = errors.New(h.kinds())
				case id != "" && a.Conversation != id:
					err = errors.New("another conversation")
				}
				if err != nil {
					errs <- err
					return
				}
				id = a.Conversation
			}
			v, err := b.Get(t.Context(), who, id)
			if err != nil || len(v.Messages) != 4*turns || v.Iterations != 2*turns {
				errs <- fmt.Errorf("conversation %d: %+v, %w", i, v, err)
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	same(t, "turns under way", len(b.running), 0)
}

func TestTooManyTurns(t *testing.T) {
	begun := make(chan struct{})
	b := newBench(t, always(waits(begun)), func(o *Options) { o.Concurrent, o.Alone = 2, true })
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { _, _ = b.Turn(ctx, someone, ChatRequest{Message: "Go"}, nil) })
		<-begun
	}
	_, err := b.Turn(ctx, someone, ChatRequest{Message: "Go"}, nil)
	code(t, err, skill.RateLimited)
	if e, ok := errors.AsType[*skill.Error](err); !ok || e.Details["retry_after_ms"] == nil {
		t.Errorf("the error does not say when to come again: %v", err)
	}
	leave()
	all.Wait()
	ctx, leave = context.WithCancel(t.Context())
	go func() {
		<-begun
		leave()
	}()
	_, err = b.Turn(ctx, someone, ChatRequest{Message: "Go"}, nil)
	code(t, err, skill.Cancelled)
}

func TestNew(t *testing.T) {
	good := newBench(t, scripted()).o
	for name, change := range map[string]func(*Options){
		"Models": func(o *Options) { o.Models = nil }, "Tools": func(o *Options) { o.Tools = nil }, "Store": func(o *Options) { o.Store = nil },
		"Sessions": func(o *Options) { o.Sessions = nil }, "Log": func(o *Options) { o.Log = nil },
		"ToolCalls": func(o *Options) { o.ToolCalls = 0 }, "Cost": func(o *Options) { o.Cost = 0 }, "Fuel": func(o *Options) { o.Fuel = 0 },
		"Chat": func(o *Options) { o.Chat.Time = -1 }, "Task": func(o *Options) { o.Task.Iterations = 0 },
		"Task.MinTokens":    func(o *Options) { o.Task.MinTokens = o.Task.Tokens + 1 },
		"Task.Timeout":      func(o *Options) { o.Task.Timeout = o.Task.MaxTimeout + 1 },
		"Task.ShortHistory": func(o *Options) { o.Task.ShortHistory = o.Task.History + 1 },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// One line of a turn is logged, and nothing in it that anybody said.
func TestTheLog(t *testing.T) {
	b := newBench(t, scripted(saysAndCalls("secret of the model", "echo", `{"text":"secret of the skill"}`), says("secret answer"), fails(llm.Unavailable("fake", 500, "down", 0, nil))))
	a := b.turn(t, ChatRequest{Message: "secret of the user"}, nil)
	_, err := b.Turn(t.Context(), someone, ChatRequest{Message: "another secret", Conversation: a.Conversation, Trace: "trace-2"}, nil)
	code(t, err, skill.AgentLLMUnavailable)
	if strings.Contains(b.log.String(), "secret") {
		t.Errorf("the log has what was said: %s", b.log)
	}
	lines := strings.Split(strings.TrimSpace(b.log.String()), "\n")
	same(t, "lines", len(lines), 2)
	for i, want := range []map[string]any{
		{"level": "INFO", "trace_id": "trace-1", "stop_reason": "completed", "iterations": 2.0, "calls": 1.0, "tokens": 30.0},
		{"level": "WARN", "trace_id": "trace-2", "stop_reason": "", "iterations": 1.0, "calls": 0.0, "tokens": 0.0, "error.code": "AGENT_LLM_UNAVAILABLE"},
	} {
		var got map[string]any
		musttest.Do(t, json.Unmarshal([]byte(lines[i]), &got))
		want["msg"], want["conversation"], want["provider"], want["model"], want["principal"], want["tenant"] = "chat", a.Conversation, "fake", "m1", "ann", "acme"
		for k, v := range want {
			same(t, k, got[k], v)
		}
		if _, ok := got["latency_ms"].(float64); !ok {
			t.Error("there is no latency")
		}
	}
}

// What models and skills write is made fit to be kept and shown.
func TestHostileNames(t *testing.T) {
	nasty := "\x1b]52;c;AAAA\x07" + strings.Repeat("x", 100_000)
	b := newBench(t, scripted(func(context.Context, *llm.Request, func(string)) (*llm.Reply, error) {
		return &llm.Reply{Stop: llm.StopCalls, Usage: used, Calls: []llm.Call{
			{ID: nasty, Name: nasty, Arguments: "[" + nasty}, {ID: "a\nb", Name: "echo", Arguments: "\xff{"}, {ID: "", Name: "echo", Arguments: `{"a":1}`},
		}}, nil
	}, says("Done.")))
	h := &heard{}
	a := b.turn(t, ChatRequest{Message: "Go"}, h.Hear)
	for _, e := range h.events {
		if _, err := json.Marshal(e); err != nil {
			t.Errorf("%s: %v", e.Kind, err)
		}
		if e.Kind == EventToolGo && (len(e.Tool.SkillID) > 64 || len(e.Tool.ID) > 64 || strings.ContainsAny(e.Tool.ID+e.Tool.SkillID, "\x1b\n")) {
			t.Errorf("%+v", e.Tool)
		}
	}
	for i, c := range a.ToolCalls {
		same(t, "id", c.ID, fmt.Sprintf("call_0_%d", i))
	}
	for _, c := range b.box.calls {
		if len(c.Name) > maxName {
			t.Errorf("a name of %d bytes is passed on", len(c.Name))
		}
	}
	list := musttest.Get(b.store.Messages(t.Context(), ownerOf(someone), a.Conversation, 10))(t)
	for i, want := range []string{"no_such_tool", "echo", "echo"} {
		same(t, "name that is shown again", list[1].Body.Calls[i].Name, want)
	}
}

func TestListAndPrune(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, model(byHistory), func(o *Options) { o.Chat.Conversations, o.Days = 3, 2 })
		ctx, stop := context.WithCancel(t.Context())
		var tending sync.WaitGroup
		tending.Go(func() { b.Tend(ctx) })
		var ids []string
		for i := range 5 {
			ids = append(ids, b.turn(t, ChatRequest{Message: fmt.Sprint("m", i)}, nil).Conversation)
			time.Sleep(time.Second)
		}
		page, next, err := b.List(t.Context(), someone, "", 2)
		musttest.Do(t, err)
		same(t, "first", page[0].ID, ids[4])
		same(t, "title", page[0].Title, "m4")
		same(t, "messages", page[0].Messages, 4)
		page, _, err = b.List(t.Context(), someone, next, 2)
		musttest.Do(t, err)
		same(t, "third", page[0].ID, ids[2])
		for _, limit := range []int{0, 101, -1} {
			_, _, err := b.List(t.Context(), someone, "", limit)
			code(t, err, skill.InvalidArgument)
		}
		_, _, err = b.List(t.Context(), someone, "no cursor", 2)
		code(t, err, skill.InvalidArgument)
		_, _, err = b.List(t.Context(), skill.Principal{}, "", 2)
		code(t, err, skill.Unauthorized)
		_, err = b.Get(t.Context(), skill.Principal{ID: "x", Type: skill.Agent}, ids[0])
		code(t, err, skill.Forbidden)
		code(t, b.Delete(t.Context(), skill.Principal{ID: "x", Type: skill.Agent}, ids[0]), skill.Forbidden)

		count := func() int {
			list, _, err := b.List(t.Context(), someone, "", 100)
			musttest.Do(t, err)
			return len(list)
		}
		time.Sleep(pruneEvery)
		same(t, "of one principal", count(), 3)
		time.Sleep(48 * time.Hour)
		same(t, "of two days", count(), 0)

		// Many new ones do not wait for the hour.
		for range pruneAfter - len(ids) { // the last one of which is one too many
			b.turn(t, ChatRequest{Message: "x"}, nil)
		}
		synctest.Wait()
		same(t, "of one principal", count(), 3)
		stop()
		tending.Wait()
	})
}

func TestPruneThatFails(t *testing.T) {
	b := newBench(t, scripted())
	b.prune(t.Context(), "conversations", func() (int, error) { return 0, errDown })
	if !strings.Contains(b.log.String(), "connection refused") {
		t.Errorf("log: %s", b.log)
	}
}

func TestTitle(t *testing.T) {
	for _, c := range []struct{ message, want string }{
		{"hello", "hello"},
		{"  a\n\tb  ", "a  b"},
		{strings.Repeat("x", 80), strings.Repeat("x", 80)},
		{strings.Repeat("x", 81), strings.Repeat("x", 79) + "…"},
		{strings.Repeat("長", 5000), strings.Repeat("長", 79) + "…"},
		{"\u202e\x1b[31m", "[31m"},
	} {
		same(t, "title", title(c.message), c.want)
	}
}

// BenchmarkIteration is what a round costs beside its model and its tool, which answer at
// once: a question, a call, and what is kept of both.
func BenchmarkIteration(b *testing.B) {
	const rounds = 50
	asked := 0
	bench := newBench(b, model(func(_ context.Context, _ *llm.Request, text func(string)) (*llm.Reply, error) {
		if asked++; asked%rounds == 0 {
			if text != nil {
				text("Done.")
			}
			return &llm.Reply{Text: "Done.", Stop: llm.StopEnd, Usage: used}, nil
		}
		return &llm.Reply{Stop: llm.StopCalls, Usage: used, Calls: []llm.Call{{ID: "c", Name: "echo", Arguments: `{"text":"hello there"}`}}}, nil
	}), func(o *Options) {
		o.Chat.Iterations, o.ToolCalls, o.Chat.Tokens = 2*rounds, 2*rounds, 10_000_000
		o.Log = slog.New(slog.DiscardHandler)
	})
	for _, c := range []struct {
		name string
		hear func(Event)
	}{{"answer", nil}, {"stream", func(Event) {}}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				asked = 0
				if a := bench.turn(b, ChatRequest{Message: "Go"}, c.hear); a.StopReason != StopCompleted {
					b.Fatal(a.StopReason)
				}
				bench.box.calls = nil
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rounds, "ns/round")
		})
	}
}

var _ tools.Set = (*box)(nil)
