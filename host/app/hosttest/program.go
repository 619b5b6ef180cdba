package hosttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"

	"openskill/internal/musttest"
)

// Program gives the path of openskill, built of the sources as make build does it. All
// tests share one, in the repository's state folder, which is linked again only when the
// sources have changed: a link takes some seconds of a processor, and most packages that
// start the program start it as users do. It wants Go, and fails the test without.
func Program(t testing.TB, root string) string {
	t.Helper()
	return build(t, root, ".", "openskill", "./cmd/openskill")
}

// Lab returns the path of openskill-lab, made as Program makes openskill.
func Lab(t testing.TB, root string) string {
	t.Helper()
	return build(t, root, "lab", "openskill-lab", "./openskill-lab")
}

// build makes the program name of the package pkg of the module in a folder of root.
func build(t testing.TB, root, module, name, pkg string) string {
	t.Helper()
	dir := musttest.Get(filepath.Abs(filepath.Join(stateFolder(root), "testing", "bin")))(t)
	musttest.Do(t, os.MkdirAll(dir, 0o700))
	lock := flock.New(filepath.Join(dir, ".lock"))
	musttest.Do(t, lock.Lock())
	defer func() { _ = lock.Close() }()
	program := filepath.Join(dir, name)
	// Of a clone's history nothing is wanted, so that a commit makes no other program.
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program, pkg)
	cmd.Dir, cmd.Env = filepath.Join(root, module), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}
