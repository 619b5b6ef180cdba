package agent

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestAnAnswer(t *testing.T) {
	model := scripted(says("Hello, Ann."))
	b := newBench(t, model)
	h := &heard{}
	a := b.turn(t, ChatRequest{Message: "Hello there"}, h.Hear)
	same(t, "answer", a.Answer, "Hello, Ann.")
	same(t, "reason", a.StopReason, StopCompleted)
	same(t, "iterations", a.Iterations, 1)
	same(t, "usage", a.Usage, Usage{PromptTokens: 10, CompletionTokens: 5, TotalTokens: 15, CostUSD: 0.000002})
	same(t, "trace", a.Trace, "trace-1")
	same(t, "provider and model", a.Provider+" "+a.Model, "fake m1")
	if a.ToolCalls == nil || len(a.ToolCalls) != 0 {
		t.Errorf("tool calls: %v, want an empty list", a.ToolCalls)
	}
	same(t, "events", h.kinds(), "start text usage done")
	text := ""
	for _, e := range h.events {
		text += e.Text
	}
	same(t, "text that was streamed", text, "Hello, Ann.")
	same(t, "conversation of the first event", h.events[0].Conversation, a.Conversation)
	same(t, "answer of the last event", h.last().Answer, a)
	sameLines(t, "kept", b.kept(t, a.Conversation), []string{"u:Hello there", "a:Hello, Ann."})

	r := model.asked[0]
	for _, want := range []string{"You are the assistant", tools.Notice, "There are Agent Skills."} {
		if !strings.Contains(r.System, want) {
			t.Errorf("the instructions lack %q", want)
		}
	}
	same(t, "tools", len(r.Tools), 4)
	same(t, "most of the answer", r.MaxTokens, 4096)

	v := musttest.Get(b.Get(t.Context(), someone, a.Conversation))(t)
	same(t, "title", v.Title, "Hello there")
	same(t, "rounds", v.Iterations, 1)
	same(t, "tokens", v.TotalTokens, 15)
}

func TestCallsOfTools(t *testing.T) {
	model := scripted(
		saysAndCalls("I look.", "echo", `{"text":"a"}`),
		calls("fail", `{}`, "echo", `{"text":"b"}`),
		says("Done."),
	)
	b := newBench(t, model)
	h := &heard{}
	a := b.turn(t, ChatRequest{Message: "Go"}, h.Hear)
	same(t, "answer", a.Answer, "Done.")
	same(t, "iterations", a.Iterations, 3)
	same(t, "tokens", a.Usage.TotalTokens, 45)
	sameLines(t, "kept", b.kept(t, a.Conversation), []string{
		"u:Go",
		"a:I look. echo(c1)", `t:<tool_result>{"text":"a"}</tool_result> ->c1`,
		"a: fail(call_1_0) echo(c2)", "t:it did not work ->call_1_0 failed", `t:<tool_result>{"text":"b"}</tool_result> ->c2`,
		"a:Done.",
	})
	if !strings.HasPrefix(h.kinds(), "start usage tool_start:c1 tool_end:c1 usage tool_start:call_1_0 tool_start:c2 tool_end:") || !strings.HasSuffix(h.kinds(), " usage text usage done") &&
		!strings.HasSuffix(h.kinds(), " text usage done") {
		t.Errorf("events: %s", h.kinds())
	}
	want := []ToolCall{
		{ID: "c1", SkillID: "echo", Arguments: json.RawMessage(`{"text":"a"}`), Success: true, LatencyMS: 3, ExecutionID: "run-c1"},
		{ID: "call_1_0", SkillID: "fail", Arguments: json.RawMessage(`{}`), LatencyMS: 1, ExecutionID: "run-call_1_0"},
		{ID: "c2", SkillID: "echo", Arguments: json.RawMessage(`{"text":"b"}`), Success: true, LatencyMS: 3, ExecutionID: "run-c2"},
	}
	for i, c := range a.ToolCalls {
		if !c.Success {
			same(t, "code", c.Error.Code, skill.GuestExit)
			c.Error = nil
		}
		got, _ := json.Marshal(c)
		wanted, _ := json.Marshal(want[i])
		same(t, "call", string(got), string(wanted))
	}
	// Where the calls are on record: the conversation is the session, rounds count from 0,
	// and only the first call of an answer has its tokens.
	for i, want := range []skill.Turn{{Iteration: 0, Tokens: 15}, {Iteration: 1, Tokens: 15}, {Iteration: 1}} {
		want.Session = a.Conversation
		found := false
		for _, c := range b.box.calls {
			if c.ID == a.ToolCalls[i].ID {
				found = true
				same(t, "turn", c.Turn, want)
				same(t, "trace", c.Trace, "trace-1")
				same(t, "fuel", c.Limits.Fuel, []uint64{1000, 500, 500}[i])
			}
		}
		same(t, "was called", found, true)
	}
	same(t, "what was shown at last", strings.Join(inLines(model.asked[2].Messages), "|"), strings.Join(b.kept(t, a.Conversation)[:6], "|"))

	// The next turn counts on.
	model.replies = append(model.replies, calls("echo", `{}`), says("Again."))
	a = b.turn(t, ChatRequest{Message: "More", Conversation: strings.ToUpper(a.Conversation)}, nil)
	same(t, "round of the fourth call", b.box.calls[3].Turn.Iteration, 3)
	same(t, "iterations of the turn", a.Iterations, 2)
	same(t, "the id of a call is another one", a.ToolCalls[0].ID, "call_3_0")
	v := musttest.Get(b.Get(t.Context(), someone, a.Conversation))(t)
	same(t, "rounds of the conversation", v.Iterations, 5)
	same(t, "tokens of the conversation", v.TotalTokens, 75)
	for _, p := range b.box.who {
		same(t, "who calls", p.ID, "ann")
	}
}

