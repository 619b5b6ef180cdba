package wasi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// built compiles a Go program of testdata to a WASI command.
func built(t testing.TB, name string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), name+".wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, "./testdata/"+name)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return musttest.Get(os.ReadFile(out))(t)
}

// TestTenantsOfGo has two principals call one skill and two another, interleaved. The
// guest searches all of its memory for marks of other calls, after its own input was
// read, and keeps its own in every place that Go has.
func TestTenantsOfGo(t *testing.T) {
	calls := 100 // of each
	if testing.Short() {
		calls = 25
	}
	module := built(t, "dumper")
	r := New(engine(t), nil)
	defer r.Close()
	skills := []*skill.Call{skillOf(t, module), skillOf(t, module)}
	var wg sync.WaitGroup
	for tenant := range 4 {
		wg.Go(func() {
			c := *skills[tenant%2]
			c.Limits.Fuel = 1e10
			for i := range calls {
				own := fmt.Sprintf("%d%04d", tenant, i)
				// Much of it, so that it is in the runtime's buffers and in many pages.
				c.Stdin = []byte(strings.Repeat("MARK-"+own+" ", 1+i%7*300))
				reply, err := runnertest.Do(t.Context(), r, &c)
				if err != nil {
					t.Error(err)
					return
				}
				line, rest, _ := strings.Cut(string(reply.Stdout), "\n")
				if line != "0 true -1 false 1 true" || strings.Contains(rest, "FINAL") || strings.Contains(rest, "TIMER") && !strings.Contains(rest, own) {
					t.Errorf("tenant %d, call %d: %s\n%s %s", tenant, i, line, reply.Code, reply.Message)
					return
				}
				all := rest + string(reply.Stderr)
				for _, word := range strings.Fields(all) {
					if len(word) == 5 && strings.Trim(word, "0123456789") == "" && word != own {
						t.Errorf("tenant %d, call %d: %q", tenant, i, all)
					}
				}
			}
		})
	}
	wg.Wait()
}
