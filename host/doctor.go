package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"openskill/host/config"
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
	Skills      []Finding        `json:"skills"`
}

// Finding is one thing that was looked at.
type Finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"` // what it is, or what is missing and how to get it
}

// prober is a runner that can say whether its own requirements are there, apart
// from any skill.
type prober interface{ Available() error }

// Examine looks at this machine with these settings. It compiles one tiny module
// and starts the Python interpreter.
func Examine(ctx context.Context, s *config.Settings) *Examination {
	x := &Examination{
		Version: Version, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
		Runners: []Finding{}, Tools: []Finding{}, Protections: []cli.Protection{}, Skills: []Finding{},
	}
	x.platform()
	x.cache(s)
	x.tools(ctx, s)
	dirs, err := stateDirs(s.StateDir)
	if err != nil {
		x.Engine = Finding{Name: "engine", Detail: err.Error()}
		return x
	}
	e, err := wasm.Open(&wasm.Options{CacheDir: dirs.cache})
	if err != nil {
		x.Engine = Finding{Name: "engine", Detail: err.Error()}
		return x
	}
	defer e.Close() //nolint:errcheck // nothing ran in it
	x.engine(ctx, e)
	all := runners(e, s, dirs)
	for _, r := range all {
		x.runner(r)
		defer r.Close() //nolint:errcheck // nothing ran in it
	}
	x.skills(s, all)
	return x
}

func (x *Examination) platform() {
	x.Strength, x.Detail = "reduced", "outside Linux memory is copied when it grows, and the CLI runner has no kernel guards"
	if runtime.GOOS != "linux" {
		return
	}
	switch runtime.GOARCH {
	case "amd64", "arm64":
		x.Strength, x.Detail = "full", "linux on "+runtime.GOARCH
	default:
		x.Detail = "modules are interpreted on " + runtime.GOARCH + ", slowly"
	}
}

// smallest exports a _start that does nothing.
var smallest = []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x0a\x01\x06_start\x00\x00\x0a\x04\x01\x02\x00\x0b")

func (x *Examination) engine(ctx context.Context, e *wasm.Engine) {
	x.Engine = Finding{Name: "engine", Detail: "modules are compiled"}
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
		x.Cache.OK, x.Cache.Detail = true, dir+": not there yet, made at the first start"
	case err != nil:
		x.Cache.Detail = dir + ": cannot be read"
	case !info.IsDir():
		x.Cache.Detail = dir + ": is not a folder"
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		x.Cache.Detail = dir + ": others may enter it, and it holds machine code; it is made private at the next start"
	default:
		files, bytes := size(dir)
		x.Cache.OK, x.Cache.Detail = true, fmt.Sprintf("%s: %d files, %.1f MiB", dir, files, float64(bytes)/(1<<20))
	}
}

func size(dir string) (files int, bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // what cannot be seen is not counted
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
	for _, t := range []struct{ name, command, without string }{
		{"python3", s.Python, "skills have no CLI fallback; install Python 3.8 or newer"},
		{"npm", "npm", "the Python runtime cannot be fetched; install Node.js with npm, then make runtimes"},
		{"cargo", "cargo", "skills in Rust cannot be built; install Rust, then make skills"},
		{"go", "go", "skills in Go cannot be built; install Go 1.26 or newer"},
	} {
		f := Finding{Name: t.name}
		path, err := exec.LookPath(t.command)
		if err != nil {
			f.Detail = "not found: " + t.without
			x.Tools = append(x.Tools, f)
			continue
		}
		arg := "--version"
		if t.name == "go" {
			arg = "version"
		}
		bounded, stop := context.WithTimeout(ctx, asking)
		out, err := exec.CommandContext(bounded, path, arg).Output() //nolint:gosec // names from the table above and from the operator
		stop()
		f.OK, f.Detail = err == nil, skill.CleanText(string(out), 80)
		if err != nil {
			f.Detail = "does not start: " + t.without
		}
		x.Tools = append(x.Tools, f)
	}
}

func (x *Examination) runner(r skill.Runner) {
	f := Finding{Name: string(r.Kind()), OK: true, Detail: "ready"}
	var err error
	switch r := r.(type) {
	case *cli.Runner:
		var guards []cli.Protection
		if guards, err = r.Protections(); err == nil {
			x.Protections = guards
		}
	case prober:
		err = r.Available()
	}
	if err != nil {
		f.OK, f.Detail = false, says(err)
	}
	x.Runners = append(x.Runners, f)
}

// skills says of each skill what would run it.
func (x *Examination) skills(s *config.Settings, all []skill.Runner) {
	r, err := Catalogue(s, Roots(s, nil))
	if err != nil {
		return
	}
	for _, p := range r.Problems() {
		x.Skills = append(x.Skills, Finding{Name: p.File, Detail: p.String()})
	}
	page, _, _ := r.List("", 0) // the first page is always there
	for _, d := range page {
		k, err := r.Get(d.ID, "")
		if err != nil {
			continue
		}
		f := Finding{Name: string(d.ID)}
		why := ready(all, k.Folder, k.Primary)
		f.OK, f.Detail = why == nil, "runs as "+string(k.Primary.Kind)
		if why != nil && k.Fallback != nil {
			second := ready(all, k.Folder, *k.Fallback)
			f.OK = second == nil
			if f.OK {
				f.Detail = "answers as " + string(k.Fallback.Kind) + ", because " + says(why)
			} else {
				f.Detail = says(why) + "; fallback: " + says(second)
			}
		} else if why != nil {
			f.Detail = says(why)
		}
		x.Skills = append(x.Skills, f)
	}
}

func ready(all []skill.Runner, folder string, t skill.Target) error {
	for _, r := range all {
		if r.Kind() == t.Kind {
			return r.Ready(folder, t.Entry)
		}
	}
	return fmt.Errorf("this host has no runner for %s", t.Kind)
}

// says gives the words of an error for the operator.
func says(err error) string {
	var e *skill.Error
	if errors.As(err, &e) && e.Message != "" {
		return e.Message
	}
	return err.Error()
}
