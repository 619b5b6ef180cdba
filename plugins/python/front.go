package python

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	"openskill/plugins/python/runtimes"
	"openskill/plugins/wasi/sandbox"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// Front answers what a host asks of this runner that has scripts run in other
// processes: it looks at files, and neither loads nor compiles a runtime. It is safe
// for concurrent use.
type Front struct {
	store    *runtimes.Store
	compiled func(digest string) bool
	folders  sandbox.Folders
	gate     sandbox.Gate

	mu    sync.Mutex
	known map[string]opened
}

// opened is what is known of a runtime.
type opened struct {
	r   *runtimes.Runtime
	err error
	at  time.Time
}

// NewFront makes a front on a state folder. compiled tells whether the module of a
// digest is.
func NewFront(state string, compiled func(digest string) bool) *Front {
	return &Front{store: runtimes.New(state), compiled: compiled, known: map[string]opened{}}
}

// Kind is wasm:python.
func (f *Front) Kind() skill.Kind { return skill.WasmPython }

// runtime gives an installed runtime, verified when it was first asked for.
func (f *Front) runtime(name string) (*runtimes.Runtime, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k, ok := f.known[name]; ok && (k.err == nil || time.Since(k.at) < again) {
		return k.r, k.err
	}
	r, err := f.store.Open(name)
	f.known[name] = opened{r, err, time.Now()}
	return r, err
}

// ReadyWith is [Runner.ReadyWith]. The error of a runtime that is not compiled yet
// says so by a *wasm.NotCompiledError in its chain.
func (f *Front) ReadyWith(folder, entry string, requires []string) error {
	if err := f.gate.Enter("python.Ready"); err != nil {
		return err
	}
	defer f.gate.Leave()
	name, err := f.store.For(requires, nil)
	if err != nil {
		return err
	}
	r, err := f.runtime(name)
	if err != nil {
		return err
	}
	if !f.compiled(r.Module.Digest) {
		return unavailable("the Python runtime is still compiling, which takes seconds the first time; retry shortly", &wasm.NotCompiledError{Digest: r.Module.Digest})
	}
	return f.folders.Ready(folder, entry, hint)
}

// AvailableWith reports whether the runtime for what skills require is installed.
func (f *Front) AvailableWith(_ context.Context, requires []string) error {
	name, err := f.store.For(requires, nil)
	if err != nil {
		return err
	}
	_, err = f.runtime(name)
	return err
}

// Module finds the runtime whose module has a digest, or with digest "" the one for
// what a skill requires. It is "" where there is none.
func (f *Front) Module(requires []string, digest string) (of string, open func() (io.ReadCloser, error), err error) {
	names := f.store.Names()
	if digest == "" {
		name, err := f.store.For(requires, nil)
		if err != nil {
			return "", nil, err
		}
		names = []string{name}
	}
	for _, name := range names {
		r, err := f.runtime(name)
		switch {
		case err != nil && digest == "":
			return "", nil, err
		case err != nil || digest != "" && r.Module.Digest != digest:
			continue
		}
		return r.Module.Digest, func() (io.ReadCloser, error) { return os.Open(r.Module.Path) }, nil
	}
	return "", nil, nil
}

// Close closes the folders.
func (f *Front) Close() error {
	f.gate.Close()
	return f.folders.Close()
}
