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
// other runners and closed after them all. nil: calls are prepared here, and run elsewhere.
func New(e *wasm.Engine, opts *Options) *Runner {
	of := sandbox.CallsOf{Engine: e, Op: "wasi"}
	if opts != nil {
		of.Outgoing = opts.Outgoing
	}
	return &Runner{
		calls:   sandbox.NewCalls(of),
		modules: sandbox.Modules{Hint: hint},
	}
}

// Kind is wasm:wasi.
func (r *Runner) Kind() skill.Kind { return skill.WasmWASI }

// hint says where a module comes from.
const hint = "build it (openskill skill build; make skills builds those that come with openSkill) or correct entry in skill.yaml"

// Prepare implements [skill.Runner]. It looks for the module, and does not compile it.
func (r *Runner) Prepare(ctx context.Context, s *skill.Spec) (skill.Plan, error) {
	return r.calls.Prepare(ctx, s, func(_ context.Context, folder *sandbox.Folder) (plan skill.Plan, err error) {
		if folder != nil {
			plan.Module, err = r.modules.Of(folder, s)
		}
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

// Program gives what a call runs; see [sandbox.Calls.Program].
func (r *Runner) Program(ctx context.Context, call *skill.Call) (*wasm.Program, error) {
	return r.calls.Program(ctx, call, r.start)
}

// start says how the module of a call is started.
func (r *Runner) start(call *skill.Call, _ *sandbox.Folder) (*sandbox.Start, error) {
	return &sandbox.Start{
		Args: append(append(make([]string, 0, 1+len(call.Args)), call.Entry), call.Args...),
		Env:  call.Grants.Env, Each: len(call.Args) > 0, Fuel: startFuel,
	}, nil
}

// startFuel is what any module may use to start, in units: a Go program takes some
// millions before it reads its input.
const startFuel = 1 << 27
