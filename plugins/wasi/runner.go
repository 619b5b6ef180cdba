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
	// MaxModule is the size in bytes up to which an entry is read; 0 means 64 MiB.
	// The engine has caps of its own.
	MaxModule int64
	// Outgoing makes the requests of guests; nil: there is no network.
	Outgoing skill.Outgoing
	// Now is the clock against which a file's age is held; nil means time.Now.
	Now func() time.Time
}

// Runner executes WASI commands on an engine. It is safe for concurrent use.
type Runner struct {
	engine  *wasm.Engine
	opts    Options
	folders sandbox.Folders
	images  sandbox.Images

	mu      sync.Mutex
	closed  bool
	runs    sync.WaitGroup
	modules map[moduleKey]known
}

var _ skill.Runner = (*Runner)(nil)

// New makes a runner on the engine, which stays the caller's: it is shared with
// other runners and closed after them all.
func New(e *wasm.Engine, opts *Options) *Runner {
	r := &Runner{engine: e, modules: map[moduleKey]known{}}
	if opts != nil {
		r.opts = *opts
	}
	r.images = sandbox.Images{Engine: e, Folders: &r.folders, Outgoing: r.opts.Outgoing}
	if r.opts.MaxModule <= 0 {
		r.opts.MaxModule = 64 << 20
	}
	if r.opts.Now == nil {
		r.opts.Now = time.Now //nolint:forbidigo // the default of Options.Now
	}
	return r
}

// Kind is wasm:wasi.
func (r *Runner) Kind() skill.Kind { return skill.WasmWASI }

// hint says where a module comes from.
const hint = "build it (make skills builds those that come with openSkill) or correct entry in skill.yaml"

// Ready implements [skill.Runner]. It looks for the module, and does not compile it.
func (r *Runner) Ready(folder, entry string) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.runs.Done()
	// Who owns the folder is not known here, and Run looks again.
	d, err := r.folders.Skill(folder, skill.Trusted)
	if err != nil {
		return err
	}
	defer d.Release()
	_, err = d.Entry(entry, hint)
	return err
}

// Available reports whether this machine can run modules at all: it can.
func (r *Runner) Available(context.Context) error { return nil }

// Close waits for the runs under way and closes the folders, but not the engine.
// It may be called twice.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.runs.Wait()
	r.images.Close()
	return r.folders.Close()
}

func (r *Runner) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return &skill.Error{Op: "wasi.Run", Code: skill.Internal, Message: "the runner is closed"}
	}
	r.runs.Add(1)
	return nil
}

// Run implements [skill.Runner].
func (r *Runner) Run(ctx context.Context, call *skill.Call) (*skill.Reply, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.runs.Done()
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
	if err == nil {
		var reply *skill.Reply
		if reply, err = r.images.Run(ctx, call, granted, start, began); err == nil {
			return reply, nil
		}
	}
	var refused *skill.Error
	switch {
	case errors.Is(err, errWaited):
		return sandbox.Waited(ctx, &call.Limits), nil
	case errors.As(err, &refused):
		return nil, err
	}
	return sandbox.Refused(err)
}

// start says how the module of a call is started.
func (r *Runner) start(ctx context.Context, call *skill.Call, granted *sandbox.Granted, began time.Time) (*sandbox.Start, error) {
	start := &sandbox.Start{
		Args: append(append(make([]string, 0, 1+len(call.Args)), call.Entry), call.Args...),
		Env:  call.Grants.Env, Each: len(call.Args) > 0, Fuel: startFuel,
	}
	var err error
	start.Module, start.Name, start.Entry, err = r.module(ctx, granted.Folder(), call, began)
	return start, err
}

// Start gets the image ready that calls like this one run on; its standard input is
// not looked at. Who wants short first calls does it ahead, in the background. The
// error may be of any kind: a call tells better what is wrong.
func (r *Runner) Start(ctx context.Context, call *skill.Call) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.runs.Done()
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

var errWaited = errors.New("the call ended before its module was compiled")

// startFuel is what any module may use to start, in units: a Go program takes some
// millions before it reads its input.
const startFuel = 1 << 27

// module gives the module of a call, as the file is now, with its name and stamp.
func (r *Runner) module(ctx context.Context, d *sandbox.Folder, call *skill.Call, began time.Time) (*wasm.Module, string, sandbox.Stamp, error) {
	stamp, err := d.Entry(call.Entry, hint)
	if err != nil {
		return nil, "", stamp, err
	}
	key := moduleKey{call.Folder, call.Entry, call.Digest}
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
	data, stamp, err := d.Read(call.Entry, hint, r.opts.MaxModule)
	if err != nil {
		return nil, "", stamp, err
	}
	if int64(len(data)) > r.opts.MaxModule {
		return nil, "", stamp, &check.Error{Code: check.ModuleTooComplex, Msg: fmt.Sprintf("the module has more than %d MiB, the largest that is accepted", r.opts.MaxModule>>20)}
	}
	now := known{stamp: stamp, settled: stamp.Settled(r.opts.Now()), module: wasm.Digest(data)}
	if seen && k.module != now.module && call.Trust < skill.Trusted {
		return nil, "", stamp, &skill.Error{
			Op: "wasi.Run", Code: skill.Conflict, Subject: string(call.SkillID),
			Message: "the module is not the one that was admitted; upload it as a new version",
		}
	}
	m, ok := r.engine.Lookup(now.module, nil)
	if !ok {
		m, err = r.compile(ctx, data, call.Limits.Timeout-time.Since(began))
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

func (r *Runner) compile(ctx context.Context, data []byte, left time.Duration) (*wasm.Module, error) {
	ctx, stop := context.WithTimeout(ctx, left)
	defer stop()
	m, err := r.engine.Compile(ctx, data, nil)
	if err != nil && ctx.Err() != nil {
		return nil, errWaited
	}
	return m, err
}
