package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"openskill/sdk/skill"
)

// streams answers with events.
func streams(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Trace-Id", "t-1")
		_, _ = io.WriteString(w, body)
	}
}

const turn = `event: start
id: 1
data: {"conversation_id": "c-1", "trace_id": "t-1"}

: a comment

event: tool_start
data: {"id": "1", "skill_id": "echo", "arguments": {"text": "hi"}}

event: tool_end
data: {"id": "1", "skill_id": "echo", "arguments": {"text": "hi"}, "success": true, "error": null, "latency_ms": 7, "execution_id": "e", "result": "{\"echoed\":"}

event: of_a_later_release
data: 1

event: usage
data: {"total_tokens": 5}

event: text
data: {"text": "Hel"}

event: text
data: {"text": "lo"}

event: approval_required
data: {"approval_id": "p", "skill_id": "unit-converter", "script": "scripts/convert.py"}

event: done
data: {"conversation_id": "c-1", "answer": "Hello", "tool_calls": [], "stop_reason": "completed", "usage": {"total_tokens": 5}}

event: text
data: {"text": "behind the end"}

`

func TestChatStream(t *testing.T) {
	t.Parallel()
	c := answers(t, nil, map[string]http.HandlerFunc{"POST /agent/chat": func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if string(b) != `{"message":"hi","conversation_id":"c-1","max_tokens":9,"stream":true}` || r.Header.Get("Accept") != "text/event-stream" {
			t.Errorf("%s, %v", b, r.Header)
		}
		streams(turn)(w, r)
	}})
	var kinds []string
	var text string
	for e, err := range c.ChatStream(t.Context(), ChatRequest{Message: "hi", Conversation: "c-1", MaxTokens: 9}) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, string(e.Kind))
		text += e.Text
		switch e.Kind {
		case EventStart:
			if e.Conversation != "c-1" || e.TraceID != "t-1" {
				t.Error(e)
			}
		case EventToolGo:
			if e.Tool.SkillID != "echo" || string(e.Tool.Arguments) != `{"text": "hi"}` {
				t.Error(e.Tool)
			}
		case EventToolEnd:
			if !e.Tool.Success || e.Tool.LatencyMS != 7 || e.Result != `{"echoed":` {
				t.Error(e.Tool, e.Result)
			}
		case EventApproval:
			if e.Approval.Script != "scripts/convert.py" {
				t.Error(e.Approval)
			}
		case EventUsage:
			if e.Usage.TotalTokens != 5 {
				t.Error(e.Usage)
			}
		case EventDone:
			if e.Answer.Answer != "Hello" || e.Answer.StopReason != Completed {
				t.Error(e.Answer)
			}
		case EventText:
		}
	}
	if !slices.Equal(kinds, []string{"start", "tool_start", "tool_end", "usage", "text", "text", "approval_required", "done"}) || text != "Hello" {
		t.Errorf("%v, %q", kinds, text)
	}
}

// Streams that are not as they should be end with an error, after what came before it.
func TestHostileStreams(t *testing.T) {
	t.Parallel()
	const start = "event: start\ndata: {\"conversation_id\": \"c-1\"}\n\n"
	for name, tt := range map[string]struct {
		h      http.HandlerFunc
		events int
		want   string // in the error
	}{
		"cut off":            {streams(start + "event: text\ndata: {\"te"), 1, "ended before the turn: unexpected EOF"},
		"ended early":        {streams(start), 1, "ended before the turn"},
		"empty":              {streams(""), 0, "ended before the turn"},
		"an endless event":   {streams(start + "event: text\n" + strings.Repeat("data: 1\n", 1000)), 1, "longer than 4096 bytes"},
		"no JSON":            {streams(start + "event: text\ndata: {\n\n"), 1, "cannot read the event text"},
		"wrong type":         {streams(start + "event: tool_end\ndata: {\"latency_ms\": \"x\"}\n\n"), 1, "cannot read the event tool_end"},
		"a list":             {streams("event: done\ndata: []\n\n"), 0, "cannot read the event done"},
		"JSON instead":       {says(200, `{"answer": "x"}`), 0, "not an event stream"},
		"a failure":          {says(409, `{"error": {"code": "CONFLICT", "status": 409, "message": "busy"}}`), 0, "CONFLICT: busy"},
		"an error event":     {streams(start + "event: error\ndata: {\"code\": \"AGENT_LLM_UNAVAILABLE\", \"status\": 503, \"message\": \"no\\u001b[2Jmodel\"}\n\n" + start), 1, "AGENT_LLM_UNAVAILABLE: no[2Jmodel"},
		"an error of errors": {streams(start + "event: error\ndata: 7\n\n"), 1, "cannot read the error event"},
	} {
		c := answers(t, &Options{MaxEvent: 4096}, map[string]http.HandlerFunc{"POST /agent/conversations/c-1:approve": tt.h})
		n, last := 0, error(nil)
		for e, err := range c.ApproveStream(t.Context(), "c-1", Decision{Approve: true}) {
			if last != nil {
				t.Errorf("%s: more behind an error: %v", name, e)
			}
			if last = err; err == nil {
				n++
			}
		}
		if n != tt.events || last == nil || !strings.Contains(last.Error(), tt.want) {
			t.Errorf("%s: %d events, %v; want %d, and %s", name, n, last, tt.events, tt.want)
		}
	}
	c := answers(t, nil, map[string]http.HandlerFunc{"POST /agent/chat": streams(start + "event: error\ndata: {\"code\": \"TIMEOUT\", \"status\": 408}\n\n")})
	for _, err := range c.ChatStream(t.Context(), ChatRequest{Message: "x"}) {
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Code != skill.Timeout || e.Status != 408 || e.TraceID != "t-1") {
			t.Error(err)
		}
	}
}

