package app

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
)

// The state folder of an older release is taken over: uploads with what was decided about
// them, approvals of scripts, conversations, keys. See host/catalogue/testdata.
func TestTakesOverAnOldStateFolder(t *testing.T) {
	const source = "../catalogue/testdata/state-of-6d205ee.tar.gz"
	skills := filepath.Join(t.TempDir(), "skills", "hello", "scripts")
	musttest.Do(t, os.MkdirAll(skills, 0o700))
	hello := filepath.Dir(skills)
	for name, text := range map[string]string{"SKILL.md": "---\nname: hello\ndescription: Greets.\n---\nRun scripts/hi.js.\n", "scripts/hi.js": "console.log(\"hi\");\n"} {
		musttest.Do(t, os.WriteFile(filepath.Join(hello, name), []byte(text), 0o600))
	}
	s := settings(t, map[string]string{"auth": "required", "script-approval": "version", "agent-skills": filepath.Dir(hello)})
	musttest.Do(t, os.MkdirAll(s.StateDir, 0o700))
	if out, err := exec.CommandContext(t.Context(), "tar", "xzf", source, "-C", s.StateDir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var key struct{ Key string }
	if b, err := os.ReadFile(filepath.Join(s.StateDir, "key.json")); err != nil || json.Unmarshal(b, &key) != nil {
		t.Fatal(err)
	}
	for _, start := range []string{"first", "second"} {
		v := serve(t, s)
		ask := func(method, path, want string) {
			t.Helper()
			body := "{}"
			if strings.HasSuffix(path, ":invoke") {
				body = `{"input": {}}`
			}
			req := musttest.Get(http.NewRequestWithContext(t.Context(), method, v.url+path, strings.NewReader(body)))(t)
			req.Header.Set("Authorization", "Bearer "+key.Key)
			req.Header.Set("Content-Type", "application/json")
			res, err := http.DefaultClient.Do(req)
			musttest.Do(t, err)
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if body = string(b); err != nil || !strings.Contains(strings.ReplaceAll(body, " ", ""), want) {
				t.Errorf("%s start: %s %s: %s, want %s", start, method, path, body, want)
			}
		}
		ask("GET", "/skills/greeter?version=1.0.0", `"state":"enabled","shared":true`)
		ask("GET", "/skills/greeter?version=1.2.0", `"state":"quarantined"`)
		ask("POST", "/skills/greeter:invoke", `"data":{"hello":"two"}`)
		ask("POST", "/agent-skills/hello/scripts/hi.js:run", `"data":{"output":"hi\n"}`)
		ask("GET", "/agent/conversations", `"title":"hellothere"`)
		musttest.Do(t, v.stop())
	}
}
