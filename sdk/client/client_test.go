package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"openskill/sdk/skill"
)

// answers gives a client of a server that has one answer for each "METHOD path".
func answers(t *testing.T, o *Options, m map[string]http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := m[r.Method+" "+r.RequestURI]
		if h == nil {
			t.Errorf("nobody expects %s %s", r.Method, r.RequestURI)
			w.WriteHeader(http.StatusNotFound)
			return
		}
		h(w, r)
	}))
	t.Cleanup(srv.Close)
	c, err := New(srv.URL+"/", o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// says answers with a status and a body.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// wants checks the request's body, and answers with 200.
func wants(t *testing.T, sent, body string) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if string(b) != sent || err != nil {
			t.Errorf("%s: %v, sent %s, want %s", r.RequestURI, err, b, sent)
		}
		says(http.StatusOK, body)(w, r)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"127.0.0.1:8000", "ftp://host", "http://", "http://:80", "http://u:secret@host", "http://host?key=secret", "http://host/#x",
		"http://ho st/", "http://host?", "%zz", "http://[::1",
	} {
		if _, err := New(bad, nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for in, want := range map[string]string{
		"http://127.0.0.1:8000": "http://127.0.0.1:8000", "https://host/a b/": "https://host/a%20b", "HTTP://[::1]:1//": "http://[::1]:1",
	} {
		if c, err := New(in, nil); err != nil || c.base != want {
			t.Errorf("%q: %v, %v", in, c, err)
		}
	}
	for _, key := range []string{"a b", "osk_x\n", "ä"} {
		if _, err := New("http://host", &Options{Key: key}); err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("the key %q: %v", key, err)
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	var got http.Header
	c := answers(t, &Options{Key: "osk_1", UserAgent: "mine"}, map[string]http.HandlerFunc{
		"GET /skills/echo": func(w http.ResponseWriter, r *http.Request) { got = r.Header; says(200, `{"id": "echo"}`)(w, r) },
	})
	if _, err := c.Skill(WithTraceID(t.Context(), "t-1"), "echo"); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"Authorization": "Bearer osk_1", "User-Agent": "mine", "X-Trace-Id": "t-1", "Accept": "application/json", "Content-Type": "", "Accept-Encoding": ""}
	for name, value := range want {
		if got.Get(name) != value {
			t.Errorf("%s: %q, want %q", name, got.Get(name), value)
		}
	}
	if _, err := c.Skill(WithTraceID(t.Context(), "a\r\nX: y"), "echo"); err == nil {
		t.Error("a trace id with a line end is sent")
	}
}

func TestInvoke(t *testing.T) {
	t.Parallel()
	const failed = `{"success": false, "skill_id": "echo", "trace_id": "t-2", "data": null,
		"error": {"code": "TIMEOUT", "status": 408, "message": "too\u001b[31m slow", "details": {"n": 1}}, "meta": {"execution_id": "e-1"}}`
	c := answers(t, nil, map[string]http.HandlerFunc{
		"POST /skills/echo:invoke":  wants(t, `{"input":{"text":"hi"}}`, `{"success": true, "skill_id": "echo", "trace_id": "t-1", "data": {"echoed": "hi"}, "error": null, "meta": {"latency_ms": 1}}`),
		"POST /skills/empty:invoke": wants(t, `{"input":{}}`, `{"success": true, "skill_id": "empty", "trace_id": "t-1", "data": {}, "error": null, "meta": {}}`),
		"POST /skills/old:invoke": wants(t, `{"input":{"n":1},"version":"1.0.0","limits":{"timeout_ms":200,"memory_mb":16}}`,
			`{"success": true, "skill_id": "old", "trace_id": "t-1", "data": {}, "error": null, "meta": {}}`),
		"POST /skills/later:invoke": wants(t, `{"input":{},"version":"2.0.0"}`, `{"success": true, "skill_id": "later", "trace_id": "t-1", "data": {}, "error": null, "meta": {"execution_id": "e-3"}}`),
		"POST /skills/slow:invoke":  says(408, failed),
		"POST /skills/lost:invoke":  says(200, `{"id": "x"}`),
		"POST /skills/nope:invoke":  says(401, `{"error": {"code": "UNAUTHORIZED", "status": 401, "message": "who is it?"}}`),
	})
	r, err := c.Invoke(t.Context(), "echo", map[string]string{"text": "hi"})
	if err != nil || string(r.Data) != `{"echoed": "hi"}` || r.Meta.LatencyMS != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := c.Invoke(t.Context(), "empty", nil); err != nil {
		t.Error(err)
	}
	with := CallOptions{Version: "1.0.0", Limits: skill.LimitsJSON{TimeoutMS: 200, MemoryMB: 16}}
	if _, err := c.InvokeWith(t.Context(), "old", map[string]int{"n": 1}, with); err != nil {
		t.Error(err)
	}
	if run, err := c.StartWith(t.Context(), "later", nil, CallOptions{Version: "2.0.0"}); err != nil || run.ID != "e-3" {
		t.Errorf("%+v, %v", run, err)
	}
	r, err = c.Invoke(t.Context(), "slow", struct{}{})
	var e *Error
	if !errors.As(err, &e) || e.Code != skill.Timeout || e.Status != 408 || e.Message != "too[31m slow" || e.TraceID != "t-2" || e.Details["n"] != 1.0 {
		t.Errorf("%+v", err)
	}
	if r == nil || r.Meta.ExecutionID != "e-1" {
		t.Errorf("the result of a call that failed: %+v", r)
	}
	if r, err := c.Invoke(t.Context(), "lost", nil); r != nil || err == nil {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := c.Invoke(t.Context(), "nope", nil); r != nil || !errors.As(err, &e) || e.Code != skill.Unauthorized {
		t.Errorf("%+v, %v", r, err)
	}
	for _, id := range []skill.ID{"", "..", "a/b", "A", "a:b"} {
		if _, err := c.Invoke(t.Context(), id, nil); skill.CodeOf(err) != skill.InvalidArgument {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := c.Invoke(t.Context(), "echo", func() {}); err == nil {
		t.Error("a function is JSON")
	}
}

// Every form of a failure is one Error, and what is none of the host's says so.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		body   string
		want   Error
	}{
		{404, `{"error": {"code": "NOT_FOUND", "status": 404, "message": "no"}}`, Error{Status: 404, Code: "NOT_FOUND", Message: "no", TraceID: "of-header"}},
		{422, `{"error": {"code": "AGENT_VALIDATION_ERROR", "status": 422, "message": "no"}, "meta": {"request_id": "r-1"}}`, Error{Status: 422, Code: "AGENT_VALIDATION_ERROR", Message: "no", TraceID: "of-header"}},
		{500, `{"error": {"code": "OF_A_LATER_RELEASE"}}`, Error{Status: 500, Code: "OF_A_LATER_RELEASE", Message: "the server gave no reason", TraceID: "of-header"}},
		{500, `{"error": {"code": "a\u001bb", "message": "x"}}`, Error{Status: 500, Message: "x", TraceID: "of-header"}},
		{502, `<html>`, Error{Status: 502, Message: "the response (application/json) is not from openSkill; check proxies between client and server"}},
		{500, `{"error": "text"}`, Error{Status: 500, Message: "the response (application/json) is not from openSkill; check proxies between client and server"}},
		{500, ``, Error{Status: 500, Message: "the response (application/json) is not from openSkill; check proxies between client and server"}},
		{418, `{"error": {"code": "X", "message": "` + strings.Repeat("a", 4096) + `"}}`, Error{Status: 418, Code: "X", Message: strings.Repeat("a", 1021) + "…", TraceID: "of-header"}},
		{500, strings.Repeat("a", 9000), Error{Status: 500, Message: "client: the response exceeds 8192 bytes"}},
	} {
		c := answers(t, &Options{MaxAnswer: 8192}, map[string]http.HandlerFunc{"GET /tools?format=mcp": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Trace-Id", "of-header")
			says(tt.status, tt.body)(w, r)
		}})
		_, err := c.Tools(t.Context(), "mcp")
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%.80s: %v", tt.body, err)
			continue
		}
		if e.answer = nil; !reflect.DeepEqual(tt.want, *e) {
			t.Errorf("%.80s: %+v", tt.body, *e)
		}
	}
	if got := (&Error{Status: 502, Message: "x"}).Error(); got != "status 502: x" {
		t.Error(got)
	}
}

