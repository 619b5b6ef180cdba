package python

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"openskill/sdk/skill"
	"openskill/wasm"
)

// standIn is a module that exits with 0 at once, in the place of a runtime of
// 26 MB: how a runtime is loaded does not depend on which one it is.
var standIn = []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x0a\x01\x06_start\x00\x00\x0a\x04\x01\x02\x00\x0b")

// standing is a runner that takes the stand-in for its runtime, and the runtime's
// place.
func standing(t *testing.T) (r *Runner, file string) {
	t.Helper()
	e, err := wasm.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	r = New(e, &Options{StateDir: t.TempDir()})
	r.digest = wasm.Digest(standIn)
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := os.MkdirAll(filepath.Dir(r.file), 0o700); err != nil {
		t.Fatal(err)
	}
	return r, r.file
}

func install(t *testing.T, file string, b []byte) {
	t.Helper()
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// script is a call of a script with the text.
func script(t *testing.T, text string) *skill.Call {
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
	r, file := standing(t)
	c := script(t, "")
	wantUnready(t, r.Ready(c.Folder, c.Entry), "make runtime-python")
	wantUnready(t, r.Available(t.Context()), "make runtime-python")
	wantUnready(t, r.Warm(t.Context()), "make runtime-python")
	if reply, err := r.Run(t.Context(), c); reply != nil {
		t.Errorf("ran: %+v", reply)
	} else {
		wantUnready(t, err, "make runtime-python")
	}
	install(t, file, standIn)
	if err := r.Ready(c.Folder, c.Entry); err != nil { // unless compiling was faster
		wantUnready(t, err, "being compiled")
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
}

// A file that is not the runtime is not run, not tried at every question, and
// tried again once it is another file.
func TestRuntimeThatIsAnother(t *testing.T) {
	r, file := standing(t)
	c := script(t, "")
	install(t, file, append(standIn, 0))
	wantUnready(t, r.Warm(t.Context()), "damaged")
	wantUnready(t, r.Ready(c.Folder, c.Entry), "damaged")
	first := r.loading
	if _, err := r.Run(t.Context(), c); err == nil {
		t.Error("it ran")
	} else {
		wantUnready(t, err, "damaged")
	}
	if r.loading != first {
		t.Error("the same file was looked at again")
	}
	install(t, file, standIn)
	if err := r.Warm(t.Context()); err != nil {
		t.Errorf("after it was repaired: %v", err)
	}
}

// A folder in the runtime's place is no runtime.
func TestRuntimeThatIsAFolder(t *testing.T) {
	r, file := standing(t)
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	wantUnready(t, r.Warm(t.Context()), "make runtime-python")
}

// A call that comes first waits for the compiler; one without the time for that
// is told why.
func TestFirstCallLoads(t *testing.T) {
	r, file := standing(t)
	install(t, file, standIn)
	c := script(t, "")
	c.Limits.Timeout = 1
	if reply, err := r.Run(t.Context(), c); err != nil || reply.Code != skill.Timeout || !strings.Contains(reply.Message, "compiled") {
		t.Errorf("%+v, %v; want TIMEOUT", reply, err)
	}
	c.Limits.Timeout = time.Minute
	if reply, err := r.Run(t.Context(), c); err != nil || reply.Code != "" {
		t.Errorf("%+v, %v", reply, err)
	}
}

func TestWarmThatNobodyWaitsFor(t *testing.T) {
	r, file := standing(t)
	install(t, file, standIn)
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
	r, file := standing(t)
	install(t, file, standIn)
	if err := r.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	e, err := wasm.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close() //nolint:errcheck // nothing runs
	old := r.engine
	r.engine = e // one that has never seen it
	defer func() { r.engine = old }()
	if reply, err := r.Run(t.Context(), script(t, "")); err != nil || reply.Code != "" {
		t.Errorf("%+v, %v", reply, err)
	}
}

// The digest here and the one that the fetch script checks are one.
func TestDigestIsTheLockedOne(t *testing.T) {
	lock, err := os.ReadFile(filepath.Join("..", "..", "scripts", "runtimes.lock"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^python 3\.12\S* \S*/python\.wasm (\S+)$`).FindSubmatch(lock)
	if line == nil || "sha256:"+string(line[1]) != runtimeDigest {
		t.Errorf("scripts/runtimes.lock has %q; this package %s", line, runtimeDigest)
	}
}
