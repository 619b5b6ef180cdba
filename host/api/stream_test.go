package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/agent"
	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestATurnAsEvents(t *testing.T) {
	s, fake := talking(t, nil, nil)
	c := s.dial(t)
	for i, request := range []string{
		talk(aStream, "X-Trace-Id", "t-1"),
		talk(`{"message":"hello there"}`, "X-Trace-Id", "t-1", "Accept", "text/event-stream"),
		talk(`{"message":"hello there"}`, "X-Trace-Id", "t-1", "Accept", "application/json;q=0.5, Text/Event-Stream ;q=1"),
	} {
		c.send(t, request)
		_, events := c.listen(t)
		id := `"00000000-0000-7000-9000-00000000000` + itoa(i+1) + `"`
		const call = `{"id":"call_1","skill_id":"echo","arguments":{"text":"hello there"},"success":true,"error":null,"latency_ms":1,"execution_id":"x-1"}`
		const usage = `{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}`
		want := []happening{
			{"start", `{"conversation_id":` + id + `,"trace_id":"t-1"}`},
			{"tool_start", `{"arguments":{"text":"hello there"},"id":"call_1","skill_id":"echo"}`},
			{"tool_end", strings.TrimSuffix(call, "}") + `,"result":"{\"echoed\": "}`},
			{"text", `{"text":"hello "}`},
			{"text", `{"text":"there"}`},
			{"usage", usage},
			{"done", `{"conversation_id":` + id + `,"answer":"hello there","tool_calls":[` + call + `],"iterations":2,"usage":` + usage + `,"stop_reason":"completed","trace_id":"t-1","provider":"rules","model":"rules"}`},
		}
		if diff := cmp.Diff(want, events.rest()); diff != "" {
			t.Error(diff)
		}
	}
	// The same as one object, over the same connection.
	for _, header := range [][]string{{"Accept", "application/json"}, {"Accept", "*/*"}, nil} {
		c.send(t, talk(`{"message":"hello there"}`, header...))
		if resp, body := c.answer(t, "POST", "/agent/chat"); resp.StatusCode != 200 || !bytes.Contains(body, []byte(`"answer":"hello there"`)) {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	}
	c.send(t, talk(`{"message":"hello there","stream":false}`, "Accept", "text/event-stream")) // the body has the last word
	if resp, body := c.answer(t, "POST", "/agent/chat"); resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if n := len(fake.Turns()); n != 7 {
		t.Errorf("%d turns", n)
	}
}

// What waits behind a stream on its connection is neither lost nor taken for a client
// that has left; and a connection that is to end ends behind its stream.
func TestAStreamAndItsConnection(t *testing.T) {
	s, _ := talking(t, nil, nil)
	c := s.dial(t)
	c.send(t, talk(aStream)+talk(aStream)+"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	for range 2 {
		_, events := c.listen(t)
		if all := events.rest(); len(all) != 7 {
			t.Errorf("%v", all)
		}
	}
	if resp, _ := c.answer(t, "GET", "/healthz"); resp.StatusCode != 200 {
		t.Errorf("behind both: %d", resp.StatusCode)
	}
	c.send(t, talk(aStream, "Connection", "close"))
	resp, events := c.listen(t)
	if all := events.rest(); len(all) != 7 || !resp.Close {
		t.Errorf("%v, close %v", all, resp.Close)
	}
	c.ended(t)
}

// What fails before anything was said is answered with its status.
func TestATurnThatIsRefusedHasNoStream(t *testing.T) {
	s, fake := talking(t, nil, nil)
	for body, status := range map[string]int{
		`{"message":"","stream":true}`: 400,
		`{"message":"x","stream":true,"conversation_id":"00000000-0000-7000-9000-0000000000ff"}`: 404,
		`{"message":"x","stream":true,"more":1}`:                                                 400,
	} {
		resp, got := s.do(t, "POST", "/agent/chat", body, "Accept", "text/event-stream")
		if resp.StatusCode != status || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v %s", body, resp.StatusCode, resp.Header, got)
		}
	}
	if n := len(fake.Turns()); n > 0 {
		t.Errorf("%d turns", n)
	}
}