// A redirect is not followed: the key stays with the host that it is for.
func TestRedirect(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer thief.Close()
	to := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL+"/x", http.StatusTemporaryRedirect)
	}
	given := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
	for _, o := range []*Options{{Key: "k"}, {Key: "k", HTTP: given}} {
		c := answers(t, o, map[string]http.HandlerFunc{"POST /agent/chat": to, "GET /skills/echo": to})
		_, err := c.Skill(t.Context(), "echo")
		var e *Error
		if !errors.As(err, &e) || e.Status != 307 || !strings.Contains(e.Message, thief.URL) {
			t.Error(err)
		}
		for _, err := range c.ChatStream(t.Context(), ChatRequest{Message: "hi"}) {
			if !errors.As(err, &e) || e.Status != 307 {
				t.Error(err)
			}
		}
	}
	if asked.Load() > 0 {
		t.Error("a redirect was followed")
	}
}

// Answers of other kinds, of no end, and cut off ones are errors, and nothing more.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"id": "echo"`)
	}
	giant := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id": "`)
		_, _ = io.WriteString(w, strings.Repeat("a", 1<<20))
	}
	for name, h := range map[string]http.HandlerFunc{
		"cut off": cut, "giant": giant, "HTML": says(200, "<html>"), "a list": says(200, "[]"), "a number for a text": says(200, `{"id": 7}`),
		"nothing": says(200, ""), "unknown trust": says(200, `{"id": "echo", "trust": "root"}`), "deep": says(200, strings.Repeat("[", 1<<15)),
	} {
		c := answers(t, &Options{MaxAnswer: 1 << 16}, map[string]http.HandlerFunc{"GET /skills/echo": h})
		d, err := c.Skill(t.Context(), "echo")
		if d != nil || err == nil || len(err.Error()) > 300 {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	c := answers(t, nil, map[string]http.HandlerFunc{
		"GET /skills?limit=100":                       says(200, `{"data": [{"id": "a"}, {"id": "b"}], "next": "b&x"}`),
		"GET /skills?limit=100&cursor=b%26x":          says(200, `{"data": [{"id": "c", "trust": "builtin"}], "next": null}`),
		"GET /agent-skills?limit=100":                 says(200, `{"data": [{"name": "unit-converter"}], "next": "same"}`),
		"GET /agent-skills?limit=100&cursor=same":     says(200, `{"data": [], "next": "same"}`),
		"GET /agent/conversations?limit=100":          says(200, `{"data": [{"id": "x", "title": "t", "messages": 4}], "next": "y"}`),
		"GET /agent/conversations?limit=100&cursor=y": says(500, `{"error": {"code": "INTERNAL", "status": 500, "message": "no"}}`),
	})
	var ids []string
	for d, err := range c.Skills(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, string(d.ID))
	}
	if got := strings.Join(ids, " "); got != "a b c" {
		t.Error(got)
	}
	for d, err := range c.Skills(t.Context()) { // the second page is not asked for
		if err != nil || d.ID != "a" {
			t.Error(d, err)
		}
		break
	}
	var last error
	n := 0
	for _, err := range c.AgentSkills(t.Context()) {
		n, last = n+1, err
	}
	if n != 2 || last == nil || !strings.Contains(last.Error(), "does not end") {
		t.Errorf("%d, %v: a list without an end", n, last)
	}
	for s, err := range c.Conversations(t.Context()) {
		if last = err; err == nil && s.Messages != 4 {
			t.Error(s)
		}
	}
	if skill.CodeOf(last) != skill.Internal { // any error that is no *skill.Error
		t.Error(last)
	}
}

// The tools of several pages become one list; a cursor of another address is one of this host.
func TestPagesOfTools(t *testing.T) {
	t.Parallel()
	links := func(link, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("Link", `</openapi.json>; rel="service-desc"`)
			w.Header().Add("Link", link)
			_, _ = io.WriteString(w, body)
		}
	}
	c := answers(t, &Options{MaxAnswer: 100}, map[string]http.HandlerFunc{
		"GET /tools?format=mcp":              links(`<https://other.example/x?cursor=a%26b>; rel="next"`, `[{"name": "<a>"}]`),
		"GET /tools?cursor=a%26b&format=mcp": links(`</tools?cursor=c>; rel="prev", </tools?cursor=c&limit=1>; rel="next"`, `[{"name": "b"}, {"name": "c"}]`),
		"GET /tools?cursor=c&format=mcp":     says(200, `[]`),
		"GET /tools?format=same":             links(`</tools?cursor=c>; rel="next"`, `[]`),
		"GET /tools?cursor=c&format=same":    links(`</tools?cursor=c>; rel="next"`, `[]`),
		"GET /tools?format=object":           links(`</tools?cursor=c>; rel="next"`, `{}`),
		"GET /tools?format=long":             links(`</tools?cursor=a>; rel="next"`, `["`+strings.Repeat("x", 60)+`"]`),
		"GET /tools?cursor=a&format=long":    links(`</tools?cursor=b>; rel="next"`, `["`+strings.Repeat("x", 60)+`"]`),
		"GET /tools?format=odd":              links(`<%zz?cursor=c>; rel="next", <`, `[1]`),
	})
	for format, want := range map[string]string{"mcp": `[{"name":"\u003ca\u003e"},{"name":"b"},{"name":"c"}]`, "odd": "[1]", "same": "does not end", "object": "not a list", "long": "exceed 100 bytes"} {
		b, err := c.Tools(t.Context(), format)
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && string(b) != want {
			t.Errorf("%s: %s, %v", format, b, err)
		}
	}
}

