package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestDefinitions(t *testing.T) {
	d := &apitest.Definitions{}
	s, u := startUploads(t, func(o *api.Options) { o.Definitions = d })
	for _, c := range []struct {
		method, path, body string
		status             int
		wants              string
	}{
		{"POST", "/skills", `{"name": "own"}`, 201, `"An own one."`},
		{"POST", "/skills/", `{"name": "again"}`, 201, `"An own one."`},
		{"PATCH", "/skills/own", `{"is_enabled": false}`, 200, `"A changed one."`},
		{"PATCH", "/skills/other", `{"is_enabled": false}`, 404, "NOT_FOUND"},
		{"PATCH", "/skills/Own", `{"is_enabled": false}`, 400, "INVALID_ARGUMENT"},
		{"PATCH", "/skills/own/versions/1.0.0", `{}`, 405, "DELETE"},
		{"POST", "/skills/own:enable", "", 200, `"state":"enabled"`},
		{"POST", "/skills/own:disable", `{"reason": "too slow"}`, 200, `"state":"disabled"`},
		{"POST", "/skills/own:disable", `{"reason": 7}`, 400, "must be a string"},
		{"DELETE", "/skills/own", "", 200, `"state":"deleted"`},
		{"DELETE", "/skills/own:enable", "", 405, "POST"},
		// What is not the operator's, or of a tenant by name, is an upload.
		{"POST", "/skills/uploaded:enable", "", 200, `"state":"enabled"`},
		{"POST", "/skills/own:disable", `{"tenant": "acme"}`, 404, "NOT_FOUND"},
	} {
		resp, answer := s.do(t, c.method, c.path, c.body, "Content-Type", "application/json; charset=utf-8")
		if resp.StatusCode != c.status || !bytes.Contains(answer, []byte(c.wants)) {
			t.Errorf("%s %s %s: %d %s, want %d with %q", c.method, c.path, c.body, resp.StatusCode, answer, c.status, c.wants)
		}
	}
	want := []string{`create own {"name": "own"}`, `create own {"name": "again"}`, `update own {"is_enabled": false}`, "enable own ", "disable own too slow", "delete own "}
	if diff := cmp.Diff(want, d.Done()); diff != "" {
		t.Errorf("what was done: %s", diff)
	}
	if n := len(u.Decisions()); n != 1 {
		t.Errorf("%d decisions about uploads", n)
	}
	for name, body := range map[string]string{"a large definition": strings.Repeat(" ", 300<<10), "a large change": `{"description": "` + strings.Repeat("x", 300<<10) + `"}`} {
		method, path := "POST", "/skills"
		if name == "a large change" {
			method, path = "PATCH", "/skills/own"
		}
		if resp, answer := s.do(t, method, path, body, "Content-Type", "application/json"); resp.StatusCode != 413 {
			t.Errorf("%s: %d %s", name, resp.StatusCode, answer)
		}
	}
	if resp, answer := s.do(t, "POST", "/skills", `{}`, "Content-Type", "application/json", "Content-Encoding", "gzip"); resp.StatusCode != 415 {
		t.Errorf("a compressed definition: %d %s", resp.StatusCode, answer)
	}
}

// A definition in chunks, or one that ends early, is read as any body is.
func TestDefinitionOnTheWire(t *testing.T) {
	d := &apitest.Definitions{}
	s, _ := startUploads(t, func(o *api.Options) { o.Definitions = d })
	for name, c := range map[string]struct {
		rest, wants string
		then        bool // another request on the connection is answered
	}{
		"chunks":       {"Transfer-Encoding: chunked\r\n\r\n8\r\n{\"a\": 1,\r\n5\r\n\"b\":2\r\n1\r\n}\r\n0\r\n\r\n", "HTTP/1.1 201", true},
		"large chunks": {"Transfer-Encoding: chunked\r\n\r\n80000\r\n" + strings.Repeat("x", 0x80000) + "\r\n0\r\n\r\n", "HTTP/1.1 413", false},
		"cut off":      {"Content-Length: 100\r\n\r\n{", "HTTP/1.1 400", false},
	} {
		conn := musttest.Get(net.Dial("tcp", s.Addr))(t)
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		musttest.Get(fmt.Fprintf(conn, "POST /skills HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%s", s.Addr, c.rest))(t)
		if c.then {
			_, _ = fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", s.Addr)
		} else {
			_ = conn.(*net.TCPConn).CloseWrite()
		}
		answer, _ := io.ReadAll(conn)
		if !bytes.HasPrefix(answer, []byte(c.wants)) || c.then != bytes.Contains(answer, []byte(`"status":"ok"`)) {
			t.Errorf("%s: %.600s", name, answer)
		}
	}
	if done := d.Done(); len(done) != 1 || done[0] != `create own {"a": 1,"b":2}` {
		t.Errorf("what was done: %q", done)
	}
}

// Only the operator changes skills; the table of access says so before a body is read.
func TestDefinitionsAreTheOperators(t *testing.T) {
	d := &apitest.Definitions{}
	tenant := skill.Principal{ID: "key:1", Type: skill.Agent, Tenant: "acme", Scopes: []string{skill.ScopeRead, skill.ScopeInvoke, skill.ScopeUpload, skill.ScopeHost}}
	s, _ := startUploads(t, func(o *api.Options) { o.Definitions, o.Authenticate = d, apitest.As(tenant) })
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/skills", `{"name": "own"}`},
		{"PATCH", "/skills/own", `{"is_enabled": false}`},
		{"DELETE", "/skills/own", ""},
		{"POST", "/skills/own:enable", ""},
		{"POST", "/skills/own:disable", ""},
	} {
		if resp, answer := s.do(t, c.method, c.path, c.body, "Content-Type", "application/json"); resp.StatusCode != 403 {
			t.Errorf("%s %s: %d %s", c.method, c.path, resp.StatusCode, answer)
		}
	}
	if done := d.Done(); len(done) > 0 {
		t.Errorf("what was done: %q", done)
	}
}