// All calls of an answer run at the same time, and their answers are in the order in
// which the model asked.
func TestCallsAreMadeTogether(t *testing.T) {
	const n = 6
	var args []string
	for range n {
		args = append(args, "meet", `{}`)
	}
	b := newBench(t, scripted(calls(args...), says("Met.")))
	var all sync.WaitGroup
	all.Add(n)
	order := make(chan struct{}, n) // the last one ends first
	turns := make([]chan struct{}, n+1)
	for i := range turns {
		turns[i] = make(chan struct{})
	}
	close(turns[n])
	b.box.tools["meet"] = func(_ context.Context, c tools.Call) *tools.Outcome {
		all.Done()
		all.Wait()
		i := int(c.ID[1] - '1')
		<-turns[i+1]
		order <- struct{}{}
		defer close(turns[i])
		return works(c, c.ID)
	}
	h := &heard{}
	a := b.turn(t, ChatRequest{Message: "Meet"}, h.Hear)
	for i, c := range a.ToolCalls {
		same(t, "id", c.ID, "c"+string(rune('1'+i)))
	}
	kept := b.kept(t, a.Conversation)
	for i := range n {
		id := "c" + string(rune('1'+i))
		same(t, "answer", kept[2+i], "t:<tool_result>"+id+"</tool_result> ->"+id)
	}
}

func TestTurnsRefused(t *testing.T) {
	b := newBench(t, scripted(says("never")))
	for _, c := range []struct {
		name string
		who  skill.Principal
		r    ChatRequest
		want skill.Code
		says string
	}{
		{"nobody", skill.Principal{}, ChatRequest{Message: "x"}, skill.Unauthorized, "authentication required"},
		{"no scope", skill.Principal{ID: "x", Type: skill.Agent, Tenant: "acme", Scopes: []string{skill.ScopeInvoke}}, ChatRequest{Message: "x"}, skill.Forbidden, "agent:run"},
		{"empty", someone, ChatRequest{Message: ""}, skill.InvalidArgument, "message: must not be empty"},
		{"blank", someone, ChatRequest{Message: " \n\t"}, skill.InvalidArgument, "message"},
		{"long", someone, ChatRequest{Message: strings.Repeat("x", maxMessage+1)}, skill.InvalidArgument, "32768"},
		{"no UTF-8", someone, ChatRequest{Message: "a\xff"}, skill.InvalidArgument, "UTF-8"},
		{"NUL", someone, ChatRequest{Message: "a\x00"}, skill.InvalidArgument, "NUL"},
		{"iterations", someone, ChatRequest{Message: "x", MaxIterations: -1}, skill.InvalidArgument, "max_iterations"},
		{"calls", someone, ChatRequest{Message: "x", MaxToolCalls: -1}, skill.InvalidArgument, "max_tool_calls"},
		{"tokens", someone, ChatRequest{Message: "x", MaxTokens: -1}, skill.InvalidArgument, "max_tokens"},
		{"retries", someone, ChatRequest{Message: "x", MaxRetries: -1}, skill.InvalidArgument, "max_validation_retries"},
		{"time", someone, ChatRequest{Message: "x", TimeoutMS: -1}, skill.InvalidArgument, "timeout_ms"},
		{"provider", someone, ChatRequest{Message: "x", Provider: "other"}, skill.InvalidArgument, "fake"},
		{"model", someone, ChatRequest{Message: "x", Model: "other"}, skill.InvalidArgument, "m1"},
		{"conversation", someone, ChatRequest{Message: "x", Conversation: "0198c0de-0000-7000-8000-000000000000"}, skill.NotFound, "conversation"},
		{"no id", someone, ChatRequest{Message: "x", Conversation: "../../etc/passwd"}, skill.NotFound, "conversation"},
	} {
		h := &heard{}
		_, err := b.Turn(t.Context(), c.who, c.r, h.Hear)
		t.Run(c.name, func(t *testing.T) {
			code(t, err, c.want)
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v does not say %q", err, c.says)
			}
			same(t, "events", len(h.events), 0)
		})
	}
	if list, _, err := b.List(t.Context(), someone, "", 100); err != nil || len(list) != 0 {
		t.Errorf("conversations: %v, %v", list, err)
	}
	a := b.turn(t, ChatRequest{Message: strings.Repeat("長", maxMessage/3)}, nil)
	same(t, "the longest message", a.StopReason, StopCompleted)
}

