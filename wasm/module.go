package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/api"

	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/meter"
)

// Module is a compiled module. It stays usable while it is in use, also when
// the engine has dropped it from memory; get it anew from Compile for each run.
type Module struct {
	e        *Engine
	compiled wazero.CompiledModule
	prepared
	exports map[string]api.FunctionDefinition // of the metered module
	size    int                               // its bytes
	users   sync.WaitGroup

	mu      sync.Mutex
	refs    int
	dropped bool
}

// CompileOptions say what is accepted; nil means the caps for strangers.
type CompileOptions struct {
	// Trusted lifts the caps for a language runtime of the host's own.
	Trusted bool
}

// trustedLimits are for runtimes: the scientific CPython is 99 MB.
var trustedLimits = binary.Limits{
	Size: 256 << 20, Functions: 1_000_000, Datas: 1_000_000, BodySize: 8 << 20, Exports: 10_000, Globals: 100_000,
}

func (e *Engine) checkOptions(o *CompileOptions) *check.Options {
	c := &check.Options{Imports: e.Import, Reserved: meter.Reserved}
	if o != nil && o.Trusted {
		limits := trustedLimits
		c.Limits = &limits
	}
	return c
}

// Check gives the admission report of a module without compiling it. The error
// is a *check.Error.
func (e *Engine) Check(module []byte, o *CompileOptions) (check.Report, error) {
	res, err := check.Module(module, e.checkOptions(o))
	return res.Report, err
}

// Check is [Engine.Check] for a process that runs nothing: the verdict is the same,
// and no engine, which would cost memory and time, is opened for it.
func Check(module []byte, o *CompileOptions) (check.Report, error) {
	return (&Engine{imports: importTypes()}).Check(module, o)
}

// Digest is the name of a module in caches: "sha256:" and its hash.
func Digest(module []byte) string {
	h := sha256.Sum256(module)
	return "sha256:" + hex.EncodeToString(h[:])
}

// Compile makes a module ready to run, or finds it in memory or in the cache
// folder. Calls for the same bytes at once share the work. A module that is
// refused gives a *check.Error. The work goes on when ctx ends, for those who
// also wait for it; compiling itself cannot be interrupted.
func (e *Engine) Compile(ctx context.Context, module []byte, o *CompileOptions) (*Module, error) {
	key := residentKey(Digest(module), o)
	for {
		if m, ok := e.modules.GetIfPresent(key); ok {
			return m, nil
		}
		ch := e.flight.DoChan(key, func() (any, error) {
			if m, ok := e.modules.GetIfPresent(key); ok {
				return m, nil
			}
			m, err := e.compile(module, o)
			if err == nil {
				e.modules.Set(key, m)
			}
			return m, err
		})
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case r := <-ch:
			if r.Err != nil {
				return nil, r.Err
			}
			m, ok := r.Val.(*Module)
			if ok {
				return m, nil
			}
		}
	}
}

// Lookup finds a module that is still in memory by the Digest of its bytes, so
// that a caller need not keep or read them to run it again. It counts as a use of
// the module, which keeps those that run often in memory.
func (e *Engine) Lookup(digest string, o *CompileOptions) (*Module, bool) {
	return e.modules.GetIfPresent(residentKey(digest, o))
}

// residentKey names a module in memory: by its bytes and the caps that it was
// held against.
func residentKey(digest string, o *CompileOptions) string {
	if o != nil && o.Trusted {
		return digest + " trusted"
	}
	return digest
}

// compile does the work of Compile.
func (e *Engine) compile(module []byte, o *CompileOptions) (*Module, error) {
	e.mu.Lock()
	closed := e.closed
	e.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	p, metered, err := e.prepare(module, o)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	if o != nil && o.Trusted {
		// A runtime of ours is waited for; a stranger's module gets one core.
		ctx = experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0))
	}
	c, err := e.runtime.CompileModule(ctx, metered)
	if err != nil {
		// The checker let it pass, so this is a difference between the two, not news for the author.
		return nil, fmt.Errorf("wasm: compile: %w", err)
	}
	m := &Module{e: e, compiled: c, prepared: *p, exports: c.ExportedFunctions(), size: len(metered), refs: 1}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		_ = c.Close(context.Background())
		return nil, ErrClosed
	}
	e.open[m] = struct{}{}
	return m, nil
}

// acquire keeps the compiled code while a run uses it.
func (m *Module) acquire() error {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	if m.e.closed {
		return ErrClosed
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dropped {
		return ErrDropped
	}
	m.refs++
	m.users.Add(1)
	return nil
}

// done ends a use that acquire began.
func (m *Module) done() {
	m.release()
	m.users.Done()
}

// release gives up one reference; the last one frees the code.
func (m *Module) release() {
	m.mu.Lock()
	m.refs--
	last := m.refs == 0
	m.dropped = m.dropped || last
	m.mu.Unlock()
	if !last {
		return
	}
	m.e.mu.Lock()
	delete(m.e.open, m)
	m.e.mu.Unlock()
	_ = m.compiled.Close(context.Background())
}

// Exports reports whether the module exports a function of this name.
func (m *Module) Exports(name string) bool {
	_, ok := m.exports[name]
	return ok
}
