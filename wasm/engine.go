package wasm

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"openskill/wasm/binary"
	"openskill/wasm/guard"
	"openskill/wasm/image"
	"openskill/wasm/meter"
	"openskill/wasm/wasi"
)

// Options configure an Engine; nil and zero fields mean the defaults.
type Options struct {
	// CacheDir keeps compiled modules between processes. It holds machine code, so
	// it is made with mode 0700 and must be writable by nobody else. "" keeps
	// nothing.
	CacheDir string
	// CompiledOnly has modules taken from CacheDir or refused, with a
	// *NotCompiledError: nothing is compiled here, and nothing written.
	CompiledOnly bool
	// ShareCode has the code of large modules in pages that processes share: an
	// engine that compiles leaves them in CacheDir, one with CompiledOnly takes them
	// from there. It works on Linux.
	ShareCode bool
	// Interpreter runs modules without compiling them, slowly; for platforms
	// without a compiler, and as an oracle.
	Interpreter bool
	// GuardPages has modules compiled without checks of the bounds of their memories, which lie
	// between pages that cannot be accessed. It needs linux/amd64 and the edits of wasm/edits, and
	// changes what is done with a SIGSEGV for as long as the process lives; see package guard.
	GuardPages bool
	// Resident is how many bytes of modules, metered, stay ready in
	// memory; 0 means 640 MiB, room for the two largest language runtimes and much more.
	// Modules beyond that are compiled, or loaded, again.
	Resident uint64
	// Slice is how much fuel is handed out at once; 0 means 100,000 units. A guest
	// cannot be preempted within a slice, so it bounds the pauses of Go's garbage
	// collector.
	Slice uint64
	// Instances is how many idle instances all images together keep; 0 means 1,024.
	Instances int
	// ImageBytes is how much memory images and their idle instances may hold; 0 means
	// 1 GiB. What a single image needs to run at all is not counted against others.
	ImageBytes uint64
}

// Engine compiles modules and runs them. It is safe for concurrent use.
type Engine struct {
	o       Options
	runtime wazero.Runtime
	cache   wazero.CompilationCache
	modules *otter.Cache[string, *Module]
	imports map[string]binary.FuncType // by module.name
	probe   stackProbe
	images  images

	mu     sync.Mutex
	closed bool
	open   map[*Module]struct{} // not yet closed, resident or not
	// Compilations under way, by the module's key.
	flights   map[string]*flight
	compiling sync.WaitGroup

	turns [256]sync.Mutex // of compilations, by the hash of what is compiled
	seed  maphash.Seed
}

// Open makes an engine.
func Open(opts *Options) (*Engine, error) {
	e := &Engine{imports: importTypes(), open: map[*Module]struct{}{}, flights: map[string]*flight{}, seed: maphash.MakeSeed()}
	if opts != nil {
		e.o = *opts
	}
	if err := e.o.compiler(); err != nil {
		return nil, err
	}
	def(&e.o.Resident, 640<<20)
	def(&e.o.Slice, 100_000)
	def(&e.o.Instances, 1024)
	def(&e.o.ImageBytes, 1<<30)
	e.images.max, e.images.bytes = e.o.Instances, e.o.ImageBytes
	image.Ready()
	ctx := context.Background()
	cfg := wazero.NewRuntimeConfigCompiler()
	if e.o.Interpreter {
		cfg = wazero.NewRuntimeConfigInterpreter()
	}
	if e.o.GuardPages {
		var err error
		if cfg, err = guard.Compile(cfg); err != nil {
			return nil, err
		}
		if arch() != runtime.GOARCH {
			return nil, fmt.Errorf("wasm: there are no guard pages on %s", arch())
		}
	}
	cfg = cfg.WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExtendedConst).WithDebugInfoEnabled(false)
	if e.o.CacheDir != "" {
		if err := private(e.o.CacheDir); err != nil {
			return nil, err
		}
		c, err := wazero.NewCompilationCacheWithDir(e.codeDir())
		if err != nil {
			return nil, fmt.Errorf("wasm: open the cache of compiled modules: %w", err)
		}
		e.cache = c
		if !e.o.CompiledOnly {
			e.sweepVersions(time.Now())
			e.sweepCache(time.Now())
		}
		cfg = cfg.WithCompilationCache(c)
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, cfg)
	if err := e.start(ctx); err != nil {
		_ = e.Close()
		return nil, err
	}
	return e, nil
}

