package access

import (
	"slices"
	"strings"
	"testing"

	"openskill/sdk/skill"
)

const get = "GET, HEAD, OPTIONS"

func TestAllow(t *testing.T) {
	for path, want := range map[string]string{
		"/skills": "GET, HEAD, POST, OPTIONS", "/skills/": "GET, HEAD, POST, OPTIONS", "/skills/echo": "GET, HEAD, PATCH, DELETE, OPTIONS",
		"/skills/echo:enable": "POST, OPTIONS", "/skills/echo:disable": "POST, OPTIONS", "/skills/echo:approve": "POST, OPTIONS", "/skills/echo:rollback": "POST, OPTIONS",
		"/skills/echo/versions/1.0.0": "GET, HEAD, DELETE, OPTIONS", "/skills/echo/versions/1.0.0+b": "GET, HEAD, DELETE, OPTIONS",
		"/skills/echo/versions/": "GET, HEAD, OPTIONS", "/skills/echo/versions/a/b": "", "/skills/echo/versions/1.0.0:enable": "GET, HEAD, DELETE, OPTIONS", "/skills/:enable": "",
		"/skills/echo/versions": "GET, HEAD, OPTIONS", "/skills/echo:invoke": "POST, OPTIONS", "/docs": "GET, HEAD, OPTIONS",
		"/docs/docs.js": "GET, HEAD, OPTIONS",
		"/agent-skills": get, "/agent-skills/": get, "/agent-skills/x": get, "/agent-skills/x:y": "", "/agent-skills/x/": get, "/agent-skills//resources/y": "",
		"/agent-skills/x/resources": "", "/agent-skills/x/resources/": "", "/agent-skills/x/resources/y/z": get, "/agent-skills/x/others/y": "",
		"/agent-skills/x/scripts/y": "", "/agent-skills/x/scripts/y:run": "POST, OPTIONS", "/agent-skills/x/scripts/y/z:run": "POST, OPTIONS",
		"/agent-skills/x/scripts/y:run/": "POST, OPTIONS", "/agent-skills/x/scripts/:run": "", "/agent-skills/x:y/scripts/z:run": "POST, OPTIONS",
		"/agent/chat": "POST, OPTIONS", "/agent/conversations": get, "/agent/conversations/x": "GET, HEAD, DELETE, OPTIONS", "/agent/conversations/x:approve": "POST, OPTIONS",
		"/agent/conversations/x:deny": "", "/agent/conversations/:approve": "", "/agent/conversations/x/y": "", "/agent": "", "/agent/chat/x": "",
		"/api/agent/execute": "POST, OPTIONS", "/api/agent/execute/x": "",
		"/tools": get, "/tools/x": "", "/approvals": get, "/approvals/x": get, "/approvals/x/y": "", "/approvals/x:approve": "POST, OPTIONS",
		"/approvals/x:deny": "POST, OPTIONS", "/approvals/x:other": "", "/approvals/:deny": "", "/mcp": "GET, POST, DELETE, OPTIONS", "/mcp/x": "",
		"": "", "/": "", "//": "", "/skills//versions": "", "/skills/:invoke": "", "/skills/a/b:invoke": "", "/skills/echo:run": "",
		"/skills/echo/other": "", "/skill": "", "/Skills": "", "/docs/other.js": "", "/docs/": "GET, HEAD, OPTIONS",
	} {
		if got := Allow(path); got != want {
			t.Errorf("Allow(%q) = %q, want %q", path, got, want)
		}
	}
}

// The first parameter is what scopes for one skill are about.
func TestFind(t *testing.T) {
	for _, tc := range []struct{ method, path, route, subject string }{
		{"POST", "/skills/echo:invoke", "/skills/{id}:invoke", "echo"},
		{"POST", "/skills/echo:invoke/", "/skills/{id}:invoke", "echo"},
		{"POST", "/skills/a:echo:invoke", "/skills/{id}:invoke", "a:echo"},
		{"GET", "/skills/echo:invoke", "", ""},
		{"HEAD", "/skills/echo", "/skills/{id}", "echo"},
		{"HEAD", "/mcp", "", ""},
		{"GET", "/mcp", "/mcp", ""},
		{"POST", "/agent-skills/x/scripts/a/b:run", "/agent-skills/{name}/scripts/{script}:run", "x"},
		{"POST", "/agent-skills/:x/scripts/a:run", "/agent-skills/{name}/scripts/{script}:run", ":x"},
		{"GET", "/skills/a:b/versions", "/skills/{id}/versions", "a:b"},
		{"GET", "/skills/a:b", "", ""},
		{"GET", "/executions/1/artifacts/a/b:c", "/executions/{id}/artifacts/{artifact}", "1"},
		{"GET", "/executions/1/artifacts/", "", ""},
		{"GET", "/executions/1:replay", "", ""},
		{"POST", "/executions/1:replay", "/executions/{id}:replay", "1"},
		{"OPTIONS", "/skills", "", ""},
		{"get", "/skills", "", ""},
		{"GET", "skills", "", ""},
		{"GET", "", "", ""},
	} {
		path := ""
		r, subject := Find(tc.method, tc.path)
		if r != nil {
			path = r.Path
		}
		if path != tc.route || subject != tc.subject {
			t.Errorf("%s %s is %q of %q, want %q of %q", tc.method, tc.path, path, subject, tc.route, tc.subject)
		}
	}
}