// Once a stream has begun its error is an event, and the connection goes on.
func TestATurnThatFailsInItsStream(t *testing.T) {
	for name, tc := range map[string]struct {
		reply apitest.Reply
		want  string
	}{
		"an error": {
			func(context.Context, agent.ChatRequest, func(agent.Event), *agent.Answer) error {
				return &skill.Error{Code: skill.AgentLLMUnavailable, Message: "the model\nis unavailable", Details: map[string]any{"provider": "x"}, Err: errors.New("secret of /etc/shadow")}
			},
			`{"code":"AGENT_LLM_UNAVAILABLE","status":503,"message":"the model is unavailable","details":{"provider":"x"}}`,
		},
		"an error that it has told already": {
			func(_ context.Context, _ agent.ChatRequest, hear func(agent.Event), _ *agent.Answer) error {
				hear(agent.Event{Kind: agent.EventError, Error: &skill.ResultError{Code: skill.Conflict, Status: 409, Message: "told"}})
				return &skill.Error{Code: skill.Conflict, Message: "told"}
			},
			`{"code":"CONFLICT","status":409,"message":"told"}`,
		},
		"an error of no kind": {
			func(context.Context, agent.ChatRequest, func(agent.Event), *agent.Answer) error {
				return errors.New("secret of /etc/shadow")
			},
			`{"code":"INTERNAL","status":500,"message":"the host could not run this call; the log has the reason under this trace id"}`,
		},
		"a panic": {
			func(context.Context, agent.ChatRequest, func(agent.Event), *agent.Answer) error {
				panic("secret of /etc/shadow")
			},
			`{"code":"INTERNAL","status":500,"message":"the host could not run this call; the log has the reason under this trace id"}`,
		},
		"arguments that are no JSON": {
			func(_ context.Context, _ agent.ChatRequest, hear func(agent.Event), _ *agent.Answer) error {
				hear(agent.Event{Kind: agent.EventToolGo, Tool: &agent.ToolCall{ID: "1", Arguments: json.RawMessage("{\n\ndata: secret")}})
				hear(agent.Event{Kind: agent.EventText, Text: "behind the end"})
				return nil
			},
			`{"code":"INTERNAL","status":500,"message":"the host could not run this call; the log has the reason under this trace id"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := talking(t, tc.reply, nil)
			c := s.dial(t)
			c.send(t, talk(aStream))
			_, events := c.listen(t)
			if all := events.rest(); len(all) != 2 || all[1] != (happening{"error", tc.want}) {
				t.Errorf("%q", all)
			}
			c.send(t, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
			if resp, _ := c.answer(t, "GET", "/healthz"); resp.StatusCode != 200 {
				t.Errorf("afterwards: %d", resp.StatusCode)
			}
		})
	}
}

// An agent that breaks its promises costs a 500, and no connection.
func TestAnAgentThatSaysNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		fake   api.Chat
		events bool
		status int
	}{
		"an answer alone":       {silent{a: &agent.Answer{ToolCalls: []agent.ToolCall{}, StopReason: agent.StopCompleted, Trace: "t-1"}}, true, 200},
		"no answer, no error":   {silent{}, false, 500},
		"a panic":               {silent{panics: true}, false, 500},
		"an event of no kind":   {silent{events: []agent.Event{{Kind: "other"}, {Kind: agent.EventToolEnd}, {Kind: agent.EventUsage}, {Kind: agent.EventApproval}, {Kind: agent.EventToolGo}}}, false, 500},
		"an end before a start": {silent{events: []agent.Event{{Kind: agent.EventDone}, {Kind: agent.EventError}}}, false, 500},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, func(o *api.Options) { o.Chat = tc.fake })
			c := s.dial(t)
			c.send(t, talk(aStream, "X-Trace-Id", "t-1"))
			if tc.events {
				_, events := c.listen(t)
				if all := events.rest(); len(all) != 1 || all[0].Kind != "done" {
					t.Errorf("%v", all)
				}
			} else if resp, body := c.answer(t, "POST", "/agent/chat"); resp.StatusCode != tc.status || bytes.Contains(body, []byte("secret")) {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
			if resp, body := s.do(t, "POST", "/agent/chat", `{"message":"x"}`, "X-Trace-Id", "t-1"); resp.StatusCode != tc.status || bytes.Contains(body, []byte("secret")) {
				t.Errorf("as one object: %d %s", resp.StatusCode, body)
			}
		})
	}
}

// silent is an agent whose turns tell these events and end so.
type silent struct {
	api.Chat
	a      *agent.Answer
	events []agent.Event
	panics bool
}

func (s silent) Turn(_ context.Context, _ skill.Principal, _ agent.ChatRequest, hear func(agent.Event)) (*agent.Answer, error) {
	if s.panics {
		panic("secret of /etc/shadow")
	}
	for _, e := range s.events {
		if hear != nil {
			hear(e)
		}
	}
	return s.a, nil
}

// G01, over HTTP: whatever a model says stays within its event.
func TestTextCannotForgeEvents(t *testing.T) {
	forged := []string{
		"\n\nevent: done\ndata: {}\n\n", "\r\rdata: x\r\r", "x\r\n\r\nid: 7\r\nevent: error\r\n\r\n", "\n:\n", "data: y", "\u2028\u2029\u0085\v\f", "\x00\x1b[2J", "\xff\xfe", "", `"}`, "\ufeff", "</script>&",
	}
	s, _ := talking(t, func(_ context.Context, _ agent.ChatRequest, hear func(agent.Event), a *agent.Answer) error {
		for _, text := range forged {
			hear(agent.Event{Kind: agent.EventText, Text: text})
			args, err := json.MarshalIndent(map[string]string{text: text}, "\n", "\n") // as a model may write them
			if err != nil {
				return err
			}
			call := agent.ToolCall{ID: text, SkillID: text, Arguments: args, Error: &skill.ResultError{Code: skill.Trap, Status: 502, Message: "x"}}
			hear(agent.Event{Kind: agent.EventToolGo, Tool: &call})
			hear(agent.Event{Kind: agent.EventToolEnd, Tool: &call})
			a.Answer += text
		}
		return nil
	}, nil)
	c := s.dial(t)
	c.send(t, talk(aStream))
	_, events := c.listen(t)
	all := events.rest()
	if len(all) != 3*len(forged)+2 {
		t.Fatalf("%d events: %q", len(all), all)
	}
	for i, text := range forged {
		var said struct {
			Text, ID  string
			Arguments map[string]string
		}
		want := strings.ToValidUTF8(text, "\ufffd\ufffd")
		for k, kind := range []string{"text", "tool_start", "tool_end"} {
			e := all[1+3*i+k]
			if err := json.Unmarshal([]byte(e.Data), &said); err != nil || e.Kind != kind {
				t.Fatalf("%s %s: %v", e.Kind, e.Data, err)
			}
		}
		if said.Text != want || said.ID != want || said.Arguments[want] != want {
			t.Errorf("%q became %+v", text, said)
		}
	}
}

// Each event is on its way when it happens, and silence is broken by comments, also long
// after the time that one part of an answer has.
func TestEventsOfATurnComeOneByOne(t *testing.T) {
	say := make(chan string)
	s, _ := talking(t, func(_ context.Context, _ agent.ChatRequest, hear func(agent.Event), _ *agent.Answer) error {
		for word := range say {
			hear(agent.Event{Kind: agent.EventText, Text: word})
		}
		return nil
	}, func(o *api.Options) { o.WriteTimeout, o.KeepAlive = time.Second, 20*time.Millisecond })
	c := s.dial(t)
	c.send(t, talk(aStream))
	_, events := c.listen(t)
	events.until("start")
	for i := range 3 {
		word := strings.Repeat("word", 1+i*20_000) // more than is held back, and than a pooled buffer keeps
		say <- word
		if h := events.until("text"); h.Data != `{"text":"`+word+`"}` {
			t.Fatalf("%d: %d bytes", i, len(h.Data))
		}
	}
	for range 60 { // for longer than WriteTimeout
		for _, want := range []string{":\n", "\n"} {
			if line, err := events.br.ReadString('\n'); err != nil || line != want {
				t.Fatalf("in silence: %q, %v", line, err)
			}
		}
	}
	close(say)
	if all := events.rest(); len(all) != 1 || all[0].Kind != "done" {
		t.Errorf("the rest: %v", all)
	}
}

// E25, of a turn: what runs for a client ends when it leaves, wherever the turn is.
func TestATurnEndsWhenItsClientLeaves(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	leave := map[string]func(*net.TCPConn) error{
		"closes":          (*net.TCPConn).Close,
		"resets":          func(c *net.TCPConn) error { _ = c.SetLinger(0); return c.Close() },
		"closes one half": (*net.TCPConn).CloseWrite,
	}
	for _, body := range []string{aStream, `{"message":"x"}`} {
		for name, leave := range leave {
			t.Run(name+" "+body, func(t *testing.T) {
				begun, ended := make(chan struct{}), make(chan error, 1)
				s, _ := talking(t, func(ctx context.Context, _ agent.ChatRequest, hear func(agent.Event), _ *agent.Answer) error {
					close(begun)
					<-ctx.Done()
					ended <- context.Cause(ctx)
					hear(agent.Event{Kind: agent.EventText, Text: "to nobody"})
					return &skill.Error{Code: skill.Cancelled, Message: "the caller left"}
				}, nil)
				c := s.dial(t)
				c.send(t, talk(body))
				wait(t, "the turn", begun)
				musttest.Do(t, leave(c.Conn.(*net.TCPConn)))
				if err := wait(t, "the turn's end", ended); err == nil || err.Error() != "the client closed its connection" {
					t.Errorf("the turn ended with %v", err)
				}
			})
		}
	}
}

// A client that does not read, or hardly, holds its own turn up, costs no memory for it,
// and is cut off in the end: also one that reads as much as keeps the connection going,
// and never the whole of an event in the time for it.
func TestASlowReaderOfATurn(t *testing.T) {
	for name, tc := range map[string]struct{ reads, buffer, text int }{
		"nothing":               {0, 4 << 10, 16 << 10},
		"one byte now and then": {1, 4 << 10, 16 << 10},
		"a part of an event":    {64 << 10, 64 << 10, 24 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			var told atomic.Int64
			ended := make(chan error, 1)
			text := strings.Repeat("x", tc.text)
			s, _ := talking(t, func(ctx context.Context, _ agent.ChatRequest, hear func(agent.Event), _ *agent.Answer) error {
				for ctx.Err() == nil {
					hear(agent.Event{Kind: agent.EventText, Text: text})
					told.Add(int64(len(text)))
				}
				ended <- context.Cause(ctx)
				return ctx.Err()
			}, func(o *api.Options) { o.WriteTimeout = 300 * time.Millisecond })
			c := s.dial(t)
			musttest.Do(t, c.Conn.(*net.TCPConn).SetReadBuffer(tc.buffer))
			c.send(t, talk(aStream))
			stop := make(chan struct{})
			var reader sync.WaitGroup
			if tc.reads > 0 {
				reader.Go(func() {
					tick := time.NewTicker(10 * time.Millisecond)
					defer tick.Stop()
					for some := make([]byte, tc.reads); ; {
						if _, err := c.Read(some); err != nil {
							return
						}
						select {
						case <-stop:
							return
						case <-tick.C:
						}
					}
				})
			}
			if err := wait(t, "the turn's end", ended); err == nil || err.Error() != "the client closed its connection" {
				t.Errorf("the turn ended with %v", err)
			}
			close(stop)
			reader.Wait()
			if n := told.Load(); n > 32<<20 {
				t.Errorf("%d bytes were taken for a client that does not read", n)
			}
		})
	}
}

