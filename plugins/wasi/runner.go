package wasi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"openskill/plugins/wasi/sandbox"
	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/check"
)

// Options configure a [Runner]; nil and zero fields mean the defaults.
type Options struct {
	// Outgoing makes the requests of guests; nil: there is no network.
	Outgoing skill.Outgoing
}

// Runner executes WASI commands on an engine. It is safe for concurrent use.
type Runner struct {
	engine *wasm.Engine
	calls  *sandbox.Calls

	// The size in bytes up to which an entry is read, though the engine has caps of
	// its own, and the clock against which a file's age is held; of tests.
	maxModule int64
	now       func() time.Time

	mu      sync.Mutex
	modules map[moduleKey]known
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
		engine: e, calls: sandbox.NewCalls(of), modules: map[moduleKey]known{},
		maxModule: 64 << 20,
		now:       time.Now, //nolint:forbidigo // the default of the clock
	}
}

// Kind is wasm:wasi.
func (r *Runner) Kind() skill.Kind { return skill.WasmWASI }

// hint says where a module comes from.
const hint = "build it (make skills builds those that come with openSkill) or correct entry in skill.yaml"

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
	start.Module, start.Name, start.Entry, err = r.module(ctx, p)
	return start, err
}

// moduleKey names the entry of a skill as it was admitted.
type moduleKey struct{ folder, entry, digest string }

// known is what was found in an entry's file.
type known struct {
	stamp   sandbox.Stamp
	settled bool   // the stamp alone shows that the file is the same
	module  string // wasm.Digest of its bytes
	verdict error  // the *check.Error against the module, or nil
}

// maxKnown bounds the memory of what is known; beyond it all is forgotten and
// read again.
const maxKnown = 10_000

// startFuel is what any module may use to start, in units: a Go program takes some
// millions before it reads its input.
const startFuel = 1 << 27

// module gives the module of a call, as the file is now, with its name and stamp.
func (r *Runner) module(ctx context.Context, p *sandbox.Pending) (*wasm.Module, string, sandbox.Stamp, error) {
	stamp, err := p.Folder.Entry(p.Entry, hint)
	if err != nil {
		return nil, "", stamp, err
	}
	key := moduleKey{p.Call.Folder, p.Entry, p.Digest}
	r.mu.Lock()
	k, seen := r.modules[key]
	r.mu.Unlock()
	if seen && k.settled && k.stamp == stamp {
		if k.verdict != nil {
			return nil, "", stamp, k.verdict
		}
		if m, ok := r.engine.Lookup(k.module, nil); ok {
			return m, k.module, stamp, nil
		}
	}
	data, stamp, err := p.Folder.Read(p.Entry, hint, r.maxModule)
	if err != nil {
		return nil, "", stamp, err
	}
	if int64(len(data)) > r.maxModule {
		return nil, "", stamp, &check.Error{Code: check.ModuleTooComplex, Msg: fmt.Sprintf("the module has more than %d MiB, the largest that is accepted", r.maxModule>>20)}
	}
	now := known{stamp: stamp, settled: stamp.Settled(r.now()), module: wasm.Digest(data)}
	if seen && k.module != now.module && p.Trust < skill.Trusted {
		return nil, "", stamp, &skill.Error{
			Op: "wasi.Run", Code: skill.Conflict, Subject: string(p.SkillID),
			Message: "the module is not the one that was admitted; upload it as a new version",
		}
	}
	m, ok := r.engine.Lookup(now.module, nil)
	if !ok {
		err = p.Within(ctx, func(ctx context.Context) error {
			m, err = r.engine.Compile(ctx, data, nil)
			return err
		})
		var verdict *check.Error
		if err != nil && !errors.As(err, &verdict) {
			return nil, "", stamp, err
		}
		now.verdict = err
	}
	r.mu.Lock()
	if len(r.modules) >= maxKnown {
		clear(r.modules)
	}
	r.modules[key] = now
	r.mu.Unlock()
	return m, now.module, stamp, now.verdict
}
