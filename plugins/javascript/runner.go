package javascript

import (
	"context"
	"errors"
	"sync"
	"time"

	"openskill/plugins/wasi/sandbox"
	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/guestfs"
)

// Runner executes scripts by QuickJS on an engine. It is safe for concurrent use.
type Runner struct {
	engine  *wasm.Engine
	runtime func() runtime // made by the first call of it
	files   []guestfs.Mount
	folders sandbox.Folders
	images  sandbox.Images
	gate    sandbox.Gate
}

var _ skill.Runner = (*Runner)(nil)

// Options configure a [Runner]; nil and zero fields mean the defaults.
type Options struct {
	// Outgoing makes the requests of scripts; nil: there is no network.
	Outgoing skill.Outgoing
}

// New makes a runner on the engine, which stays the caller's: it is shared with
// other runners and closed after them all. Nothing is compiled yet.
func New(e *wasm.Engine, opts *Options) *Runner {
	r := &Runner{engine: e, runtime: sync.OnceValue(newRuntime), files: files()}
	r.images = sandbox.Images{Engine: e, Folders: &r.folders}
	if opts != nil {
		r.images.Outgoing = opts.Outgoing
	}
	return r
}

// Kind is wasm:javascript.
func (r *Runner) Kind() skill.Kind { return skill.WasmJavaScript }

const hint = "add the script, or correct entry in skill.yaml"

// Ready implements [skill.Runner]. It looks for the script alone: the runtime is
// part of the host, and the first call compiles it if Warm did not.
func (r *Runner) Ready(folder, entry string) error {
	if err := r.gate.Enter("javascript.Ready"); err != nil {
		return err
	}
	defer r.gate.Leave()
	// Who owns the folder is not known here, and Run looks again.
	d, err := r.folders.Skill(folder, skill.Trusted)
	if err != nil {
		return err
	}
	defer d.Release()
	_, err = d.Entry(entry, hint)
	return err
}

// Available reports whether this host can run scripts at all.
func (r *Runner) Available(context.Context) error {
	if err := r.runtime().err; err != nil {
		return broken(err)
	}
	return nil
}

// Warm compiles the runtime, which takes a second or two the first time on a
// machine. The error is a *skill.Error, or ctx's; the work goes on when ctx ends.
func (r *Runner) Warm(ctx context.Context) error {
	if err := r.gate.Enter("javascript.Warm"); err != nil {
		return err
	}
	defer r.gate.Leave()
	_, err := r.module(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Close waits for the runs under way and closes the folders, but not the engine.
// It may be called twice.
func (r *Runner) Close() error {
	r.gate.Close()
	r.images.Close()
	return r.folders.Close()
}

// command is how a script is started; see doc.go.
var command = []string{"qjs", "--std", "--include", preludeFile}

// Run implements [skill.Runner].
func (r *Runner) Run(ctx context.Context, call *skill.Call) (*skill.Reply, error) {
	if err := r.gate.Enter("javascript.Run"); err != nil {
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
		return nil, broken(err)
	}
	return reply, nil
}

var errWaited = errors.New("the call ended before the runtime was compiled")

// start says how the script of a call is started.
func (r *Runner) start(ctx context.Context, call *skill.Call, granted *sandbox.Granted, began time.Time) (*sandbox.Start, error) {
	start := &sandbox.Start{Mounts: r.files, Env: call.Grants.Env, Each: len(call.Args) > 0, Fuel: startFuel}
	var err error
	if start.Entry, err = granted.Folder().Entry(call.Entry, hint); err != nil {
		return nil, err
	}
	start.Args = append(make([]string, 0, len(command)+1+len(call.Args)), command...)
	start.Args = append(append(start.Args, "/skill/"+call.Entry), call.Args...)

	within, stop := context.WithTimeout(ctx, call.Limits.Timeout-time.Since(began))
	defer stop()
	if start.Module, err = r.module(within); err != nil {
		if within.Err() != nil {
			return nil, errWaited
		}
		return nil, err
	}
	start.Name = r.runtime().digest
	return start, nil
}

// Start gets the image ready that calls like this one run on; its standard input is
// not looked at. Who wants short first calls does it ahead, in the background. The
// error may be of any kind: a call tells better what is wrong.
func (r *Runner) Start(ctx context.Context, call *skill.Call) error {
	if err := r.gate.Enter("javascript.Start"); err != nil {
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

// startFuel is what any script may use to start, in units: QuickJS takes some
// millions.
const startFuel = 1 << 28

// Module is the runtime of scripts and its digest, for who compiles it elsewhere.
func Module() (module []byte, digest string, err error) {
	rt := newRuntime()
	if rt.err != nil {
		return nil, "", broken(rt.err)
	}
	return rt.module, rt.digest, nil
}

// trusted lifts the caps for strangers: the module is the host's own choice.
var trusted = &wasm.CompileOptions{Trusted: true}

// module gives the compiled runtime. The error is a *skill.Error.
func (r *Runner) module(ctx context.Context) (*wasm.Module, error) {
	rt := r.runtime()
	if rt.err != nil {
		return nil, broken(rt.err)
	}
	if m, ok := r.engine.Lookup(rt.digest, trusted); ok {
		return m, nil
	}
	m, err := r.engine.Compile(ctx, rt.module, trusted)
	if err != nil {
		return nil, broken(err)
	}
	return m, nil
}

// broken is the host's own failure: the module is its own, so no verdict against
// it is the caller's fault.
func broken(err error) error {
	var refused *skill.Error
	if errors.As(err, &refused) {
		return err
	}
	return &skill.Error{Op: "javascript.Run", Code: skill.Internal, Message: "the JavaScript runtime failed", Err: err}
}
