package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"openskill/internal/musttest"
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
		r := musttest.Get(http.NewRequestWithContext(ctx, http.MethodGet, web.URL, http.NoBody))(t)
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
	if status, text, _ := send(t, web.URL, hello, "X-Caller", "acme/a"); status != 429 || !strings.Contains(text, "too many sessions") {
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

// stuck are Agent Skills whose files of one tenant are not read until end is closed.
type stuck struct {
	AgentSkills
	begun atomic.Int64
	end   chan struct{}
}

func (s *stuck) wait(ctx context.Context, p skill.Principal) {
	if p.Tenant != "acme" {
		return
	}
	s.begun.Add(1)
	select {
	case <-s.end:
	case <-ctx.Done():
	}
}

func (s *stuck) ReadResource(ctx context.Context, p skill.Principal, name, resource string) (skill.AgentResource, error) {
	s.wait(ctx, p)
	return s.AgentSkills.ReadResource(ctx, p, name, resource)
}

func (s *stuck) CallTool(ctx context.Context, p skill.Principal, name string, args json.RawMessage, trace skill.TraceID) *skill.Result {
	s.wait(ctx, p)
	return s.AgentSkills.CallTool(ctx, p, name, args, trace)
}

// Eight slow reads of files by one tenant were all that a host read at once.
func TestOneTenantCannotFillReads(t *testing.T) {
	for _, c := range []struct{ name, method, params string }{
		{"resource", "resources/read", `"uri":"skill://unit-converter/references/table.md"`},
		{"tool", "tools/call", `"name":"read_skill_resource","arguments":{"skill_name":"unit-converter","resource_name":"references/table.md"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			agents, _ := folders(t, converter())
			a := &stuck{AgentSkills: agents, end: make(chan struct{})}
			web, _ := listen(t, Options{AgentSkills: a})
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			read := func(caller string) error {
				body, headers := modern(c.method, c.params)
				res, err := post(t, ctx, web.URL, body, append(headers, "X-Caller", caller)...)
				if err != nil {
					return err
				}
				defer res.Body.Close()
				b, err := io.ReadAll(res.Body)
				if err == nil && (res.StatusCode != 200 || strings.Contains(string(b), `"isError":true`)) {
					err = fmt.Errorf("%d %s", res.StatusCode, b)
				}
				return err
			}
			const many = 24
			ends := make(chan error, many)
			for range many {
				go func() { ends <- read("acme") }()
			}
			for i := range 100 {
				if err := read("beta"); err != nil {
					t.Fatalf("read %d of another tenant, while %d of one are under way: %v", i, a.begun.Load(), err)
				}
			}
			if n := a.begun.Load(); n > readers*3/4 {
				t.Errorf("%d reads of one tenant are under way at once", n)
			}
			close(a.end)
			for range many {
				if err := <-ends; err != nil {
					t.Error(err)
				}
			}
		})
	}
}
