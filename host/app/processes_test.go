package app

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"openskill/host/app/hosttest"
	"openskill/host/store/pgtest"
	"openskill/internal/musttest"
)

// Two processes on one PostgreSQL: what is approved on one runs on the other.
func TestApprovalHoldsInAnotherProcess(t *testing.T) {
	url, program, skills := pgtest.Start(t), hosttest.Program(t, "../.."), t.TempDir()
	for name, text := range map[string]string{"SKILL.md": "---\nname: hello\ndescription: Greets.\n---\nRun scripts/hi.js.\n", "scripts/hi.js": `console.log("hi");`} {
		file := filepath.Join(skills, "hello", name)
		musttest.Write(t, file, text)
	}
	start := func() (ask func(method, path string) string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, "serve", "--listen", "127.0.0.1:0", "--state", t.TempDir(), "--skills", skills, "--agent-skills", skills,
			"--script-approval", "version")
		cmd.Env = append(os.Environ(), "OPENSKILL_DATABASE_URL="+url)
		cmd.Dir = t.TempDir()
		cmd.Stderr = t.Output()
		out := musttest.Get(cmd.StdoutPipe())(t)
		musttest.Do(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
		})
		lines, base := bufio.NewScanner(out), ""
		for base == "" && lines.Scan() {
			base = regexp.MustCompile(`http://[0-9.:]+`).FindString(lines.Text())
		}
		go io.Copy(io.Discard, out)
		return func(method, path string) string {
			t.Helper()
			req := musttest.Get(http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader("{}")))(t)
			req.Header.Set("Content-Type", "application/json")
			res, err := http.DefaultClient.Do(req)
			musttest.Do(t, err)
			defer res.Body.Close()
			b := musttest.Get(io.ReadAll(res.Body))(t)
			return string(b)
		}
	}
	a, b := start(), start()
	const run = "/agent-skills/hello/scripts/hi.js:run"
	if said := b("POST", run); !strings.Contains(said, `"code":"FORBIDDEN"`) {
		t.Fatalf("without an approval: %s", said)
	}
	var asked struct{ Data []struct{ ID string } }
	if said := a("GET", "/approvals?state=pending"); json.Unmarshal([]byte(said), &asked) != nil || len(asked.Data) != 1 {
		t.Fatalf("the other process shows %s", said)
	}
	if said := a("POST", "/approvals/"+asked.Data[0].ID+":approve"); !strings.Contains(said, `"state":"approved"`) {
		t.Fatalf("approving: %s", said)
	}
	if said := b("POST", run); !strings.Contains(said, `"output":"hi\n"`) {
		t.Errorf("approved in the other process: %s", said)
	}
	if said := a("POST", "/approvals/"+asked.Data[0].ID+":deny"); !strings.Contains(said, `"state":"denied"`) {
		t.Fatalf("taking it back: %s", said)
	}
	if said := b("POST", run); !strings.Contains(said, `"code":"FORBIDDEN"`) {
		t.Errorf("denied in the other process: %s", said)
	}
}
