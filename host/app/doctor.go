package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"openskill/host/app/config"
	"openskill/host/manifest"
	"openskill/host/store"
	"openskill/host/workers"
	"openskill/plugins/all"
	"openskill/plugins/cli"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// Examination is what a machine offers to a host, and what is missing.
type Examination struct {
	Version  string `json:"version"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	CPUs     int    `json:"cpus"`
	Strength string `json:"strength"` // full or reduced
	Detail   string `json:"detail"`   // of strength

	Engine      Finding          `json:"engine"`
	Cache       Finding          `json:"cache"`
	Runners     []Finding        `json:"runners"`
	Tools       []Finding        `json:"tools"`
	Protections []cli.Protection `json:"protections"` // of the CLI runner; empty where it cannot run
	Workers     []Finding        `json:"workers"`     // worker processes, and what the kernel holds them by
	Skills      []Finding        `json:"skills"`
	Models      []Finding        `json:"models"`   // providers of models, as they are configured; none is asked
	Warnings    []Finding        `json:"warnings"` // settings that weaken a protection
}

// Finding is one thing that was looked at.
type Finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"` // what it is, or what is missing and how to get it
}

// Examine looks at this machine with these settings. It compiles one tiny module
// and starts the Python interpreter.
func Examine(ctx context.Context, s *config.Settings) *Examination {
	x := &Examination{
		Version: Version, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
		Runners: []Finding{}, Tools: []Finding{}, Protections: []cli.Protection{}, Workers: []Finding{}, Skills: []Finding{},
		Models: []Finding{}, Warnings: slices.Concat([]Finding{}, Warnings(s), Shortages(s)),
	}
	x.platform()
	x.models(s)
	x.clock(ctx, s)
	x.cache(s)
	x.tools(ctx, s)
	dirs, err := stateDirs(s.StateDir)
	if err != nil {
		x.Engine = Finding{Name: "engine", Detail: err.Error()}
		return x
	}
	e, err := OpenEngine(dirs.cache) // nothing to wait for
	if err != nil {
		x.Engine = Finding{Name: "engine", Detail: err.Error()}
		return x
	}
	defer e.Close() // nothing ran in it
	x.engine(ctx, e)
	list := all.Runners(all.Options{StateDir: dirs.root, Python: s.Python, TempDir: dirs.temp, Outgoing: outgoing(s, nil, true, func(*skill.Call) {})})
	for _, r := range list {
		defer r.Close()
	}
	x.runners(ctx, list)
	x.workers(ctx, s, dirs)
	x.skills(ctx, s, list)
	return x
}

// models lists the providers that are configured, the one that is asked first.
func (x *Examination) models(s *config.Settings) {
	for i, name := range Providers(s) {
		f := Finding{Name: name, OK: true, Detail: "answers where a caller names it, or this provider"}
		switch {
		case name == config.Rules && i == 0:
			f.OK = false
			f.Detail = "no model is configured: conversations use rules, and tasks are unavailable; set OPENAI_API_KEY, OPENAI_API_BASE (for your own server), DASHSCOPE_API_KEY, DEEPSEEK_API_KEY or ANTHROPIC_API_KEY"
		case name == config.Rules:
			f.Detail = "answers by rules where a caller names it"
		case i == 0:
			f.Detail = "answers where a caller names no provider"
		}
		x.Models = append(x.Models, f)
	}
}

// clock compares the clock of this machine with that of the database server.
func (x *Examination) clock(ctx context.Context, s *config.Settings) {
	f := Finding{Name: "OPENSKILL_DATABASE_URL"}
	switch ahead, err := store.Skew(ctx, store.Options{URL: s.DatabaseURL, StateDir: s.StateDir}); {
	case err != nil:
		f.Detail = "cannot read the database's clock: " + err.Error()
	case ahead.Abs() >= time.Second:
		f.Detail = clockOff(ahead)
	default:
		return
	}
	x.Warnings = append(x.Warnings, f)
}

// workers starts a worker process, and tells what holds it.
func (x *Examination) workers(ctx context.Context, s *config.Settings, d state) {
	f := Finding{Name: "processes", OK: true, Detail: "one for each " + string(s.Workers)}
	switch {
	case !hasWorkers:
		f.OK, f.Detail = false, "this platform has none: skills run in the host's own process"
	case s.Workers == config.Shared:
		f.Detail = "one for all"
	}
	x.Workers = append(x.Workers, f)
	if !f.OK {
		return
	}
	h := &Host{settings: s, log: slog.New(slog.DiscardHandler), roots: Roots(s, nil)}
	err := h.openWorkers(s, d) // nothing to wait for
	if err == nil {
		var held []workers.Protection
		x.Workers[0].Detail += fmt.Sprintf(", at most %d at once", h.workers.pool.Stats().Max)
		held, err = h.workers.pool.Probe(ctx)
		for _, p := range held {
			x.Workers = append(x.Workers, Finding{Name: p.Name, OK: p.On, Detail: p.Detail})
		}
	}
	if err = errors.Join(err, h.Close()); err != nil {
		x.Workers[0].OK, x.Workers[0].Detail = false, "cannot start one: "+err.Error()
	}
}

func (x *Examination) platform() {
	x.Strength, x.Detail = "reduced", "outside Linux memory is copied when it grows, and the CLI runner has no protections by the kernel"
	if runtime.GOOS != "linux" {
		return
	}
	x.Strength, x.Detail = "full", "linux on "+runtime.GOARCH
	if interpreted {
		x.Strength, x.Detail = "reduced", "modules are interpreted on "+runtime.GOARCH
	}
}

// smallest exports a _start that does nothing.
var smallest = []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x0a\x01\x06_start\x00\x00\x0a\x04\x01\x02\x00\x0b")

