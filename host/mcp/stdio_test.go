package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// answerOf is what tests look at in a message of the server.
type answerOf struct {
	ID    json.RawMessage
	Error *struct {
		Code    int64
		Message string
	}
	Result json.RawMessage
}

func (c *talk) answer() (a answerOf) {
	c.t.Helper()
	line := c.hear()
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		c.t.Fatalf("%v in %.200s", err, line)
	}
	return a
}

// TestEndOfInput holds that what was asked before the input ended is answered.
func TestEndOfInput(t *testing.T) {
	d := newDoor()
	let := make(chan struct{})
	d.add("slow", `{"type":"object"}`, func(_ context.Context, r skill.Request) *skill.Result {
		<-let
		return success(&r, []byte(`{"done":true}`))
	})
	c := converse(t, newServer(t, Options{Door: d, Catalogue: d}), skill.Local())
	c.say(hello)
	c.answer()
	c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`)
	_ = c.in.Close()
	close(let)
	if a := c.answer(); string(a.ID) != "1" || !strings.Contains(string(a.Result), `"done":true`) {
		t.Errorf("%+v", a)
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

// TestEndOfInputWhileListening holds that a subscription, which has no end of its own,
// does not keep a session.
func TestEndOfInputWhileListening(t *testing.T) {
	c := converse(t, newServer(t, Options{}), skill.Local())
	c.say(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if line := c.hear(); !strings.Contains(line, "acknowledged") {
		t.Errorf("%s", line)
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

// TestEndOfServer holds that calls are cancelled when the host is told to stop.
func TestEndOfServer(t *testing.T) {
	s := newServer(t, Options{})
	ctx, stop := context.WithCancel(t.Context())
	fromClient, toServer := pipe(t)
	fromServer, toClient := pipe(t)
	defer fromServer.Close()
	done := make(chan error, 1)
	go func() { done <- s.ServeStdio(ctx, skill.Local(), fromClient, toClient) }()
	c := &talk{t: t, in: toServer}
	c.say(hello)
	c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forever"}}`)
	buf := make([]byte, 1<<16)
	if _, err := fromServer.Read(buf); err != nil { // the session is there
		t.Fatal(err)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("%v", err)
	}
	_, _ = toServer.Close(), fromClient.Close()
	_ = toClient.Close()
}

// TestCancelledTwice holds that a cancelled request has no answer, however often it is
// cancelled, and that the session goes on.
func TestCancelledTwice(t *testing.T) {
	d := newDoor()
	began, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	d.add("waits", `{"type":"object"}`, func(ctx context.Context, r skill.Request) *skill.Result {
		began <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return skill.Failure(r.SkillID, r.TraceID, skill.Meta{}, &skill.Error{Code: skill.Cancelled, Message: "the caller left"})
	})
	c := converse(t, newServer(t, Options{Door: d, Catalogue: d}), skill.Local())
	c.say(hello)
	c.answer()
	for _, id := range []string{`"a"`, `2`} {
		c.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"waits"}}`)
		<-began
		for range 2 {
			c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"enough"}}`)
		}
		<-ended
		c.say(`{"jsonrpc":"2.0","id":"b","method":"ping"}`)
		if a := c.answer(); string(a.ID) != `"b"` {
			t.Errorf("the cancelled request was answered: %s %+v %s", a.ID, a.Error, a.Result)
		}
	}
}

// Who has read an answer may use the id of its request again at once.
func TestIDsAgain(t *testing.T) {
	d := newDoor()
	c := converse(t, newServer(t, Options{Door: d, Catalogue: d}), skill.Local())
	c.say(hello)
	c.answer()
	for range 1000 {
		c.say(`{"jsonrpc":"2.0","id":"b","method":"ping"}`)
		if a := c.answer(); a.Error != nil || string(a.ID) != `"b"` {
			t.Fatalf("%s %+v", a.ID, a.Error)
		}
	}
}

