package main

import (
	"context"
	"errors"
	"io"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/check"
	"openskill/wasm/guestfs"
)

// moduleRun is one run of module run.
type moduleRun struct {
	file, data      string
	dirs, env, args []string
	timeout         cliflag.Duration
	compile         cliflag.Duration
	fuel            *cliflag.Count
	memory          *cliflag.Count
	output          *cliflag.Count
	scratch         *cliflag.Count
	stats           bool
	report          string
}

func (a *cli) moduleRunCommand() *cobra.Command {
	o := &moduleRun{
		fuel: fuelFlag(), memory: memoryFlag(),
		output:  &cliflag.Count{Low: 1, High: 1 << 22, Name: "KB"},
		scratch: &cliflag.Count{Low: 1, High: 1 << 16, Name: "MB"},
		compile: cliflag.Duration{Value: 30 * time.Second},
	}
	cmd := &cobra.Command{
		Use:   "run FILE.wasm [-- ARGS…]",
		Short: "Run a WASI command in the sandbox",
		Long: `Run a WASI command. Its standard streams and exit code pass through; exit codes above
124 become 124. Exit code 125 means that openSkill ended or refused the run: a limit, a
trap, an invalid module. The last line on standard error then has the reason, {"error":
{"code": …, "message": …}}. A guest can print such a line, but cannot exit with 125.
--report writes the host's own record of the run to a file.

The guest sees only mounted files, all read-only, and only the environment of --env.`,
		Example: `  openskill module run program.wasm --timeout 2s --fuel 1000000000 -- an argument
  openskill module run cat.wasm --data ./data -- /data/intro.md
  openskill module run ls.wasm --dir ./docs:/docs --stats -- /docs`,
		Args: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			switch {
			case dash < 0:
				dash = len(args)
			case dash == 0:
				return usage("put the module's file before --")
			}
			if dash == 0 {
				return usage("name a module file")
			}
			if dash > 1 {
				return usage("%s: put arguments for the module after --", quote(args[1]))
			}
			return nil
		},
	}
	flags := bindSettings(cmd, "state")
	f := cmd.Flags()
	f.Var(o.fuel, "fuel", "fuel limit in units of about one instruction [OPENSKILL_FUEL]")
	f.Var(&o.timeout, "timeout", "time limit, such as 500ms [OPENSKILL_TIMEOUT_MS]")
	f.Var(o.memory, "memory-mb", "memory limit in MiB [OPENSKILL_MEMORY_MB]")
	f.Var(o.output, "output-kb", "limit of standard output, and of standard error, in KiB [OPENSKILL_OUTPUT_KB]")
	f.Var(o.scratch, "scratch-mb", "size of an empty, writable /work in MiB; default: none")
	f.Var(&o.compile, "compile-timeout", "time limit of compilation")
	f.Var(cliflag.Text(&o.data, "DIR"), "data", "folder to mount read-only as /data")
	f.Var(cliflag.Texts(&o.dirs, "HOST:GUEST"), "dir", "read-only folder, mounted at GUEST; default for GUEST: / and its last name; / makes it the root; repeatable")
	f.Var(cliflag.Texts(&o.env, "K=V"), "env", "environment variable of the guest; repeatable")
	f.BoolVar(&o.stats, "stats", false, "print fuel, peak memory and times as JSON on standard error")
	f.Var(cliflag.Text(&o.report, "FILE"), "report", "output file for the run's end as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.file, o.args = args[0], args[1:]
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		r, err := openReport(o.report)
		if err != nil {
			return err
		}
		return r.finish(a.runModule(cmd.Context(), s, o, r))
	}
	return cmd
}

