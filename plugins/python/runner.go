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
}

// Runner executes scripts by a CPython on an engine. It is safe for concurrent use.
type Runner struct {
	engine  *wasm.Engine
	library library
	choices choices
	calls   *sandbox.Calls
}

var _ skill.Runner = (*Runner)(nil)

// New makes a runner on the engine, which stays the caller's: it is shared with
// other runners and closed after them all. Nothing is read or compiled yet.
func New(e *wasm.Engine, opts *Options) *Runner {
	if opts == nil {
		opts = &Options{}
	}
	return newRunner(e, runtimes.New(opts.StateDir), opts.Outgoing)
}

func newRunner(e *wasm.Engine, c catalogue, outgoing skill.Outgoing) *Runner {
	r := &Runner{engine: e, calls: sandbox.NewCalls(sandbox.CallsOf{
		Engine: e, Op: "python", Hint: hint, Runtime: "Python", Outgoing: outgoing,
	})}
	r.library.engine, r.library.catalogue = e, c
	r.choices.catalogue = c
	return r
}

// Kind is wasm:python.
func (r *Runner) Kind() skill.Kind { return skill.WasmPython }

const hint = "add the script, or correct entry in skill.yaml"

// Ready implements [skill.Runner]. It is an error while the default runtime is not
// compiled; the first call begins with that, unless Warm did.
func (r *Runner) Ready(folder, entry string) error { return r.ReadyWith(folder, entry, nil) }

// ReadyWith is Ready for a skill that requires packages, on the runtime that has them.
func (r *Runner) ReadyWith(folder, entry string, requires []string) error {
	name, err := r.library.catalogue.For(requires, nil)
	if err != nil {
		return err
	}
	if err := r.library.loaded(name); err != nil {
		return err
	}
	return r.calls.Ready(folder, entry)
}

// Available reports whether a runtime is there and compiled; the error is a
// *skill.Error that says in one line what is missing. Unlike Ready it begins
// nothing, and waits for a compilation under way until ctx ends.
func (r *Runner) Available(ctx context.Context) error { return r.AvailableWith(ctx, nil) }

// AvailableWith is Available for the runtime that has the packages.
func (r *Runner) AvailableWith(ctx context.Context, requires []string) error {
	if err := r.calls.Gate.Enter("python.Available"); err != nil {
		return err
	}
	defer r.calls.Gate.Leave()
	name, err := r.library.catalogue.For(requires, nil)
	if err != nil {
		return err
	}
	return r.library.underWay(ctx, name)
}

// Warm loads and compiles the default runtime, and returns when scripts can run. A
// host calls it in the background when it starts: its cost is documented in the
// package. The error is a *skill.Error, or ctx's; the work goes on when ctx ends.
func (r *Runner) Warm(ctx context.Context) error { return r.WarmWith(ctx, nil) }

// WarmWith is Warm for the runtime that has the packages.
func (r *Runner) WarmWith(ctx context.Context, requires []string) error {
	if err := r.calls.Gate.Enter("python.Warm"); err != nil {
		return err
	}
	defer r.calls.Gate.Leave()
	name, err := r.library.catalogue.For(requires, nil)
	if err != nil {
		return err
	}
	_, err = r.library.get(ctx, name)
	return err
}

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

// Run implements [skill.Runner]. A call that comes before the runtime is compiled
// waits for it, within its own time.
func (r *Runner) Run(ctx context.Context, call *skill.Call) (*skill.Reply, error) {
	return r.calls.Run(ctx, call, r.start)
}

// Start is [sandbox.Calls.Start].
func (r *Runner) Start(ctx context.Context, call *skill.Call) error {
	return r.calls.Start(ctx, call, r.start)
}

// Program is [sandbox.Calls.Program], to see what many sandboxes cost that wait. It
// compiles the runtime if that is left to do.
func (r *Runner) Program(ctx context.Context, call *skill.Call) (*wasm.Program, error) {
	return r.calls.Program(ctx, call, r.start)
}

// start says how the script of a call is started.
func (r *Runner) start(ctx context.Context, p *sandbox.Pending) (*sandbox.Start, error) {
	entry, err := p.Folder.Entry(p.Entry, hint)
	if err != nil {
		return nil, err
	}
	chosen, err := r.choices.runtime(p, entry)
	if err != nil {
		return nil, err
	}
	l, m, err := r.loaded(ctx, p, chosen.name)
	if err != nil {
		return nil, err
	}
	args := append(make([]string, 0, len(flags)+2+len(p.Args)), l.run.Args0)
	args = append(append(args, flags...), sandbox.Dir(p.Call)+"/"+p.Entry)
	var head []byte
	if p.Script {
		head = arguments(p.Args)
	} else {
		args = append(args, p.Args...)
	}
	env := slices.DeleteFunc(slices.Clone(l.run.Env), func(v string) bool {
		return strings.HasPrefix(v, "TMPDIR=") || strings.HasPrefix(v, "HOME=") // a place to write is granted or not there
	})
	env = append(env, "OPENSKILL_HEAP="+strconv.FormatUint(heap(p.Limits.Memory), 10))
	switch {
	case p.Script:
		env = append(env, "TMPDIR=/tmp", "HOME=/tmp", "PWD="+sandbox.Dir(p.Call), "OPENSKILL_SCRIPT="+strings.Join(chosen.imports, ","))
	case p.Grants.Scratch:
		env = append(env, "TMPDIR=/work", "HOME=/work")
	}
	env = append(env, p.Grants.Env...)
	return &sandbox.Start{
		Module: m, Name: l.name, Args: args, Env: env, Entry: entry, Fuel: startFuel, Time: startTime,
		Each: len(p.Args) > 0 && !p.Script, Head: head,
		Mounts: append(slices.Clone(l.mounts),
			guestfs.Mount{Path: bootFile, FS: l.boot},
			guestfs.Mount{Path: "/dev/null", FS: guestfs.Null{}},
			guestfs.Mount{Path: "/dev/urandom", FS: guestfs.Chance{}}, // SQLite takes the time for a seed where it is not
		),
	}, nil
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

// loaded gives a runtime and its module, and waits for both if it must.
func (r *Runner) loaded(ctx context.Context, p *sandbox.Pending, name string) (l *loading, m *wasm.Module, err error) {
	err = p.Within(ctx, func(ctx context.Context) error {
		if l, err = r.library.get(ctx, name); err != nil {
			return err
		}
		var ok bool
		if m, ok = r.engine.Lookup(l.run.Module.Digest, trusted); !ok { // other modules have pushed it out of memory since
			m, err = l.compile(ctx, r.engine)
		}
		return err
	})
	return l, m, err
}