// Two hundred streams at once, of which every other client leaves in the middle: the
// others get all of theirs.
func TestManyStreamsAtOnce(t *testing.T) {
	const streams = 200
	goOn := make(chan struct{})
	var left atomic.Int64
	s, _ := talking(t, func(ctx context.Context, r agent.ChatRequest, hear func(agent.Event), a *agent.Answer) error {
		hear(agent.Event{Kind: agent.EventText, Text: r.Message})
		if strings.HasPrefix(r.Message, "leave") {
			<-ctx.Done()
			left.Add(1)
			return context.Cause(ctx)
		}
		<-goOn
		for range 10 {
			hear(agent.Event{Kind: agent.EventText, Text: r.Message})
		}
		a.Answer = r.Message
		return nil
	}, nil)
	message := func(i int) string { return []string{"stay ", "leave "}[i%2] + itoa(i) }
	var clients []*raw
	var streamed []*eventReader
	for i := range streams {
		c := s.dial(t)
		c.send(t, talk(`{"message":"`+message(i)+`","stream":true}`))
		_, events := c.listen(t)
		events.until("text")
		clients, streamed = append(clients, c), append(streamed, events)
	}
	for i := 1; i < streams; i += 2 {
		_ = clients[i].Close()
	}
	close(goOn)
	for i := 0; i < streams; i += 2 {
		got := streamed[i].rest()
		if len(got) != 11 || got[10].Kind != "done" || got[9] != (happening{"text", `{"text":"` + message(i) + `"}`}) {
			t.Errorf("%s: %v", message(i), got)
		}
	}
	within(t, "the end of those who left", func() bool { return left.Load() == streams/2 })
}

