package python

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"openskill/plugins/wasi/sandbox"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// Options configure a [Runner].
type Options struct {
	// StateDir is the host's state folder; "" means .openskill in the working
	// directory.
	StateDir string
}

// Runner executes scripts by a CPython on an engine. It is safe for concurrent use.
type Runner struct {
	engine  *wasm.Engine
	file    string // of the runtime
	digest  string // that it must have
	folders sandbox.Folders

	ctx  context.Context //nolint:containedctx // ends what Ready began, at Close
	stop context.CancelFunc

	mu      sync.Mutex
	closed  bool
	runs    sync.WaitGroup
	loading *loading // the latest; nil until somebody asked
}

var _ skill.Runner = (*Runner)(nil)

// New makes a runner on the engine, which stays the caller's: it is shared with
// other runners and closed after them all. Nothing is read or compiled yet.
func New(e *wasm.Engine, opts *Options) *Runner {
	state := ".openskill"
	if opts != nil && opts.StateDir != "" {
		state = opts.StateDir
	}
	r := &Runner{engine: e, file: filepath.Join(state, filepath.FromSlash(runtimeFile)), digest: runtimeDigest}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// Kind is wasm:python.
func (r *Runner) Kind() skill.Kind { return skill.WasmPython }

const hint = "add the script, or correct entry in skill.yaml"

// Ready implements [skill.Runner]. It is an error while the runtime is not
// compiled; the first call begins with that, unless Warm did.
func (r *Runner) Ready(folder, entry string) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.runs.Done()
	if err := r.loaded(); err != nil {
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

// Available reports whether the runtime is there and compiled; the error is a
// *skill.Error that says in one line what is missing. Unlike Ready it begins
// nothing, and waits for a compilation under way until ctx ends.
func (r *Runner) Available(ctx context.Context) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.runs.Done()
	r.mu.Lock()
	l := r.loading
	r.mu.Unlock()
	if l == nil {
		_, err := r.look()
		return err
	}
	return l.wait(ctx)
}

// Warm loads and compiles the runtime, and returns when scripts can run. A host
// calls it in the background when it starts: its cost is documented in the
// package. The error is a *skill.Error, or ctx's; the work goes on when ctx ends.
func (r *Runner) Warm(ctx context.Context) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.runs.Done()
	l, err := r.load()
	if err != nil {
		return err
	}
	return l.wait(ctx)
}

// Close waits for the runs under way and closes the folders, but not the engine.
// It does not wait for a compilation, which the engine cannot interrupt. It may be
// called twice.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.runs.Wait()
	return r.folders.Close()
}

func (r *Runner) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return &skill.Error{Op: "python.Run", Code: skill.Internal, Message: "the runner is closed"}
	}
	r.runs.Add(1)
	return nil
}

// flags of the interpreter; see doc.go.
var flags = []string{"python", "-B", "-s", "-X", "utf8"}

// Run implements [skill.Runner]. A call that comes before the runtime is compiled
// waits for it, within its own time.
func (r *Runner) Run(ctx context.Context, call *skill.Call) (*skill.Reply, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.runs.Done()
	began := time.Now() //nolint:forbidigo // a limit of real time
	if ctx.Err() != nil {
		return sandbox.Gone(), nil
	}
	view, err := r.folders.View(call)
	if err != nil {
		return nil, err
	}
	defer view.Close()
	if _, err := view.Folder().Entry(call.Entry, hint); err != nil {
		return nil, err
	}
	args := append(make([]string, 0, len(flags)+1+len(call.Args)), flags...)
	args = append(append(args, "/skill/"+call.Entry), call.Args...)
	var env []string
	if call.Grants.Scratch {
		env = []string{"TMPDIR=/work"}
	}
	m, err := r.module(ctx, call.Limits.Timeout-time.Since(began))
	if err == nil {
		var reply *skill.Reply
		if reply, err = view.Run(ctx, m, call, began, args, env); err == nil {
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
	// The module is the host's own, so no verdict against it is the caller's fault.
	return nil, &skill.Error{Op: "python.Run", Code: skill.Internal, Message: "the Python runtime failed", Err: err}
}
