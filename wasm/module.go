package wasm

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"openskill/internal/digest"
	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/image"
	"openskill/wasm/meter"
)

// Module is a module that is ready to run. When the engine drops its code to stay
// within Options.Resident, runs under way go on, and the next one compiles it
// again, or loads it from the cache folder; so a Module may be kept, but one that
// comes anew from Compile for each run is more often ready.
type Module struct {
	e        *Engine
	digest   string
	read     func() ([]byte, error) // gives what it is made of again
	o        CompileOptions
	compiled wazero.CompiledModule

	memoryMin uint64  // bytes that an instance begins with
	tables    uint64  // bytes of its tables and element segments
	startTrap string  // the trap with which every instance fails at once; "" for none
	unfit     string  // why instances cannot be frozen; "" if they can
	spaces    *spaces // for the memories of instances

	exports map[string]api.FunctionDefinition // of the metered module
	size    int                               // bytes of the metered module and its data
	users   sync.WaitGroup

	// Guarded by the engine's mutex.
	refs    int
	dropped bool
}

// CompileOptions say what is accepted; nil means the caps for strangers.
type CompileOptions struct {
	// Trusted lifts the caps for a language runtime of the host's own.
	Trusted bool
	// Digest is that of the module, where the caller has computed it; "": it is computed.
	Digest string

	report *check.Report // filled, if not nil
}

// trustedLimits are for runtimes: the scientific CPython is 99 MB.
var trustedLimits = binary.Limits{
	Size: 256 << 20, Functions: 1_000_000, Datas: 1_000_000, BodySize: 8 << 20, Exports: 10_000, Globals: 100_000,
	LocalGroups: 10_000_000, CustomBytes: 128 << 20,
}

// What check.Options.Branches is for them, and how many times more than a
// stranger's module the compiler may spend on them: the scientific CPython takes
// most of a minute.
const (
	trustedBranches = 20_000_000
	trustedFactor   = 20
)

func (e *Engine) checkOptions(o *CompileOptions) *check.Options {
	c := &check.Options{Imports: e.Import, Reserved: meter.Reserved, Exceptions: true}
	if o != nil && o.Trusted {
		limits := trustedLimits
		c.Limits, c.Branches = &limits, trustedBranches
		c.CompileFunction, c.CompileModule = trustedFactor*2*time.Second, trustedFactor*10*time.Second
		c.CompileMemory = trustedFactor * (512 << 20)
	}
	return c
}

// Check gives the admission report of a module without compiling it. The error
// is a *check.Error.
func (e *Engine) Check(module []byte, o *CompileOptions) (check.Report, error) {
	res, err := e.accept(module, o.digest(), o)
	return res.Report, err
}

// Check is [Engine.Check] for a process that runs nothing: the verdict is the same,
// and no engine, which would cost memory and time, is opened for it.
func Check(module []byte, o *CompileOptions) (check.Report, error) {
	return (&Engine{imports: importTypes()}).Check(module, o)
}

// Digest is the name of a module in caches: "sha256:" and its hash.
func Digest(module []byte) string { return digest.Of(module) }

func (o *CompileOptions) digest() string {
	if o == nil {
		return ""
	}
	return o.Digest
}

// Compile is [Engine.Load] of bytes, which are kept, and must not change afterwards.
func (e *Engine) Compile(ctx context.Context, module []byte, o *CompileOptions) (*Module, error) {
	name := o.digest()
	if name == "" {
		name = Digest(module)
	}
	return e.Load(ctx, name, func() ([]byte, error) { return module, nil }, o)
}

// Admit is [Engine.Compile] with the report of [Engine.Check], for who compiles a module for
// the first time: it is made anew, whatever is in the cache.
func (e *Engine) Admit(ctx context.Context, module []byte, o CompileOptions) (report check.Report, err error) {
	o.report = &report
	_, err = e.Compile(ctx, module, &o)
	return report, err
}

// Load makes the module with a digest ready to run: finds it in memory or in the cache folder,
// or compiles what read gives, which is the module or tells why it is not; nil: there is
// nothing to compile. Calls for the same one at once share the work. A module that is
// refused gives a *check.Error. The work goes on when ctx ends, for those who
// also wait for it; compiling itself cannot be interrupted.
func (e *Engine) Load(ctx context.Context, digest string, read func() ([]byte, error), o *CompileOptions) (*Module, error) {
	m, err := e.lease(ctx, digest, read, o)
	if err != nil {
		return nil, err
	}
	m.done()
	return m, nil
}

// Lookup finds a module that is still in memory by the Digest of its bytes, so
// that a caller need not keep or read them to run it again. It counts as a use of
// the module, which keeps those that run often in memory.
func (e *Engine) Lookup(digest string, o *CompileOptions) (*Module, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, false
	}
	m, ok := e.modules.GetIfPresent(residentKey(digest, o))
	return m, ok
}