// TestFlood sends more requests at once than a session may have, and then many one
// after the other.
func TestFlood(t *testing.T) {
	const most, sent = 8, 50
	d := newDoor()
	let := make(chan struct{})
	d.add("slow", `{"type":"object"}`, func(_ context.Context, r skill.Request) *skill.Result {
		<-let
		return success(&r, []byte(`{}`))
	})
	c := converse(t, newServer(t, Options{Door: d, Catalogue: d, MaxPending: most}), skill.Local())
	c.say(hello)
	c.answer()
	for i := range sent {
		c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"slow"}}`, i+1))
	}
	for range sent - most {
		if a := c.answer(); a.Error == nil || a.Error.Code != codeBusy {
			t.Fatalf("%+v", a)
		}
	}
	close(let)
	for range most {
		if a := c.answer(); a.Error != nil {
			t.Errorf("%+v", a)
		}
	}
	if testing.Short() {
		return
	}
	for i := range 10_000 {
		c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, i))
		if a := c.answer(); a.Error != nil || string(a.ID) != fmt.Sprint(i) {
			t.Fatalf("%+v", a)
		}
	}
}

// TestSameIDTwice holds that an id that is in use is refused, and its first request
// answered once.
func TestSameIDTwice(t *testing.T) {
	d := newDoor()
	let, began := make(chan struct{}), make(chan struct{})
	d.add("slow", `{"type":"object"}`, func(_ context.Context, r skill.Request) *skill.Result {
		close(began)
		<-let
		return success(&r, []byte(`{}`))
	})
	c := converse(t, newServer(t, Options{Door: d, Catalogue: d}), skill.Local())
	c.say(hello)
	c.answer()
	c.say(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow"}}`)
	<-began
	c.say(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow"}}`)
	if a := c.answer(); a.Error == nil || string(a.ID) == "7" {
		t.Errorf("the second one: %+v", a)
	}
	close(let)
	if a := c.answer(); a.Error != nil || string(a.ID) != "7" {
		t.Errorf("the first one: %+v", a)
	}
}

// TestLongLines holds that a message over the limit costs no memory, and is answered
// under its id wherever that stands.
func TestLongLines(t *testing.T) {
	const most = 10_000
	for _, c := range []struct{ name, head, tail, id string }{
		{"id first", `{"jsonrpc":"2.0","id":12,"method":"x","params":{"y":"`, `"}}`, `12`},
		{"id last", `{"method":"x","params":{"y":"`, `"},"jsonrpc":"2.0","id":"z-1"}`, `"z-1"`},
		{"id before jsonrpc", `{"method":"x","params":{"y":"`, `"},"id":5,"jsonrpc":"2.0"}`, `5`},
		{"no id", `{"method":"x","params":{"y":"`, `"}}`, `null`},
		{"an id of a parameter", `{"method":"x","params":{"y":"`, `","id":3}}`, `null`},
	} {
		for _, n := range []int{most - len(c.head) - len(c.tail), most, 1 << 20} {
			in := io.MultiReader(strings.NewReader(c.head), io.LimitReader(endless{}, int64(n)), strings.NewReader(c.tail+"\n"))
			var out bytes.Buffer
			l := &lines{}
			*l = *newIdle(in, &out, most)
			line, size, err := l.line()
			if err != nil || size != len(c.head)+n+len(c.tail) {
				t.Fatalf("%s: %d bytes, %v", c.name, size, err)
			}
			if cap(line) > 4*most {
				t.Errorf("%s: %d bytes are kept of %d", c.name, cap(line), size)
			}
			if size > most {
				if got := string(idOf(line)); got != c.id {
					t.Errorf("%s, %d bytes: the id is %s, want %s", c.name, size, got, c.id)
				}
			}
		}
	}
}

// newIdle is a connection that nobody reads yet.
func newIdle(in io.Reader, out io.Writer, most int) *lines {
	l := newLines(strings.NewReader(""), out, most, 1)
	<-l.ended
	l.in.Reset(in)
	return l
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func FuzzLines(f *testing.F) {
	f.Add([]byte(hello + "\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}`))
	f.Add([]byte("{\n[]\nnull\n\xff\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		s := musttest.Get(New(Options{Door: newDoor(), Catalogue: newDoor(), BodyLimit: 200}))(t)
		defer s.Close()
		if bytes.Contains(in, []byte("forever")) {
			return // the call would not end
		}
		var out bytes.Buffer
		_ = s.ServeStdio(t.Context(), skill.Local(), bytes.NewReader(in), &out)
		for _, line := range bytes.Split(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte("\n")) {
			if len(line) > 0 && !json.Valid(line) {
				t.Errorf("the server said %q", line)
			}
		}
	})
}