func (e *Engine) start(ctx context.Context) error {
	if _, err := wasi.Instantiate(ctx, e.runtime); err != nil {
		return fmt.Errorf("wasm: provide wasi: %w", err)
	}
	i64 := api.ValueTypeI64
	_, err := e.runtime.NewHostModuleBuilder(meter.ImportModule).NewFunctionBuilder().
		WithGoFunction(api.GoFunc(e.refuel), []api.ValueType{i64, i64}, []api.ValueType{i64}).
		Export(meter.ImportRefuel).Instantiate(ctx)
	if err != nil {
		return fmt.Errorf("wasm: provide fuel: %w", err)
	}
	e.modules, err = otter.New(&otter.Options[string, *Module]{
		MaximumWeight: e.o.Resident,
		Weigher:       func(_ string, m *Module) uint32 { return uint32(min(m.size, 1<<31)) }, // bounded
		OnDeletion:    func(d otter.DeletionEvent[string, *Module]) { d.Value.release() },
	})
	if err != nil {
		return fmt.Errorf("wasm: make the cache of modules: %w", err)
	}
	if e.o.Interpreter {
		return nil // its frames are counted by wazero
	}
	probe, err := e.code(probeModule, false)
	if err != nil {
		return err
	}
	defer probe.Close(ctx)
	return e.probe.open(ctx, e.runtime, probe)
}

// importTypes is the table of the functions that guests may import, by module.name.
func importTypes() map[string]binary.FuncType {
	types := map[string]binary.FuncType{}
	for _, f := range wasi.Functions() {
		types[f.Module+"."+f.Name] = binary.FuncType{Params: valTypes(f.Params), Results: valTypes(f.Results)}
	}
	return types
}

func valTypes(ts []api.ValueType) []binary.ValType {
	v := make([]binary.ValType, len(ts))
	for i, t := range ts {
		v[i] = binary.ValType(t)
	}
	return v
}

// private makes dir, or makes sure that others can neither read nor write it.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("wasm: make the cache folder: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("wasm: look at the cache folder: %w", err)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil // also one that cannot be written, which is of use as it is
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("wasm: protect the cache folder: %w", err)
	}
	return nil
}

// Import is the type of the function module.name, if guests may import it.
func (e *Engine) Import(module, name string) (binary.FuncType, bool) {
	if !slices.Contains(wasi.Modules(), module) {
		return binary.FuncType{}, false
	}
	t, ok := e.imports[module+"."+name]
	return t, ok
}

// ErrClosed is what a closed engine answers.
var ErrClosed = errors.New("wasm: the engine is closed")

// Compiles reports whether modules are compiled here.
func (e *Engine) Compiles() bool { return !e.o.CompiledOnly }

// Close waits for compilations and runs under way and frees everything. It may be
// called twice.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	e.mu.Unlock()
	e.compiling.Wait()
	e.images.close()
	e.mu.Lock()
	open := make([]*Module, 0, len(e.open))
	for m := range e.open {
		open = append(open, m)
	}
	clear(e.open) // they are freed here from now on, and not by their last release
	e.mu.Unlock()
	for _, m := range open {
		m.users.Wait()
	}
	ctx := context.Background()
	err := e.runtime.Close(ctx)
	for _, m := range open {
		m.spaces.close()
	}
	if e.cache != nil {
		err = errors.Join(err, e.cache.Close(ctx))
	}
	if e.modules != nil {
		e.modules.StopAllGoroutines()
	}
	return err
}
