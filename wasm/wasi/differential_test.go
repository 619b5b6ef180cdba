package wasi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
	"openskill/wasm/wasi"
)

// command is a run of a real program.
type command struct {
	args, env []string
	stdin     string
	data      string // host folder, seen as /data, or as / if atRoot
	atRoot    bool
	writable  bool // there is a /work, or the root can be written to
}

type outcome struct {
	Stdout, Stderr string
	Exit           uint32
}

// program is a compiled program that runs on either host.
type program struct {
	t      *testing.T
	r      wazero.Runtime
	module wazero.CompiledModule
}

func compile(t *testing.T, binary []byte) *program {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	t.Cleanup(func() { r.Close(ctx) })
	module := musttest.Get(r.CompileModule(ctx, binary))(t)
	return &program{t, r, module}
}

// onWazero runs a command on wazero's own preview1.
func (p *program) onWazero(c command) outcome {
	p.t.Helper()
	ctx := context.Background()
	host := musttest.Get(wasi_snapshot_preview1.Instantiate(ctx, p.r))(p.t)
	defer host.Close(ctx)
	dir := p.t.TempDir()
	files := wazero.NewFSConfig().WithDirMount(dir, "/")
	switch {
	case c.atRoot && c.writable:
	case c.atRoot:
		files = wazero.NewFSConfig().WithReadOnlyDirMount(c.data, "/")
	default:
		musttest.Do(p.t, errors.Join(os.CopyFS(filepath.Join(dir, "data"), os.DirFS(c.data)), os.Mkdir(filepath.Join(dir, "work"), 0o700)))
	}
	var out, errs bytes.Buffer
	cfg := wazero.NewModuleConfig().WithName("").WithArgs(c.args...).WithStdin(strings.NewReader(c.stdin)).WithStdout(&out).WithStderr(&errs).
		WithFSConfig(files).WithSysNanosleep().WithSysNanotime().WithSysWalltime()
	for _, e := range c.env {
		k, v, _ := strings.Cut(e, "=")
		cfg = cfg.WithEnv(k, v)
	}
	mod, err := p.r.InstantiateModule(ctx, p.module, cfg)
	if mod != nil {
		mod.Close(ctx)
	}
	result := outcome{Stdout: out.String(), Stderr: errs.String()}
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		result.Exit = exit.ExitCode()
	} else if err != nil {
		p.t.Fatal(err)
	}
	return result
}

// run runs it on this package.
func (p *program) run(ctx context.Context, w *wasi.World) error {
	p.t.Helper()
	host := musttest.Get(wasi.Instantiate(ctx, p.r))(p.t)
	defer host.Close(ctx)
	mod, err := p.r.InstantiateModule(wasi.WithWorld(ctx, w), p.module, wazero.NewModuleConfig().WithName(""))
	if mod != nil {
		mod.Close(ctx)
	}
	return err
}

func (p *program) onOurs(c command) outcome {
	p.t.Helper()
	var root guestfs.FS
	switch {
	case c.atRoot && c.writable:
		root = guestfs.NewMemory(guestfs.Limits{})
	case c.atRoot:
		root = openDir(p.t, c.data)
	default:
		root, _ = worldRoot(p.t, c.data)
	}
	var out, errs bytes.Buffer
	w := wasi.NewWorld(wasi.Config{
		Args: c.args, Env: c.env, Stdin: strings.NewReader(c.stdin), Stdout: &out, Stderr: &errs, Root: root,
	})
	defer w.Close()
	err := p.run(context.Background(), w)
	result := outcome{Stdout: out.String(), Stderr: errs.String()}
	if stop := w.Stopped(); stop != nil {
		if stop.Reason != wasi.ReasonExit {
			p.t.Fatal(stop)
		}
		result.Exit = stop.ExitCode
	} else if err != nil {
		p.t.Fatal(err)
	}
	return result
}

func wazeroFile(t *testing.T, path string) []byte {
	t.Helper()
	out := musttest.Get(exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output())(t)
	return musttest.Get(os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "imports/wasi_snapshot_preview1", path)))(t)
}

func goProgram(t *testing.T, path string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, path)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "CGO_ENABLED=0")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	return musttest.Get(os.ReadFile(out))(t)
}

// lines compares listings, whose order the two hosts do not share.
func lines(s string) []string {
	out := strings.Split(s, "\n")
	slices.Sort(out)
	return out
}

func (p *program) same(c command) outcome {
	p.t.Helper()
	theirs, ours := p.onWazero(c), p.onOurs(c)
	if diff := cmp.Diff(lines(theirs.Stdout), lines(ours.Stdout)); diff != "" {
		p.t.Errorf("%q: stdout, wazero (-) and ours (+):\n%s", c.args, diff)
	}
	if diff := cmp.Diff(theirs.Stderr, ours.Stderr); diff != "" {
		p.t.Errorf("%q: stderr, wazero (-) and ours (+):\n%s", c.args, diff)
	}
	if theirs.Exit != ours.Exit {
		p.t.Errorf("%q: exit code %d, on wazero %d", c.args, ours.Exit, theirs.Exit)
	}
	return ours
}

