package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"openskill/internal/measure"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"openskill/wasm"
)

// Guest is a program that is measured.
type Guest struct {
	Name    string
	Module  []byte
	Args    []string
	Trusted bool
}

// Guests loads what `make bench-guests` built in dir, and CPython if python names
// its module. missing says, a line each, what is not there.
func Guests(dir, python, script string) (gs []Guest, missing []string) {
	for _, g := range []struct{ name, arg string }{{"nbody", "2000000"}, {"recursion", "38"}, {"sieve", "2000000"}, {"gojson", "15"}} {
		b, err := os.ReadFile(filepath.Join(dir, g.name+".wasm"))
		if err != nil {
			missing = append(missing, g.name+": not built; run make bench-guests")
			continue
		}
		gs = append(gs, Guest{Name: g.name, Module: b, Args: []string{g.name, g.arg}})
	}
	b, err := os.ReadFile(python)
	src, err2 := os.ReadFile(script)
	if err != nil || err2 != nil {
		return gs, append(missing, "cpython: the runtime is not there; run make runtime-python")
	}
	return append(gs, Guest{Name: "cpython", Module: b, Args: []string{"python", "-c", string(src), "100000"}, Trusted: true}), missing
}

// bare is wazero with the edits of wasm/edits, and nothing of the engine.
type bare struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	deadline bool
	memories experimental.MemoryAllocator // nil: wazero's own
}

func newBare(ctx context.Context, g *Guest, cacheDir string, deadline bool) (*bare, error) {
	cfg := wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExtendedConst).
		WithCloseOnContextDone(deadline)
	if cacheDir != "" {
		c, err := wazero.NewCompilationCacheWithDir(cacheDir)
		if err != nil {
			return nil, err
		}
		cfg = cfg.WithCompilationCache(c)
	}
	memories, cfg := withGuardPages(cfg)
	b := &bare{memories: memories, runtime: wazero.NewRuntimeWithConfig(ctx, cfg), deadline: deadline}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, b.runtime); err != nil {
		return nil, err
	}
	var err error
	b.compiled, err = b.runtime.CompileModule(ctx, g.Module)
	return b, err
}

func (b *bare) instantiate(ctx context.Context, cfg wazero.ModuleConfig) (api.Module, error) {
	if b.memories != nil {
		ctx = experimental.WithMemoryAllocator(ctx, b.memories)
	}
	return b.runtime.InstantiateModule(ctx, b.compiled, cfg)
}

func (b *bare) run(ctx context.Context, g *Guest, stdout io.Writer) (time.Duration, error) {
	if b.deadline {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Minute)
		defer cancel()
	}
	cfg := wazero.NewModuleConfig().WithName("").WithArgs(g.Args...).WithStdout(stdout).
		WithSysWalltime().WithSysNanotime()
	began := time.Now()
	m, err := b.instantiate(ctx, cfg)
	if m != nil {
		err = errors.Join(err, m.Close(ctx))
	}
	d := time.Since(began)
	var exit *sys.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 0 {
		err = nil
	}
	return d, err
}

// sameOutput remembers the first output and holds the others against it.
type sameOutput struct{ want []byte }

func (c *sameOutput) same(got []byte) error {
	if c.want == nil {
		c.want = bytes.Clone(got)
	}
	if !bytes.Equal(c.want, got) {
		return fmt.Errorf("the output differs between variants: %.60q and %.60q", c.want, got)
	}
	return nil
}

func (b *bare) variant(name string, g *Guest, c *sameOutput) measure.Variant {
	return measure.Variant{Name: name, Run: func(ctx context.Context) (time.Duration, error) {
		var out bytes.Buffer
		d, err := b.run(ctx, g, &out)
		return d, errors.Join(err, c.same(out.Bytes()))
	}}
}

func ours(m *wasm.Module, g *Guest, c *sameOutput) measure.Variant {
	var fuel uint64
	return measure.Variant{
		Name: "openskill",
		Run: func(ctx context.Context) (time.Duration, error) {
			began := time.Now()
			out, err := m.Run(ctx, &wasm.Run{Args: g.Args, Limits: wasm.Limits{Fuel: 1 << 60, Timeout: time.Minute}})
			d := time.Since(began)
			if err != nil {
				return 0, err
			}
			if out.Ended != wasm.Returned && (out.Ended != wasm.Exited || out.ExitCode != 0) {
				return 0, fmt.Errorf("ended: %v %d %s", out.Ended, out.ExitCode, out.Stderr)
			}
			fuel = out.Fuel
			return d, c.same(out.Stdout)
		},
		Note: func() string { return fmt.Sprintf("fuel %d", fuel) },
	}
}

// Fuel are the cases of metered against bare execution, with wazero's own
// deadline beside them.
func Fuel(ctx context.Context, e *wasm.Engine, gs []Guest, cacheDir string) ([]measure.Case, error) {
	cases := make([]measure.Case, 0, len(gs))
	for i := range gs {
		g := &gs[i]
		m, err := e.Compile(ctx, g.Module, &wasm.CompileOptions{Trusted: g.Trusted})
		if err != nil {
			return nil, err
		}
		raw, err := newBare(ctx, g, cacheDir, false)
		if err != nil {
			return nil, err
		}
		dl, err := newBare(ctx, g, cacheDir, true)
		if err != nil {
			return nil, err
		}
		c := &sameOutput{}
		metered := ours(m, g, c)
		metered.Goals = []measure.Goal{measure.MinAtMost(1.15)}
		cases = append(cases, measure.Case{Suite: "fuel", Name: g.Name, Variants: []measure.Variant{
			raw.variant("wazero", g, c), metered, dl.variant("wazero with its deadline", g, c),
		}})
	}
	return cases, nil
}

// Start are the cases of a whole call of a small module, and of preparing one.
func Start(ctx context.Context, e *wasm.Engine, gs []Guest) ([]measure.Case, error) {
	var cases []measure.Case
	for i := range gs {
		g := gs[i]
		if g.Name != "nbody" && g.Name != "gojson" {
			continue
		}
		g.Args = []string{g.Name, "0"} // all start, no work
		m, err := e.Compile(ctx, g.Module, nil)
		if err != nil {
			return nil, err
		}
		raw, err := newBare(ctx, &g, "", false)
		if err != nil {
			return nil, err
		}
		c := &sameOutput{}
		name := map[string]string{"nbody": "a call of a Rust module", "gojson": "a call of a Go module"}[g.Name]
		cases = append(cases, measure.Case{Suite: "start", Name: name, N: 300, Variants: []measure.Variant{
			raw.variant("wazero", &g, c), ours(m, &g, c),
		}})
	}
	return cases, nil
}
