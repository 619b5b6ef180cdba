package skillbench

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"openskill/internal/measure"

	"openskill/plugins/python/runtimes"
	"openskill/wasm"
)

// quick are the benchmarks with few runs, on the runtime of the state folder.
// Without one the test is skipped.
func quick(t testing.TB) *Bench {
	t.Helper()
	if testing.Short() {
		t.Skip("short: compiling CPython takes seconds")
	}
	root := filepath.Join("..", "..")
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if state == "" {
		state = filepath.Join(root, ".openskill")
	}
	if _, err := runtimes.New(state).Open(runtimes.Slim); err != nil {
		t.Skip("slim Python is not installed; run make runtimes")
	}
	e, err := wasm.Open(&wasm.Options{CacheDir: filepath.Join(state, "cache", "wasm")})
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(&Options{
		Engine: e, StateDir: state, CacheDir: filepath.Join(state, "cache", "wasm", "bench"),
		Scripts: filepath.Join(root, "examples", "bench", "python"), Skills: filepath.Join(root, "skills"), Data: filepath.Join(root, "data"), Quick: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func all(string, string) bool { return true }

// native is the machine's Python, or nil.
func native(t *testing.T) *Native {
	t.Helper()
	n, err := FindNative(t.Context(), "python3")
	if err != nil {
		return nil
	}
	return n
}

// measured runs cases once or so, and gives their rows.
func measured(t *testing.T, cases []measure.Case) (rows []measure.Row) {
	t.Helper()
	for i := range cases {
		r, err := cases[i].Measure(t.Context())
		if err != nil {
			t.Error(err)
		}
		rows = append(rows, r...)
	}
	return rows
}

func TestImage(t *testing.T) {
	b := quick(t)
	cases, missing := b.Image(t.Context(), native(t), func(_, name string) bool { return !strings.Contains(name, "numpy") })
	for _, m := range missing {
		if !strings.Contains(m, "log_transform") { // built by make skills
			t.Error(m)
		}
	}
	rows := measured(t, cases)
	i := slices.IndexFunc(rows, func(r measure.Row) bool { return r.Case == "a Python skill, echo" && r.Variant == "openskill" })
	if i < 0 || len(rows[i].Goals) != 3 || rows[i].P99NS == 0 || !strings.Contains(rows[i].Note, "fuel ") {
		t.Errorf("no row of the Python skill with its three goals: %+v", rows)
	}
}

// TestPython: native, metered and bare give the same results.
func TestPython(t *testing.T) {
	b, n := quick(t), native(t)
	if n == nil {
		_, missing := b.Python(t.Context(), nil, all)
		if len(missing) != 1 || !strings.Contains(missing[0], "python3") {
			t.Errorf("missing: %q; want python3", missing)
		}
		t.Skip("no python3")
	}
	cases, missing := b.Python(t.Context(), n, func(_, name string) bool { return name == "nbody" || name == "objects" })
	if len(missing) > 0 || len(cases) != 2 {
		t.Fatalf("%d cases, missing %q", len(cases), missing)
	}
	if rows := measured(t, cases); len(rows) != 6 {
		t.Errorf("%d rows, want three for each program: %+v", len(rows), rows)
	}
}

// TestScripts: every program gives a result and a time on native Python.
func TestScripts(t *testing.T) {
	n := native(t)
	if n == nil {
		t.Skip("no python3")
	}
	for _, p := range programs {
		script := filepath.Join("..", "..", "examples", "bench", "python", p.name+".py")
		out, _, err := n.Run(t.Context(), script, stdin(`{"n":2}`))
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		if _, err := selfTimed(out, &agree{}); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
	}
	if _, err := selfTimed([]byte(`{"result": 1}`), &agree{}); err == nil {
		t.Error("a program without a time: want an error")
	}
	a := &agree{}
	_, err1 := selfTimed([]byte(`{"result": 1, "ns": 5}`), a)
	_, err2 := selfTimed([]byte(`{"result": 2, "ns": 5}`), a)
	if err1 != nil || err2 == nil {
		t.Errorf("%v, %v; want an error for another result", err1, err2)
	}
	if _, err := FindNative(t.Context(), "none-such-python"); err == nil {
		t.Error("no such interpreter: want an error")
	}
	if _, _, err := n.Run(t.Context(), "none.py", nil); err == nil {
		t.Error("no such script: want an error")
	}
}

// TestMemory: a few sandboxes, with goals that stand in the rows. The numbers of
// a process that does other things mean nothing.
func TestMemory(t *testing.T) {
	b := quick(t)
	if _, err := Held(os.Getpid()); err != nil {
		t.Skip(err)
	}
	rows, err := b.Memory(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 || len(rows[1].Goals) != 1 || len(rows[2].Goals) != 1 {
		t.Errorf("rows: %+v", rows)
	}
}

// TestHeld: of another process too.
func TestHeld(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	defer func() { _, _ = in.Close(), cmd.Wait() }()
	n, err := Held(cmd.Process.Pid)
	if err != nil {
		t.Skip(err)
	}
	if n < 1<<10 || n > 1<<30 {
		t.Errorf("a small process has %d bytes", n)
	}
}

// TestOwn: of a process of which there are two, the program is shared, and the pages
// that each wrote are its own, however many there are.
func TestOwn(t *testing.T) {
	if os.Getenv("OPENSKILL_TEST_OWN") != "" {
		ownProcess()
	}
	if _, err := Held(os.Getpid()); err != nil {
		t.Skipf("nothing can be measured here: %v", err)
	}
	start := func() int {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOwn$")
		cmd.Env = append(os.Environ(), "OPENSKILL_TEST_OWN=1")
		in, _ := cmd.StdinPipe()
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = in.Close(), cmd.Wait() })
		if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return cmd.Process.Pid
	}
	first := start()
	own, shared, err := Own(first)
	if err != nil {
		t.Fatal(err)
	}
	if own < ownPages || own > ownPages+64<<20 || shared < 1<<20 {
		t.Errorf("own %d, shared %d bytes of a process that wrote %d", own, shared, ownPages)
	}
	held, err := Held(first)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		start()
	}
	if again, _, err := Own(first); err != nil || again > own+4<<20 || again < own-4<<20 {
		t.Errorf("own %d bytes, and with three more of them %d; %v", own, again, err)
	}
	if again, err := Held(first); err != nil || again >= held {
		t.Errorf("a proportional set of %d bytes, and with three more of them %d; %v", held, again, err)
	}
}

const ownPages = 32 << 20

// ownProcess is the process that TestOwn looks at.
func ownProcess() {
	b := make([]byte, ownPages)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	debug.FreeOSMemory()
	_, _ = os.Stdout.Write([]byte{'.'})
	_, _ = io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(b)
	os.Exit(0)
}
