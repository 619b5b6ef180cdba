package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"openskill/host/store/storetest"
	"openskill/internal/musttest"

	"openskill/host/agent"
	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/host/identity"
	"openskill/host/records"
	"openskill/sdk/skill"
)

// revocable is an edge all of whose work goes on until its context ends. Callers are let in
// until they are revoked.
type revocable struct {
	*server
	revoked atomic.Bool
	checks  atomic.Int64
	begun   chan struct{}
	ended   chan error
	uploads *apitest.Uploads
	chat    *apitest.Chat
}

// work tells that it begins, and why it ends.
func (r *revocable) work(ctx context.Context) error {
	r.begun <- struct{}{}
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
	}
	r.ended <- context.Cause(ctx)
	return &skill.Error{Code: skill.Cancelled, Message: "the work was cancelled"}
}

// run is work that ends as a call does in the door: with the reason of its context.
func (r *revocable) run(ctx context.Context) error {
	_ = r.work(ctx)
	return context.Cause(ctx)
}

func newRevocable(t *testing.T) *revocable {
	t.Helper()
	r := &revocable{begun: make(chan struct{}, 100), ended: make(chan error, 100), uploads: &apitest.Uploads{Dir: t.TempDir(), Skill: "up", Owner: "acme"}}
	r.uploads.Check = func(ctx context.Context, _ apitest.Uploaded) error { return r.work(ctx) }
	r.chat = &apitest.Chat{Reply: func(ctx context.Context, _ agent.ChatRequest, _ func(agent.Event), _ *agent.Answer) error {
		return r.work(ctx)
	}}
	db := storetest.SQLite(t)
	recorded := records.NewStore(db)
	m, err := records.NewManager(records.ManagerOptions{
		Records: recorded, Results: records.NewResults(db),
		Replay: func(ctx context.Context, _ skill.Principal, _ string) (any, error) { return nil, r.work(ctx) },
	})
	musttest.Do(t, err)
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	agents := apitest.NewAgentSkills()
	agents.AddScript("unit-converter", "waits.py", func(ctx context.Context, _ skill.ScriptRequest) (string, error) { return "", r.run(ctx) })
	r.server = start(t, func(o *api.Options) {
		d := &storetest.Door{Inner: o.Door, Scripts: agents, Store: recorded, Manager: m}
		o.Starter, o.Executions, o.AgentSkills, o.Uploads, o.Chat = d, m, agents, r.uploads, r.chat
		o.Admitting = 8 // one tenant has all of them
		o.React = &apitest.React{Work: func(ctx context.Context, _ agent.Task) (*agent.Outcome, error) { return nil, r.work(ctx) }}
		o.MCP = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method == http.MethodGet {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, ": begun\n\n")
				w.(http.Flusher).Flush()
			}
			_ = r.work(req.Context())
		})
		o.Authenticate = func(_ context.Context, c identity.Credentials) (skill.Principal, error) {
			r.checks.Add(1)
			switch {
			case len(c.APIKey) != 1, r.revoked.Load():
				return skill.Principal{}, &skill.Error{Code: skill.Unauthorized, Message: "no"}
			}
			return skill.Principal{ID: "key:" + c.APIKey[0], Type: skill.Agent, Tenant: "acme", Scopes: skill.Scopes(), Key: c.APIKey[0]}, nil
		}
	})
	r.Door.Add("waits", func(ctx context.Context, _ skill.Request) (json.RawMessage, error) { return nil, r.run(ctx) })
	return r
}

