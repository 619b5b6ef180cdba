package wasi

import (
	"context"

	"openskill/plugins/wasi/sandbox"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// Options configure a [Runner]; nil and zero fields mean the defaults.
type Options struct {
	// Outgoing makes the requests of guests; nil: there is no network.
	Outgoing skill.Outgoing
}

// Runner executes WASI commands on an engine. It is safe for concurrent use.
type Runner struct {
	calls   *sandbox.Calls
	modules sandbox.Modules
}

var _ skill.Runner = (*Runner)(nil)

// New makes a runner on the engine, which stays the caller's: it is shared with
// other runners and closed after them all.
func New(e *wasm.Engine, opts *Options) *Runner {
	of := sandbox.CallsOf{Engine: e, Op: "wasi", Hint: hint}
	if opts != nil {
		of.Outgoing = opts.Outgoing
	}
	return &Runner{
		calls:   sandbox.NewCalls(of),
		modules: sandbox.Modules{Engine: e, Op: of.Op, Hint: hint},
	}
}

// Kind is wasm:wasi.
func (r *Runner) Kind() skill.Kind { return skill.WasmWASI }

// hint says where a module comes from.
const hint = "build it (openskill skill build; make skills builds those that come with openSkill) or correct entry in skill.yaml"

// Ready implements [skill.Runner]. It looks for the module, and does not compile it.
func (r *Runner) Ready(folder, entry string) error { return r.calls.Ready(folder, entry) }

// Available reports whether this machine can run modules at all: it can.
func (r *Runner) Available(context.Context) error { return nil }

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

// Program gives what a call runs; see [sandbox.Calls.Program].
func (r *Runner) Program(ctx context.Context, call *skill.Call) (*wasm.Program, error) {
	return r.calls.Program(ctx, call, r.start)
}

// start says how the module of a call is started.
func (r *Runner) start(ctx context.Context, p *sandbox.Pending) (*sandbox.Start, error) {
	start := &sandbox.Start{
		Args: append(append(make([]string, 0, 1+len(p.Args)), p.Entry), p.Args...),
		Env:  p.Grants.Env, Each: len(p.Args) > 0, Fuel: startFuel,
	}
	var err error
	start.Module, start.Name, start.Entry, err = r.modules.Of(ctx, p)
	return start, err
}

// startFuel is what any module may use to start, in units: a Go program takes some
// millions before it reads its input.
const startFuel = 1 << 27
