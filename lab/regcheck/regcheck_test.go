package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// checkerFor builds the program for a processor.
func checkerFor(t *testing.T, arch, few string, asIs bool) string {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("the program that compiles and checks runs on amd64")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "compile")
	if err := build(context.Background(), dir, arch, few, asIs, program); err != nil {
		t.Fatal(err)
	}
	return program
}

// check runs it, and gives its exit code and what it printed.
func check(t *testing.T, program string, args ...string) (int, string) {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	exit := &exec.ExitError{}
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if err == nil {
		return 0, string(out)
	}
	return exit.ExitCode(), string(out)
}

// TestFlagsKnownFaults holds that the checker finds what wazero v1.12.0 compiles wrongly,
// which is what its silence about other modules is worth.
func TestFlagsKnownFaults(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			program := checkerFor(t, arch, "", true)
			for _, s := range shapes {
				want, known := s.faults[arch]
				if !known {
					continue
				}
				file := filepath.Join(t.TempDir(), s.name+".wasm")
				if err := os.WriteFile(file, s.module(), 0o600); err != nil {
					t.Fatal(err)
				}
				status, out := check(t, program, "-raw", file)
				if want == "" && status != 0 || want != "" && (status != 1 || !strings.Contains(out, want)) {
					t.Errorf("%s ended with %d and not with %q:\n%s", s.name, status, want, out)
				}
				if status, out := check(t, program, file); status != 0 {
					t.Errorf("%s is wrong after the passes of the engine too, %d:\n%s", s.name, status, out)
				}
			}
		})
	}
}

// TestFewRegisters holds that what the engine hands over is compiled rightly by an allocator
// that takes a register from another value almost wherever it needs one, as it does where a
// loop keeps values in all others.
func TestFewRegisters(t *testing.T) {
	for arch, few := range map[string]string{"amd64": "3", "arm64": "10"} {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			program := checkerFor(t, arch, few, false)
			for _, generator := range []string{"arithmetic", "pressure", "calls"} {
				// Half of them as for worker processes, where there are such.
				status, out := check(t, program, "-generate", generator, "-count", "30", "-guarded="+strconv.FormatBool(arch == "amd64"))
				if status == 0 {
					status, out = check(t, program, "-generate", generator, "-count", "30", "-first", "30")
				}
				if status != 0 {
					t.Errorf("%s ended with %d:\n%.4000s", generator, status, out)
				}
				if _, short, ok := strings.Cut(out, " had too few registers"); ok {
					t.Errorf("%s: not all are compiled: %s", generator, short)
				}
			}
			// With its edits the compiler for amd64 is right without the passes too.
			want := 1
			if m, err := source(t.Context(), false); err != nil {
				t.Fatal(err)
			} else if arch == "amd64" && strings.Contains(m.Dir, "engine") {
				want = 0
			}
			if status, out := check(t, program, "-raw", "-generate", "pressure", "-count", "60"); status != want {
				t.Errorf("without the passes it ended with %d and not %d:\n%.4000s", status, want, out)
			}
		})
	}
}

// TestRefusesAnotherWazero holds that the checker is not laid into what it does not know.
func TestRefusesAnotherWazero(t *testing.T) {
	dir := t.TempDir()
	e := edit{file: "machine.go", old: "there", new: "here"}
	for _, text := range []string{"nowhere", "there and there"} {
		if err := os.WriteFile(filepath.Join(dir, e.file), []byte(strings.ReplaceAll(text, "nowhere", "")), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := e.apply(dir); err == nil {
			t.Errorf("%q was edited", text)
		}
	}
}

// TestNeedsTheChecker holds that a program without it says so, and does not say that all is well.
func TestNeedsTheChecker(t *testing.T) {
	out, err := exec.Command("go", "run", "openskill/lab/regcheck/compile", "-count", "1", "-generate", "pressure").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "built without the checker") {
		t.Errorf("%v: %s", err, out)
	}
}
