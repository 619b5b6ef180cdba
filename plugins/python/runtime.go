package python

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"openskill/sdk/skill"
	"openskill/wasm"
)

// The runtime: where it lies below the state folder, and its SHA-256, as in
// scripts/runtimes.lock.
const (
	runtimeFile   = "runtimes/python-3.12/python.wasm"
	runtimeDigest = "sha256:e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763"
)

// maxRuntime is the size up to which a file is read to be compared with the digest.
const maxRuntime = 256 << 20

// trusted lifts the caps for strangers: the module is the host's own choice.
var trusted = &wasm.CompileOptions{Trusted: true}

// loading is one attempt to read, verify and compile the runtime.
type loading struct {
	info fs.FileInfo   // of the file
	done chan struct{} // closed at its end
	err  error         // valid then; a *skill.Error
}

func (l *loading) wait(ctx context.Context) error {
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// look finds the file of the runtime.
func (r *Runner) look() (fs.FileInfo, error) {
	info, err := os.Stat(r.file)
	if err == nil && info.Mode().IsRegular() {
		return info, nil
	}
	return nil, unavailable("the Python runtime is not installed; run make runtime-python (it needs npm)", err)
}

func unavailable(message string, err error) error {
	return &skill.Error{Op: "python.Ready", Code: skill.ToolInvocationError, Subject: "python-3.12", Message: message, Err: err}
}

// load begins to load the runtime, unless that is under way or done. What failed
// is tried again once the file is another.
func (r *Runner) load() (*loading, error) {
	r.mu.Lock()
	l := r.loading
	r.mu.Unlock()
	if l != nil && !l.failed() {
		return l, nil
	}
	info, err := r.look()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.loading; now != l || l != nil && same(l.info, info) {
		return now, nil
	}
	l = &loading{info: info, done: make(chan struct{})}
	r.loading = l
	r.runs.Add(1) // whoever calls has entered, so Close has not waited yet
	go func() {
		defer r.runs.Done()
		defer close(l.done)
		_, l.err = r.compile(r.ctx)
	}()
	return l, nil
}

func (l *loading) failed() bool {
	select {
	case <-l.done:
		return l.err != nil
	default:
		return false
	}
}

func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// loaded reports whether the runtime is compiled, and begins with that if not.
func (r *Runner) loaded() error {
	l, err := r.load()
	if err != nil {
		return err
	}
	select {
	case <-l.done:
		return l.err
	default:
		return unavailable("the Python runtime is being compiled, which takes seconds the first time; call again shortly", nil)
	}
}

// compile reads, verifies and compiles the runtime. The error is a *skill.Error.
func (r *Runner) compile(ctx context.Context) (*wasm.Module, error) {
	info, err := r.look()
	if err != nil {
		return nil, err
	}
	broken := func(err error) error {
		return unavailable("the Python runtime is damaged or not the version that this host needs; run make runtime-python", err)
	}
	if info.Size() > maxRuntime {
		return nil, broken(fmt.Errorf("%d bytes", info.Size()))
	}
	data, err := os.ReadFile(r.file) //nolint:gosec // a place in the host's own state folder
	if err != nil {
		return nil, broken(err)
	}
	if got := wasm.Digest(data); got != r.digest {
		return nil, broken(fmt.Errorf("it is %s, not %s", got, r.digest))
	}
	m, err := r.engine.Compile(ctx, data, trusted)
	if err != nil {
		return nil, unavailable("the Python runtime could not be compiled; the log has the reason", err)
	}
	return m, nil
}

var errWaited = errors.New("the call ended before the runtime was compiled")

// module gives the compiled runtime, within the time that a call has left.
func (r *Runner) module(ctx context.Context, left time.Duration) (*wasm.Module, error) {
	if m, ok := r.engine.Lookup(r.digest, trusted); ok {
		return m, nil
	}
	ctx, stop := context.WithTimeout(ctx, left)
	defer stop()
	l, err := r.load()
	if err != nil {
		return nil, err
	}
	if err := l.wait(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, errWaited
		}
		return nil, err
	}
	if m, ok := r.engine.Lookup(r.digest, trusted); ok {
		return m, nil
	}
	// Other modules have pushed it out of memory since.
	m, err := r.compile(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, errWaited
	}
	return m, err
}