func (a *cli) runModule(ctx context.Context, s *config.Settings, o *moduleRun, report *runReport) error {
	began := time.Now()
	for _, kv := range append(append([]string{}, o.env...), o.args...) {
		if strings.ContainsRune(kv, 0) {
			return usage("arguments and environment cannot hold zero bytes")
		}
	}
	for _, kv := range o.env {
		if k, _, ok := strings.Cut(kv, "="); !ok || k == "" {
			return usage("--env %s: want K=V", quote(kv))
		}
	}
	files, scratch, closeFiles, err := o.files()
	defer closeFiles()
	if err != nil {
		return err
	}
	b, size, err := readModule(o.file)
	if err != nil {
		return err
	}
	if b == nil {
		return refusedSize(size)
	}
	// Without a cache folder modules run as well, only slower.
	engine, err := app.OpenEngine(app.CacheDir(s.StateDir)) // nothing to wait for
	if err != nil {
		engine, err = app.OpenEngine("")
	}
	if err != nil {
		return hostFailed(err)
	}
	m, err := compile(ctx, engine, b, o.compile.Value)
	if err != nil {
		return err // the engine may still be at it: it ends with the process
	}
	compiled := time.Since(began)
	defer engine.Close()

	limits := o.limits(s)
	live, stop := context.WithTimeout(ctx, limits.Timeout)
	defer stop()
	stdout, stderr := newLiveWriter(live, a.stdout), newLiveWriter(live, a.stderr)
	defer stdout.Close()
	defer stderr.Close()
	out, err := m.Run(ctx, &wasm.Run{
		Args: append([]string{moduleName(o.file)}, o.args...), Env: o.env,
		Stdin: a.stdin, Stdout: stdout, Stderr: stderr, Files: files, Scratch: scratch, Limits: limits,
	})
	if stderr.midLine() {
		a.say("")
	}
	if out != nil {
		report.GuestExitCode = &out.ExitCode
		report.Stats = newStats(out, compiled, time.Since(began))
		if o.stats {
			_ = writeJSON(a.stderr, map[string]*statsBody{"stats": report.Stats})
		}
	}
	return ending(out, err, limits)
}

// limits are those of the flags, and of the settings where there is no flag. The
// host's caps do not hold: this is the operator's own command.
func (o *moduleRun) limits(s *config.Settings) wasm.Limits {
	d := s.Defaults()
	l := wasm.Limits{Fuel: d.Fuel, Memory: d.Memory, Timeout: d.Timeout, Output: int64(d.Output)}
	if o.fuel.Value > 0 {
		l.Fuel = o.fuel.Value
	}
	if o.memory.Value > 0 {
		l.Memory = o.memory.Value << 20
	}
	if o.timeout.Value > 0 {
		l.Timeout = o.timeout.Value
	}
	if o.output.Value > 0 {
		l.Output = int64(o.output.Value) << 10
	}
	return l
}

// compile bounds the time: it cannot be interrupted, but the process ends.
func compile(ctx context.Context, e *wasm.Engine, b []byte, most time.Duration) (*wasm.Module, error) {
	bounded, stop := context.WithTimeout(ctx, most)
	defer stop()
	m, err := e.Compile(bounded, b, nil)
	switch refused, ok := errors.AsType[*check.Error](err); {
	case err == nil:
		return m, nil
	case ok:
		return nil, failed(skill.Code(refused.Code), "%s", refused.Error())
	case ctx.Err() != nil:
		return nil, failed(skill.Cancelled, "interrupted before the module was compiled")
	case bounded.Err() != nil:
		return nil, failed(skill.CompileTimeout, "the module was not compiled within %s; raise --compile-timeout", most)
	}
	return nil, hostFailed(err)
}

// files puts the guest's files together; scratch are those of them that it can write, nil
// if there are none. The function closes what was opened.
func (o *moduleRun) files() (all guestfs.FS, scratch *guestfs.Memory, done func(), err error) {
	var open []io.Closer
	closeAll := func() {
		for _, c := range open {
			_ = c.Close() // read only
		}
	}
	var mounts []guestfs.Mount
	var root guestfs.FS
	dirs := o.dirs
	if o.data != "" {
		dirs = append([]string{o.data + ":/data"}, dirs...)
	}
	for _, spec := range dirs {
		from, to, err := splitDir(spec)
		if err != nil {
			return nil, nil, closeAll, err
		}
		dir, err := guestfs.OpenDir(from)
		if err != nil {
			return nil, nil, closeAll, usage("cannot open the folder %s: %v", quote(from), plain(err))
		}
		open = append(open, dir)
		if to == "/" {
			root = dir
		} else {
			mounts = append(mounts, guestfs.Mount{Path: to, FS: dir})
		}
	}
	if o.scratch.Value > 0 {
		scratch = guestfs.NewMemory(guestfs.Limits{Bytes: int64(o.scratch.Value) << 20})
		mounts = append(mounts, guestfs.Mount{Path: "/work", FS: scratch})
	}
	switch {
	case root != nil && (len(mounts) > 0 || len(open) > 1):
		return nil, nil, closeAll, usage("a folder at / must be the only one")
	case root != nil:
		return root, nil, closeAll, nil
	case len(mounts) == 0:
		return nil, nil, closeAll, nil
	}
	tree, err := guestfs.NewTree(mounts...)
	if err != nil {
		return nil, nil, closeAll, usage("cannot mount the folders: %v", err)
	}
	return tree, scratch, closeAll, nil
}

