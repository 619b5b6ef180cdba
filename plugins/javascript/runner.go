package javascript

import (
	"context"
	"slices"
	"sync"

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
	command []string // how a script is started; see doc.go
	calls   *sandbox.Calls
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
	of := sandbox.CallsOf{Engine: e, Op: "javascript", Hint: hint, Runtime: "JavaScript"}
	if opts != nil {
		of.Outgoing = opts.Outgoing
	}
	return &Runner{engine: e, runtime: sync.OnceValue(newRuntime), files: files(), command: []string{"qjs", "--std", "--include", preludeFile}, calls: sandbox.NewCalls(of)}
}

// Kind is wasm:javascript.
func (r *Runner) Kind() skill.Kind { return skill.WasmJavaScript }

const hint = "add the script, or correct entry in skill.yaml"

// Ready implements [skill.Runner]. It looks for the script alone: the runtime is
// part of the host, and the first call compiles it if Warm did not.
func (r *Runner) Ready(folder, entry string) error { return r.calls.Ready(folder, entry) }

// Available reports whether this host can run scripts at all.
func (r *Runner) Available(context.Context) error {
	if err := r.runtime().err; err != nil {
		return r.calls.Broken(err)
	}
	return nil
}

// Warm compiles the runtime, which takes a second or two the first time on a
// machine. The error is a *skill.Error, or ctx's; the work goes on when ctx ends.
func (r *Runner) Warm(ctx context.Context) error {
	if err := r.calls.Gate.Enter("javascript.Warm"); err != nil {
		return err
	}
	defer r.calls.Gate.Leave()
	_, err := r.compile(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Close waits for the runs under way and closes the folders, but not the engine.
// It may be called twice.
func (r *Runner) Close() error { return r.calls.Close() }

// Run implements [skill.Runner].
func (r *Runner) Run(ctx context.Context, call *skill.Call) (*skill.Reply, error) {
	return r.calls.Run(ctx, call, r.start)
}

// Start is [sandbox.Calls.Start].
func (r *Runner) Start(ctx context.Context, call *skill.Call) error {
	return r.calls.Start(ctx, call, r.start)
}

// startFuel is what any script may use to start, in units: QuickJS takes some
// millions.
const startFuel = 1 << 28

// start says how the script of a call is started.
func (r *Runner) start(ctx context.Context, p *sandbox.Pending) (*sandbox.Start, error) {
	start := &sandbox.Start{Mounts: r.files, Env: p.Grants.Env, Each: len(p.Args) > 0, Fuel: startFuel, Name: r.runtime().digest}
	var err error
	if start.Entry, err = p.Folder.Entry(p.Entry, hint); err != nil {
		return nil, err
	}
	start.Args = append(make([]string, 0, len(r.command)+1+len(p.Args)), r.command...)
	start.Args = append(append(start.Args, sandbox.Dir(p.Call)+"/"+p.Entry), p.Args...)
	if p.Script { // a start takes a millisecond, so that each run has its own
		start.Each = true
		start.Mounts = append(slices.Clone(start.Mounts), modules(sandbox.Dir(p.Call)+"/", true)...)
		start.Env = append([]string{"PWD=" + sandbox.Dir(p.Call), "HOME=/tmp", "TMPDIR=/tmp"}, start.Env...)
	}
	var ok bool
	if start.Module, ok = r.engine.Lookup(start.Name, trusted); ok {
		return start, nil
	}
	err = p.Within(ctx, func(ctx context.Context) error {
		start.Module, err = r.compile(ctx)
		return err
	})
	return start, err
}

// Module is the runtime of scripts and its digest, for who compiles it elsewhere.
func Module() (module []byte, digest string, err error) {
	rt := newRuntime()
	if rt.err != nil {
		return nil, "", rt.err
	}
	return rt.module, rt.digest, nil
}

// trusted lifts the caps for strangers: the module is the host's own choice.
var trusted = &wasm.CompileOptions{Trusted: true}

// compile gives the compiled runtime. The error is a *skill.Error.
func (r *Runner) compile(ctx context.Context) (*wasm.Module, error) {
	rt := r.runtime()
	if rt.err != nil {
		return nil, r.calls.Broken(rt.err)
	}
	m, err := r.engine.Compile(ctx, rt.module, trusted)
	if err != nil {
		return nil, r.calls.Broken(err)
	}
	return m, nil
}