// Changes come in pages, chosen by tenant and time.
func TestChanges(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 26, 10, 0, 0, 5000, time.FixedZone("", 3600))
	c := answers(t, nil, map[string]http.HandlerFunc{
		"GET /audit/changes?limit=100": says(200, `{"data": [], "next": null}`),
		"GET /audit/changes?limit=100&since=2026-11-26T09%3A00%3A00.000005Z&tenant=a+b&until=2026-12-01T00%3A00%3A00Z":          says(200, `{"data": [{"id": "1", "tenant": "a b", "action": "key.create", "subject": "k", "details": {"scopes": "admin"}, "principal": "local", "principal_type": "operator", "principal_tenant": "local", "time": "2026-11-26T09:00:01Z"}], "next": "1"}`),
		"GET /audit/changes?limit=100&since=2026-11-26T09%3A00%3A00.000005Z&tenant=a+b&until=2026-12-01T00%3A00%3A00Z&cursor=1": says(200, `{"data": [{"id": "2", "failed": "CONFLICT"}], "next": null}`),
	})
	for _, err := range c.Changes(t.Context(), ChangeQuery{}) {
		t.Errorf("of nothing: %v", err)
	}
	list := c.Changes(t.Context(), ChangeQuery{Tenant: "a b", Since: since, Until: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)})
	for range 2 { // it can be gone through again
		var got []Change
		for change, err := range list {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, *change)
		}
		if len(got) != 2 || got[0].Action != "key.create" || got[0].Details["scopes"] != "admin" || got[0].Of != "local" || got[0].Time.Minute() != 0 || got[1].Failed != skill.Conflict {
			t.Errorf("%+v", got)
		}
	}
}

