package shell

import (
	"context"
	"fmt"
	"strings"

	"openskill/plugins/wasi/sandbox"
	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/guestfs"
)

// Options configure a [Runner].
type Options struct {
	// StateDir is the host's state folder; "" means .openskill in the working
	// directory.
	StateDir string
	// Outgoing makes the requests of scripts; nil: there is no network.
	Outgoing skill.Outgoing
	// Programs are those that scripts can start, which this is many of; nil: none.
	Programs *sandbox.Programs
}

// Runner executes shell scripts on an engine. It is safe for concurrent use.
type Runner struct {
	runtime  *runtime
	calls    *sandbox.Calls
	programs *sandbox.Programs
}

var _ skill.Runner = (*Runner)(nil)

// New makes a runner on the engine, which stays the caller's: it is shared with
// other runners and closed after them all; nil: calls are prepared here, and run elsewhere.
// Nothing is read or compiled yet.
func New(e *wasm.Engine, opts *Options) *Runner {
	if opts == nil {
		opts = &Options{}
	}
	r := &Runner{runtime: newRuntime(opts.StateDir), programs: opts.Programs}
	r.calls = sandbox.NewCalls(sandbox.CallsOf{
		Engine: e, Op: "shell", Runtime: "shell", Outgoing: opts.Outgoing, Programs: opts.Programs,
		Kind: skill.WasmShell, Names: commands, Command: r.command,
		Plan: func(context.Context, *skill.Spec) (plan skill.Plan, err error) {
			plan.Module, err = r.runtime.module()
			return plan, err
		},
	})
	return r
}

// Kind is wasm:shell.
func (r *Runner) Kind() skill.Kind { return skill.WasmShell }

const hint = "add the script, or correct entry in skill.yaml"

// Prepare implements [skill.Runner]. It looks for the script and for the module.
func (r *Runner) Prepare(ctx context.Context, s *skill.Spec) (skill.Plan, error) {
	return r.calls.Prepare(ctx, s, func(_ context.Context, folder *sandbox.Folder) (plan skill.Plan, err error) {
		if folder != nil && s.Code == nil {
			if _, err := folder.Entry(s.Entry, hint); err != nil {
				return skill.Plan{}, err
			}
		}
		plan.Module, err = r.runtime.module()
		return plan, err
	})
}

// Close waits for the runs under way and closes the folders, but not the engine.
// It may be called twice.
func (r *Runner) Close() error { return r.calls.Close() }

// Run implements [skill.Runner].
func (r *Runner) Run(ctx context.Context, call *skill.Call) (*skill.Reply, error) {
	return r.calls.Run(ctx, call, r.start)
}

// startFuel is what the shell may use to start, in units: it takes some millions.
const startFuel = 1 << 28

// mounts are the files that every guest of the shell sees beside its own.
func mounts() []guestfs.Mount {
	return []guestfs.Mount{
		{Path: "/dev/null", FS: guestfs.Null{}},
		{Path: "/dev/urandom", FS: guestfs.Chance{}},
	}
}

// command says how a process of a script's run becomes the shell, or one of its commands.
func (r *Runner) command(call *skill.Call, _ *skill.Program) (*sandbox.Start, error) {
	env := []string{"OPENSKILL_PROCESS=1", "PWD=/", r.names(call)}
	return &sandbox.Start{Args: []string{"bash"}, Env: env, Fuel: startFuel, Mounts: mounts()}, nil
}

// names tells the shell which commands are other programs.
func (r *Runner) names(call *skill.Call) string {
	return "OPENSKILL_PROGRAMS=" + strings.Join(r.programs.Of(call, skill.WasmShell), " ")
}

// start says how the script of a call is started. The image is that of the shell, not of the
// script: what it runs comes with its input.
func (r *Runner) start(call *skill.Call, folder *sandbox.Folder) (*sandbox.Start, error) {
	if _, err := sandbox.EntryOf(call, folder, hint); err != nil {
		return nil, err
	}
	dir, cwd := sandbox.Dir(call), "/"
	start := &sandbox.Start{
		Args: []string{"bash"}, Fuel: startFuel, Head: arguments(dir+"/"+call.Entry, call.Args), Mounts: mounts(),
	}
	switch {
	case call.Script:
		cwd = dir
		start.Env = []string{"HOME=/tmp", "TMPDIR=/tmp", r.names(call)}
	case call.Grants.Scratch:
		start.Env = []string{"HOME=/work", "TMPDIR=/work"}
	}
	start.Env = append(append(start.Env, "PATH=/usr/bin:/bin", "PWD="+cwd), call.Grants.Env...)
	return start, nil
}

// arguments are a script and its arguments as the module reads them, before what the script
// itself reads: their length in eight hexadecimal digits, and each with a zero after it.
func arguments(script string, list []string) []byte {
	n := len(script) + 1
	for _, a := range list {
		n += len(a) + 1
	}
	b := fmt.Appendf(make([]byte, 0, 8+n), "%08x%s\x00", n, script)
	for _, a := range list {
		b = append(append(b, a...), 0)
	}
	return b
}
