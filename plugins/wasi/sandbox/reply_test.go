package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/check"
)

var limits = skill.Limits{Timeout: 1500 * time.Millisecond, Memory: 64 << 20, Fuel: 12345, Output: 999, Scratch: 1}

// Each way to end has its code, and its message the limit and what to do.
func TestEnds(t *testing.T) {
	for ended, want := range map[wasm.Ended]struct {
		code  skill.Code
		words []string
	}{
		wasm.Trapped:        {skill.Trap, []string{"the module trapped: unreachable"}},
		wasm.OutOfFuel:      {skill.FuelExhausted, []string{"12345", "limits.fuel"}},
		wasm.OutOfTime:      {skill.Timeout, []string{"1500 ms", "limits.timeout_ms"}},
		wasm.OutOfMemory:    {skill.MemoryLimit, []string{"64 MiB", "limits.memory_mb"}},
		wasm.OutOfTable:     {skill.TableLimit, []string{"table"}},
		wasm.OutOfStack:     {skill.StackLimit, []string{"nested", "recursion"}},
		wasm.OutputOverflow: {skill.OutputLimit, []string{"999 bytes", "limits.output_kb"}},
		wasm.Cancelled:      {skill.Cancelled, []string{"disconnected"}},
	} {
		r := reply(t.Context(), &skill.Call{Limits: limits}, &wasm.Outcome{Ended: ended, Trap: "unreachable", ExitCode: 7}, time.Hour, "")
		if r.Code != want.code || r.ExitCode != 0 || skill.CleanText(r.Message, skill.MaxMessage) != r.Message {
			t.Errorf("%v: %+v; want %s", ended, r, want.code)
		}
		for _, w := range want.words {
			if !strings.Contains(r.Message, w) {
				t.Errorf("%v: message %q does not say %q", ended, r.Message, w)
			}
		}
	}
	if len(ends) != int(wasm.Diverged)+1-2 {
		t.Errorf("%d rows; every end but Returned and Exited has one", len(ends))
	}
}

// A trap inside a language's runtime is not called a bug of the skill.
func TestTrapInRuntime(t *testing.T) {
	out := &wasm.Outcome{Ended: wasm.Trapped, Trap: "unreachable"}
	r := reply(t.Context(), &skill.Call{Limits: limits}, out, 0, "Python")
	if r.Code != skill.Trap || !strings.Contains(r.Message, "the Python runtime trapped: unreachable") || strings.Contains(r.Message, "bug in the skill") {
		t.Errorf("%+v", r)
	}
}

// Whatever a guest's exit code looks like, it is an exit code.
func TestExitCodesAreTheGuests(t *testing.T) {
	for _, code := range []uint32{0, 1, 0xefffffff, 0xffffffff} {
		r := reply(t.Context(), &skill.Call{Limits: limits}, &wasm.Outcome{Ended: wasm.Exited, ExitCode: code}, 0, "")
		if r.Code != "" || r.ExitCode != code || r.Message != "" {
			t.Errorf("%#x: %+v", code, r)
		}
	}
}

// A deadline of the caller's own is the caller's leaving; the call's limit is not.
func TestWhoseDeadline(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	out := &wasm.Outcome{Ended: wasm.OutOfTime}
	for _, c := range []struct {
		ctx  context.Context
		took time.Duration
		want skill.Code
	}{
		{ctx, time.Second, skill.Cancelled},
		{ctx, 2 * time.Second, skill.Timeout},
		{t.Context(), 2 * time.Second, skill.Timeout},
	} {
		if r := reply(c.ctx, &skill.Call{Limits: limits}, out, c.took, ""); r.Code != c.want {
			t.Errorf("after %v: %s; want %s", c.took, r.Code, c.want)
		}
	}
	if r := waited(ctx, limits.Timeout); r.Code != skill.Cancelled {
		t.Errorf("%+v; want CANCELLED", r)
	}
	if r := waited(t.Context(), limits.Timeout); r.Code != skill.Timeout || !strings.Contains(r.Message, "1500 ms") {
		t.Errorf("%+v; want TIMEOUT", r)
	}
}

func TestBlamed(t *testing.T) {
	for _, c := range []check.Code{
		check.InvalidModule, check.ModuleTooComplex, check.ImportDenied, check.FeatureDisabled, check.MemoryLimit, check.TableLimit,
	} {
		r, err := blamed(fmt.Errorf("wrapped: %w", &check.Error{Code: c, Msg: "bad\x1b[31m"}))
		if err != nil || r.Code != skill.Code(c) || !r.Code.Known() || r.Message != "bad[31m" {
			t.Errorf("%s: %+v, %v", c, r, err)
		}
	}
	if r, err := blamed(&wasm.NoEntryError{Name: "_start"}); err != nil || r.Code != skill.InvalidModule {
		t.Errorf("no entry: %+v, %v", r, err)
	}
	cause := errors.New("a path of the host")
	r, err := blamed(cause)
	if r != nil || skill.CodeOf(err) != skill.Internal || !errors.Is(err, cause) {
		t.Errorf("the host's own failure: %+v, %v", r, err)
	}
}

func TestEntry(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(t.TempDir(), "outside")
	for _, name := range []string{filepath.Join(dir, "main.wasm"), filepath.Join(dir, "sub", "tool.wasm"), out} {
		musttest.Do(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("12345"), 0o600)))
	}
	for link, to := range map[string]string{"in": "sub/tool.wasm", "out": out, "loop": "loop", "gone": "none"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	var f Folders
	defer f.Close()
	d := acquire(t, &f, dir)
	defer d.Release()
	for entry, want := range map[string]skill.Code{
		"main.wasm": "", "sub/tool.wasm": "", "in": "",
		"out": skill.InvalidManifest, "loop": skill.InvalidManifest, "gone": skill.NotFound, "none": skill.NotFound,
		"main.wasm/x": skill.NotFound, "sub": skill.InvalidManifest, "": skill.InvalidManifest, ".": skill.InvalidManifest,
		"../x": skill.InvalidManifest, out: skill.InvalidManifest, "a//b": skill.InvalidManifest, "a\x00b": skill.InvalidManifest,
	} {
		_, err := d.Entry(entry, "build it")
		if skill.CodeOf(err) != want {
			t.Errorf("%q: %v; want %q", entry, err, want)
		}
		var e *skill.Error
		if errors.As(err, &e) && (strings.Contains(e.Message, dir) || e.Message == "" || skill.CleanText(e.Message, 1000) != e.Message) {
			t.Errorf("%q: message %q", entry, e.Message)
		}
		if want == skill.NotFound && !strings.HasSuffix(e.Message, "build it") {
			t.Errorf("%q: message %q does not say what to do", entry, e.Message)
		}
		b, _, err := d.Read(entry, "build it", 10)
		if skill.CodeOf(err) != want || want == "" && string(b) != "12345" {
			t.Errorf("reading %q: %q, %v; want %q", entry, b, err, want)
		}
	}
	if b, s, err := d.Read("main.wasm", "", 3); err != nil || len(b) != 4 || s.size != 5 {
		t.Errorf("over the limit: %q, %+v, %v; want one byte more than the limit", b, s, err)
	}
}

func TestSettled(t *testing.T) {
	written := time.Unix(1000, 0)
	s := Stamp{mtime: written.UnixNano()}
	for after, want := range map[time.Duration]bool{-time.Second: false, 0: false, time.Second: false, grain + 1: true, time.Hour: true} {
		if got := s.Settled(written.Add(after)); got != want {
			t.Errorf("%v after it was written: settled %v", after, got)
		}
	}
}
