package extism

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// engine keeps what it compiles in the state folder: the plug-ins of these tests are built
// from the same sources every time.
func engine(t testing.TB) *wasm.Engine {
	t.Helper()
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if state == "" {
		state = filepath.Join("..", "..", ".openskill")
	}
	e := musttest.Get(wasm.Open(&wasm.Options{CacheDir: filepath.Join(state, "cache", "wasm")}))(t)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("closing the engine: %v", err)
		}
	})
	return e
}

// conforming is the guest of the suite, built by Extism's PDK for Go.
var conforming = sync.OnceValues(func() ([]byte, error) {
	return runnertest.CompileIn("../../lab", "openskill/lab/extismguest/conforming", "-buildmode=c-shared")
})

func write(t testing.TB, dir string, _ runnertest.Program) (entry string) {
	t.Helper()
	b, err := conforming()
	if err != nil {
		t.Fatalf("compiling the guest: %v", err)
	}
	musttest.Do(t, os.WriteFile(filepath.Join(dir, "guest.wasm"), b, 0o644))
	return "guest.wasm"
}

func TestRunner(t *testing.T) {
	e := engine(t)
	h := runnertest.Harness{
		New:     func(testing.TB) skill.Runner { return New(e, nil) },
		Write:   write,
		Metered: true,
	}
	if testing.Short() { // under the race detector, where each eight bytes are a slow call of the host
		const slow = "takes seconds; TestRunsAreApart is the short one"
		h.Skip = map[string]string{"concurrent": slow, "leaks": slow, "fuel": slow, "stdin-1MiB": slow}
	}
	runnertest.Run(t, h)
}
