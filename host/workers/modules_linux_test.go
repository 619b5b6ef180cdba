package workers_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"openskill/host/app/hosttest"
	"openskill/host/workers"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

var sink int // so that what is only there to cost something is not left out

// beCompiler is a compiler that does what the module says.
func beCompiler(args []string) int {
	flags := flag.NewFlagSet("compiler", flag.ContinueOnError)
	var c workers.Confinement
	flags.StringVar(&c.Write, "into", "", "")
	flags.Uint64Var(&c.Memory, "memory", 0, "")
	flags.Uint64Var(&c.Seconds, "seconds", 0, "")
	flags.Bool("trusted", false, "")
	flags.String("digest", "", "")
	flags.String("function", "", "")
	file := flags.String("file", "", "")
	flags.BoolVar(&c.Apart, "apart", false, "")
	if flags.Parse(args) != nil {
		return 2
	}
	if _, err := workers.Confine(&c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	b, err := workers.ModuleToCompile(*file)
	if errors.Is(err, workers.ErrOther) {
		_ = json.NewEncoder(os.Stdout).Encode(&workers.Compiled{Other: true})
		return 0
	}
	if err != nil {
		return 3
	}
	sum := sha256.Sum256(b)
	switch does, arg, _ := strings.Cut(string(b), " "); does {
	case "refuse":
		_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"refused": &workers.Refusal{Code: skill.InvalidModule, Message: "it is not one"}})
		return 0
	case "hang":
		time.Sleep(time.Hour) // an empty select is a deadlock, which ends a program without cgo
	case "wait":
		time.Sleep(600 * time.Millisecond)
	case "spin":
		for n := 0; ; n++ {
			sink = n
		}
	case "eat":
		var all [][]byte
		for {
			x := make([]byte, 64<<20)
			for i := range x {
				x[i] = 1
			}
			all = append(all, x)
			sink = len(all)
		}
	case "keep":
		if err := keepFiles(arg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	case "work": // for so many milliseconds of processors
		ms, err := strconv.Atoi(strings.Fields(arg)[0])
		for used := (syscall.Rusage{}); err == nil && (used.Utime.Nano()+used.Stime.Nano())/1e6 < int64(ms); {
			err = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
		}
		if err != nil {
			return 1
		}
	case "outside":
		if err := os.WriteFile(arg, []byte("x"), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	case "link":
		_ = os.Symlink("/etc/passwd", filepath.Join(c.Write, "code"))
	}
	sumName := hex.EncodeToString(sum[:])
	leave := func(rel string, content []byte) {
		path := filepath.Join(c.Write, rel)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	does, arg, _ := strings.Cut(string(b), " ")
	switch does {
	case "leave": // a file of another module
		path, content, _ := strings.Cut(arg, " ")
		content, _, _ = strings.Cut(content, " ")
		leave(path, []byte(content))
	case "crowd":
		for i := range 100 {
			leave(fmt.Sprintf("code/v/%d", i), nil)
		}
	case "fill": // and is not done
		for i := range 100 {
			leave(fmt.Sprintf("code/v/%d", i), []byte("x"))
		}
		time.Sleep(time.Hour)
	case "large", "larger":
		for i := range 2 {
			leave(fmt.Sprintf("code/v/%d", i), nil)
			f, err := os.OpenFile(filepath.Join(c.Write, fmt.Sprintf("code/v/%d", i)), os.O_RDWR, 0)
			if err == nil {
				err = errors.Join(f.Truncate(map[string]int64{"large": 200 << 20, "larger": 300 << 20}[does]), f.Close())
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
	case "talk":
		fmt.Print(strings.Repeat("much ", 2<<20))
	case "program":
		leave("code/v/"+sumName, []byte("made"))
		_ = os.Chmod(filepath.Join(c.Write, "code/v", sumName), 0o755|os.ModeSetuid)
	case "lack":
		_ = json.NewEncoder(os.Stdout).Encode(&workers.Compiled{Failed: "the disk is full"})
		return 0
	}
	for _, dir := range []string{"code/v", "metered"} {
		if does == "program" && dir == "code/v" {
			continue
		}
		if os.MkdirAll(filepath.Join(c.Write, dir), 0o700) != nil || os.WriteFile(filepath.Join(c.Write, dir, sumName), []byte("made"), 0o600) != nil {
			return 1
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"report": map[string]int{"size": len(b)}})
	return 0
}

func modules(t *testing.T, change func(*workers.ModulesOptions)) *workers.Modules {
	t.Helper()
	self := musttest.Get(os.Executable())(t)
	o := workers.ModulesOptions{Dir: t.TempDir(), Version: "1", Command: []string{self, "be-a-compiler"}, Log: slog.New(slog.DiscardHandler), Name: nameOf}
	if change != nil {
		change(&o)
	}
	m := musttest.Get(workers.OpenModules(o))(t)
	t.Cleanup(func() {
		if err := errors.Join(m.Close(), m.Close()); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(o.Dir, "1", "new-*")); len(left) > 0 {
			t.Errorf("compilers left %q", left)
		}
	})
	return m
}

// nameOf is what the files of a module are called that beCompiler leaves.
func nameOf(digest string, _ bool) string { return strings.TrimPrefix(digest, "sha256:") }

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// moduleOf is a module that begins with what a compiler is to do.
func moduleOf(text string) skill.Module {
	return skill.Module{Digest: digestOf(text), File: digestOf(text), Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
}

func sourceOf(text string) *workers.Source { return &workers.Source{Module: moduleOf(text)} }

func TestModules(t *testing.T) {
	hosttest.NoRace(t)
	short := workers.CompileLimits{CPU: time.Second, Wall: 3 * time.Second, Memory: 256 << 20}
	m := modules(t, func(o *workers.ModulesOptions) { o.Strangers = short })
	outside := filepath.Join(t.TempDir(), "f")
	for _, c := range []struct {
		module string
		code   skill.Code // "" compiles
	}{
		{"fine", ""},
		{"refuse", skill.InvalidModule},
		{"hang", skill.CompileTimeout},
		{"spin", skill.CompileTimeout},
		{"eat", skill.CompileTimeout},
		{"outside " + outside, skill.CompileTimeout},
		{"link", ""}, // it cannot make one
		{"leave metered/" + strings.Repeat("0", 64), skill.InvalidModule},
		{"leave pages/" + strings.Repeat("0", 64), skill.InvalidModule},
		{"leave report.json", skill.InvalidModule},
		{"leave code/x", skill.InvalidModule},
		{"leave code/v/w/x", skill.InvalidModule},
		{"leave other/x", skill.InvalidModule},
		{"crowd", skill.InvalidModule},
		{"fill", skill.InvalidModule},
		{"large", skill.InvalidModule},
		{"larger", skill.CompileTimeout}, // than any file of it may be
		{"talk", skill.CompileTimeout},
		{"program", ""},
		{"lack", skill.Internal},
	} {
		t.Run(strings.Fields(c.module)[0], func(t *testing.T) {
			report, err := m.Ensure(t.Context(), sourceOf(c.module))
			if skill.CodeOf(err) != c.code {
				t.Fatalf("%s, %v; want %s", report, err, c.code)
			}
			if c.code == "" && string(report) != fmt.Sprintf(`{"size":%d}`, len(c.module)) {
				t.Errorf("the report is %s", report)
			}
			if m.Has(digestOf(c.module), false) != (c.code == "") {
				t.Error("what is kept is not what was told")
			}
			began := time.Now()
			if _, again := m.Ensure(t.Context(), sourceOf(c.module)); skill.CodeOf(again) != c.code {
				t.Errorf("asked again: %v", again)
			}
			if c.module == "hang" && time.Since(began) > 2*time.Second {
				t.Error("a verdict was not remembered")
			}
		})
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("a compiler wrote outside of its folder")
	}
	another := sourceOf("that")
	another.Digest, another.File = digestOf("this"), digestOf("this")
	if _, err := m.Ensure(t.Context(), another); skill.CodeOf(err) != skill.Conflict {
		t.Errorf("another module than was named: %v", err)
	}
	if _, err := m.Ensure(t.Context(), sourceOf("this")); err != nil {
		t.Errorf("and then by its name: %v", err) // what somebody else said is not held against it
	}
	for _, bad := range []string{"", "x", "sha256:", "sha256:../../x", "sha256:" + strings.Repeat("A", 64)} {
		src := sourceOf("x")
		src.Digest = bad
		if _, err := m.Ensure(t.Context(), src); err == nil {
			t.Errorf("the digest %q was taken", bad)
		}
	}
}

// TestModulesOfOneUpload holds that the modules of an upload have the time of one
// together, and that what one lacked is not held against it.
func TestModulesOfOneUpload(t *testing.T) {
	hosttest.NoRace(t)
	m := modules(t, func(o *workers.ModulesOptions) {
		o.Strangers = workers.CompileLimits{CPU: 3 * time.Second, Memory: 256 << 20}
	})
	ensure := func(text string, spent *time.Duration) error {
		src := sourceOf(text)
		src.Spent = spent
		_, err := m.Ensure(t.Context(), src)
		return err
	}
	const half = 1700 * time.Millisecond
	first, second := "work 1700 first", "work 1700 second"
	var spent time.Duration
	if err := ensure(first, &spent); err != nil || spent < half || spent > 3*time.Second {
		t.Fatalf("the first: %v, after %s", err, spent)
	}
	if err := ensure("fine", &spent); err != nil {
		t.Errorf("a second one that is small: %v", err)
	}
	before := spent
	if err := ensure(second, &spent); skill.CodeOf(err) != skill.CompileTimeout || !strings.Contains(err.Error(), "together") {
		t.Errorf("a second one that is as large: %v", err)
	}
	if spent-before > 1500*time.Millisecond {
		t.Errorf("it took %s, and was to be ended after a second", spent-before)
	}
	over := 2500 * time.Millisecond
	if err := ensure("not begun", &over); skill.CodeOf(err) != skill.CompileTimeout || over != 2500*time.Millisecond {
		t.Errorf("without a whole second left: %v, %s", err, over)
	}
	var alone, again time.Duration
	if err := ensure(second, &alone); err != nil || alone < half {
		t.Errorf("the second alone: %v, after %s", err, alone)
	}
	if err := ensure(first, &again); err != nil || again != 0 {
		t.Errorf("what is compiled: %v, after %s", err, again)
	}
}

// TestOneCompiler holds that all callers that wait for a module share one process, those of
// several tenants too, and also when the first leaves.
func TestOneCompiler(t *testing.T) {
	m := modules(t, nil)
	text, opened, mu := "fine too", 0, sync.Mutex{}
	source := func(tenant string) *workers.Source {
		src := sourceOf(text)
		src.Tenant, src.Open = tenant, func() (io.ReadCloser, error) {
			mu.Lock()
			defer mu.Unlock()
			opened++
			return io.NopCloser(strings.NewReader(text)), nil
		}
		return src
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Ensure(gone, source("")); !errors.Is(err, context.Canceled) {
		t.Errorf("who left was told %v", err)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, err := m.Ensure(context.Background(), source(fmt.Sprint("tenant ", i%4))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if opened != 1 {
		t.Errorf("compiled %d times", opened)
	}
}

// TestTenantsCompileByTurns: modules of one tenant that take as long as they may do not
// keep another one's waiting.
func TestTenantsCompileByTurns(t *testing.T) {
	m := modules(t, nil)
	ensure := func(ctx context.Context, tenant, text string) error {
		_, err := m.Ensure(ctx, &workers.Source{Module: moduleOf(text), Tenant: tenant})
		return err
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 10 {
		if err := ensure(gone, "many", fmt.Sprint("hang ", i)); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	soon, cancel := context.WithTimeout(t.Context(), 30*time.Second) // of the minute that one of them takes
	defer cancel()
	for i := range 3 {
		if err := ensure(soon, "other", fmt.Sprint("fine ", i)); err != nil {
			t.Errorf("module %d of another tenant: %v", i, err)
		}
	}
}

// moduleCall is a call of a module by its digest, whose worker says whether it has it.
func moduleCall(tenant, text string) *skill.Call {
	c := callOf(tenant, "module "+strings.TrimPrefix(digestOf(text), "sha256:"))
	c.Plan.Module = moduleOf(text)
	return c
}

func withModules(t *testing.T, m *workers.Modules, o workers.Options) *workers.Runner {
	t.Helper()
	o.Command, o.Dir, o.Modules, o.Log = command(t), t.TempDir(), m, slog.New(slog.DiscardHandler)
	p := musttest.Get(workers.New(o))(t)
	r := p.Runner(planner{})
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), p.Close()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// A worker has the module of a call before the call's first frame: none says that it
// lacks one, which is what this test's worker would answer, and is not asked twice.
func TestWorkerHasItsModuleBeforeTheCall(t *testing.T) {
	r := withModules(t, modules(t, nil), workers.Options{})
	for _, tenant := range []string{"a", "a", "b"} {
		if got, err := r.Run(t.Context(), moduleCall(tenant, "a module")); err != nil || string(got.Stdout) != "compiled" {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	other := moduleCall("a", "a module")
	other.Stdin = []byte("module " + strings.Repeat("0", 64))
	if _, err := r.Run(t.Context(), other); skill.CodeOf(err) != skill.Internal {
		t.Errorf("a module of nobody: %v", err)
	}
}

// TestSlowToCompile holds that a call that waited in vain for its module to be compiled is
// told so: the same call again may end well, and its skill is not to blame.
func TestSlowToCompile(t *testing.T) {
	r := withModules(t, modules(t, nil), workers.Options{Preparing: 300 * time.Millisecond})
	if got, err := r.Run(t.Context(), moduleCall("a", "hang")); err != nil || got.Code != skill.Timeout || !got.Bystander || !strings.Contains(got.Message, "still compiling") || !strings.Contains(got.Message, "after 300 ms") {
		t.Errorf("%+v, %v", got, err)
	}
}

// The time in which a module is compiled is not the call's: on a busy machine the first call
// of a fresh state ended as TIMEOUT.
func TestCompilingIsNotInTheTimeOfACall(t *testing.T) {
	r := withModules(t, modules(t, nil), workers.Options{})
	c := moduleCall("a", "wait")
	c.Limits.Timeout = 500 * time.Millisecond // of which the compilation takes more
	if got, err := r.Run(t.Context(), c); err != nil || string(got.Stdout) != "compiled" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestDamaged has a worker find that what was compiled is of no use: where that is so, it
// is compiled again; where it only says so, not.
func TestDamaged(t *testing.T) {
	dir, compiled := "", 0
	m := modules(t, func(o *workers.ModulesOptions) {
		dir = o.Dir
		o.Name = func(digest string, trusted bool) string {
			compiled++
			return nameOf(digest, trusted)
		}
	})
	text := "a module"
	digest := digestOf(text)
	r := withModules(t, m, workers.Options{Spares: -1})
	if got, err := r.Run(t.Context(), moduleCall("a", text)); err != nil || string(got.Stdout) != "compiled" || compiled != 1 {
		t.Fatalf("%+v, %v, compiled %d times", got, err, compiled)
	}
	code := filepath.Join(dir, "1", strings.TrimPrefix(digest, "sha256:"), "code", "v", strings.TrimPrefix(digest, "sha256:"))
	musttest.Do(t, os.WriteFile(code, []byte("mad"), 0o600))
	if got, err := r.Run(t.Context(), moduleCall("b", text)); err != nil || string(got.Stdout) != "compiled" || compiled != 2 {
		t.Errorf("damaged: %+v, %v, compiled %d times", got, err, compiled)
	}
	if m.Damaged(digest, false) || !m.Has(digest, false) {
		t.Error("a whole module was removed")
	}
	if _, err := m.Ensure(t.Context(), sourceOf("a whole one")); err != nil || m.Damaged(digestOf("a whole one"), false) || !m.Has(digestOf("a whole one"), false) {
		t.Errorf("%v: a module was removed that is as it was compiled", err)
	}
	if m.Damaged(digestOf("another"), false) { // it would be removed while it is being put there
		t.Error("a module that is not there is damaged")
	}
}

// TestBriefPools holds that a pool that ends after a call compiles no program that the call
// may start and is not known to: it would not be ready before the pool ends.
func TestBriefPools(t *testing.T) {
	for _, brief := range []bool{false, true} {
		t.Run(fmt.Sprint(brief), func(t *testing.T) {
			m := modules(t, nil)
			r := withModules(t, m, workers.Options{Spares: -1, Brief: brief})
			program := moduleOf("a program")
			opened, open := make(chan struct{}), program.Open
			program.Open = func() (io.ReadCloser, error) {
				close(opened)
				return open()
			}
			call := moduleCall("a", "a module")
			call.Plan.Programs = []skill.Program{{Module: program}}
			if got, err := r.Run(t.Context(), call); err != nil || string(got.Stdout) != "compiled" {
				t.Fatalf("%+v, %v", got, err)
			}
			if !brief {
				<-opened
				return
			}
			if err := errors.Join(r.Close(), m.Close()); err != nil {
				t.Error(err)
			}
			select {
			case <-opened:
				t.Error("a program was compiled ahead")
			default:
			}
		})
	}
}

// TestTrimmed holds that what is kept has a bound.
func TestTrimmed(t *testing.T) {
	m := modules(t, func(o *workers.ModulesOptions) { o.Bytes = 200 })
	for i := range 20 {
		text := fmt.Sprintf("module %d", i)
		musttest.Get(m.Ensure(t.Context(), sourceOf(text)))(t)
	}
	kept := 0
	for i := range 20 {
		if m.Has(digestOf(fmt.Sprintf("module %d", i)), false) {
			kept++
		}
	}
	if kept == 0 || kept > 12 {
		t.Errorf("%d of 20 are kept", kept)
	}
}

// TestTrimmedByTenant holds that what one tenant has compiled, by dry runs or not, takes no
// room of another tenant, of a module that several use, or of a runtime.
func TestTrimmedByTenant(t *testing.T) {
	m := modules(t, func(o *workers.ModulesOptions) { o.Bytes = 1500 })
	ensure := func(tenant, text string, trusted bool) {
		t.Helper()
		src := sourceOf(text)
		src.Tenant, src.Trusted = tenant, trusted
		musttest.Get(m.Ensure(t.Context(), src))(t)
	}
	ensure("", "a runtime", true)
	ensure("beta", "of beta", false)
	ensure("acme", "of both", false)
	ensure("beta", "of both", false)
	for i := range 20 {
		ensure("acme", fmt.Sprint("dry run ", i), false)
	}
	if !m.Has(digestOf("a runtime"), true) {
		t.Error("the runtime is gone")
	}
	for _, text := range []string{"of beta", "of both"} {
		if !m.Has(digestOf(text), false) {
			t.Errorf("the module %s is gone", text)
		}
	}
	if m.Has(digestOf("dry run 0"), false) || !m.Has(digestOf("dry run 19"), false) {
		t.Error("of the tenant that has the most, the oldest module does not make room")
	}
}

// TestCodeOfOneName holds that what a compiler made of one module is not run for
// another one: a worker that has the code of the one is not given the other's, if they
// are not the same.
func TestCodeOfOneName(t *testing.T) {
	m := modules(t, nil)
	one, two, same := "leave code/v/shared one", "leave code/v/shared two", "leave code/v/shared one too"
	for _, text := range []string{one, two, same} {
		musttest.Get(m.Ensure(t.Context(), sourceOf(text)))(t)
	}
	view := t.TempDir()
	for range 2 {
		musttest.Do(t, m.Link(view, digestOf(one), false))
	}
	if err := m.Link(view, digestOf(two), false); err == nil {
		t.Error("code that is not the same was taken for it")
	}
	if err := m.Link(view, digestOf(same), false); err != nil {
		t.Errorf("the same code: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(view, "code", "v", "shared")); string(b) != "one" {
		t.Errorf("%q, %v", b, err)
	}
	if exists(filepath.Join(view, "metered", nameOf(digestOf(two), false))) {
		t.Error("a module is shown whose code is not")
	}
	if err := m.Link(t.TempDir(), digestOf(two), false); err != nil {
		t.Errorf("to another worker: %v", err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestLeftAsProgram holds that nobody can execute what a compiler left.
func TestLeftAsProgram(t *testing.T) {
	dir := ""
	m := modules(t, func(o *workers.ModulesOptions) { dir = o.Dir })
	musttest.Get(m.Ensure(t.Context(), sourceOf("program")))(t)
	kept, err := filepath.Glob(filepath.Join(dir, "1", "*", "code", "v", "*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%q, %v", kept, err)
	}
	if info, err := os.Stat(kept[0]); err != nil || info.Mode() != 0o600 {
		t.Errorf("%s, %v", info.Mode(), err)
	}
}
