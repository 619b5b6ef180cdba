package wasm_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/guestfs"
)

// sources builds each guest once for all tests.
type sources struct {
	mu    sync.Mutex
	built map[string]built
}

type built struct {
	module []byte
	err    error
}

var guests sources

// goGuest builds the Go program in a folder for WASI.
func goGuest(t testing.TB, dir string) []byte {
	t.Helper()
	return guests.get(t, dir, func(to string) *exec.Cmd {
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", to, "./"+dir)
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
		return cmd
	})
}

// rustGuest builds one Rust file for WASI; the test is skipped where there is no
// compiler for it.
func rustGuest(t testing.TB, path string) []byte {
	t.Helper()
	if _, err := exec.LookPath("rustc"); err != nil {
		t.Skip("no rustc")
	}
	libs, err := exec.Command("rustc", "--print=target-libdir", "--target=wasm32-wasip1").Output()
	if err != nil {
		t.Skip("rustc does not know the target wasm32-wasip1")
	}
	if _, err := os.Stat(strings.TrimSpace(string(libs))); err != nil {
		t.Skip("the target wasm32-wasip1 is not installed")
	}
	return guests.get(t, path, func(to string) *exec.Cmd {
		return exec.Command("rustc", "--edition=2021", "--target=wasm32-wasip1", "-Copt-level=3", "-Cpanic=abort", "-Cstrip=symbols", "-o", to, path)
	})
}

func (s *sources) get(t testing.TB, name string, command func(to string) *exec.Cmd) []byte {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.built[name]
	if !ok {
		to := filepath.Join(t.TempDir(), "guest.wasm")
		if out, err := command(to).CombinedOutput(); err != nil {
			b.err = fmt.Errorf("%w: %s", err, out)
		} else {
			b.module, b.err = os.ReadFile(to)
		}
		if s.built == nil {
			s.built = map[string]built{}
		}
		s.built[name] = b
	}
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.module
}

var long = wasm.Limits{Fuel: 1 << 50, Timeout: 3 * time.Minute}

// fixed is a run with clocks and chance that are always the same.
func fixed(args ...string) *wasm.Run {
	var ticks int64
	return &wasm.Run{
		Args: args, Limits: long,
		Random: rand.NewChaCha8([32]byte{7}),
		Wall:   func() time.Time { return time.Unix(1_700_000_000, 0) },
		Mono:   func() int64 { ticks += 1000; return ticks },
	}
}

// TestRealPrograms runs what must not be refused to keep the promises: a Go
// program with all of net/http, and CPython.
func TestRealPrograms(t *testing.T) {
	oneGoroutine(t)
	e := open(t, nil)
	t.Run("net/http", func(t *testing.T) {
		if testing.Short() {
			t.Skip("takes seconds to compile")
		}
		module := goGuest(t, "testdata/nethttp")
		began := time.Now()
		m := compile(t, e, module)
		t.Logf("%d bytes, compiled in %v", len(module), time.Since(began))
		out := musttest.Get(m.Run(context.Background(), &wasm.Run{Args: []string{"nethttp"}, Limits: long}))(t)
		want := "hello guest text/plain\n200 hello client <nil>\n<nil>\n"
		if string(out.Stdout) != want || out.Ended != wasm.Exited && out.Ended != wasm.Returned || out.ExitCode != 0 {
			t.Errorf("%v %d %q %q", out.Ended, out.ExitCode, out.Stdout, out.Stderr)
		}
	})
	t.Run("CPython", func(t *testing.T) {
		path := filepath.Join("..", ".openskill", "runtimes", "python-3.12", "python.wasm")
		module, err := os.ReadFile(path)
		if err != nil {
			t.Skipf("%s is not there; make runtimes fetches it", filepath.Base(path))
		}
		if testing.Short() {
			t.Skip("takes half a minute to compile")
		}
		// As a stranger's, since strangers bring interpreters too.
		began := time.Now()
		m := compile(t, e, module)
		t.Logf("%d bytes, compiled in %v", len(module), time.Since(began))
		out, err := m.Run(context.Background(), &wasm.Run{
			Args: []string{"python", "-c", "import json, re; print(json.dumps({'sum': sum(range(1000))}))"}, Limits: long,
		})
		musttest.Do(t, err)
		if string(out.Stdout) != "{\"sum\": 499500}\n" || out.ExitCode != 0 {
			t.Errorf("%v %d %q %q", out.Ended, out.ExitCode, out.Stdout, out.Stderr)
		}
	})
}

// TestSameFuel runs the same again and again: fuel and output are the same, in
// slices of all sizes, on compiler and interpreter.
func TestSameFuel(t *testing.T) {
	type program struct {
		name   string
		module func(t testing.TB) []byte
		args   []string
		slow   bool // for the interpreter
	}
	programs := []program{
		{"go", func(t testing.TB) []byte { return goGuest(t, "../examples/bench/gojson") }, []string{"gojson", "1"}, false},
		{"rust sieve", func(t testing.TB) []byte { return rustGuest(t, "../examples/bench/sieve.rs") }, []string{"sieve"}, true},
		{"rust nbody", func(t testing.TB) []byte { return rustGuest(t, "../examples/bench/nbody.rs") }, []string{"nbody"}, true},
		{"rust recursion", func(t testing.TB) []byte { return rustGuest(t, "../examples/bench/recursion.rs") }, []string{"recursion"}, true},
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			if testing.Short() {
				t.Skip("builds guests")
			}
			module := p.module(t)
			var fuel uint64
			var sum [32]byte
			once := func(e *wasm.Engine, what string) {
				out := run(t, e, module, fixed(p.args...))
				if out.Ended != wasm.Returned && (out.Ended != wasm.Exited || out.ExitCode != 0) {
					t.Fatalf("%s: %v, exit code %d, %q, %q", what, out.Ended, out.ExitCode, out.Trap, out.Stderr)
				}
				s := sha256.Sum256(out.Stdout)
				if fuel == 0 {
					fuel, sum = out.Fuel, s
				}
				if out.Fuel != fuel || s != sum {
					t.Errorf("%s: fuel %d, before %d; output the same: %t", what, out.Fuel, fuel, s == sum)
				}
			}
			began := time.Now()
			dir := t.TempDir() // slices are no matter of the code, which is compiled once
			e := open(t, &wasm.Options{CacheDir: dir})
			once(e, "first")
			times, slices := 19, []uint64{1000, 12_345, 100_000, 1 << 40}
			if time.Since(began) > 3*time.Second {
				times = 4
			}
			if raceDetector {
				times, slices, p.slow = 1, slices[1:2], true
			}
			for range times {
				once(e, "again")
			}
			for _, slice := range slices {
				once(open(t, &wasm.Options{Slice: slice, CacheDir: dir}), fmt.Sprint("slices of ", slice))
			}
			if !p.slow {
				once(open(t, &wasm.Options{Interpreter: true}), "interpreter")
			}
			t.Logf("fuel %d", fuel)
		})
	}
}

// dataRoot mounts a host folder as /data and scratch space as /work.
func dataRoot(t testing.TB, dir string) guestfs.FS {
	t.Helper()
	data := musttest.Get(guestfs.OpenDir(dir))(t)
	t.Cleanup(func() { data.Close() })
	root, err := guestfs.NewTree(
		guestfs.Mount{Path: "/data", FS: data}, guestfs.Mount{Path: "/work", FS: guestfs.NewMemory(guestfs.Limits{})})
	musttest.Do(t, err)
	return root
}
