package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/sdk/skill"
)

// agentSkills starts an edge with the Agent Skills of httpapitest.
func agentSkills(t *testing.T, change func(*api.Options)) (*server, *apitest.AgentSkills) {
	t.Helper()
	a := apitest.NewAgentSkills()
	return start(t, func(o *api.Options) {
		o.AgentSkills = a
		if change != nil {
			change(o)
		}
	}), a
}

func TestPagesOfAgentSkills(t *testing.T) {
	s, a := agentSkills(t, nil)
	want := []string{}
	for i := range 20 {
		name := fmt.Sprintf("a-%02d", i)
		a.Add(name, "")
		want = append(want, name)
	}
	want = append(want, "unit-converter")
	var got []string
	for path := "/agent-skills?limit=7"; path != ""; {
		_, body := s.do(t, "GET", path, "")
		var page struct {
			Data []skill.AgentSkill
			Next *string
		}
		if err := json.Unmarshal(body, &page); err != nil || len(page.Data) > 7 || len(got) > 21 {
			t.Fatalf("%v: %s", err, body)
		}
		for _, d := range page.Data {
			got = append(got, d.Name)
		}
		if path = ""; page.Next != nil {
			path = "/agent-skills?limit=7&cursor=" + *page.Next
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Names that lead elsewhere are refused before anything is asked for.
func TestNamesThatLeadElsewhere(t *testing.T) {
	s, a := agentSkills(t, nil)
	for _, name := range []string{
		"../../etc/passwd", "..", "../", "a/../../b", "a/..", "./a", "a/./b", "a//b", "/etc/passwd", "//etc/passwd", "a/",
		"..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "%2e%2e%2fa", "%2Fetc%2Fpasswd", "a%2f%2fb", "%2e", "a%5cb", `..%5c..%5cetc`,
		"a%00b", "a%0ab", "a%7fb", "a%c2%85b", "%ff", "a%c0%af..",
	} {
		for _, tc := range []struct{ method, path string }{
			{"GET", "/agent-skills/unit-converter/resources/" + name},
			{"HEAD", "/agent-skills/unit-converter/resources/" + name},
			{"POST", "/agent-skills/unit-converter/scripts/" + name + ":run"},
		} {
			c := s.dial(t)
			c.send(t, tc.method+" "+tc.path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
			resp, body := c.answer(t, tc.method, tc.path)
			if resp.StatusCode != 403 && (resp.StatusCode != 404 || name != "/") || tc.method != "HEAD" && !bytes.Contains(body, []byte("FORBIDDEN_PATH")) {
				t.Errorf("%s %s: %d %s", tc.method, tc.path, resp.StatusCode, body)
			}
		}
	}
	for _, bad := range []string{"%", "%zz", "a%2"} {
		resp, body := s.rawGet(t, "/agent-skills/unit-converter/resources/"+bad)
		if resp != 400 || !bytes.Contains(body, []byte("INVALID_ARGUMENT")) {
			t.Errorf("%s: %d %s", bad, resp, body)
		}
	}
	if resp, body := s.rawGet(t, "/agent-skills/unit-converter/resources/"+strings.Repeat("x", 1025)); resp != 400 {
		t.Errorf("a long name: %d %s", resp, body)
	}
	// A colon in the skill's name is a wrong name, and no other path.
	for _, name := range []string{":x", "a:b", "%3A%C2%96"} {
		resp, body := s.do(t, "POST", "/agent-skills/"+name+"/scripts/convert.py:run", ``)
		if resp.StatusCode != 400 || !bytes.Contains(body, []byte(`"success":false`)) {
			t.Errorf("the skill %s: %d %s", name, resp.StatusCode, body)
		}
	}
	if len(a.Reads()) > 0 || len(a.Runs()) > 0 {
		t.Errorf("reads %q, runs %v", a.Reads(), a.Runs())
	}
	// What is odd but names a part of a folder is looked for, as it is and decoded once.
	for name, want := range map[string]string{
		"a+b%20c":         "a+b c",
		"%252e%252e/a":    "%2e%2e/a",
		"...":             "...",
		"..a/b..":         "..a/b..",
		"a:run":           "a:run",
		"caf%C3%A9.md":    "café.md",
		"a?x=../../b":     "a",
		"scripts/x/y:z":   "scripts/x/y:z",
		"resources/x/%2b": "resources/x/+",
	} {
		if resp, body := s.rawGet(t, "/agent-skills/unit-converter/resources/"+name); resp != 404 {
			t.Errorf("%s: %d %s", name, resp, body)
		}
		if reads := a.Reads(); len(reads) == 0 || reads[len(reads)-1] != "unit-converter/"+want {
			t.Errorf("%s was read as %q", name, reads)
		}
	}
}

// rawGet sends a path as it is.
func (s *server) rawGet(t *testing.T, path string) (int, []byte) {
	t.Helper()
	c := s.dial(t)
	c.send(t, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
	plain, _, _ := strings.Cut(path, "?")
	resp, body := c.answer(t, "GET", plain)
	return resp.StatusCode, body
}

// What a stranger wrote is not shown as a page of this host.
func TestResourcesAreShownAsText(t *testing.T) {
	s, a := agentSkills(t, nil)
	for i, tc := range []struct {
		name, given, data      string
		mediaType, disposition string
	}{
		{"a.txt", "text/plain", "é", "text/plain; charset=utf-8", ""},
		{"b.md", "text/markdown", "# x", "text/markdown; charset=utf-8", ""},
		{"c.json", "application/json", "{}", "application/json", ""},
		{"latin.txt", "text/plain", "\xe9", "text/plain", ""},
		{"said.txt", "text/plain; charset=latin1", "\xe9", "text/plain; charset=latin1", ""},
		{"page.html", "text/html", "<script>", "text/html; charset=utf-8", `attachment; filename=page.html`},
		{"pic.svg", "image/svg+xml", "<svg/>", "image/svg+xml", `attachment; filename=pic.svg`},
		{"x/pic.png", "image/png", "\x89PNG", "image/png", `attachment; filename=pic.png`},
		{"nothing", "", "x", "application/octet-stream", `attachment; filename=nothing`},
		{"odd", "text/html\r\nX-Injected: yes", "x", "application/octet-stream", `attachment; filename=odd`},
		{"café \"1\".bin", "application/x-y", "x", "application/x-y", `attachment; filename*=utf-8''caf%C3%A9%20%221%22.bin`},
		{"empty.md", "text/markdown", "", "text/markdown; charset=utf-8", ""},
	} {
		a.AddResource("unit-converter", tc.name, tc.given, []byte(tc.data))
		path := "/agent-skills/unit-converter/resources/" + strings.NewReplacer("é", "%C3%A9", " ", "%20", `"`, "%22").Replace(tc.name)
		resp, body := s.do(t, "GET", path, "")
		if resp.StatusCode != 200 || string(body) != tc.data || resp.Header.Get("Content-Type") != tc.mediaType || resp.Header.Get("Content-Disposition") != tc.disposition {
			t.Errorf("%d %s: %d, type %q, disposition %q, body %q", i, tc.name, resp.StatusCode, resp.Header.Get("Content-Type"), resp.Header.Get("Content-Disposition"), body)
		}
		if resp.Header.Get("X-Injected") != "" {
			t.Error("a header of the skill's")
		}
	}
}

func TestScriptArguments(t *testing.T) {
	s, a := agentSkills(t, func(o *api.Options) {
		o.ScriptArgs = func(raw json.RawMessage) ([]string, error) {
			if string(raw) == `["known"]` {
				return nil, &skill.Error{Code: skill.InvalidArgument, Message: "args: known"}
			}
			if string(raw) == `["odd"]` {
				return nil, errors.New("odd in /etc/passwd")
			}
			return []string{string(raw)}, nil
		}
	})
	const path = "/agent-skills/unit-converter/scripts/convert.py:run"
	for body, want := range map[string]string{
		``:                                  "null",
		`{"args": {"value": 26.2}}`:         `{"value": 26.2}`,
		`{"args": ["a", 1]}`:                `["a", 1]`,
		`{"args": null, "input": "\u0000"}`: "null",
	} {
		if resp, got := s.do(t, "POST", path, body); resp.StatusCode != 200 {
			t.Errorf("%s: %d %s", body, resp.StatusCode, got)
		}
		runs := a.Runs()
		last := runs[len(runs)-1]
		if b := strings.Join(last.Args, "|"); b != want && (b != "" || want != "null") {
			t.Errorf("%s: %q", body, last.Args)
		}
	}
	n := len(a.Runs())
	for _, body := range []string{`{"args": ["known"]}`, `{"args": ["odd"]}`, `{"args": true}`, `{"args": 1}`, `{"args": [1,]}`, `[]`, `{`, `{"input": null}`} {
		if resp, got := s.do(t, "POST", path, body); resp.StatusCode != 400 || !bytes.Contains(got, []byte(`"success":false`)) || !bytes.Contains(got, []byte(`"skill_id":"unit-converter"`)) {
			t.Errorf("%s: %d %s", body, resp.StatusCode, got)
		}
	}
	for _, header := range [][]string{{"Content-Encoding", "gzip"}, {"Content-Type", "text/plain"}} {
		if resp, got := s.do(t, "POST", path, `{}`, header...); resp.StatusCode != 415 {
			t.Errorf("%v: %d %s", header, resp.StatusCode, got)
		}
	}
	if resp, got := s.do(t, "POST", path, `{"input": "`+strings.Repeat("x", 1<<20)+`"}`); resp.StatusCode != 413 || !bytes.Contains(got, []byte(`"success":false`)) {
		t.Errorf("a huge body: %d %.200s", resp.StatusCode, got)
	}
	if len(a.Runs()) != n {
		t.Errorf("%d runs of wrong requests", len(a.Runs())-n)
	}
}

// A script's failure keeps its shape and code.
func TestScriptsThatFail(t *testing.T) {
	s, a := agentSkills(t, nil)
	for _, code := range []skill.Code{skill.GuestExit, skill.Forbidden, skill.Timeout, skill.FuelExhausted, skill.RateLimited, skill.Internal, skill.AuditUnavailable} {
		a.AddScript("unit-converter", "scripts/"+string(code), func(context.Context, skill.ScriptRequest) (string, error) {
			return "", &skill.Error{Code: code, Message: "as it is", Details: map[string]any{"reason": "approval_required", "retry_after_ms": 1}}
		})
		resp, body := s.do(t, "POST", "/agent-skills/unit-converter/scripts/"+string(code)+":run", `{}`)
		if resp.StatusCode != code.Status() || !bytes.Contains(body, []byte(code)) {
			t.Errorf("%s: %d %s", code, resp.StatusCode, body)
		}
	}
}

func TestScriptsEndWhenTheClientLeaves(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	s, a := agentSkills(t, nil)
	begun, ended := make(chan struct{}), make(chan error, 1)
	a.AddScript("unit-converter", "slow.py", func(ctx context.Context, _ skill.ScriptRequest) (string, error) {
		close(begun)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return "", &skill.Error{Code: skill.Cancelled, Message: "the call was cancelled"}
	})
	c := s.dial(t)
	c.send(t, "POST /agent-skills/unit-converter/scripts/slow.py:run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
	wait(t, "the run", begun)
	_ = c.Close()
	if err := wait(t, "the run's end", ended); err == nil || err.Error() != "the client closed its connection" {
		t.Errorf("it ended with %v", err)
	}
}

func TestAHostWithoutAgentSkills(t *testing.T) {
	s := start(t, func(o *api.Options) { o.AgentSkills, o.Tools = nil, nil })
	if _, body := s.do(t, "GET", "/agent-skills", ""); string(body) != `{"data":[],"next":null}`+"\n" {
		t.Errorf("%s", body)
	}
	for _, tc := range []struct{ method, path string }{
		{"GET", "/agent-skills/x"},
		{"GET", "/agent-skills/x/resources/y"},
		{"POST", "/agent-skills/x/scripts/y:run"},
		{"GET", "/tools"},
		{"GET", "/mcp"},
		{"POST", "/mcp"},
		{"DELETE", "/mcp"},
		{"OPTIONS", "/mcp"},
		{"PUT", "/mcp"},
	} {
		if resp, body := s.do(t, tc.method, tc.path, ""); resp.StatusCode != 404 {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, resp.StatusCode, body)
		}
	}
}

func TestWhoMayReadAgentSkills(t *testing.T) {
	for _, tc := range []struct {
		name      string
		who       skill.Principal
		read, run int
	}{
		{"nobody", skill.Principal{Scopes: []string{skill.ScopeRead, skill.ScopeInvoke}}, 401, 401},
		{"without scopes", skill.Principal{ID: "x"}, 403, 403},
		{"reader", skill.Principal{ID: "x", Scopes: []string{skill.ScopeRead}}, 200, 403},
		{"runner", skill.Principal{ID: "x", Scopes: []string{skill.ScopeInvoke}}, 403, 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, _ := agentSkills(t, func(o *api.Options) { o.Authenticate = apitest.As(tc.who) })
			for _, path := range []string{"/agent-skills", "/agent-skills/unit-converter", "/agent-skills/unit-converter/resources/references/conversion-table.md", "/tools"} {
				if resp, body := s.do(t, "GET", path, ""); resp.StatusCode != tc.read {
					t.Errorf("%s: %d %s", path, resp.StatusCode, body)
				}
			}
			if resp, body := s.do(t, "POST", "/agent-skills/unit-converter/scripts/convert.py:run", ``); resp.StatusCode != tc.run {
				t.Errorf("run: %d %s", resp.StatusCode, body)
			}
		})
	}
}

// A page whose own name points here is of no other origin to its browser, and says
// nothing of it when it reads.
func TestReboundNames(t *testing.T) {
	s := start(t, func(o *api.Options) { o.Origins = []string{"https://skills.example"} })
	for _, tc := range []struct {
		path, host string
		want       int
	}{
		{"/skills", "127.0.0.1:8000", 200},
		{"/skills", "localhost", 200},
		{"/skills", "[::1]:80", 200},
		{"/skills", "skills.example", 200},
		{"/skills", "rebound.example:8000", 403},
		{"/agent-skills", "rebound.example:8000", 403},
		{"/agent-skills/unit-converter", "rebound.example", 403},
		{"/approvals", "rebound.example", 403},
		{"/tools", "127.0.0.1.evil.example", 403},
		{"/tools", "localhost.evil.example", 403},
		{"/healthz", "rebound.example", 200}, // says nothing
	} {
		if resp, body := s.do(t, "GET", tc.path, "", "Host", tc.host); resp.StatusCode != tc.want {
			t.Errorf("%s at %s: %d %s", tc.path, tc.host, resp.StatusCode, body)
		}
	}
}
