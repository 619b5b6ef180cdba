package python

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/guestfs"
)

// catalogue is what a runner asks package runtimes.
type catalogue interface {
	// For chooses the runtime for what a skill requires and imports.
	For(requires, imports []string) (string, error)
	// Open gives a runtime whose files have been verified.
	Open(name string) (*runtimes.Runtime, error)
}

// trusted lifts the caps for strangers: the modules are the host's own choice.
var trusted = &wasm.CompileOptions{Trusted: true}

// library holds the runtimes that were asked for, read and compiled.
type library struct {
	engine    *wasm.Engine
	catalogue catalogue

	mu     sync.Mutex
	closed bool
	all    map[string]*loading // the latest attempts
}

// loading is one attempt to read, verify and compile a runtime.
type loading struct {
	done chan struct{} // closed at its end

	// Valid then.
	err    error // a *skill.Error
	at     time.Time
	run    *runtimes.Runtime
	mounts []guestfs.Mount // of the runtime's own files
	boot   guestfs.FS
	name   string // of Start
	close  func() error
}

// again is how long a runtime that could not be loaded is not tried again.
const again = 2 * time.Second

// load begins to load a runtime, unless that is under way or done.
func (l *library) load(name string) (*loading, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, &skill.Error{Op: "python.Run", Code: skill.Internal, Message: "the runner is closed"}
	}
	if a := l.all[name]; a != nil {
		select {
		case <-a.done:
			if a.err == nil || time.Since(a.at) < again && !notCompiled(a.err) {
				return a, nil
			}
		default:
			return a, nil
		}
	}
	a := &loading{done: make(chan struct{})}
	if l.all == nil {
		l.all = map[string]*loading{}
	}
	l.all[name] = a
	go func() {
		defer close(a.done)
		a.err = a.open(l, name)
		a.at = time.Now()
	}()
	return a, nil
}

// open does the work of load.
func (a *loading) open(l *library, name string) error {
	var err error
	if a.run, err = l.catalogue.Open(name); err != nil {
		return err
	}
	if _, err = a.compile(context.Background(), l.engine); err != nil {
		return err
	}
	if a.mounts, a.close, err = a.run.Mount(); err != nil {
		return unavailable("a file of the Python runtime cannot be opened; run openskill runtime verify", err)
	}
	b := boot(name)
	a.boot, a.name = guestfs.Bytes(b), started(a.run.Module.Digest, b)
	return nil
}

// compile reads the module and compiles it. The error is a *skill.Error.
func (a *loading) compile(ctx context.Context, e *wasm.Engine) (*wasm.Module, error) {
	data, err := os.ReadFile(a.run.Module.Path)
	if err != nil {
		return nil, unavailable("the module of the Python runtime cannot be read; run openskill runtime verify", err)
	}
	if wasm.Digest(data) != a.run.Module.Digest {
		return nil, unavailable("the Python runtime was changed while it was read; run openskill runtime verify", nil)
	}
	m, err := e.Compile(ctx, data, trusted)
	if err != nil {
		return nil, unavailable("the Python runtime could not be compiled; the log has the reason", err)
	}
	return m, nil
}

// notCompiled reports whether a runtime is missed only where nothing is compiled: it
// may be there at the next look.
func notCompiled(err error) bool {
	var missing *wasm.NotCompiledError
	return errors.As(err, &missing)
}

func unavailable(message string, err error) error {
	return &skill.Error{Op: "python.Ready", Code: skill.ToolInvocationError, Subject: "python", Message: message, Err: err}
}

// get gives a runtime when it is loaded. The error is a *skill.Error, or ctx's.
func (l *library) get(ctx context.Context, name string) (*loading, error) {
	a, err := l.load(name) // the work goes on for others when a caller leaves
	if err != nil {
		return nil, err
	}
	select {
	case <-a.done:
		return a, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// loaded reports whether a runtime can run scripts now, and begins with that if not.
func (l *library) loaded(name string) error {
	a, err := l.load(name)
	if err != nil {
		return err
	}
	select {
	case <-a.done:
		return a.err
	default:
		return unavailable("the Python runtime is still compiling, which takes seconds the first time; retry shortly", &wasm.NotCompiledError{})
	}
}

// underWay waits for a runtime that is being loaded; it begins nothing.
func (l *library) underWay(ctx context.Context, name string) error {
	l.mu.Lock()
	a := l.all[name]
	l.mu.Unlock()
	if a == nil {
		return nil
	}
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close gives the files back; no run may be left. A runtime that is still being
// compiled is not waited for: who compiles gives its files back.
func (l *library) close() error {
	l.mu.Lock()
	l.closed = true
	all := l.all
	l.all = nil
	l.mu.Unlock()
	var errs []error
	for _, a := range all {
		end := func() error {
			if a.close == nil {
				return nil
			}
			return a.close()
		}
		select {
		case <-a.done:
			errs = append(errs, end())
		default:
			go func() {
				<-a.done
				_ = end() // read only
			}()
		}
	}
	return errors.Join(errs...)
}
