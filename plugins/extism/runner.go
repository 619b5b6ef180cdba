package extism

import (
	"context"

	"openskill/plugins/wasi/sandbox"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// Options configure a [Runner]; nil and zero fields mean the defaults.
type Options struct {
	// Outgoing makes the requests of plug-ins; nil: there is no network.
	Outgoing skill.Outgoing
}

// Runner executes plug-ins on an engine. It is safe for concurrent use.
type Runner struct {
	calls   *sandbox.Calls
	modules sandbox.Modules
}

var _ skill.Runner = (*Runner)(nil)

// hint says where a plug-in comes from.
const hint = "build it, or correct entry in skill.yaml"

// startFuel is what any plug-in may use to start, in units, as for other modules.
const startFuel = 1 << 27

// New makes a runner on the engine, which stays the caller's: it is shared with
// other runners and closed after them all.
func New(e *wasm.Engine, opts *Options) *Runner {
	of := sandbox.CallsOf{Engine: e, Op: "extism", Make: Command}
	if opts != nil {
		of.Outgoing = opts.Outgoing
	}
	return &Runner{
		calls:   sandbox.NewCalls(of),
		modules: sandbox.Modules{Hint: hint, Split: Split},
	}
}

// Kind is wasm:extism.
func (r *Runner) Kind() skill.Kind { return skill.WasmExtism }

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

// start says how the plug-in of a call is started.
func (r *Runner) start(call *skill.Call, _ *sandbox.Folder) (*sandbox.Start, error) {
	file, _ := Split(call.Entry)
	return &sandbox.Start{
		Args: append([]string{file}, call.Args...),
		Env:  call.Grants.Env, Each: len(call.Args) > 0, Fuel: startFuel, Plugin: true,
	}, nil
}