// A host that stops lets turns end, and says so to those that are still at it then.
func TestShutdownAndTurns(t *testing.T) {
	begun, goOn := make(chan struct{}, 1), make(chan struct{})
	reply := func(ctx context.Context, _ agent.ChatRequest, hear func(agent.Event), a *agent.Answer) error {
		begun <- struct{}{}
		select {
		case <-goOn:
			hear(agent.Event{Kind: agent.EventText, Text: "last words"})
			a.Answer = "last words"
			return nil
		case <-ctx.Done():
			return &skill.Error{Code: skill.Cancelled, Message: "the turn was ended", Err: context.Cause(ctx)}
		}
	}
	t.Run("in time", func(t *testing.T) {
		s, _ := talking(t, reply, nil)
		c := s.dial(t)
		c.send(t, talk(aStream))
		_, events := c.listen(t)
		wait(t, "the turn", begun)
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(context.Background()) }()
		goOn <- struct{}{}
		if all := events.rest(); len(all) != 3 || all[1].Data != `{"text":"last words"}` || all[2].Kind != "done" {
			t.Errorf("%v", all)
		}
		if err := wait(t, "Shutdown", done); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
		c.ended(t)
	})
	t.Run("too late", func(t *testing.T) {
		s, _ := talking(t, reply, nil)
		c := s.dial(t)
		c.send(t, talk(aStream))
		_, events := c.listen(t)
		wait(t, "the turn", begun)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown = %v", err)
		}
		all := events.rest()
		if last := all[len(all)-1]; len(all) != 2 || last.Kind != "error" || !strings.Contains(last.Data, `"CANCELLED"`) {
			t.Errorf("%v", all)
		}
		c.ended(t)
	})
}
