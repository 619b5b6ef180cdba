package cli

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// found is what a runner finds out about this machine, which takes most of a second.
var found = sync.OnceValues(func() (*setup, error) { return New(nil).setup() })

func TestRunner(t *testing.T) {
	runnertest.Run(t, runnertest.Harness{
		New: func(t testing.TB) skill.Runner {
			t.Helper()
			s, err := found()
			if err != nil {
				t.Fatal(err)
			}
			r := New(nil)
			r.ready = s
			return r
		},
		Write:    runnertest.Python,
		Trust:    skill.Trusted,
		ExitBits: 8,
		Limits:   skill.Limits{Memory: 128 << 20},
	})
}

// program is a call of a script with the text.
func program(t *testing.T, text string) *skill.Call {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.py"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &skill.Call{
		SkillID: "p01", Folder: dir, Entry: "main.py", Trust: skill.Trusted,
		Limits: skill.Limits{Timeout: 20 * time.Second, Memory: 128 << 20, Fuel: 1, Output: 1 << 20, Scratch: 2 << 20},
	}
}

func must(t *testing.T, r *Runner, c *skill.Call) *skill.Reply {
	t.Helper()
	reply, err := r.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}
