package access

import "testing"

const get = "GET, HEAD, OPTIONS"

func TestAllow(t *testing.T) {
	for path, want := range map[string]string{
		"/skills": "GET, HEAD, POST, OPTIONS", "/skills/": "GET, HEAD, POST, OPTIONS", "/skills/echo": "GET, HEAD, PATCH, DELETE, OPTIONS",
		"/skills/echo:enable": "POST, OPTIONS", "/skills/echo:disable": "POST, OPTIONS", "/skills/echo:approve": "POST, OPTIONS", "/skills/echo:rollback": "POST, OPTIONS",
		"/skills/echo/versions/1.0.0": "DELETE, OPTIONS", "/skills/echo/versions/1.0.0+b": "DELETE, OPTIONS",
		"/skills/echo/versions/": "GET, HEAD, OPTIONS", "/skills/echo/versions/a/b": "", "/skills/echo/versions/1.0.0:enable": "DELETE, OPTIONS", "/skills/:enable": "",
		"/skills/echo/versions": "GET, HEAD, OPTIONS", "/skills/echo:invoke": "POST, OPTIONS", "/docs": "GET, HEAD, OPTIONS",
		"/docs/docs.js": "GET, HEAD, OPTIONS",
		"/agent-skills": get, "/agent-skills/": get, "/agent-skills/x": get, "/agent-skills/x:y": "", "/agent-skills/x/": get, "/agent-skills//resources/y": "",
		"/agent-skills/x/resources": "", "/agent-skills/x/resources/": "", "/agent-skills/x/resources/y/z": get, "/agent-skills/x/others/y": "",
		"/agent-skills/x/scripts/y": "", "/agent-skills/x/scripts/y:run": "POST, OPTIONS", "/agent-skills/x/scripts/y/z:run": "POST, OPTIONS",
		"/agent-skills/x/scripts/y:run/": "POST, OPTIONS", "/agent-skills/x/scripts/:run": "", "/agent-skills/x:y/scripts/z:run": "",
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
