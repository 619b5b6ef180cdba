package python

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"openskill/plugins/python/runtimes"
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
	// Imports finds the modules that the script of a skill imports; nil:
	// runtimes are chosen by what skills require alone.
	Imports func(ctx context.Context, s *skill.Spec, script []byte) ([]string, error)
	// Programs are those that scripts can start, which this is one of; nil: none.
	Programs *sandbox.Programs
}

// Runner executes scripts by a CPython on an engine. It is safe for concurrent use.
type Runner struct {
	planner planner
	library library
	calls   *sandbox.Calls
}

var _ skill.Runner = (*Runner)(nil)

// New makes a runner on the engine, which stays the caller's: it is shared with
// other runners and closed after them all; nil: calls are prepared here, and run elsewhere.
// Nothing is read or compiled yet.
func New(e *wasm.Engine, opts *Options) *Runner {
	if opts == nil {
		opts = &Options{}
	}
	store := runtimes.New(opts.StateDir)
	r := &Runner{
		planner: planner{
			choose: store.For, matters: store.Undecided, open: store.Open, imports: opts.Imports,
			runtimes: map[string]opened{}, scripts: map[scriptKey]imported{},
		},
		library: library{at: store.At},
	}
	r.calls = sandbox.NewCalls(sandbox.CallsOf{
		Engine: e, Op: "python", Runtime: "Python", Outgoing: opts.Outgoing, Programs: opts.Programs,
		Kind: skill.WasmPython, Names: []string{"python3", "python"}, ForCode: []string{"skill"}, Command: r.command, Plan: r.processes,
	})
	return r
}

// Kind is wasm:python.
func (r *Runner) Kind() skill.Kind { return skill.WasmPython }

const hint = "add the script, or correct entry in skill.yaml"

// Close waits for the runs under way and closes images, folders and runtimes, but
// not the engine. It does not wait for a compilation, which the engine cannot
// interrupt. It may be called twice.
func (r *Runner) Close() error {
	return errors.Join(r.calls.Close(), r.library.close())
}

// flags of the interpreter; see doc.go.
var flags = []string{"-B", "-s", "-u", "-X", "utf8", bootFile}

// startFuel is what any script may use to start, in units: CPython takes up to a
// thousand million, and a large package several times that.
const startFuel = 1 << 34

// startTime is how long a start-up may take: importing a large package takes seconds,
// and several times that where others use the processors.
const startTime = time.Minute

// Run implements [skill.Runner].
func (r *Runner) Run(ctx context.Context, call *skill.Call) (*skill.Reply, error) {
	return r.calls.Run(ctx, call, r.start)
}

// Program is [sandbox.Calls.Program], to see what many sandboxes cost that wait. It
// compiles the runtime if that is left to do.
func (r *Runner) Program(ctx context.Context, call *skill.Call) (*wasm.Program, error) {
	return r.calls.Program(ctx, call, r.start)
}

// command says how a process of a script's run becomes an interpreter.
func (r *Runner) command(_ *skill.Call, p *skill.Program) (*sandbox.Start, error) {
	l, err := r.library.get(p.Runtime)
	if err != nil {
		return nil, err
	}
	return &sandbox.Start{
		Name: l.name, Args: append([]string{l.run.Args0}, flags...),
		Env:  append(l.env(), "OPENSKILL_PROCESS=1", "TMPDIR=/tmp", "HOME=/tmp"),
		Fuel: startFuel, Time: startTime, Mounts: l.all(),
	}, nil
}

// start says how the script of a call is started.
func (r *Runner) start(call *skill.Call, folder *sandbox.Folder) (*sandbox.Start, error) {
	entry, err := sandbox.EntryOf(call, folder, hint)
	if err != nil {
		return nil, err
	}
	l, err := r.library.get(call.Plan.Runtime)
	if err != nil {
		return nil, err
	}
	dir := sandbox.Dir(call)
	args := append(make([]string, 0, len(flags)+2+len(call.Args)), l.run.Args0)
	args = append(append(args, flags...), dir+"/"+call.Entry)
	var head []byte
	if call.Script {
		head = arguments(call.Args)
	} else {
		args = append(args, call.Args...)
	}
	env := append(l.env(), "OPENSKILL_HEAP="+strconv.FormatUint(heap(call.Limits.Memory), 10))
	if call.Script {
		env = append(env, "PWD="+dir, "OPENSKILL_SCRIPT="+strings.Join(call.Plan.Imports, ","))
	}
	switch {
	case call.Code:
		env = append(env, "OPENSKILL_CODE=1")
		if call.Session != nil {
			env = append(env, "OPENSKILL_SESSION=1")
		}
	case len(call.Grants.Skills) > 0:
		env = append(env, "OPENSKILL_SKILLS=1")
	}
	env = append(env, call.Grants.Env...) // the first of a name counts
	switch {
	case call.Script:
		env = append(env, "TMPDIR=/tmp", "HOME=/tmp", "PATH=/usr/bin:/bin")
	case call.Grants.Scratch:
		env = append(env, "TMPDIR=/work", "HOME=/work")
	}
	return &sandbox.Start{
		Name: l.name, Args: args, Env: env, Entry: entry, Fuel: startFuel, Time: startTime,
		Each: len(call.Args) > 0 && !call.Script, Head: head,
		Mounts: l.all(),
	}, nil
}

// env is the environment of a runtime, without places to write: those are granted or not there.
func (l *shelved) env() []string {
	return slices.DeleteFunc(slices.Clone(l.run.Env), func(v string) bool {
		return strings.HasPrefix(v, "TMPDIR=") || strings.HasPrefix(v, "HOME=")
	})
}

// all are the files that each guest of a runtime sees.
func (l *shelved) all() []guestfs.Mount {
	return append(slices.Clone(l.mounts),
		guestfs.Mount{Path: "/dev/null", FS: guestfs.Null{}},
		guestfs.Mount{Path: "/dev/urandom", FS: guestfs.Chance{}}, // SQLite takes the time for a seed where it is not
	)
}

// arguments are those of a script as boot.py reads them, before what the script itself
// reads: their length in eight hexadecimal digits, and each with a zero after it.
func arguments(list []string) []byte {
	n := 0
	for _, a := range list {
		n += len(a) + 1
	}
	b := fmt.Appendf(make([]byte, 0, 8+n), "%08x", n)
	for _, a := range list {
		b = append(append(b, a...), 0)
	}
	return b
}