// All work of a request ends when its caller is no longer let in, and that is the answer.
func TestRevocationEndsEveryKindOfWork(t *testing.T) {
	r := newRevocable(t)
	p := skill.Principal{ID: "key:ann", Type: skill.Agent, Tenant: "acme"}
	waiting := r.chat.Add(p, "waits", agent.Awaited{ApprovalID: "a", SkillID: "s"})
	archive, boundary := form(t, part{name: "archive", content: "PK"})
	const input = `{"input":{}}`
	type answer struct {
		what string
		text string
		err  error
	}
	answers := make(chan answer, 20)
	requests := []struct{ what, method, path, body, contentType, prefer string }{
		{"a call", "POST", "/skills/waits:invoke", input, "", ""},
		{"a long call", "POST", "/skills/waits:invoke", input, "", "respond-async"},
		{"a script", "POST", "/agent-skills/unit-converter/scripts/waits.py:run", `{}`, "", ""},
		{"a long run of a script", "POST", "/agent-skills/unit-converter/scripts/waits.py:run", `{}`, "", "respond-async"},
		{"an upload", "POST", "/skills", archive, boundary, ""},
		{"a pull", "POST", "/skills", `{"reference":"registry/x:1"}`, "", ""},
		{"a turn", "POST", "/agent/chat", `{"message":"go"}`, "", ""},
		{"a stream of a turn", "POST", "/agent/chat", `{"message":"go","stream":true}`, "", ""},
		{"a turn that was approved", "POST", "/agent/conversations/" + waiting + ":approve", `{"approve":true}`, "", ""},
		{"a task", "POST", "/api/agent/execute", `{"task":"go"}`, "", ""},
		{"a replay", "POST", "/executions/" + storetest.ExecutionID(1) + ":replay", "", "", ""},
		{"a message of MCP", "POST", "/mcp", `{}`, "", ""},
		{"a stream of MCP", "GET", "/mcp", "", "", ""},
	}
	for _, q := range requests {
		go func() {
			req, err := http.NewRequestWithContext(t.Context(), q.method, "http://"+r.Addr+q.path, strings.NewReader(q.body))
			if err != nil {
				answers <- answer{q.what, "", err}
				return
			}
			req.Header.Set("X-Api-Key", "ann")
			req.Header.Set("Content-Type", "application/json")
			if q.contentType != "" {
				req.Header.Set("Content-Type", q.contentType)
			}
			if q.prefer != "" {
				req.Header.Set("Prefer", q.prefer)
			}
			resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
			if err != nil {
				answers <- answer{q.what, "", err}
				return
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			answers <- answer{q.what, resp.Status + " " + string(b), err}
		}()
		wait(t, q.what, r.begun)
	}
	r.revoked.Store(true)
	for range requests {
		if err := wait(t, "the end of work", r.ended); skill.CodeOf(err) != skill.Unauthorized {
			t.Errorf("work ended with %v", err)
		}
	}
	for range requests {
		a := wait(t, "an answer", answers)
		want := string(skill.Unauthorized)
		if strings.HasPrefix(a.what, "a long") {
			want = "202"
		}
		if a.what == "a stream of MCP" {
			want = "200"
		}
		if a.err != nil || !strings.Contains(a.text, want) {
			t.Errorf("%s: %s %v", a.what, a.text, a.err)
		}
	}
	if seen := r.uploads.Seen(); len(seen) > 0 {
		t.Errorf("uploads of a revoked key were accepted: %+v", seen)
	}
}

// A request is not let in by its head for the time of its body.
func TestRevocationWhileTheBodyComesIn(t *testing.T) {
	r := newRevocable(t)
	call := "POST /skills/echo:invoke HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: ann\r\nContent-Type: application/json\r\nContent-Length: 24\r\n\r\n"
	archive, boundary := form(t, part{name: "archive", content: "PK"})
	upload := "POST /skills HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: ann\r\nContent-Type: " + boundary + "\r\nContent-Length: " + itoa(len(archive)) + "\r\n\r\n"
	slow := map[string]*raw{}
	for what, head := range map[string]string{call: `{"input":{`, upload: archive[:10]} {
		slow[what] = r.dial(t)
		slow[what].send(t, what+head)
	}
	for r.checks.Load() < 3 { // one for each request, and one more
		time.Sleep(10 * time.Millisecond)
	}
	r.revoked.Store(true)
	for n := r.checks.Load(); r.checks.Load() == n; { // both have one lease
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	slow[call].send(t, `"text":"x"}}`+"  ")
	slow[upload].send(t, archive[10:])
	for what, c := range slow {
		if resp, body := c.answer(t, "POST", strings.Fields(what)[1]); resp.StatusCode != 401 {
			t.Errorf("%s: %d %s", what, resp.StatusCode, body)
		}
	}
	if calls, seen := r.Door.Calls(), r.uploads.Seen(); len(calls)+len(seen) > 0 {
		t.Errorf("calls %+v, uploads %+v", calls, seen)
	}
}

// The host checks credentials again, and not each request that shows them.
func TestCredentialsAreCheckedOnce(t *testing.T) {
	r := newRevocable(t)
	const n = 20
	for range n {
		go func() { _, _ = r.do(t, "POST", "/skills/waits:invoke", `{"input":{}}`, "X-API-Key", "ann") }()
	}
	for range n {
		wait(t, "a call", r.begun)
	}
	before := r.checks.Load()
	for r.checks.Load() == before {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond) // the others would come now
	if more := r.checks.Load() - before; more > 2 {
		t.Errorf("%d checks of one key", more)
	}
	r.revoked.Store(true)
	for range n {
		wait(t, "the end of a call", r.ended)
	}
}