// Nobody is let in by a row without scopes, or by a scope that is only like the one that
// is asked for.
func TestLetsIn(t *testing.T) {
	invoke, _ := Find("POST", "/skills/echo:invoke")
	mcp, _ := Find("POST", "/mcp")
	for _, tc := range []struct {
		route   *Route
		scopes  string
		subject string
		want    bool
	}{
		{invoke, "skills:invoke", "echo", true},
		{invoke, "skills:invoke:echo", "echo", true},
		{invoke, "skills:invoke:echo", "ech", false},
		{invoke, "skills:invoke:echo", "", false},
		{invoke, "skills:invoke:", "", false},
		{invoke, "skills:invoke:{id}", "echo", false},
		{invoke, "skills:invoke:*", "echo", false},
		{invoke, "skills:read admin skills:admin", "echo", false},
		{mcp, "skills:invoke:echo", "", true},
		{mcp, "skills:upload", "", false},
		{&Route{}, "admin", "", false},
		{&Route{Open: true}, "", "", true},
	} {
		p := skill.Principal{ID: "x", Scopes: strings.Fields(tc.scopes)}
		if got := tc.route.LetsIn(p, tc.subject); got != tc.want {
			t.Errorf("%s lets in %q for %q: %v", tc.route.Path, tc.scopes, tc.subject, got)
		}
		if p.ID = ""; tc.route.LetsIn(p, tc.subject) && !tc.route.Open {
			t.Errorf("%s lets in nobody with %q", tc.route.Path, tc.scopes)
		}
	}
}

// The rows that are handed out are copies.
func TestRoutesAreCopies(t *testing.T) {
	Routes()[0].Scopes[0] = "skills:read"
	if slices.Contains(Routes()[0].Scopes, "skills:read") {
		t.Error("the table can be changed")
	}
}

// FuzzFind: whatever a path is, it has a route exactly where its methods say so, and
// what is taken for its parameter is in it, one segment unless it stands for all that is left.
func FuzzFind(f *testing.F) {
	for _, r := range table {
		f.Add(r.Path)
	}
	for _, path := range []string{"", "/", "//", "/skills//", "/skills/:invoke", "/agent-skills/a/scripts/:run:run", "/executions/a/artifacts/../..", "/skills/\x00:invoke", "/skills/{id}:invoke:invoke"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		allow := strings.Split(Allow(path), ", ")
		for _, method := range order {
			r, subject := Find(method, path)
			if (r != nil) != slices.Contains(allow, method) {
				t.Fatalf("%s %q: route %v, allowed are %q", method, path, r, allow)
			}
			rest := r != nil && TakesRest(parameter(r.Path))
			if !strings.Contains(path, subject) || r == nil && subject != "" || !rest && strings.Contains(subject, "/") {
				t.Fatalf("%s %q: parameter %q", method, path, subject)
			}
		}
	})
}

// parameter is the name of the first parameter of a path of the table, "" if there is none.
func parameter(path string) string {
	_, after, _ := strings.Cut(path, "{")
	name, _, _ := strings.Cut(after, "}")
	return name
}

// BenchmarkFind is what each request pays.
func BenchmarkFind(b *testing.B) {
	p := skill.Principal{ID: "x", Scopes: skill.Scopes()}
	for _, path := range []string{"/skills/echo:invoke", "/executions/00000000-0000-7000-8000-000000000001/artifacts/a.csv"} {
		method := "GET"
		if strings.HasSuffix(path, "invoke") {
			method = "POST"
		}
		b.Run(method, func(b *testing.B) {
			for b.Loop() {
				if r, subject := Find(method, path); !r.LetsIn(p, subject) {
					b.Fatal(path)
				}
			}
		})
	}
}

// Who has skills:admin and nothing else decides about every upload, in every way.
func TestOperatorDecidesAboutUploads(t *testing.T) {
	p := skill.Principal{ID: "op", Tenant: "ops", Scopes: []string{skill.ScopeAdmin}}
	for _, r := range []struct{ method, path string }{
		{"POST", "/skills/up:enable"},
		{"POST", "/skills/up:disable"},
		{"POST", "/skills/up:rollback"},
		{"POST", "/skills/up:approve"},
		{"DELETE", "/skills/up/versions/1.0.0"},
	} {
		if route, subject := Find(r.method, r.path); route == nil || !route.LetsIn(p, subject) {
			t.Errorf("%s %s is shut", r.method, r.path)
		}
	}
}
