package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// named takes who calls from a header, as tests of the edge have it.
func named(r *http.Request) (skill.Principal, error) {
	name := r.Header.Get("X-Caller")
	switch name {
	case "":
		return skill.Local(), nil
	case "nobody":
		return skill.Principal{}, &skill.Error{Code: skill.Unauthorized, Message: "send a token"}
	}
	return skill.Principal{ID: name, Tenant: name, Scopes: []string{skill.ScopeRead, skill.ScopeInvoke}}, nil
}

func listen(t *testing.T, o Options) (*httptest.Server, *Server) {
	t.Helper()
	if o.Principal == nil {
		o.Principal = named
	}
	s := newServer(t, o)
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	return web, s
}

// surf is a session of the SDK's client over HTTP, of the newest revision or of one
// with a handshake.
func surf(t *testing.T, url string, handshake bool, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	client := &http.Client{Transport: &http.Transport{}}
	var so *mcp.ClientSessionOptions
	if handshake {
		so = &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}
	}
	cs := musttest.Get(c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: client}, so))(t)
	t.Cleanup(func() {
		_ = cs.Close()
		client.CloseIdleConnections()
	})
	return cs
}

func revisions(t *testing.T, do func(t *testing.T, handshake bool)) {
	t.Helper()
	for _, handshake := range []bool{true, false} {
		t.Run(fmt.Sprintf("handshake=%v", handshake), func(t *testing.T) { do(t, handshake) })
	}
}

func TestHTTP(t *testing.T) {
	revisions(t, func(t *testing.T, handshake bool) {
		agents, _ := folders(t, converter())
		web, _ := listen(t, Options{AgentSkills: agents, Version: "1.2.3"})
		cs := surf(t, web.URL, handshake, nil)
		if diff := cmp.Diff([]string{"load_skill", "read_skill_resource", "run_skill_script", "echo", "forever"}, toolNames(t, cs)); diff != "" {
			t.Errorf("tools (-want +got):\n%s", diff)
		}
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "x"}})
		if err != nil || res.IsError || textOf(t, res) != `{"echoed":"x"}` {
			t.Errorf("%+v, %v", res, err)
		}
		if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "nosuch"}); err == nil {
			t.Error("a tool that there is not was called")
		}
		read, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "skill://unit-converter/SKILL.md"})
		if err != nil || len(read.Contents) != 1 {
			t.Errorf("%+v, %v", read, err)
		}
		prompt, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "unit-converter"})
		if err != nil || len(prompt.Messages) != 2 {
			t.Errorf("%+v, %v", prompt, err)
		}
		if version := cs.InitializeResult().ProtocolVersion; (version < stateless) != handshake {
			t.Errorf("the session is of revision %s", version)
		}
	})
}

func TestHTTPProgress(t *testing.T) {
	revisions(t, func(t *testing.T, handshake bool) {
		d := newDoor()
		enough := make(chan struct{})
		d.add("long", `{"type":"object"}`, func(_ context.Context, r skill.Request) *skill.Result {
			<-enough
			return success(&r, []byte(`{}`))
		})
		web, _ := listen(t, Options{Door: d, Catalogue: d, ProgressEvery: time.Millisecond})
		told := make(chan *mcp.ProgressNotificationParams, 10_000)
		cs := surf(t, web.URL, handshake, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { told <- r.Params },
		})
		done := make(chan error, 1)
		go func() {
			p := &mcp.CallToolParams{Name: "long"}
			p.SetProgressToken(7)
			_, err := cs.CallTool(t.Context(), p)
			done <- err
		}()
		<-told
		<-told // while the call still runs
		close(enough)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// waiting is a skill that says when it began, and why it was ended.
func waiting(d *door) (began chan struct{}, ended chan error) {
	began, ended = make(chan struct{}, 10), make(chan error, 10)
	d.add("waits", `{"type":"object"}`, func(ctx context.Context, r skill.Request) *skill.Result {
		began <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return skill.Failure(r.SkillID, r.TraceID, skill.Meta{}, &skill.Error{Code: skill.Cancelled, Message: "the caller left"})
	})
	return began, ended
}

func TestHTTPCancel(t *testing.T) {
	revisions(t, func(t *testing.T, handshake bool) {
		d := newDoor()
		began, ended := waiting(d)
		web, _ := listen(t, Options{Door: d, Catalogue: d})
		cs := surf(t, web.URL, handshake, nil)
		for _, token := range []any{nil, "p"} {
			ctx, cancel := context.WithCancel(t.Context())
			called := make(chan error, 1)
			go func() {
				p := &mcp.CallToolParams{Name: "waits"}
				if token != nil {
					p.SetProgressToken(token)
				}
				_, err := cs.CallTool(ctx, p)
				called <- err
			}()
			<-began
			cancel()
			if err := <-called; !errors.Is(err, context.Canceled) {
				t.Errorf("the client got %v", err)
			}
			<-ended
		}
	})
}

func post(t *testing.T, ctx context.Context, url, body string, headers ...string) (*http.Response, error) { //nolint:revive // the test comes first here as everywhere
	t.Helper()
	r := musttest.Get(http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body)))(t)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
}

