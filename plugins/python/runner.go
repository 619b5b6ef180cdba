package python

import (
	"context"
	"errors"
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
	folders sandbox.Folders
	images  sandbox.Images
	gate    sandbox.Gate
}

var _ skill.Runner = (*Runner)(nil)

// New makes a runner on the engine, which stays the caller's: it is shared with
// other runners and closed after them all. Nothing is read or compiled yet.
func New(e *wasm.Engine, opts *Options) *Runner {
	if opts == nil {
		opts = &Options{}
	}
	r := newRunner(e, runtimes.New(opts.StateDir))
	r.images.Outgoing = opts.Outgoing
	return r
}

func newRunner(e *wasm.Engine, c catalogue) *Runner {
	r := &Runner{engine: e}
	r.library.engine, r.library.catalogue = e, c
	r.choices.catalogue = c
	r.images = sandbox.Images{Engine: e, Folders: &r.folders}
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
	if err := r.gate.Enter("python.Ready"); err != nil {
		return err
	}
	defer r.gate.Leave()
	name, err := r.library.catalogue.For(requires, nil)
	if err != nil {
		return err
	}
	if err := r.library.loaded(name); err != nil {
		return err
	}
	// Who owns the folder is not known here, and Run looks again.
	d, err := r.folders.Skill(folder, skill.Trusted)
	if err != nil {
		return err
	}
	defer d.Release()
	_, err = d.Entry(entry, hint)
	return err
}

// Available reports whether a runtime is there and compiled; the error is a
// *skill.Error that says in one line what is missing. Unlike Ready it begins
// nothing, and waits for a compilation under way until ctx ends.
func (r *Runner) Available(ctx context.Context) error { return r.AvailableWith(ctx, nil) }

// AvailableWith is Available for the runtime that has the packages.
func (r *Runner) AvailableWith(ctx context.Context, requires []string) error {
	if err := r.gate.Enter("python.Available"); err != nil {
		return err
	}
	defer r.gate.Leave()
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
	if err := r.gate.Enter("python.Warm"); err != nil {
		return err
	}
	defer r.gate.Leave()
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
	r.gate.Close()
	r.images.Close()
	return errors.Join(r.folders.Close(), r.library.close())
}

// flags of the interpreter; see doc.go.
var flags = []string{"-B", "-s", "-X", "utf8", bootFile}

// startFuel is what any script may use to start, in units: CPython takes up to a
// thousand million, and a large package several times that.
const startFuel = 1 << 34

// startTime is how long a start-up may take: importing a large package takes seconds,
// and several times that where others use the processors.
const startTime = time.Minute

// Run implements [skill.Runner]. A call that comes before the runtime is compiled
// waits for it, within its own time.
func (r *Runner) Run(ctx context.Context, call *skill.Call) (*skill.Reply, error) {
	if err := r.gate.Enter("python.Run"); err != nil {
		return nil, err
	}
	defer r.gate.Leave()
	began := time.Now() //nolint:forbidigo // a limit of real time
	if ctx.Err() != nil {
		return sandbox.Gone(), nil
	}
	granted, err := r.folders.Grant(call)
	if err != nil {
		return nil, err
	}
	defer granted.Close()
	start, err := r.start(ctx, call, granted, began)
	switch {
	case errors.Is(err, errWaited):
		return sandbox.Waited(ctx, &call.Limits), nil
	case err != nil:
		return nil, err
	}
	reply, err := r.images.Run(ctx, call, granted, start, began)
	if err != nil {
		var refused *skill.Error
		if errors.As(err, &refused) {
			return nil, err
		}
		// The module is the host's own, so no verdict against it is the caller's fault.
		return nil, &skill.Error{Op: "python.Run", Code: skill.Internal, Message: "the Python runtime failed", Err: err}
	}
	return reply, nil
}

// Start gets the image ready that calls like this one run on; its standard input is
// not looked at. Who wants short first calls does it ahead, in the background. The
// error may be of any kind: a call tells better what is wrong.
func (r *Runner) Start(ctx context.Context, call *skill.Call) error {
	if err := r.gate.Enter("python.Start"); err != nil {
		return err
	}
	defer r.gate.Leave()
	granted, err := r.folders.Grant(call)
	if err != nil {
		return err
	}
	defer granted.Close()
	start, err := r.start(ctx, call, granted, time.Now()) //nolint:forbidigo // as in Run
	if err != nil {
		return err
	}
	return r.images.Warm(ctx, call, granted, start)
}

var errWaited = errors.New("the call ended before the runtime was compiled")

// start says how the script of a call is started.
func (r *Runner) start(ctx context.Context, call *skill.Call, granted *sandbox.Granted, began time.Time) (*sandbox.Start, error) {
	entry, err := granted.Folder().Entry(call.Entry, hint)
	if err != nil {
		return nil, err
	}
	name, err := r.choices.runtime(granted.Folder(), call, entry)
	if err != nil {
		return nil, err
	}
	within, stop := context.WithTimeout(ctx, call.Limits.Timeout-time.Since(began))
	defer stop()
	l, err := r.library.get(within, name)
	if err != nil {
		if within.Err() != nil {
			return nil, errWaited
		}
		return nil, err
	}
	m, ok := r.engine.Lookup(l.run.Module.Digest, trusted)
	if !ok { // other modules have pushed it out of memory since
		if m, err = l.compile(within, r.engine); err != nil {
			if within.Err() != nil {
				return nil, errWaited
			}
			return nil, err
		}
	}
	args := append(make([]string, 0, len(flags)+2+len(call.Args)), l.run.Args0)
	args = append(append(append(args, flags...), "/skill/"+call.Entry), call.Args...)
	env := slices.DeleteFunc(slices.Clone(l.run.Env), func(v string) bool {
		return strings.HasPrefix(v, "TMPDIR=") || strings.HasPrefix(v, "HOME=") // a place to write is granted or not there
	})
	env = append(env, "OPENSKILL_HEAP="+strconv.FormatUint(heap(call.Limits.Memory), 10))
	if call.Grants.Scratch {
		env = append(env, "TMPDIR=/work", "HOME=/work")
	}
	env = append(env, call.Grants.Env...)
	return &sandbox.Start{
		Module: m, Name: l.run.Module.Digest, Args: args, Env: env, Entry: entry, Fuel: startFuel, Time: startTime, Each: len(call.Args) > 0,
		Mounts: append(slices.Clone(l.mounts), guestfs.Mount{Path: bootFile, FS: l.boot}),
	}, nil
}
