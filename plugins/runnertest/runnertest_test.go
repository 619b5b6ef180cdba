package runnertest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

var behaviours = []Behaviour{
	Echo, Drain, Print, PrintForever, Stderr, Exit, Spin, Sleep, Allocate, Recurse,
	Environment, ReadFile, WriteWork, FillWork, ListWork, WriteData,
}

func TestPattern(t *testing.T) {
	if diff := cmp.Diff("0000000\n0000001\n0000002\n000", string(Pattern(27))); diff != "" {
		t.Error(diff)
	}
	if got := string(Pattern(8 * 1235)[8*1234:]); got != "0001234\n" {
		t.Errorf("line 1234: %q", got)
	}
	if got := Pattern(0); len(got) != 0 {
		t.Errorf("no bytes: %q", got)
	}
}

func TestPythonHasEveryBehaviour(t *testing.T) {
	dir := t.TempDir()
	for _, b := range behaviours {
		entry := Python(t, dir, Program{Do: b})
		if text, err := os.ReadFile(filepath.Join(dir, entry)); err != nil || len(text) == 0 {
			t.Errorf("%s: %v", b, err)
		}
	}
	if files, err := scripts.ReadDir("python"); err != nil || len(files) != len(behaviours) {
		t.Errorf("%d scripts for %d behaviours (%v)", len(files), len(behaviours), err)
	}
}

func TestGoWASIIsAModule(t *testing.T) {
	dir := t.TempDir()
	var before []byte
	for _, b := range []Behaviour{Echo, Exit} {
		text, err := os.ReadFile(filepath.Join(dir, GoWASI(t, dir, Program{Do: b})))
		if err != nil || !bytes.HasPrefix(text, []byte("\x00asm\x01\x00\x00\x00")) {
			t.Fatalf("%v, %d bytes", err, len(text))
		}
		if before != nil && !bytes.Equal(before, text) {
			t.Error("the modules of two programs differ")
		}
		before = text
	}
}

// The guest of GoWASI, compiled for this machine, and the scripts of Python do
// the same: what one runner's guest shows can be compared with another's.
func TestGuestsAgree(t *testing.T) {
	guest := filepath.Join(t.TempDir(), "guest")
	if b, err := exec.Command("go", "build", "-o", guest, "openskill/plugins/runnertest/guest").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 to compare with")
	}
	type result struct {
		Exit           int
		Stdout, Stderr string
		Files          map[string]string
	}
	run := func(p Program, name string, args ...string) result {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		dir := t.TempDir()
		for _, sub := range []string{"work", "data"} {
			musttest.Do(t, os.Mkdir(filepath.Join(dir, sub), 0o700))
		}
		put(t, filepath.Join(dir, "data", "a.txt"), []byte("alpha\n"))
		var out, diag bytes.Buffer
		cmd := exec.CommandContext(ctx, name, append(args, p.Arguments()...)...)
		cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, []string{}, strings.NewReader("some input"), &out, &diag
		_ = cmd.Run() // the exit code is compared
		files := map[string]string{}
		for name, what := range state(t, dir) {
			files[name] = what[strings.LastIndexByte(what, ' ')+1:]
			if len(files[name]) != 64 {
				files[name] = "" // a folder, whose time is no matter
			}
		}
		return result{cmd.ProcessState.ExitCode(), strings.Join(strings.Fields(out.String()), ""), diag.String(), files}
	}
	scripts := t.TempDir()
	for _, p := range []Program{
		{Do: Echo},
		{Do: Drain},
		{Do: Print, N: 1001},
		{Do: Stderr, N: 77},
		{Do: Exit},
		{Do: Exit, N: 255},
		{Do: Exit, N: 0xefffffff},
		{Do: Sleep, N: 1},
		{Do: ReadFile, Names: []string{"data/a.txt"}},
		{Do: ReadFile, Names: []string{"data/b.txt"}},
		{Do: WriteWork, N: 100, Names: []string{"b", "a/c"}},
		{Do: FillWork, N: 2},
		{Do: ListWork},
	} {
		native := run(p, guest)
		script := run(p, python, filepath.Join(scripts, Python(t, scripts, p)))
		if diff := cmp.Diff(native, script); diff != "" {
			t.Errorf("%v (-guest +script):\n%s", p, diff)
		}
	}
}