// A script is run as it is asked, and where the caller wishes after its approval.
func TestRunScript(t *testing.T) {
	t.Parallel()
	preferred := ""
	answer := wants(t, `{"args":["--n",1],"input":"x","limits":{"fuel":7}}`, `{"success": true, "skill_id": "a b", "trace_id": "t", "data": {"output": "hi"}, "meta": {}}`)
	c := answers(t, nil, map[string]http.HandlerFunc{
		"POST /agent-skills/a%20b/scripts/sub%2Fs.py:run": func(w http.ResponseWriter, r *http.Request) {
			preferred = r.Header.Get("Prefer")
			answer(w, r)
		},
		"POST /agent-skills/a/scripts/s.py:run": wants(t, `{}`, `{"success": true, "trace_id": "t", "data": {"output": ""}, "meta": {}}`),
	})
	o := ScriptOptions{Args: []any{"--n", 1}, Input: "x", Limits: skill.LimitsJSON{Fuel: 7}}
	for wait, want := range map[time.Duration]string{0: "", 1500 * time.Millisecond: "wait=1", time.Minute: "wait=60"} {
		o.Wait = wait
		if r, err := c.RunScript(t.Context(), "a b", "sub/s.py", o); err != nil || string(r.Data) != `{"output": "hi"}` || preferred != want {
			t.Errorf("%v: %+v, %v, Prefer: %q; want %q", wait, r, err, preferred, want)
		}
	}
	if _, err := c.RunScript(t.Context(), "a", "s.py", ScriptOptions{}); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "..", strings.Repeat("a", 2000)} {
		if _, err := c.RunScript(t.Context(), bad, "s.py", o); err == nil {
			t.Errorf("%.10q is a skill", bad)
		}
		if _, err := c.RunScript(t.Context(), "a", bad, o); err == nil {
			t.Errorf("%.10q is a script", bad)
		}
	}
}