// The programs that wazero tests its own preview1 with, in five languages.
func TestSameAsWazero(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a dozen modules")
	}
	dir := t.TempDir()
	for _, name := range []string{"-", "ab-", "a-/", "tons/"} {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			musttest.Do(t, os.Mkdir(path, 0o700))
		} else if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2500 {
		musttest.Do(t, os.WriteFile(filepath.Join(dir, "tons", strconv.Itoa(i)), nil, 0o600))
	}
	for _, toolchain := range []string{"cargo-wasi", "zig-cc", "zig", "tinygo"} {
		t.Run(toolchain, func(t *testing.T) {
			p := compile(t, wazeroFile(t, "testdata/"+toolchain+"/wasi.wasm"))
			for _, args := range [][]string{{"ls", "."}, {"ls", "./a-"}, {"ls", "-"}, {"ls", "tons"}, {"ls", ".", "repeat"}, {"stat"}} {
				if toolchain == "tinygo" && len(args) == 3 {
					continue // tinygo's own defect, as wazero's test has it
				}
				got := p.same(command{args: append([]string{"wasi"}, args...), data: dir, atRoot: true})
				want := map[string]string{
					"ls .":    "./-\n./a-\n./ab-\n./tons",
					"ls ./a-": "",
					"ls -":    "ENOTDIR",
					"stat":    "/ isatty: false\nstderr isatty: false\nstdin isatty: false\nstdout isatty: false",
				}[strings.Join(args, " ")]
				if toolchain == "cargo-wasi" || toolchain == "zig" {
					if text := strings.TrimSpace(strings.Join(lines(got.Stdout), "\n")); want != "" && text != want {
						t.Errorf("%q prints %q, want %q", args, text, want)
					}
				}
				if args[len(args)-1] == "tons" && strings.Count(got.Stdout, "\n") < 2500 {
					t.Errorf("%d lines of tons", strings.Count(got.Stdout, "\n"))
				}
			}
		})
	}
	t.Run("open and poll", func(t *testing.T) {
		p := compile(t, wazeroFile(t, "testdata/zig-cc/wasi.wasm"))
		for args, want := range map[string]string{
			"open-rdonly": "OK\n", "open-wronly": "OK\n", "poll 0 500": "STDIN\n", "sleepmillis 5": "OK\n",
		} {
			c := command{args: append([]string{"wasi"}, strings.Fields(args)...), stdin: "x", atRoot: true, writable: true}
			if got := p.same(c); got.Stdout != want {
				t.Errorf("%s prints %q, want %q", args, got.Stdout, want)
			}
		}
	})
	t.Run("preopen", func(t *testing.T) {
		c := command{args: []string{"wasi", "preopen"}, data: dir, atRoot: true}
		if got := compile(t, wazeroFile(t, "testdata/zig/wasi.wasm")).same(c); got.Stdout != "0: stdin\n1: stdout\n2: stderr\n3: /\n" {
			t.Errorf("%q", got.Stdout)
		}
	})
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

// The cat programs and the two of hand-written WebAssembly.
func TestSameAsWazeroExamples(t *testing.T) {
	data := dataFolder(t)
	for _, toolchain := range []string{"cargo-wasi", "zig-cc", "zig", "tinygo"} {
		t.Run(toolchain, func(t *testing.T) {
			p := compile(t, wazeroFile(t, "example/testdata/"+toolchain+"/cat.wasm"))
			if got := p.same(command{args: []string{"cat", "a.txt"}, data: data, atRoot: true}); got.Stdout != "alpha" {
				t.Errorf("cat prints %q", got.Stdout)
			}
			if got := p.same(command{args: []string{"cat", "./data/sub/b.txt"}, data: data}); got.Stdout != "beta" {
				t.Errorf("cat prints %q of data", got.Stdout)
			}
		})
	}
	for _, tc := range []struct {
		name string
		args []string
		want outcome
	}{
		{"print_args", []string{"a", "bc"}, outcome{Stdout: "a\x00bc\x00"}},
		{"print_prestat_dirname", nil, outcome{Stdout: "/"}},
		{"exit_on_start", nil, outcome{Exit: 2}},
	} {
		p := compile(t, wazeroFile(t, "testdata/"+tc.name+".wasm"))
		if got := p.same(command{args: tc.args, data: data, atRoot: true}); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

// A Go program that uses files, scratch, input, clocks and chance.
func TestSameAsWazeroFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a Go program")
	}
	p := compile(t, goProgram(t, "./testdata/files/main.go"))
	data := dataFolder(t)
	got := p.same(command{
		args: []string{"files", "one", "two"}, env: []string{"A=1", "B=x=y"}, stdin: "first\nsecond", data: data,
	})
	if got.Exit != 7 || got.Stderr != "to stderr\n" || !strings.Contains(got.Stdout, "line second") {
		t.Errorf("%+v", got)
	}
	if got := p.same(command{args: []string{"files", "large"}, data: data}); !strings.HasSuffix(got.Stdout, "line 19999\n") {
		t.Errorf("%d bytes of output", len(got.Stdout))
	}

	// Input that comes only once another goroutine of the guest has said so.
	r, w := io.Pipe()
	var out strings.Builder
	world := wasi.NewWorld(wasi.Config{Args: []string{"files", "late"}, Stdin: r, Stdout: writerFunc(func(p []byte) {
		if out.Write(p); out.String() == "ready " {
			go func() { fmt.Fprint(w, "at last"); w.Close() }()
		}
	})})
	defer world.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err := p.run(ctx, world)
	if stop := world.Stopped(); stop == nil || *stop != (wasi.Stop{Reason: wasi.ReasonExit}) || out.String() != "ready at last <nil>" {
		t.Errorf("stop %v, %v, output %q", stop, err, out.String())
	}
}
