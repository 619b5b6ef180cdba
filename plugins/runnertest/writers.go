package runnertest

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"openskill/internal/musttest"
)

//go:embed python/*.py
var scripts embed.FS

// Python writes the script of p; every Python runner can use it as
// [Harness.Write].
func Python(t testing.TB, dir string, p Program) (entry string) {
	t.Helper()
	entry = string(p.Do) + ".py"
	b, err := scripts.ReadFile("python/" + entry)
	if err != nil {
		t.Fatalf("runnertest: no script for %q: %v", p.Do, err)
	}
	put(t, filepath.Join(dir, entry), b)
	return entry
}

// guest is the module of package guest, compiled once in a test binary.
var guest = sync.OnceValues(func() ([]byte, error) { return Compile("openskill/plugins/runnertest/guest") })

// Compile compiles a package to a module by the go command, with more of its flags.
func Compile(pkg string, flags ...string) ([]byte, error) { return CompileIn(".", pkg, flags...) }

// CompileIn does it for a package of the module whose folder, or one below it, is dir.
func CompileIn(dir, pkg string, flags ...string) ([]byte, error) {
	to, err := os.MkdirTemp("", "runnertest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(to)
	out := filepath.Join(to, "guest.wasm")
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out}, flags...)
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, b)
	}
	return os.ReadFile(out)
}

// GoWASI writes a WASI command compiled from Go, "guest.wasm", which does what
// the call's arguments say. It is compiled once in a test binary, by the go
// command, and has the same bytes for every program: a runner that caches by
// content compiles it once. It can be used as [Harness.Write].
func GoWASI(t testing.TB, dir string, _ Program) (entry string) {
	t.Helper()
	b, err := guest()
	if err != nil {
		t.Fatalf("runnertest: compiling the guest: %v", err)
	}
	put(t, filepath.Join(dir, "guest.wasm"), b)
	return "guest.wasm"
}

func put(t testing.TB, name string, b []byte) {
	t.Helper()
	musttest.Do(t, os.WriteFile(name, b, 0o644))
}
