package cpythontest

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/python/runtimes"
)

// there runs the same driver on wasmtime, with the same module and library.
type there struct {
	python  string // has PyPI's wasmtime
	runtime *runtimes.Runtime
	root    string // what the guest sees as "/"
	scratch string
}

func newThere(t *testing.T, python, state, tests string) *there {
	t.Helper()
	r, err := runtimes.New(state).Open(runtimes.Slim)
	musttest.Do(t, err)
	h := &there{python: python, runtime: r, root: t.TempDir(), scratch: t.TempDir()}
	for _, m := range r.Mounts {
		to := filepath.Join(h.root, filepath.FromSlash(m.Guest))
		// The runner shows the archive as a folder.
		library := musttest.Get(zip.OpenReader(m.Path))(t)
		musttest.Do(t, errors.Join(os.CopyFS(to, library), library.Close()))
	}
	err = errors.Join(
		os.CopyFS(filepath.Join(h.root, "data"), os.DirFS(tests)),
		os.Mkdir(filepath.Join(h.root, "skill"), 0o700),
		os.Mkdir(filepath.Join(h.root, "work"), 0o700),
		os.WriteFile(filepath.Join(h.root, "skill", "driver.py"), driver, 0o600),
	)
	musttest.Do(t, err)
	return h
}

func (h *there) run(ctx context.Context, m *module) (*results, error) {
	stdout, stderr, said, err := h.script(ctx, "driver.py", task(m))
	if err != nil {
		return nil, err
	}
	r, err := resultsOf(stdout, stderr)
	if err != nil {
		return nil, fmt.Errorf("%w; wasmtime: %s", err, said)
	}
	return r, nil
}

// script runs a script that lies in the skill's folder. Said is what the peer itself
// had to say.
func (h *there) script(ctx context.Context, entry string, stdin []byte) (stdout, stderr, said []byte, err error) {
	work, err := os.MkdirTemp(h.scratch, "work-")
	if err != nil {
		return nil, nil, nil, err
	}
	files, err := os.MkdirTemp(h.scratch, "streams-")
	if err != nil {
		return nil, nil, nil, err
	}
	if err := os.WriteFile(filepath.Join(files, "in"), stdin, 0o600); err != nil {
		return nil, nil, nil, err
	}
	env := []string{"TMPDIR=/work", "HOME=/work"}
	for _, v := range h.runtime.Env {
		if !strings.HasPrefix(v, "TMPDIR=") && !strings.HasPrefix(v, "HOME=") && !strings.HasPrefix(v, "PYTHONTZPATH=") {
			env = append(env, v)
		}
	}
	run, err := json.Marshal(map[string]any{
		"module": h.runtime.Module.Path, "compiled": filepath.Join(h.scratch, "compiled"), "root": h.root, "work": work,
		"args": []string{h.runtime.Args0, "-B", "-s", "-X", "utf8", "/skill/" + entry}, "env": env,
		"stdin": filepath.Join(files, "in"), "stdout": filepath.Join(files, "out"), "stderr": filepath.Join(files, "err"),
	})
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.python, filepath.Join("testdata", "peer.py"))
	cmd.Stdin = bytes.NewReader(run)
	said, failed := cmd.CombinedOutput()
	stdout, err = os.ReadFile(filepath.Join(files, "out"))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("wasmtime did not start: %w\n%s", failed, said)
	}
	stderr, err = os.ReadFile(filepath.Join(files, "err"))
	if err != nil {
		return nil, nil, nil, err
	}
	return stdout, stderr, said, nil
}