// Who leaves the loop, or ends the context, cancels the turn.
func TestLeaveStream(t *testing.T) {
	t.Parallel()
	left := make(chan struct{}, 2)
	c := answers(t, nil, map[string]http.HandlerFunc{"POST /agent/chat": func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = io.WriteString(w, "event: text\ndata: {\"text\": \"a\"}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		left <- struct{}{}
	}})
	for e, err := range c.ChatStream(t.Context(), ChatRequest{Message: "x"}) {
		if err != nil || e.Text != "a" {
			t.Error(e, err)
		}
		break
	}
	<-left
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, err := range c.ChatStream(ctx, ChatRequest{Message: "x"}) {
		if cancel(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	<-left
}

func TestAgent(t *testing.T) {
	t.Parallel()
	sent := []string{
		`{"message":"one","provider":"p","model":"m"}`, `{"message":"two","conversation_id":"c-1","provider":"p","model":"m"}`,
		`{"message":"three","conversation_id":"c-1","provider":"p","model":"m"}`,
	}
	got := []string{
		`{"conversation_id": "c-1", "answer": "1", "stop_reason": "completed"}`,
		`{"conversation_id": "c-1", "answer": "half", "stop_reason": "max_tokens"}`,
		`{"conversation_id": "c-1", "answer": "", "stop_reason": "approval_required", "approvals": [{"approval_id": "p"}]}`,
	}
	n := 0
	c := answers(t, nil, map[string]http.HandlerFunc{"POST /agent/chat": func(w http.ResponseWriter, r *http.Request) {
		n++
		wants(t, sent[n-1], got[n-1])(w, r)
	}})
	a := c.NewAgent()
	a.Provider, a.Model = "p", "m"
	if text, err := a.Run(t.Context(), "one"); text != "1" || err != nil || a.Conversation != "c-1" {
		t.Error(text, err)
	}
	var stopped *StoppedError
	if text, err := a.Run(t.Context(), "two"); text != "half" || !errors.As(err, &stopped) || !strings.Contains(err.Error(), "max_tokens") {
		t.Error(text, err)
	}
	if _, err := a.Run(t.Context(), "three"); !errors.As(err, &stopped) || stopped.Answer.Approvals[0].ApprovalID != "p" || a.Last() != stopped.Answer {
		t.Error(err)
	}

	heard := ""
	c = answers(t, nil, map[string]http.HandlerFunc{"POST /agent/chat": streams(turn)})
	a = c.NewAgent()
	a.Hear = func(e Event) { heard += e.Text }
	if text, err := a.Run(t.Context(), "hi"); text != "Hello" || heard != text || err != nil || a.Last().Usage.TotalTokens != 5 {
		t.Error(text, heard, err)
	}
	c = answers(t, nil, map[string]http.HandlerFunc{"POST /agent/chat": streams("event: start\ndata: {\"conversation_id\": \"c-9\"}\n\n")})
	a = c.NewAgent()
	a.Hear = func(Event) {}
	if _, err := a.Run(t.Context(), "hi"); err == nil || a.Conversation != "c-9" {
		t.Error(err, a.Conversation)
	}
}