// What is read one by one.
func TestReads(t *testing.T) {
	t.Parallel()
	c := answers(t, nil, map[string]http.HandlerFunc{
		"GET /tools?format=open+ai":       says(200, ` [{"type": "function"}] `),
		"GET /search?limit=2&q=a+b":       says(200, `{"data": [{"type": "skill", "name": "a", "input_schema": {}}, {"type": "agent_skill", "name": "b"}]}`),
		"GET /usage?tenant=a+b":           says(200, `{"tenant": "a b", "stored": [{"kind": "keys", "count": 2, "count_limit": null, "bytes": null, "bytes_limit": null}], "today": [{"kind": "calls", "used": 1, "limit": 9}], "resets_at": "2026-01-03T00:00:00Z"}`),
		"GET /agent-skills/a":             says(200, `{"name": "a", "trust": "trusted", "content": "# A"}`),
		"GET /executions/e-1":             says(200, `{"id": "e-1", "status": "failed", "finished_at": "2026-01-02T03:04:05Z", "error": {"code": "TRAP", "message": "x"}, "input": {"bytes": 3}}`),
		"GET /api/agent/executions/s-1":   says(200, `{"data": {"session_id": "s-1", "iterations": [{"index": 0, "skill_name": "echo", "duration_ms": null}]}, "meta": {}}`),
		"GET /api/agent/executions/s-2":   says(200, `{}`),
		"GET /agent/conversations/c-1":    says(200, `{"id": "c-1", "messages": [{"role": "assistant", "calls": [{"id": "1", "name": "echo", "arguments": "{"}]}], "pending": [{"approval_id": "p"}]}`),
		"DELETE /agent/conversations/c-1": says(204, ""),
		"GET /agent/conversations/a%2Fb":  says(404, `{"error": {"code": "NOT_FOUND", "status": 404, "message": "no"}}`),
	})
	ctx := t.Context()
	if b, err := c.Tools(ctx, "open ai"); err != nil || !json.Valid(b) {
		t.Error(string(b), err)
	}
	if found, err := c.Search(ctx, "a b", 2); err != nil || len(found) != 2 || string(found[0].InputSchema) != "{}" || found[1].Type != "agent_skill" {
		t.Error(found, err)
	}
	if u, err := c.Usage(ctx, "a b"); err != nil || u.Tenant != "a b" || u.Stored[0].Count != 2 || u.Stored[0].CountLimit != nil || *u.Today[0].Limit != 9 || u.ResetsAt.Day() != 3 {
		t.Error(u, err)
	}
	if s, text, err := c.AgentSkill(ctx, "a"); err != nil || s.Trust != skill.Trusted || text != "# A" {
		t.Error(s, text, err)
	}
	if e, err := c.Execution(ctx, "e-1"); err != nil || e.Error.Code != skill.Trap || e.FinishedAt.Year() != 2026 || e.Input.Bytes != 3 {
		t.Error(e, err)
	}
	if s, err := c.Session(ctx, "s-1"); err != nil || s.Iterations[0].SkillName != "echo" || s.Iterations[0].DurationMS != nil {
		t.Error(s, err)
	}
	if s, err := c.Session(ctx, "s-2"); err == nil {
		t.Error(s)
	}
	if v, err := c.Conversation(ctx, "c-1"); err != nil || v.Messages[0].Calls[0].Arguments != "{" || v.Pending[0].ApprovalID != "p" {
		t.Error(v, err)
	}
	if err := c.DeleteConversation(ctx, "c-1"); err != nil {
		t.Error(err)
	}
	var e *Error
	if _, err := c.Conversation(ctx, "a/b"); !errors.As(err, &e) || e.Code != skill.NotFound {
		t.Error(err)
	}
	for _, bad := range []string{"", ".", "..", strings.Repeat("a", 2000)} {
		_, err := c.Conversation(ctx, bad)
		_, err2 := c.Approve(ctx, bad, Decision{})
		if err == nil || err2 == nil || len(err.Error()) > 200 {
			t.Errorf("%.10q: %v, %v", bad, err, err2)
		}
		for _, err := range c.ApproveStream(ctx, bad, Decision{}) {
			if err == nil {
				t.Errorf("%.10q is a conversation", bad)
			}
		}
	}
}