// splitDir reads HOST:GUEST, or HOST alone.
func splitDir(spec string) (from, to string, err error) {
	i := strings.LastIndexByte(spec, ':')
	if runtime.GOOS == "windows" && i == 1 {
		i = -1 // the colon of a drive
	}
	if i < 0 {
		abs, err := filepath.Abs(spec)
		if err != nil {
			return "", "", hostFailed(err)
		}
		spec, i = spec+":/"+filepath.Base(abs), len(spec)
	}
	from, to = spec[:i], spec[i+1:]
	if from == "" || to == "" {
		return "", "", usage("--dir %s: want HOST:GUEST", quote(spec))
	}
	return from, path.Clean("/" + filepath.ToSlash(to)), nil
}

// ending turns the end of a run into the end of the command.
func ending(out *wasm.Outcome, err error, l wasm.Limits) error {
	switch entry, ok := errors.AsType[*wasm.NoEntryError](err); {
	case ok:
		return failed(skill.InvalidModule, "%s", entry.Error())
	case err != nil:
		return hostFailed(err)
	}
	switch out.Ended {
	case wasm.Returned:
		return nil
	case wasm.Exited:
		return guestExit(out.ExitCode)
	case wasm.Trapped:
		return failed(skill.Trap, "the module trapped: %s", out.Trap)
	case wasm.OutOfFuel:
		return failed(skill.FuelExhausted, "the run used up its %d units of fuel; raise --fuel", l.Fuel)
	case wasm.OutOfTime:
		return failed(skill.Timeout, "the run did not end within %s; raise --timeout", l.Timeout)
	case wasm.OutOfMemory:
		return failed(skill.MemoryLimit, "the run needs more memory than its %d MiB; raise --memory-mb", l.Memory>>20)
	case wasm.OutOfTable:
		return failed(skill.TableLimit, "the run exceeded the table limit")
	case wasm.OutOfStack:
		return failed(skill.StackLimit, "calls were nested too deeply")
	case wasm.OutputOverflow:
		return failed(skill.OutputLimit, "the run wrote more than %d KiB; raise --output-kb", l.Output>>10)
	case wasm.Cancelled:
		return failed(skill.Cancelled, "interrupted")
	case wasm.Diverged: // nothing is replayed here
	}
	return hostFailed(errors.New("the run ended in an unknown way: " + out.Ended.String()))
}

// statsBody is what --stats prints and --report has.
type statsBody struct {
	Ended           string  `json:"ended"` // by what; a guest cannot forge it
	ExitCode        *uint32 `json:"exit_code,omitempty"`
	FuelUsed        uint64  `json:"fuel_used"`
	MemoryPeakBytes uint64  `json:"memory_peak_bytes"`
	CompileMS       float64 `json:"compile_ms"` // or loading from the cache
	InstantiateMS   float64 `json:"instantiate_ms"`
	RunMS           float64 `json:"run_ms"` // instantiating included
	TotalMS         float64 `json:"total_ms"`
}

func newStats(out *wasm.Outcome, compiled, total time.Duration) *statsBody {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	t := &statsBody{
		Ended: out.Ended.String(), FuelUsed: out.Fuel, MemoryPeakBytes: out.MemoryPeak,
		CompileMS: ms(compiled), InstantiateMS: ms(out.Instantiate), RunMS: ms(out.Total), TotalMS: ms(total),
	}
	if out.Ended == wasm.Exited {
		t.ExitCode = &out.ExitCode
	}
	return t
}
