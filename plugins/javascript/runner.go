package javascript

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"

	"openskill/plugins/wasi/sandbox"
	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/guestfs"
)

// Runner executes scripts by QuickJS on an engine. It is safe for concurrent use.
type Runner struct {
	runtime func() runtime // made by the first call of it
	files   []guestfs.Mount
	node    []guestfs.Mount // of scripts written for Node
	command []string        // how a script is started; see doc.go
	calls   *sandbox.Calls
}

var _ skill.Runner = (*Runner)(nil)

// Options configure a [Runner]; nil and zero fields mean the defaults.
type Options struct {
	// Outgoing makes the requests of scripts; nil: there is no network.
	Outgoing skill.Outgoing
	// Programs are those that scripts can start, which Node is one of; nil: none.
	Programs *sandbox.Programs
}

// New makes a runner on the engine, which stays the caller's: it is shared with
// other runners and closed after them all. Nothing is compiled yet.
func New(e *wasm.Engine, opts *Options) *Runner {
	if opts == nil {
		opts = &Options{}
	}
	r := &Runner{runtime: sync.OnceValue(newRuntime), files: files(), node: nodeFiles(), command: []string{"qjs", "--std", "--include", preludeFile}}
	of := sandbox.CallsOf{Engine: e, Op: "javascript", Runtime: "JavaScript", Outgoing: opts.Outgoing, Programs: opts.Programs}
	if HasNode() {
		of.Kind, of.Names, of.Command = skill.WasmJavaScript, []string{"node", "nodejs"}, r.process
		of.Plan = func(context.Context, *skill.Spec) (skill.Plan, error) { return r.plan() }
	}
	r.calls = sandbox.NewCalls(of)
	return r
}

// Kind is wasm:javascript.
func (r *Runner) Kind() skill.Kind { return skill.WasmJavaScript }

const hint = "add the script, or correct entry in skill.yaml"

// Prepare implements [skill.Runner]. It looks for the script alone: the runtime is
// part of the host.
func (r *Runner) Prepare(ctx context.Context, s *skill.Spec) (skill.Plan, error) {
	return r.calls.Prepare(ctx, s, func(_ context.Context, folder *sandbox.Folder) (skill.Plan, error) {
		if folder != nil && s.Code == nil {
			if _, err := folder.Entry(s.Entry, hint); err != nil {
				return skill.Plan{}, err
			}
		}
		return r.plan()
	})
}

// plan is the runtime, whatever the script is.
func (r *Runner) plan() (skill.Plan, error) {
	rt := r.runtime()
	if rt.err != nil {
		return skill.Plan{}, r.calls.Broken(rt.err)
	}
	return skill.Plan{Module: skill.Module{Digest: rt.digest, Trusted: true, File: rt.digest, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(rt.module)), nil
	}}}, nil
}

// Close waits for the runs under way and closes the folders, but not the engine.
// It may be called twice.
func (r *Runner) Close() error { return r.calls.Close() }

// Run implements [skill.Runner].
func (r *Runner) Run(ctx context.Context, call *skill.Call) (*skill.Reply, error) {
	return r.calls.Run(ctx, call, r.start)
}

// startFuel is what any script may use to start, in units: QuickJS takes some
// millions.
const startFuel = 1 << 28

// start says how the script of a call is started.
func (r *Runner) start(call *skill.Call, folder *sandbox.Folder) (*sandbox.Start, error) {
	if HasNode() && (call.Script || sandbox.HasNodePackages(call)) { // packages of npm are written for Node
		if _, err := sandbox.EntryOf(call, folder, hint); err != nil {
			return nil, err
		}
		return r.startNode(call), nil
	}
	start := &sandbox.Start{Mounts: r.files, Env: call.Grants.Env, Each: len(call.Args) > 0, Fuel: startFuel}
	var err error
	if start.Entry, err = sandbox.EntryOf(call, folder, hint); err != nil {
		return nil, err
	}
	dir := sandbox.Dir(call)
	start.Args = append(make([]string, 0, len(r.command)+1+len(call.Args)), r.command...)
	start.Args = append(append(start.Args, dir+"/"+call.Entry), call.Args...)
	if call.Script { // a start takes a millisecond, so that each run has its own
		start.Each = true
		start.Mounts = append(slices.Clone(start.Mounts), modules(dir+"/", true)...)
		start.Env = append([]string{"PWD=" + dir, "HOME=/tmp", "TMPDIR=/tmp"}, start.Env...)
	}
	return start, nil
}
