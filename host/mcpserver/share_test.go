package mcpserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"openskill/sdk/skill"
)

// byTenant takes a caller's name for "TENANT/NAME".
func byTenant(r *http.Request) (skill.Principal, error) {
	tenant, _, _ := strings.Cut(r.Header.Get("X-Caller"), "/")
	return skill.Principal{ID: r.Header.Get("X-Caller"), Type: skill.Agent, Tenant: tenant, Key: r.Header.Get("X-Key"), Scopes: []string{skill.ScopeRead}}, nil
}

// Nine keys of one tenant began sessions until another tenant's was over.
func TestNoTenantEndsSessionsOfAnother(t *testing.T) {
	web, s := listen(t, Options{Principal: byTenant, MaxSessions: 64})
	begin := func(caller, key string) string {
		_, _, h := send(t, web.URL, hello, "X-Caller", caller, "X-Key", key)
		return h.Get("Mcp-Session-Id")
	}
	lives := func(caller, id string) bool {
		status, _, _ := send(t, web.URL, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "X-Caller", caller, "Mcp-Session-Id", id)
		return status == 200
	}
	other := begin("beta/b", "")
	for key := range 9 {
		for range 10 {
			begin(fmt.Sprint("acme/", key), "")
		}
	}
	for i := range 100 { // one person with ever new credentials
		begin("acme/person", fmt.Sprint(i))
	}
	if !lives("beta/b", other) {
		t.Error("the session of another tenant is over")
	}
	s.web.mu.Lock()
	defer s.web.mu.Unlock()
	if n := len(s.web.sessions); n != 17 {
		t.Errorf("%d sessions; a tenant has a quarter of 64", n)
	}
}

// Sessions at work are not ended; a caller that has no others is told so. What could not
// begin takes no room.
func TestSessionsAtWorkMakeNoRoom(t *testing.T) {
	web, s := listen(t, Options{Principal: byTenant, MaxSessions: 16}) // two of each
	for range 2 {
		_, _, h := send(t, web.URL, hello, "X-Caller", "acme/a")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Caller", "acme/a")
		r.Header.Set("Mcp-Session-Id", h.Get("Mcp-Session-Id"))
		r.Header.Set("Accept", "text/event-stream")
		go func() {
			if res, err := http.DefaultTransport.RoundTrip(r); err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
		}()
	}
	within := time.Now().Add(10 * time.Second)
	for busy := 0; busy < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(within) {
			t.Fatal("the streams do not open")
		}
		busy = 0
		s.web.mu.Lock()
		for _, ss := range s.web.sessions {
			busy += ss.open
		}
		s.web.mu.Unlock()
	}
	if status, text, _ := send(t, web.URL, hello, "X-Caller", "acme/a"); status != 429 || !strings.Contains(text, "as many sessions") {
		t.Errorf("%d %s", status, text)
	}
	if status, text, _ := send(t, web.URL, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":7}}`, "X-Caller", "acme/b"); status == 200 && !strings.Contains(text, "error") {
		t.Errorf("a wrong beginning: %d %s", status, text)
	}
	s.web.mu.Lock()
	defer s.web.mu.Unlock()
	if open, room := len(s.web.sessions), len(s.web.owned.All()); open != room {
		t.Errorf("%d sessions, and room is taken for %d", open, room)
	}
}

// counted counts how often a catalogue is read.
type counted struct {
	*door
	lists atomic.Int64
}

func (c *counted) List(p skill.Principal, cursor string, limit int) ([]skill.Descriptor, string, error) {
	c.lists.Add(1)
	return c.door.List(p, cursor, limit)
}

// Idle sessions cost nothing: nothing is read until the revision changes.
func TestIdleSessionsReadNothing(t *testing.T) {
	d := &counted{door: newDoor()}
	var revision atomic.Int64
	s := newServer(t, Options{
		Door: d, Catalogue: d, PollEvery: time.Hour,
		Revision: func(context.Context, skill.Principal) any { return revision.Load() },
	})
	heard, o := newEar()
	for i := range 40 {
		connect(t, s, skill.Principal{ID: fmt.Sprint(i), Tenant: "acme", Scopes: []string{skill.ScopeRead}}, o)
	}
	s.Refresh(t.Context())
	before := d.lists.Load()
	for range 10 {
		s.Refresh(t.Context())
	}
	if n := d.lists.Load() - before; n > 0 {
		t.Errorf("the catalogue was read %d times", n)
	}
	d.change("echo", func(s *skill.Descriptor) { s.Enabled = false })
	revision.Add(1)
	s.Refresh(t.Context())
	for range 40 {
		<-heard.tools
	}
}