func send(t *testing.T, url, body string, headers ...string) (status int, text string, h http.Header) {
	t.Helper()
	res, err := post(t, t.Context(), url, body, headers...)
	musttest.Do(t, err)
	defer res.Body.Close()
	b := musttest.Get(io.ReadAll(res.Body))(t)
	return res.StatusCode, string(b), res.Header
}

// modern is a request of the newest revision.
func modern(method, params string) (body string, headers []string) {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	if params != "" {
		params += ","
	}
	headers = []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	var p struct{ Name, URI string }
	if json.Unmarshal([]byte("{"+strings.TrimSuffix(params, ",")+"}"), &p) == nil && p.Name+p.URI != "" {
		headers = append(headers, "Mcp-Name", p.Name+p.URI)
	}
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + meta + `}}`, headers
}

// TestClientLeaves holds that a client that goes away takes its call with it, whatever
// the revision.
func TestClientLeaves(t *testing.T) {
	d := newDoor()
	began, ended := waiting(d)
	web, _ := listen(t, Options{Door: d, Catalogue: d})
	_, _, h := send(t, web.URL, hello)
	old := []string{"Mcp-Session-Id", h.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-11-25"}
	body, headers := modern("tools/call", `"name":"waits"`)
	for name, c := range map[string]struct {
		body    string
		headers []string
	}{
		"a session":                  {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"waits"}}`, old},
		"a session, with a stream":   {`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"waits","_meta":{"progressToken":1}}}`, old},
		"no session":                 {body, headers},
		"no session, with a stream":  {strings.Replace(body, `"_meta":{`, `"_meta":{"progressToken":1,`, 1), headers},
		"a session, leaving earlier": {`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"waits"}}`, old},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				if res, err := post(t, ctx, web.URL, c.body, c.headers...); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
			}()
			<-began
			leave()
			if err := <-ended; err == nil {
				t.Error("the call's context has no cause")
			}
			<-gone
		})
	}
}

// TestRoomForOthers: what is open is bounded, streams without an end like calls, so that
// one tenant does not take every connection of a host.
func TestRoomForOthers(t *testing.T) {
	d := newDoor()
	began, _ := waiting(d)
	web, s := listen(t, Options{Door: d, Catalogue: d, MaxOpen: 6})
	stream, streams := modern("subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
	list, lists := modern("tools/list", "")
	call, calls := modern("tools/call", `"name":"waits"`)
	as := func(caller string, headers []string) []string {
		return append([]string{"X-Caller", caller}, headers...)
	}

	leaves := make([]context.CancelFunc, 3)
	for i := range leaves {
		var ctx context.Context
		ctx, leaves[i] = context.WithCancel(t.Context())
		defer leaves[i]()
		res, err := post(t, ctx, web.URL, stream, as("greedy", streams)...)
		musttest.Do(t, err)
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Fatalf("stream %d: %d", i+1, res.StatusCode)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		if res, err := post(t, ctx, web.URL, call, as("greedy", calls)...); err == nil {
			_ = res.Body.Close()
		}
	}()
	<-began

	for what, m := range map[string]struct {
		body    string
		headers []string
	}{"a stream": {stream, streams}, "a list": {list, lists}, "a session": {hello, nil}} {
		if status, text, h := send(t, web.URL, m.body, as("greedy", m.headers)...); status != http.StatusTooManyRequests || h.Get("Retry-After") == "" {
			t.Errorf("%s beyond what may be open: %d %s", what, status, text)
		}
	}
	if status, text, _ := send(t, web.URL, list, as("other", lists)...); status != http.StatusOK {
		t.Errorf("another tenant: %d %s", status, text)
	}

	// The other one has a place, the third has one, and then there is none left.
	for i, caller := range []string{"other", "third"} {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		res, err := post(t, ctx, web.URL, stream, as(caller, streams)...)
		musttest.Do(t, err)
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Fatalf("stream %d of other tenants: %d", i+1, res.StatusCode)
		}
	}
	for _, caller := range []string{"other", "fourth"} {
		if status, text, h := send(t, web.URL, list, as(caller, lists)...); status != http.StatusTooManyRequests || h.Get("Retry-After") == "" {
			t.Errorf("%s, when all that may be open is: %d %s", caller, status, text)
		}
	}
	leaves[0]()
	leave()
	<-over
	for busy := 6; busy > 4; runtime.Gosched() { // the server sees by and by that they have left
		busy, _, _, _ = s.web.open.Load()
	}
	if status, text, _ := send(t, web.URL, list, as("fourth", lists)...); status != http.StatusOK {
		t.Errorf("after two have ended: %d %s", status, text)
	}
}

func TestHostsAndOrigins(t *testing.T) {
	web, _ := listen(t, Options{Origins: []string{"https://skills.example"}})
	address := strings.TrimPrefix(web.URL, "http://")
	body, headers := modern("tools/list", "")
	for _, c := range []struct {
		host, origin, site string
		status             int
	}{
		{address, "", "", 200},
		{"localhost:8000", "", "", 200},
		{"LOCALHOST", "", "", 200},
		{"[::1]:8000", "", "", 200},
		{"10.0.0.7", "", "", 200},
		{"skills.example", "", "", 200},
		{"evil.example", "", "", 403},
		{"localhost.evil.example", "", "", 403},
		{"127.0.0.1.evil.example", "", "", 403},
		{"skills.example.evil.example", "", "", 403},
		{address, web.URL, "", 200},
		{"localhost:8000", "http://localhost:8000", "", 200},
		{"skills.example", "https://skills.example", "", 200},
		{address, "https://skills.example", "", 200},
		{address, "http://evil.example", "", 403},
		{address, "null", "", 403},
		{address, "http://127.0.0.1:1", "", 403},
		{"evil.example", "http://evil.example", "", 403},
		{"localhost:8000", "http://localhost:8001", "", 403},
		{address, "", "cross-site", 403},
		{address, "", "same-origin", 200},
	} {
		h := append([]string{"Host", c.host}, headers...)
		if c.origin != "" {
			h = append(h, "Origin", c.origin)
		}
		if c.site != "" {
			h = append(h, "Sec-Fetch-Site", c.site)
		}
		status, text, _ := send(t, web.URL, body, h...)
		if status != c.status {
			t.Errorf("%+v: %d %s", c, status, text)
		}
		if status == 403 && (!json.Valid([]byte(text)) || len(text) > 1024) {
			t.Errorf("%+v: %s", c, text)
		}
	}
}

func TestWrongRequests(t *testing.T) {
	web, _ := listen(t, Options{BodyLimit: 2000})
	list, headers := modern("tools/list", "")
	for _, c := range []struct {
		name, body string
		headers    []string
		status     int
		says       string
	}{
		{"a large body", strings.Repeat(" ", 2001), nil, 413, "2000 bytes"},
		{"a body of the limit", list + strings.Repeat(" ", 2000-len(list)), headers, 200, `"tools"`},
		{"a compressed body", list, append([]string{"Content-Encoding", "gzip"}, headers...), 415, "Content-Encoding"},
		{"no body", "", headers, 400, ""},
		{"not JSON", "{", headers, 400, ""},
		{"a batch", "[" + list + "]", headers, 400, ""},
		{"params of another kind", `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":7}}`, headers, 400, "params.name"},
		{"no session and no revision", `{"jsonrpc":"2.0","id":4,"method":"tools/list"}`, nil, 400, "initialize"},
		{"a revision that there is not", strings.ReplaceAll(list, "2026-07-28", "2031-01-01"), []string{"Mcp-Protocol-Version", "2031-01-01", "Mcp-Method", "tools/list"}, 400, "2026-07-28"},
		{"another content type", list, append([]string{"Content-Type", "text/plain"}, headers...), 415, ""},
		{"nobody", list, append([]string{"X-Caller", "nobody"}, headers...), 401, "send a token"},
	} {
		if status, text, _ := send(t, web.URL, c.body, c.headers...); status != c.status || !strings.Contains(text, c.says) || status != 200 && len(text) > 1024 {
			t.Errorf("%s: %d %.300s, want %d and %q", c.name, status, text, c.status, c.says)
		}
	}
	for _, method := range []string{"PUT", "PATCH", "HEAD"} {
		r, _ := http.NewRequestWithContext(t.Context(), method, web.URL, nil)
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil || res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") == "" {
			t.Errorf("%s: %+v, %v", method, res, err)
			continue
		}
		_ = res.Body.Close()
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// TestDeepMessages holds that nesting costs no stack, on either way in.
func TestDeepMessages(t *testing.T) {
	web, s := listen(t, Options{})
	_, _, h := send(t, web.URL, hello)
	c := converse(t, s, skill.Local())
	for _, depth := range []int{9_000, 11_000, 250_000} {
		deep := strings.Repeat(`{"a":[`, depth/2) + strings.Repeat("]}", depth/2)
		for _, params := range []string{`{"name":"echo","arguments":` + deep + `}`, `{"name":"echo","_meta":` + deep + `}`, deep} {
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`
			for _, headers := range [][]string{{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "echo"}, {"Mcp-Session-Id", h.Get("Mcp-Session-Id")}} {
				if status, text, _ := send(t, web.URL, body, headers...); depth > 10_000 && (status != 400 || !strings.Contains(text, "-32700")) || len(text) > 1024 {
					t.Errorf("%d: %d %.200s", depth, status, text)
				}
			}
			c.say(body)
			if a := c.answer(); depth > 10_000 && (a.Error == nil || a.Error.Code != -32700) {
				t.Errorf("%d: %+v", depth, a)
			}
		}
	}
}

// TestSignsOfLife holds that a stream on which nothing happens is kept open, and that
// what is not a stream becomes one where it takes long.
func TestSignsOfLife(t *testing.T) {
	d := newDoor()
	let := make(chan struct{})
	d.add("slow", `{"type":"object"}`, func(_ context.Context, r skill.Request) *skill.Result {
		<-let
		return success(&r, []byte(`{"done":true}`))
	})
	web, _ := listen(t, Options{Door: d, Catalogue: d, KeepAlive: time.Millisecond})
	_, _, h := send(t, web.URL, hello)
	res, err := post(t, t.Context(), web.URL, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`, "Mcp-Session-Id", h.Get("Mcp-Session-Id"))
	musttest.Do(t, err)
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	if !lines.Scan() || lines.Text() != ": waiting" {
		t.Errorf("the first line is %q", lines.Text())
	}
	close(let)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if !strings.Contains(data, `"done":true`) {
				t.Errorf("%s", data)
			}
			return
		}
	}
	t.Error("no answer came")
}

// TestNoHTTP holds that a server that was not told whom requests act for refuses them.
func TestNoHTTP(t *testing.T) {
	s := newServer(t, Options{})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(hello)))
	if w.Code != http.StatusUnauthorized {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
