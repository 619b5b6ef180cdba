package api_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// inside asks as a part of the process does.
func inside(t *testing.T, s *server, p skill.Principal, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req := musttest.Get(http.NewRequest(method, path, nil))(t)
	if body != "" {
		req.Body = io.NopCloser(strings.NewReader(body)) // of unknown length
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := s.Do(t.Context(), p, req)
	musttest.Do(t, err)
	defer resp.Body.Close()
	got := musttest.Get(io.ReadAll(resp.Body))(t)
	return resp, string(got)
}

// Who asks from within is let in by the same table, with the same limits, and is nobody
// else because of what the request says.
func TestInsideIsNoBackDoor(t *testing.T) {
	s := start(t, func(o *api.Options) { o.BodyLimit = 1000 })
	some := func(scopes ...string) skill.Principal {
		return skill.Principal{ID: "ann", Type: skill.Agent, Tenant: "acme", Scopes: scopes}
	}
	call := `{"input":{"text":"x"}}`
	for _, tc := range []struct {
		name         string
		p            skill.Principal
		method, path string
		body         string
		want         int
	}{
		{"a reader reads", some(skill.ScopeRead), "GET", "/skills", "", 200},
		{"a reader does not call", some(skill.ScopeRead), "POST", "/skills/echo:invoke", call, 403},
		{"a caller calls", some(skill.ScopeInvoke), "POST", "/skills/echo:invoke", call, 200},
		{"a caller of one skill", some(skill.ScopeInvoke + ":echo"), "POST", "/skills/echo:invoke", call, 200},
		{"a caller of another skill", some(skill.ScopeInvoke + ":other"), "POST", "/skills/echo:invoke", call, 403},
		{"a body that is too large", some(skill.ScopeInvoke), "POST", "/skills/echo:invoke", `{"input":{"text":"` + strings.Repeat("x", 1000) + `"}}`, 413},
		{"nobody", skill.Principal{}, "GET", "/skills", "", 401},
		{"no such path", some(skill.ScopeRead), "GET", "/nothing", "", 404},
		{"no such method", some(skill.ScopeRead), "PUT", "/skills", "", 405},
	} {
		resp, body := inside(t, s, tc.p, tc.method, tc.path, tc.body, "Authorization", "Bearer test", "X-Trace-Id", "t-1")
		if resp.StatusCode != tc.want || resp.Header.Get("X-Trace-Id") != "t-1" {
			t.Errorf("%s: %d %v %s", tc.name, resp.StatusCode, resp.Header, body)
		}
	}
	if _, err := s.Do(t.Context(), some(skill.ScopeRead), &http.Request{Method: "GET"}); err == nil {
		t.Error("a request without a path is answered")
	}
}

// What runs for a request from within ends with the one who asks.
func TestInsideEndsWithItsCaller(t *testing.T) {
	ended := make(chan error, 1)
	begun := make(chan struct{})
	s := mount(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		close(begun)
		<-r.Context().Done()
		ended <- context.Cause(r.Context())
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	req := musttest.Get(http.NewRequest("GET", "/mcp", nil))(t)
	req.Header.Set("Host", "localhost")
	resp, err := s.Do(ctx, skill.Local(), req)
	musttest.Do(t, err)
	<-begun
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if err != nil || line != "data: 1\n" {
		t.Fatalf("%q %v", line, err)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("no reason is given")
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
}

// The console is answered by its handler whatever is below its path; an upload reaches it
// while it comes in, and no further than the limit of uploads.
func TestTheConsoleIsMounted(t *testing.T) {
	const limit = 300 << 10
	s := start(t, func(o *api.Options) {
		o.UploadLimit, o.BodyLimit = limit, 1000
		o.Console = apitest.Console(func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			if err != nil {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
			}
			_, _ = fmt.Fprintf(w, "%s %s %d", r.Method, r.URL.Path, n)
		}, nil)
	})
	for _, tc := range []struct {
		method, path string
		n            int
		status       int
		want         string
	}{
		{"GET", "/console", 0, 200, "GET /console 0"},
		{"GET", "/console/skills/a/b", 0, 200, "GET /console/skills/a/b 0"},
		{"POST", "/console/x", 1000, 200, "POST /console/x 1000"},
		{"POST", "/console/x", 1001, 413, "PAYLOAD_TOO_LARGE"},
		{"POST", "/console/upload", limit, 200, "POST /console/upload 307200"},
		{"POST", "/console/upload", limit + 1<<20, 413, "PAYLOAD_TOO_LARGE"},
		{"DELETE", "/console/x", 0, 405, "method not allowed"},
	} {
		resp, body := s.do(t, tc.method, tc.path, strings.Repeat("x", tc.n))
		if resp.StatusCode != tc.status || !bytes.Contains(body, []byte(tc.want)) {
			t.Errorf("%s %s with %d bytes: %d %s", tc.method, tc.path, tc.n, resp.StatusCode, body)
		}
	}
	// In chunks nobody says how much there is.
	c := s.dial(t)
	c.send(t, "POST /console/upload HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat("x", 64<<10))
	for range 10 {
		c.send(t, chunk)
	}
	c.send(t, "0\r\n\r\n")
	if resp, body := c.answer(t, "POST", "/console/upload"); resp.StatusCode != 413 {
		t.Errorf("chunks: %d %s", resp.StatusCode, body)
	}
}
