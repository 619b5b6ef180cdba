package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/agent"
	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestWhoSees: a session is its caller's, and for everybody else it is not there, but
// for those who may read the tenant's, or all.
func TestWhoSees(t *testing.T) {
	h := newHouse(t, settings{model: always(finish, 1)})
	id := h.do(t, agent.Task{Text: strings.Repeat("长", 300) + "\x00"}).SessionID
	scoped := func(p skill.Principal, scopes ...string) skill.Principal {
		p.Scopes = scopes
		return p
	}
	key, other, foreign := caller, caller, caller
	key.Type, other.ID, foreign.Tenant = skill.Agent, "user-7", "umbrella"
	for name, c := range map[string]struct {
		p    skill.Principal
		code skill.Code
	}{
		"its caller":               {scoped(caller, skill.ScopeExecutions), ""},
		"who may run the agent":    {scoped(caller, skill.ScopeAgent), ""},
		"its caller, without":      {scoped(caller, skill.ScopeInvoke), skill.Forbidden},
		"a key of the same name":   {scoped(key, skill.ScopeExecutions), skill.NotFound},
		"another one":              {scoped(other, skill.ScopeExecutions, skill.ScopeAgent), skill.NotFound},
		"another one of all":       {scoped(other, skill.ScopeAllExecutions), ""},
		"another tenant":           {scoped(foreign, skill.ScopeExecutions), skill.NotFound},
		"all of another tenant":    {scoped(foreign, skill.ScopeAllExecutions), skill.NotFound},
		"the operator":             {scoped(foreign, skill.ScopeHost), ""},
		"nobody":                   {skill.Principal{Scopes: []string{skill.ScopeHost}}, skill.Unauthorized},
		"of no tenant":             {skill.Principal{ID: caller.ID, Type: caller.Type, Scopes: []string{skill.ScopeAllExecutions}}, skill.NotFound},
		"of no tenant, of its own": {skill.Principal{ID: caller.ID, Type: caller.Type, Scopes: []string{skill.ScopeExecutions}}, skill.NotFound},
	} {
		s, err := h.Session(t.Context(), c.p, id)
		if code(err) != c.code || (err == nil) == (s == nil) {
			t.Errorf("%s: %v, want %q", name, err, c.code)
			continue
		}
		if err == nil && (s.Owner != owner() || s.PrincipalType != "human" || s.Task != strings.Repeat("长", 200) || s.Status != "completed") {
			t.Errorf("%s: %+v", name, s)
		}
	}
	for _, id := range []string{"", "x", "00000000-0000-7000-8000-000000000000", strings.Repeat("x", 1<<20)} {
		if _, err := h.Session(t.Context(), scoped(caller, skill.ScopeHost), id); code(err) != skill.NotFound {
			t.Errorf("%.40q: %v", id, err)
		}
	}
}

// A session of a host that went down is over when it must be.
func TestEndsBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		id := ""
		h := newHouse(t, settings{model: func(context.Context, int, *llm.Request) (*llm.Reply, error) {
			<-held // whatever its context says
			return reply(finish, 1), nil
		}, options: options{Sessions: &noted{Sessions: conversations.NewStore(storetest.SQLite(t)), id: &id}}})
		done := make(chan struct{})
		go func() {
			h.do(t, agent.Task{Options: agent.TaskOptions{TimeoutSeconds: 30}})
			close(done)
		}()
		synctest.Wait()
		status := func() string {
			s := musttest.Get(h.Session(t.Context(), caller, id))(t)
			return s.Status
		}
		if s := status(); s != "running" {
			t.Error(s)
		}
		time.Sleep(90 * time.Second)
		if s := status(); s != "running" {
			t.Error(s)
		}
		time.Sleep(time.Second)
		if s := status(); s != "terminated" {
			t.Error(s)
		}
		close(held)
		<-done
	})
}

// noted tells the id of a session that begins.
type noted struct {
	conversations.Sessions
	id *string
}

func (n *noted) Begin(ctx context.Context, s *conversations.Session) error {
	*n.id = s.ID
	return n.Sessions.Begin(ctx, s)
}

func TestSessionsFail(t *testing.T) {
	disk := errors.New("disk full at somewhere")
	h := newHouse(t, settings{model: says(), options: options{Sessions: unread{conversations.NewStore(storetest.SQLite(t)), disk}}})
	_, err := h.Session(t.Context(), caller, "00000000-0000-7000-8000-000000000000")
	var e *skill.Error
	if !asSkillError(err, &e) || e.Code != skill.AuditUnavailable || strings.Contains(e.Message, "disk") || !errors.Is(err, disk) {
		t.Error(err)
	}
}

type unread struct {
	conversations.Sessions
	err error
}

func (u unread) Session(context.Context, conversations.Owner, string) (*conversations.Session, error) {
	return nil, u.err
}

func (u unread) PruneSessions(context.Context, time.Time) (int, error) { return 0, u.err }

// Sessions go when they have been kept as long as they should.
func TestTend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, settings{model: always(finish, 1)})
		id := h.do(t, agent.Task{}).SessionID
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			h.Tend(ctx)
			close(done)
		}()
		time.Sleep(23 * time.Hour)
		if _, err := h.Session(t.Context(), caller, id); err != nil {
			t.Error(err)
		}
		time.Sleep(3 * time.Hour)
		if _, err := h.Session(t.Context(), caller, id); code(err) != skill.NotFound {
			t.Error(err)
		}
		stop()
		<-done
	})
	synctest.Test(t, func(t *testing.T) { // one that cannot be pruned is told of, and tried again
		h := newHouse(t, settings{model: says(), options: options{Sessions: unread{conversations.NewStore(storetest.SQLite(t)), errors.New("no store")}}})
		ctx, stop := context.WithTimeout(t.Context(), 90*time.Minute)
		defer stop()
		h.Tend(ctx)
		if n := strings.Count(h.log.String(), "no store"); n != 2 {
			t.Errorf("%d lines: %s", n, h.log)
		}
	})
}

// A task has one line in the log where it begins, and one where it ends; neither has
// anything of what it says, nor of what came of it.
func TestLog(t *testing.T) {
	h := newHouse(t, settings{model: says(callEcho, finish)})
	out := h.do(t, agent.Task{Text: "first line\nsecond \u202eline " + strings.Repeat("x", 300) + " the end", Trace: "t-9"})
	lines := strings.Split(strings.TrimSpace(h.log.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines: %s", len(lines), h.log)
	}
	for i, words := range [][]string{
		{"a task begins", `"trace_id":"t-9"`, out.SessionID, `"task_bytes":`, `"principal":"user-123"`, `"model":"one"`},
		{"a task ended", `"trace_id":"t-9"`, out.SessionID, `"status":"completed"`, `"iterations":1`, `"tokens":200`, `"latency_ms":`},
	} {
		for _, w := range words {
			if !strings.Contains(lines[i], w) {
				t.Errorf("line %d lacks %s: %s", i, w, lines[i])
			}
		}
	}
	if s := h.log.String(); strings.Contains(s, "the end") || strings.Contains(s, "first line") || strings.Contains(s, "echoed") || strings.Contains(s, "it said hi") {
		t.Error(s)
	}

	h = newHouse(t, settings{model: says(finish)}) // a trace that is none is not taken over
	out = h.do(t, agent.Task{Trace: "a b\n"})
	if h.asked[0].Trace != skill.TraceID(out.SessionID) {
		t.Errorf("%q", h.asked[0].Trace)
	}
}
