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

	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// standIn is a module that exits with 0 at once, in the place of a runtime of
// 26 MB: how a runtime is loaded does not depend on which one it is.
var standIn = []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x0a\x01\x06_start\x00\x00\x0a\x04\x01\x02\x00\x0b")

// shelf is a catalogue of one runtime, which may be missing.
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

func (s *shelf) missing() error {
	return &skill.Error{Op: "shelf", Code: skill.ToolInvocationError, Message: "run openskill runtime install"}
}

func (s *shelf) For(requires, _ []string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(requires) > 0 {
		return "", &skill.Error{Op: "shelf", Code: skill.InvalidManifest, Message: "no runtime has " + requires[0]}
	}
	if !s.there {
		return "", s.missing()
	}
	return "slim", nil
}

func (s *shelf) Open(string) (*runtimes.Runtime, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opens++
	if !s.there {
		return nil, s.missing()
	}
	return &runtimes.Runtime{
		Name: "slim", Run: runtimes.Run{Args0: "python"},
		Module: runtimes.File{Path: s.file, Digest: wasm.Digest(standIn), Size: int64(len(standIn))},
	}, nil
}

// standing is a runner that takes the stand-in for its runtime.
func standing(t *testing.T) (*Runner, *shelf) {
	t.Helper()
	e, err := wasm.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &shelf{file: filepath.Join(t.TempDir(), "python.wasm"), there: true}
	if err := os.WriteFile(s.file, standIn, 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRunner(e, s, nil)
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
	if err := os.WriteFile(filepath.Join(dir, "main.py"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &skill.Call{
		SkillID: "script", Folder: dir, Entry: "main.py",
		Limits: skill.Limits{Timeout: time.Minute, Memory: 64 << 20, Fuel: 1e12, Output: 1 << 20, Scratch: 1 << 20},
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
	r, s := standing(t)
	s.put(false)
	c := script(t, "")
	wantUnready(t, r.Ready(c.Folder, c.Entry), "runtime install")
	wantUnready(t, r.Available(t.Context()), "runtime install")
	wantUnready(t, r.Warm(t.Context()), "runtime install")
	if reply, err := r.Run(t.Context(), c); reply != nil {
		t.Errorf("ran: %+v", reply)
	} else {
		wantUnready(t, err, "runtime install")
	}
	s.put(true)
	if err := r.Ready(c.Folder, c.Entry); err != nil { // unless compiling was faster
		wantUnready(t, err, "still compiling")
	}
	if err := r.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Ready(c.Folder, c.Entry), r.Available(t.Context())); err != nil {
		t.Errorf("warm: %v", err)
	}
	if reply, err := r.Run(t.Context(), c); err != nil || reply.Code != "" || reply.ExitCode != 0 {
		t.Errorf("%+v, %v", reply, err)
	}
	if s.opens != 1 {
		t.Errorf("opened %d times", s.opens)
	}
}

// A file that is not the runtime is not run, not tried at every question, and
// tried again later.
func TestRuntimeThatIsAnother(t *testing.T) {
	r, s := standing(t)
	c := script(t, "")
	if err := os.WriteFile(s.file, append(standIn, 0), 0o600); err != nil {
		t.Fatal(err)
	}
	wantUnready(t, r.Warm(t.Context()), "changed")
	wantUnready(t, r.Ready(c.Folder, c.Entry), "changed")
	if _, err := r.Run(t.Context(), c); err == nil {
		t.Error("it ran")
	} else {
		wantUnready(t, err, "changed")
	}
	if s.opens != 1 {
		t.Errorf("it was looked at %d times", s.opens)
	}
	if err := os.WriteFile(s.file, standIn, 0o600); err != nil {
		t.Fatal(err)
	}
	r.library.mu.Lock()
	r.library.all["slim"].at = time.Time{} // a while ago
	r.library.mu.Unlock()
	if err := r.Warm(t.Context()); err != nil {
		t.Errorf("after it was repaired: %v", err)
	}
}

// A call that comes first waits for the compiler; one without the time for that
// is told why.
func TestFirstCallLoads(t *testing.T) {
	r, _ := standing(t)
	c := script(t, "")
	c.Limits.Timeout = 1
	if reply, err := r.Run(t.Context(), c); err != nil || reply.Code != skill.Timeout || !strings.Contains(reply.Message, "compiling") {
		t.Errorf("%+v, %v; want TIMEOUT", reply, err)
	}
	c.Limits.Timeout = time.Minute
	if reply, err := r.Run(t.Context(), c); err != nil || reply.Code != "" {
		t.Errorf("%+v, %v", reply, err)
	}
}

func TestWarmThatNobodyWaitsFor(t *testing.T) {
	r, _ := standing(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := r.Warm(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := r.Warm(t.Context()); err != nil {
		t.Errorf("the work did not go on: %v", err)
	}
}

// A runtime that other modules pushed out of memory is loaded again.
func TestRuntimeOutOfMemory(t *testing.T) {
	r, _ := standing(t)
	if err := r.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	e, err := wasm.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	old := r.engine
	r.engine, r.calls.Images.Engine = e, e // one that has never seen it
	if reply, err := r.Run(t.Context(), script(t, "")); err != nil || reply.Code != "" {
		t.Errorf("%+v, %v", reply, err)
	}
	r.calls.Images.Close()
	r.engine = old
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// What no runtime has is refused before anything is started.
func TestRequiresWhatIsNotThere(t *testing.T) {
	r, _ := standing(t)
	c := script(t, "")
	c.Requires = []string{"nothing-like-it"}
	var e *skill.Error
	if _, err := r.Run(t.Context(), c); !errors.As(err, &e) || e.Code != skill.InvalidManifest {
		t.Errorf("%v; want INVALID_MANIFEST", err)
	}
}

// Whether a script can run depends on what its skill requires.
func TestReadyWithWhatIsRequired(t *testing.T) {
	r, _ := standing(t)
	if err := r.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "main.py"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.ReadyWith(folder, "main.py", nil); err != nil {
		t.Errorf("nothing required: %v", err)
	}
	if err := r.ReadyWith(folder, "main.py", []string{"nothing-like-it"}); skill.CodeOf(err) != skill.InvalidManifest {
		t.Errorf("%v; want that no runtime has it", err)
	}
}
