package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/host/app/hosttest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// farSkill puts a skill into the folder of skills that is at an address.
func farSkill(t *testing.T, dir, id, asks, entry, more string) {
	t.Helper()
	folder := filepath.Join(dir, id)
	musttest.Do(t, os.MkdirAll(folder, 0o700))
	manifest := manifestOf(id, "1.0.0", fmt.Sprintf("type: http\nentry: remote.json\npermissions: {http: ['%s POST'], env: [TOOLS_KEY]}\nlimits: {timeout_ms: 20000}\n%s", asks, more))
	for name, text := range map[string]string{"skill.yaml": manifest, "remote.json": entry} {
		musttest.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
}

// TestRemoteSkill has skills of another host called as one's own: through the same door,
// where manifest and operator permit it, whatever the other side says.
func TestRemoteSkill(t *testing.T) {
	s := settings(t, nil)
	addSkills(t, s.SkillsDir, map[string]string{"told": `{"said": "hello"}`})
	far := serve(t, s)
	keys := make(chan string, 1)
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body) // what it is shows below
		switch r.URL.Path {
		case "/key":
			keys <- r.Header.Get("X-API-Key") + " " + r.Header.Get("X-Trace-Id") + " " + string(b)
			_, _ = io.WriteString(w, `{"ok": true}`)
		case "/html":
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "<html>away")
		case "/elsewhere":
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		case "/long":
			_, _ = io.WriteString(w, `{"a": "`+strings.Repeat("x", 5<<20)+`"}`)
		case "/halt":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"a": 1}`)
		}
	}))
	defer odd.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()

	near := settings(t, map[string]string{"http-allow": far.url + "/skills/ POST; " + odd.URL + " POST; " + gone.URL + " POST", "env-allow": "TOOLS_KEY=k-1"})
	add := func(id, base, path, more string) {
		farSkill(t, near.SkillsDir, id, base, fmt.Sprintf(`{"url": %q, "headers": {"X-API-Key": "${TOOLS_KEY}"}}`, base+path), more)
	}
	add("told", far.url, "/skills/told:invoke", "")
	add("quick", far.url, "/skills/quick:invoke", "output_schema: {type: object, required: [nothing_has_this]}\n")
	add("absent", far.url, "/skills/none:invoke", "")
	add("late", far.url, "/skills/slow:invoke", "")
	add("key", odd.URL, "/key", "")
	add("html", odd.URL, "/html", "")
	add("elsewhere", odd.URL, "/elsewhere", "")
	add("long", odd.URL, "/long", "")
	add("halt", odd.URL, "/halt", "")
	add("gone", gone.URL, "/", "")
	add("denied", "http://127.0.0.1:1", "/", "")
	for _, workers := range []string{"off", "tenant"} {
		t.Run("workers "+workers, func(t *testing.T) {
			if hosttest.UnderRace && workers != "off" {
				t.Skip("a worker of this binary takes seconds to start; what it does not do is the same")
			}
			near.InProcess = workers == "off"
			h := musttest.Get(Open(near, nil))(t)
			defer h.Close()
			for id, want := range map[skill.ID]struct {
				input string
				code  skill.Code
				says  string
			}{
				"told":      {`{"text": "x"}`, "", `{"said":"hello"}`},
				"quick":     {`{}`, skill.InvalidOutput, "nothing_has_this"},
				"absent":    {`{}`, skill.NotFound, "skill not found"},
				"late":      {`{}`, skill.ToolInvocationError, `"guest_code":"TIMEOUT"`},
				"key":       {`{"a": [1, 2]}`, "", `{"ok":true}`},
				"html":      {`{}`, skill.GuestExit, "502"},
				"elsewhere": {`{}`, skill.NetworkDenied, "127.0.0.1:1"},
				"long":      {`{}`, skill.OutputLimit, ""},
				"halt":      {`{}`, skill.ToolInvocationError, ""},
				"gone":      {`{}`, skill.ToolInvocationError, "unreachable"},
				"denied":    {`{}`, skill.NetworkDenied, "OPENSKILL_HTTP_ALLOW"},
			} {
				r := h.Invoke(t.Context(), skill.Local(), skill.Request{SkillID: id, Input: []byte(want.input), TraceID: "near-1"})
				b := musttest.Get(json.Marshal(r))(t)
				switch {
				case r.Success != (want.code == "") || !r.Success && r.Error.Code != want.code || !strings.Contains(string(b), want.says) && !strings.Contains(strings.ReplaceAll(string(r.Data), " ", ""), want.says):
					t.Errorf("%s: %s; want %q and %q", id, b, want.code, want.says)
				case r.Meta.Runner != skill.HTTP || !r.Meta.Ran || r.TraceID != "near-1" || strings.Contains(string(b), "k-1"):
					t.Errorf("%s: %s", id, b)
				}
			}
			if got := <-keys; got != `k-1 near-1 {"input":{"a": [1, 2]}}` {
				t.Errorf("sent %q", got)
			}
			// Its own time is the one that this host measures.
			short := skill.Request{SkillID: "late", Input: []byte(`{}`), Limits: skill.Limits{Timeout: 100 * time.Millisecond}}
			if r := h.Invoke(t.Context(), skill.Local(), short); r.Success || r.Error.Code != skill.Timeout {
				t.Errorf("with a short time: %+v", r.Error)
			}
			// What the other host refuses is told as its word.
			if r := h.Invoke(t.Context(), skill.Local(), skill.Request{SkillID: "told", Input: []byte(`{}`)}); r.Success || r.Error.Code != skill.InvalidArgument {
				t.Errorf("without its text: %+v", r.Error)
			}
		})
	}
	far.await(t, `"trace_id":"near-1"`, `"skill_id":"told"`)
}