func (x *Examination) engine(ctx context.Context, e *wasm.Engine) {
	x.Engine = Finding{Name: "engine", Detail: fmt.Sprintf("modules are compiled by wazero %s with %d edits", wasm.CompilerVersion(), len(wasm.CompilerEdits()))}
	if err := guardPages(); err == nil {
		x.Engine.Detail += ", and trap by faults in guard pages"
	} else {
		x.Engine.Detail += ", and check each access of memory (no guard pages: " + err.Error() + ")"
	}
	if interpreted {
		x.Engine.Detail = "modules are interpreted, slowly: there is no compiler for " + runtime.GOARCH
	}
	m, err := e.Compile(ctx, smallest, nil)
	var out *wasm.Outcome
	if err == nil {
		out, err = m.Run(ctx, &wasm.Run{})
	}
	switch {
	case err != nil:
		x.Engine.Detail = "a tiny module does not run: " + err.Error()
	case out.Ended != wasm.Returned:
		x.Engine.Detail = "a tiny module does not run: " + out.Ended.String()
	default:
		x.Engine.OK = true
	}
}

func (x *Examination) cache(s *config.Settings) {
	dir := CacheDir(s.StateDir)
	x.Cache = Finding{Name: "cache"}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		x.Cache.OK, x.Cache.Detail = true, dir+": missing; created at the first start"
	case err != nil:
		x.Cache.Detail = dir + ": cannot be read"
	case !info.IsDir():
		x.Cache.Detail = dir + ": is not a folder"
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		x.Cache.Detail = dir + ": other users can open it, and it holds machine code; the next start makes it private"
	default:
		files, bytes := size(dir)
		x.Cache.OK, x.Cache.Detail = true, fmt.Sprintf("%s: %d files, %.1f MiB", dir, files, float64(bytes)/(1<<20))
	}
}

func size(dir string) (files int, bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			files, bytes = files+1, bytes+info.Size()
		}
		return nil
	})
	return files, bytes
}

// asking bounds the question to one tool.
const asking = 5 * time.Second

func (x *Examination) tools(ctx context.Context, s *config.Settings) {
	for _, t := range []struct {
		name, command string
		ask           []string
		without       string
	}{
		{"python3", s.Python, []string{"--version"}, "skills have no CLI fallback; install Python 3.8 or newer"},
		{"pip", "python3", []string{"-m", "pip", "--version"}, "Python runtimes cannot be fetched, but for python-3.12 by npm; install pip, then make runtimes"},
		{"npm", "npm", []string{"--version"}, "the runtime python-3.12 cannot be fetched, which is needed where pip is missing"},
		{"cargo", "cargo", []string{"--version"}, "skills in Rust cannot be built; install Rust, then make skills"},
		{"go", "go", []string{"version"}, "skills in Go cannot be built; install Go 1.26 or newer"},
	} {
		f := Finding{Name: t.name}
		path, err := exec.LookPath(t.command)
		if err != nil {
			f.Detail = "not found: " + t.without
			x.Tools = append(x.Tools, f)
			continue
		}
		bounded, stop := context.WithTimeout(ctx, asking)
		out, err := exec.CommandContext(bounded, path, t.ask...).Output()
		stop()
		f.OK, f.Detail = err == nil, skill.CleanText(string(out), 80)
		if err != nil {
			f.Detail = "does not start: " + t.without
		}
		x.Tools = append(x.Tools, f)
	}
}

func (x *Examination) runners(ctx context.Context, list []skill.Runner) {
	for _, status := range all.Statuses(ctx, list) {
		f := Finding{Name: string(status.Kind), OK: status.Missing == "", Detail: status.Missing}
		if f.OK {
			f.Detail = "ready"
		}
		x.Runners = append(x.Runners, f)
	}
	for _, r := range list {
		if native, ok := r.(*cli.Runner); ok {
			if guards, err := native.Protections(); err == nil { // bounded; what it lacks is told above
				x.Protections = guards
			}
		}
	}
}

// skills says of each skill what would run it.
func (x *Examination) skills(ctx context.Context, s *config.Settings, list []skill.Runner) {
	r, err := Catalogue(s, Roots(s, nil))
	if err != nil {
		return
	}
	for _, p := range r.Problems() {
		x.Skills = append(x.Skills, Finding{Name: p.File, Detail: p.String()})
	}
	for _, id := range r.IDs() {
		k, err := r.Get(id, "")
		if err != nil {
			continue
		}
		f := Finding{Name: string(id)}
		lacks := x.lacks(ctx, list, k, k.Primary)
		switch {
		case lacks == "":
			f.OK, f.Detail = true, "runs as "+string(k.Primary.Kind)
		case k.Fallback == nil:
			f.Detail = lacks
		default:
			second := x.lacks(ctx, list, k, *k.Fallback)
			f.OK, f.Detail = second == "", "answers as "+string(k.Fallback.Kind)+", because: "+lacks
			if second != "" {
				f.Detail = lacks + "; fallback: " + second
			}
		}
		x.Skills = append(x.Skills, f)
	}
}

// lacks says what keeps a target from running here, "" for nothing.
func (x *Examination) lacks(ctx context.Context, list []skill.Runner, s *manifest.Skill, t skill.Target) string {
	for i, r := range list {
		switch {
		case r.Kind() != t.Kind:
			continue
		case !x.Runners[i].OK:
			return x.Runners[i].Detail
		}
		_, err := r.Prepare(ctx, s.Spec(t, skill.Local().Tenant))
		switch e, ok := errors.AsType[*skill.Error](err); {
		case err == nil:
			return ""
		case ok && e.Message != "":
			return e.Message
		}
		return err.Error()
	}
	return fmt.Sprintf("this host has no runner for %s", t.Kind)
}
