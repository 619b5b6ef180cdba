// Package pythontest gives tests of other packages the sandboxed Python of this machine:
// loaded once a test binary, and compiled once a machine.
package pythontest

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"openskill/plugins/python"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// Shared is what the tests of one package share. The zero value is ready for use.
type Shared struct {
	// Options of the engine but its cache, set before the first use.
	Options wasm.Options

	once   sync.Once
	state  string
	engine *wasm.Engine
	runner *python.Runner
	dir    string
	more   []io.Closer
	err    error
}

// Main runs the tests of a package, and closes what they shared; it gives the exit code.
func (s *Shared) Main(m *testing.M) int {
	code := m.Run()
	if err := s.close(); err != nil {
		panic(err) // a runner or an engine that cannot be closed is a defect of theirs
	}
	return code
}

func (s *Shared) close() error {
	if s.engine == nil {
		return nil
	}
	var err error
	for _, c := range s.more {
		err = errors.Join(err, c.Close())
	}
	if s.runner != nil {
		err = errors.Join(err, s.runner.Close())
	}
	return errors.Join(err, s.engine.Close(), os.RemoveAll(s.dir))
}

// Runner is the default Python, ready to run. root is the folder of the repository, in
// whose state folder it is looked for, unless OPENSKILL_STATE_DIR names another. Without
// one the test is skipped.
func (s *Shared) Runner(t testing.TB, root string) *python.Runner {
	t.Helper()
	s.once.Do(func() { s.open(root) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	if s.runner == nil {
		t.Skip("no Python runtime is installed; run make runtimes")
	}
	return s.runner
}

func (s *Shared) open(root string) {
	s.state = os.Getenv("OPENSKILL_STATE_DIR")
	if s.state == "" {
		s.state = ".openskill"
	}
	if !filepath.IsAbs(s.state) {
		s.state = filepath.Join(root, s.state)
	}
	if s.state, s.err = filepath.Abs(s.state); s.err != nil {
		return
	}
	if _, err := runtimes.New(s.state).For(nil, nil); err != nil {
		return
	}
	o := s.Options
	o.CacheDir = filepath.Join(s.state, "cache", "wasm")
	if s.engine, s.err = wasm.Open(&o); s.err != nil {
		return
	}
	s.runner = python.New(s.engine, &python.Options{StateDir: s.state})
	if _, s.err = s.runner.Prepare(context.Background(), &skill.Spec{Wait: true}); s.err == nil {
		s.dir, s.err = os.MkdirTemp("", "pythontest-") // it outlives the first test
	}
}

// Closes has something closed at the end, before the engine.
func (s *Shared) Closes(c io.Closer) { s.more = append(s.more, c) }

// Python is the runner, after Runner.
func (s *Shared) Python() *python.Runner { return s.runner }

// Engine is the one that Runner runs on, after that.
func (s *Shared) Engine() *wasm.Engine { return s.engine }

// State is the state folder, after Runner.
func (s *Shared) State() string { return s.state }

// Dir is a folder for what tests share, after Runner.
func (s *Shared) Dir() string { return s.dir }