func TestExecute(t *testing.T) {
	t.Parallel()
	c := answers(t, nil, map[string]http.HandlerFunc{
		"POST /api/agent/execute": wants(t, `{"task":"do it","context":{"a":1},"options":{"max_iterations":3,"skills":["echo"]}}`,
			`{"data": {"session_id": "s-1", "status": "completed", "iterations": 1, "result": {"summary": "done"}}, "meta": {"request_id": "r"}}`),
	})
	o, err := c.Execute(t.Context(), Task{Text: "do it", Context: map[string]int{"a": 1}, Options: &TaskOptions{MaxIterations: 3, Skills: []skill.ID{"echo"}}})
	if err != nil || o.Status != "completed" || string(o.Result) != `{"summary": "done"}` {
		t.Errorf("%+v, %v", o, err)
	}
	// An empty list is told as it is: left out, it would come to mean every skill.
	none := answers(t, nil, map[string]http.HandlerFunc{"POST /api/agent/execute": wants(t, `{"task":"x","options":{"skills":[]}}`, `{"data": {}}`)})
	if _, err := none.Execute(t.Context(), Task{Text: "x", Options: &TaskOptions{Skills: []skill.ID{}}}); err != nil {
		t.Error(err)
	}
	for body, partial := range map[string]bool{
		`{"error": {"code": "AGENT_EXECUTION_TIMEOUT", "status": 408, "message": "late"}, "data": {"session_id": "s-1", "status": "timeout"}, "meta": {}}`: true,
		`{"error": {"code": "AGENT_INVALID_TASK", "status": 400, "message": "empty"}, "meta": {}}`:                                                         false,
		`{"error": {"code": "AGENT_INVALID_TASK", "status": 400, "message": "empty"}, "data": 7}`:                                                          false,
	} {
		c := answers(t, nil, map[string]http.HandlerFunc{"POST /api/agent/execute": says(408, body)})
		o, err := c.Execute(t.Context(), Task{Text: "x"})
		var e *Error
		if !errors.As(err, &e) || (o != nil) != partial {
			t.Errorf("%s: %+v, %v", body, o, err)
		}
	}
	c = answers(t, nil, map[string]http.HandlerFunc{"POST /api/agent/execute": says(200, `{}`)})
	if o, err := c.Execute(t.Context(), Task{Text: "x"}); o != nil || err == nil {
		t.Error(o, err)
	}
}

// A host that is not there is no Error: nobody has answered.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	c, err := New("http://127.0.0.1:1", &Options{Key: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Skill(t.Context(), "echo")
	var e *Error
	if err == nil || errors.As(err, &e) || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Chat(gone, ChatRequest{Message: "x"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// The seed has clients find the host by OPENSKILL_HTTP_BASE_URL.
func TestReadsTheAddressOfTheEnvironment(t *testing.T) {
	for named, want := range map[string]string{"": "http://127.0.0.1:8000", "https://skills.example/a/": "https://skills.example/a"} {
		t.Setenv(BaseURLVariable, named)
		if c, err := New("", nil); err != nil || c.base != want {
			t.Errorf("%q: %+v, %v", named, c, err)
		}
		if c, err := New("http://localhost:1", nil); err != nil || c.base != "http://localhost:1" {
			t.Errorf("the argument: %+v, %v", c, err)
		}
	}
	t.Setenv(BaseURLVariable, "http://u:secret@host")
	if _, err := New("", nil); err == nil || !strings.Contains(err.Error(), BaseURLVariable) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
