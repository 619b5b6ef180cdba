package python

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/plugins/python/runtimes"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// standIn is a module that exits with 0 at once, in the place of a runtime of
// 26 MB: how a runtime is loaded does not depend on which one it is.
var standIn = []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x0a\x01\x06_start\x00\x00\x0a\x04\x01\x02\x00\x0b")

// shelf has one runtime, which may be missing.
type shelf struct {
	file string

	mu    sync.Mutex
	there bool
	opens int
}

func (s *shelf) put(there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.there = there
}

func (s *shelf) choose(requires, _ []string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(requires) > 0 {
		return "", &skill.Error{Op: "shelf", Code: skill.InvalidManifest, Message: "no runtime has " + requires[0]}
	}
	if !s.there {
		return "", &skill.Error{Op: "shelf", Code: skill.ToolInvocationError, Message: "run openskill runtime install"}
	}
	return "slim", nil
}

func (s *shelf) open(string) (*runtimes.Runtime, error) {
	s.mu.Lock()
	s.opens++
	s.mu.Unlock()
	return s.at("")
}

func (s *shelf) at(string) (*runtimes.Runtime, error) {
	return &runtimes.Runtime{
		Name: "slim", Run: runtimes.Run{Args0: "python"},
		Module: runtimes.File{Path: s.file, Digest: wasm.Digest(standIn), Size: int64(len(standIn))},
	}, nil
}

// standing is a runner that takes the stand-in for its runtime.
func standing(t *testing.T, o *wasm.Options) (*Runner, *shelf) {
	t.Helper()
	e := musttest.Get(wasm.Open(o))(t)
	s := &shelf{file: filepath.Join(t.TempDir(), "python.wasm"), there: true}
	musttest.Do(t, os.WriteFile(s.file, standIn, 0o600))
	r := New(e, nil)
	r.planner.choose, r.planner.open, r.library.at = s.choose, s.open, s.at
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	return r, s
}

// script is a call of a script with the text.
func script(t testing.TB, text string) *skill.Call {
	t.Helper()
	dir := t.TempDir()
	musttest.Do(t, os.WriteFile(filepath.Join(dir, "main.py"), []byte(text), 0o600))
	return &skill.Call{
		SkillID: "script", Folder: dir, Entry: "main.py",
		// Fuel ends what does not end: the time is that of a machine that does other work.
		Limits: skill.Limits{Timeout: 10 * time.Minute, Memory: 64 << 20, Fuel: 1e11, Output: 1 << 20, Scratch: 1 << 20},
	}
}

func wantUnready(t *testing.T, err error, word string) {
	t.Helper()
	var e *skill.Error
	if !errors.As(err, &e) || e.Code != skill.ToolInvocationError || !strings.Contains(e.Message, word) {
		t.Errorf("%v; want TOOL_INVOCATION_ERROR with %q", err, word)
	} else if strings.ContainsRune(e.Message, os.PathSeparator) {
		t.Errorf("message %q tells a path", e.Message)
	}
}

// Installed after the host started: the first question begins to load it.
func TestRuntimeComesLater(t *testing.T) {
	r, s := standing(t, nil)
	s.put(false)
	c := script(t, "")
	wantUnready(t, runnertest.Look(t.Context(), r, c.Folder, c.Entry), "runtime install")
	wantUnready(t, runnertest.Ready(t.Context(), r), "runtime install")
	s.put(true)
	plan, err := r.Prepare(t.Context(), c.Spec())
	if err != nil || plan.Runtime != "slim" {
		t.Fatalf("%+v, %v", plan, err)
	}
	wantUnready(t, plan.Missing, "still compiling")
	musttest.Do(t, runnertest.Ready(t.Context(), r))
	if plan, err = r.Prepare(t.Context(), c.Spec()); err != nil || plan.Missing != nil {
		t.Errorf("%+v, %v; want that nothing is missing", plan, err)
	}
	if reply, err := runnertest.Do(t.Context(), r, c); err != nil || reply.Code != "" || reply.ExitCode != 0 {
		t.Errorf("%+v, %v", reply, err)
	}
	if s.opens != 1 {
		t.Errorf("opened %d times", s.opens)
	}
}

