package mcp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestSessionsEndWithTheirKey: sessions end with the key that began them, also when they are idle.
func TestSessionsEndWithTheirKey(t *testing.T) {
	d := newDoor()
	var revoked atomic.Bool
	web, s := listen(t, Options{
		Door: d, Catalogue: d, PollEvery: 20 * time.Millisecond,
		Principal: func(r *http.Request) (skill.Principal, error) {
			p, err := named(r)
			p.Key = r.Header.Get("X-Caller")
			return p, err
		},
		Over: func(_ context.Context, p skill.Principal) bool { return revoked.Load() && p.Key == "anna" },
	})
	_, _, anna := send(t, web.URL, hello, "X-Caller", "anna")
	_, _, ben := send(t, web.URL, hello, "X-Caller", "ben")
	open := func() (n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.callers {
			for range c.server.Sessions() {
				n++
			}
		}
		return n
	}
	if n := open(); n != 2 {
		t.Fatalf("%d sessions", n)
	}
	revoked.Store(true)
	for until := time.Now().Add(5 * time.Second); open() > 1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the session goes on")
		}
	}
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for caller, want := range map[string]int{"anna": 404, "ben": 200} {
		h := map[string]http.Header{"anna": anna, "ben": ben}[caller]
		if status, text, _ := send(t, web.URL, ping, "X-Caller", caller, "Mcp-Session-Id", h.Get("Mcp-Session-Id")); status != want {
			t.Errorf("%s: %d %s", caller, status, text)
		}
	}
}

// TestSessions holds sessions to their callers, and to their end.
func TestSessions(t *testing.T) {
	d := newDoor()
	began, ended := waiting(d)
	web, _ := listen(t, Options{Door: d, Catalogue: d})
	status, text, h := send(t, web.URL, hello, "X-Caller", "anna")
	id := h.Get("Mcp-Session-Id")
	if status != 200 || id == "" || !strings.Contains(text, `"protocolVersion":"2025-11-25"`) {
		t.Fatalf("%d %s %q", status, text, id)
	}
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, c := range []struct {
		name, caller, session string
		status                int
	}{
		{"its caller", "anna", id, 200},
		{"another caller", "ben", id, 404},
		{"no caller", "nobody", id, 401},
		{"no such session", "anna", "x", 404},
		{"none", "anna", "", 400},
	} {
		if status, text, _ := send(t, web.URL, ping, "X-Caller", c.caller, "Mcp-Session-Id", c.session); status != c.status {
			t.Errorf("%s: %d %s, want %d", c.name, status, text, c.status)
		}
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if res, err := post(t, context.Background(), web.URL, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"waits"}}`, "X-Caller", "anna", "Mcp-Session-Id", id); err == nil {
			_ = res.Body.Close()
		}
	}()
	<-began
	del := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodDelete, web.URL, nil))(t)
	del.Header.Set("X-Caller", "anna")
	del.Header.Set("Mcp-Session-Id", id)
	res, err := http.DefaultTransport.RoundTrip(del)
	if err != nil || res.StatusCode != http.StatusNoContent {
		t.Errorf("the end of the session: %+v, %v", res, err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	<-ended
	<-gone
	if status, _, _ := send(t, web.URL, ping, "X-Caller", "anna", "Mcp-Session-Id", id); status != 404 {
		t.Errorf("after its end: %d", status)
	}
}

// TestRoomForSessions holds that new sessions end old ones of the same caller, and
// nobody else's.
func TestRoomForSessions(t *testing.T) {
	web, s := listen(t, Options{MaxSessions: 16}) // two of each
	begin := func(caller string) string {
		_, _, h := send(t, web.URL, hello, "X-Caller", caller)
		return h.Get("Mcp-Session-Id")
	}
	lives := func(caller, id string) bool {
		status, _, _ := send(t, web.URL, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "X-Caller", caller, "Mcp-Session-Id", id)
		return status == 200
	}
	other := begin("ben")
	first, second := begin("anna"), begin("anna")
	if !lives("anna", first) || !lives("anna", second) {
		t.Fatal("two sessions of one caller do not live")
	}
	third := begin("anna")
	if lives("anna", first) || !lives("anna", second) || !lives("anna", third) || !lives("ben", other) {
		t.Errorf("of three sessions live %v %v %v, and the other caller's %v", lives("anna", first), lives("anna", second), lives("anna", third), lives("ben", other))
	}
	for i := range 20 {
		begin(fmt.Sprint("caller", i))
	}
	s.web.mu.Lock()
	n := len(s.web.sessions)
	s.web.mu.Unlock()
	if n > 16 {
		t.Errorf("%d sessions are open", n)
	}
}