// What the model is shown of other turns, and whose they are.
func TestConversations(t *testing.T) {
	model := scripted(says("1"), says("2"), says("3"))
	b := newBench(t, model)
	first := b.turn(t, ChatRequest{Message: "one"}, nil)
	b.turn(t, ChatRequest{Message: "two", Conversation: first.Conversation}, nil)
	sameLines(t, "shown", inLines(model.asked[1].Messages), []string{"u:one", "a:1", "u:two"})

	same(t, "another tenant", func() skill.Code {
		other := someone
		other.Tenant = "evil"
		_, err := b.Turn(t.Context(), other, ChatRequest{Message: "x", Conversation: first.Conversation}, nil)
		return skill.CodeOf(err)
	}(), skill.NotFound)
	other := someone
	other.ID = "bob"
	_, err := b.Turn(t.Context(), other, ChatRequest{Message: "x", Conversation: first.Conversation}, nil)
	code(t, err, skill.NotFound)
	_, err = b.Approve(t.Context(), other, first.Conversation, Decision{Approve: true}, nil)
	code(t, err, skill.NotFound)
	_, err = b.Get(t.Context(), other, first.Conversation)
	code(t, err, skill.NotFound)
	code(t, b.Delete(t.Context(), other, first.Conversation), skill.NotFound)
	same(t, "questions", len(model.asked), 2)

	musttest.Do(t, b.Delete(t.Context(), someone, first.Conversation))
	_, err = b.Turn(t.Context(), someone, ChatRequest{Message: "x", Conversation: first.Conversation}, nil)
	code(t, err, skill.NotFound)
	_, err = b.Get(t.Context(), someone, first.Conversation)
	code(t, err, skill.NotFound)
}

// While a message is answered another one of the same conversation is refused; so is
// what another host has overtaken.
func TestTwoTurnsAtOnce(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	model := scripted(says("1"), func(ctx context.Context, r *llm.Request, text func(string)) (*llm.Reply, error) {
		begun <- struct{}{}
		<-goOn
		return says("2")(ctx, r, text)
	}, says("3"), func(ctx context.Context, r *llm.Request, text func(string)) (*llm.Reply, error) {
		begun <- struct{}{}
		<-goOn
		return calls("echo", "{}")(ctx, r, text)
	}, says("5"))
	b := newBench(t, model)
	id := b.turn(t, ChatRequest{Message: "one"}, nil).Conversation
	ended := make(chan error)
	go func() {
		_, err := b.Turn(t.Context(), someone, ChatRequest{Message: "two", Conversation: id}, nil)
		ended <- err
	}()
	<-begun
	_, err := b.Turn(t.Context(), someone, ChatRequest{Message: "at once", Conversation: strings.ToUpper(id)}, nil)
	code(t, err, skill.Conflict)
	_, err = b.Approve(t.Context(), someone, id, Decision{}, nil)
	code(t, err, skill.Conflict)
	other := someone
	other.ID = "bob"
	_, err = b.Turn(t.Context(), other, ChatRequest{Message: "x", Conversation: id}, nil)
	code(t, err, skill.NotFound) // it is not told that somebody talks there
	goOn <- struct{}{}
	musttest.Do(t, <-ended)
	b.turn(t, ChatRequest{Message: "three", Conversation: id}, nil)

	h := &heard{}
	go func() {
		_, err := b.Turn(t.Context(), someone, ChatRequest{Message: "four", Conversation: id}, h.Hear)
		ended <- err
	}()
	<-begun
	conv := musttest.Get(b.store.Get(t.Context(), ownerOf(someone), id))(t)
	musttest.Do(t, b.store.Append(t.Context(), conv, []llm.Message{{Role: llm.User, Text: "elsewhere"}}, 200))
	goOn <- struct{}{}
	code(t, <-ended, skill.Conflict)
	same(t, "the end of the stream", h.last().Kind, EventError)
	a := b.turn(t, ChatRequest{Message: "five", Conversation: id}, nil)
	same(t, "it goes on", a.Answer, "5")
}

func TestPreviewOfAResult(t *testing.T) {
	t.Parallel()
	long := `{"a": "` + strings.Repeat("中", 200) + `"}`
	for data, want := range map[string]string{"": "", `{"a": 1}`: `{"a": 1}`, long: long[:mostPreview-(mostPreview-len(`{"a": "`))%len("中")]} {
		if got := preview(&skill.Result{Success: true, Data: []byte(data)}); got != want {
			t.Errorf("%.20q: %q, want %q", data, got, want)
		}
	}
	if got := preview(&skill.Result{Data: []byte("{}")}); got != "" {
		t.Errorf("of a failure: %q", got)
	}
}