// A file that is not the runtime is not run.
func TestRuntimeThatIsAnother(t *testing.T) {
	r, s := standing(t, nil)
	musttest.Do(t, os.WriteFile(s.file, append(standIn, 0), 0o600))
	if err := runnertest.Ready(t.Context(), r); skill.CodeOf(err) != skill.Conflict {
		t.Errorf("%v; want CONFLICT", err)
	}
	if reply, err := runnertest.Do(t.Context(), r, script(t, "")); reply != nil || skill.CodeOf(err) != skill.Conflict {
		t.Errorf("%+v, %v; want CONFLICT", reply, err)
	}
	musttest.Do(t, os.WriteFile(s.file, standIn, 0o600))
	if err := runnertest.Ready(t.Context(), r); err != nil {
		t.Errorf("after it was repaired: %v", err)
	}
}

// A call that comes first waits for the compiler.
func TestFirstCallLoads(t *testing.T) {
	r, _ := standing(t, nil)
	if reply, err := runnertest.Do(t.Context(), r, script(t, "")); err != nil || reply.Code != "" {
		t.Errorf("%+v, %v", reply, err)
	}
}

func TestCompilationThatNobodyWaitsFor(t *testing.T) {
	r, _ := standing(t, nil)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := runnertest.Ready(ctx, r); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := runnertest.Ready(t.Context(), r); err != nil {
		t.Errorf("the work did not go on: %v", err)
	}
}

// A runtime that other modules pushed out of memory is loaded again.
func TestRuntimeOutOfMemory(t *testing.T) {
	r, _ := standing(t, &wasm.Options{Resident: 1})
	for range 3 {
		if reply, err := runnertest.Do(t.Context(), r, script(t, "")); err != nil || reply.Code != "" {
			t.Errorf("%+v, %v", reply, err)
		}
	}
}

// What no runtime has is refused before anything is started.
func TestRequiresWhatIsNotThere(t *testing.T) {
	r, _ := standing(t, nil)
	if _, err := runnertest.Do(t.Context(), r, script(t, ""), "nothing-like-it"); skill.CodeOf(err) != skill.InvalidManifest {
		t.Errorf("%v; want INVALID_MANIFEST", err)
	}
}

// A script is looked through once, until it changes, and only where that matters.
func TestImportsAreFoundOnce(t *testing.T) {
	r, _ := standing(t, nil)
	asked, matters := 0, false
	r.planner.matters = func([]string, []byte) bool { return matters }
	r.planner.imports = func(_ context.Context, s *skill.Spec, text []byte) ([]string, error) {
		asked++
		return []string{s.Tenant + " " + string(text)}, nil
	}
	c := script(t, "import numpy")
	old := time.Now().Add(-time.Hour)
	path := filepath.Join(c.Folder, c.Entry)
	look := func(script, change bool) []string {
		t.Helper()
		spec := c.Spec()
		spec.Tenant, spec.Script = "acme", script
		if change {
			old = old.Add(time.Second)
			musttest.Do(t, os.Chtimes(path, old, old))
		}
		plan := musttest.Get(r.Prepare(t.Context(), spec))(t)
		return plan.Imports
	}
	r.calls.Folders.Fresh = -1
	if got := look(false, true); got != nil || asked != 0 {
		t.Errorf("what cannot matter was asked: %q", got)
	}
	if got := look(true, true); len(got) != 1 || got[0] != "acme import numpy" || asked != 1 {
		t.Errorf("a program of the command line: %q", got)
	}
	if got := look(false, false); got != nil || asked != 1 {
		t.Errorf("what was asked of a program is told of a skill: %q", got)
	}
	matters = true
	for range 2 {
		if got := look(false, asked == 1); len(got) != 1 || asked != 2 {
			t.Errorf("%q, asked %d times", got, asked)
		}
	}
}