// residentKey names a module in memory: by its bytes and the caps that it was
// held against.
func residentKey(digest string, o *CompileOptions) string {
	if o != nil && o.Trusted {
		return digest + " trusted"
	}
	return digest
}

// flight is a compilation under way, and how many wait for it.
type flight struct {
	done    chan struct{}
	waiting int
	m       *Module
	err     error
}

// lease is Load with the module in use: the caller calls done. Who waits for a
// compilation is counted, and all of them get their use in one step with its end,
// so that a module cannot be dropped before it was run even once.
func (e *Engine) lease(ctx context.Context, digest string, read func() ([]byte, error), o *CompileOptions) (*Module, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if o == nil {
		o = &CompileOptions{}
	}
	key := residentKey(digest, o)
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, ErrClosed
	}
	if m, ok := e.modules.GetIfPresent(key); ok && m.use() {
		e.mu.Unlock()
		return m, nil
	}
	f := e.flights[key]
	if f == nil {
		f = &flight{done: make(chan struct{})}
		e.flights[key] = f
		e.compiling.Add(1)
		go e.fly(f, key, digest, read, *o)
	}
	f.waiting++
	e.mu.Unlock()

	select {
	case <-f.done:
		return f.m, f.err
	case <-ctx.Done():
	}
	e.mu.Lock()
	select {
	case <-f.done: // just now, and with a use for this caller
		e.mu.Unlock()
		if f.m != nil {
			f.m.done()
		}
	default:
		f.waiting--
		e.mu.Unlock()
	}
	return nil, context.Cause(ctx)
}

// fly compiles for all who wait.
func (e *Engine) fly(f *flight, key, digest string, read func() ([]byte, error), o CompileOptions) {
	defer e.compiling.Done()
	f.m, f.err = e.compile(digest, read, &o)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.flights, key)
	if f.err == nil {
		f.m.refs += f.waiting
		f.m.users.Add(f.waiting)
		e.open[f.m] = struct{}{}
		e.modules.Set(key, f.m)
	}
	close(f.done)
}

// compile does the work of Load. The module has one reference, for the cache.
func (e *Engine) compile(digest string, read func() ([]byte, error), o *CompileOptions) (*Module, error) {
	p, err := e.prepare(digest, read, o)
	if err != nil {
		return nil, err
	}
	c, err := e.code(p.metered, o.Trusted)
	switch {
	case err != nil && e.o.CompiledOnly: // its code is missing, or damaged
		return nil, &NotCompiledError{Digest: digest, Err: err}
	case err != nil:
		return nil, err
	}
	e.share(e.preparedPath(digest, o), c)
	t, err := image.New(p.content)
	if err != nil {
		_ = c.Close(context.Background())
		return nil, fmt.Errorf("wasm: lay out the memory of a module: %w", err)
	}
	m := &Module{
		e: e, digest: digest, read: read, o: CompileOptions{Trusted: o.Trusted}, compiled: c, memoryMin: p.MemoryMin, tables: p.Tables, startTrap: p.StartTrap, unfit: p.Unfit, spaces: &spaces{content: t, guarded: e.o.GuardPages},
		exports: c.ExportedFunctions(), size: len(p.metered) + len(p.content), refs: 1,
	}
	return m, nil
}

// use keeps the compiled code for a run, unless it was dropped. The engine's mutex
// is held.
func (m *Module) use() bool {
	if m.dropped {
		return false
	}
	m.refs++
	m.users.Add(1)
	return true
}

// lease gives the module in use, compiled again if it was dropped.
func (m *Module) lease(ctx context.Context) (*Module, error) {
	m.e.mu.Lock()
	closed, ok := m.e.closed, false
	if !closed {
		ok = m.use()
	}
	m.e.mu.Unlock()
	switch {
	case closed:
		return nil, ErrClosed
	case ok:
		return m, nil
	}
	return m.e.lease(ctx, m.digest, m.read, &m.o)
}

// done ends a use.
func (m *Module) done() {
	m.release()
	m.users.Done()
}

// release gives up one reference; the last one frees the code.
func (m *Module) release() {
	m.e.mu.Lock()
	m.refs--
	m.dropped = m.refs == 0
	_, last := m.e.open[m] // or else Close frees it
	last = last && m.dropped
	if last {
		delete(m.e.open, m)
	}
	m.e.mu.Unlock()
	if last {
		_ = m.compiled.Close(context.Background())
		m.spaces.close()
	}
}

// Exports reports whether the module exports a function of this name.
func (m *Module) Exports(name string) bool {
	_, ok := m.exports[name]
	return ok
}
