package passtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"openskill/wasm/binary"
	"openskill/wasm/guard/guardtest"
	"openskill/wasm/meter"
)

// Gas names the global of generated modules that counts down to a trap.
const Gas = "g0"

// enough is what Gas is set to before each call.
const enough = 300

// Record is all that can be seen of a run.
type Record struct {
	Calls []string // results or traps
	State string   // memory and globals
	Fuel  uint64   // what counter held
}

// Counted says how to find out what a run used.
type Counted struct {
	Tank    *meter.Tank // of a metered module; nil: it is none
	Counter string      // an exported global
}

// Engine is a runtime to run modules in.
type Engine struct {
	Name   string
	Config wazero.RuntimeConfig
	memory func(testing.TB) experimental.MemoryAllocator // nil: wazero's own
}

// Context is one in which instances get the memories that the engine needs.
func (e Engine) Context(tb testing.TB) context.Context {
	tb.Helper()
	ctx := context.Background()
	if e.memory != nil {
		ctx = experimental.WithMemoryAllocator(ctx, e.memory(tb))
	}
	return ctx
}

// Engines are wazero's two, for modules with these features, and its compiler without checks
// where guard pages can be had.
func Engines(features api.CoreFeatures) []Engine {
	compiler := wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features)
	all := []Engine{
		{"interpreter", wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features), nil},
		{"compiler", compiler, nil},
	}
	if c, ok := guardtest.Compiler(compiler); ok {
		all = append(all, Engine{"compiler with guard pages", c, guardtest.New})
	}
	return all
}

// Same ends the test where two runs differ in anything but what they used.
func Same(t *testing.T, how string, want, got Record) {
	t.Helper()
	if want.State != got.State || strings.Join(want.Calls, "\n") != strings.Join(got.Calls, "\n") {
		t.Fatalf("%s it differs:\nwant %+v\n got %+v", how, want, got)
	}
}

// Run calls every exported function of a module twice, with small numbers. m is the
// module before any pass: what it exports is called and looked at.
func Run(t *testing.T, engine Engine, wasm []byte, m *binary.Module, c *Counted) (r Record) {
	t.Helper()
	ctx := engine.Context(t)
	rt := wazero.NewRuntimeWithConfig(ctx, engine.Config)
	defer func() { _ = rt.Close(ctx) }()
	if c != nil && c.Tank != nil {
		Provide(c.Tank)(ctx, rt)
	}
	inst, err := rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		t.Fatalf("%s: %v", engine.Name, err)
	}
	for round := range 2 {
		for _, e := range m.Exports {
			if e.Kind != binary.ExternFunc {
				continue
			}
			if g, ok := inst.ExportedGlobal(Gas).(api.MutableGlobal); ok {
				g.Set(enough)
			}
			var args []uint64
			for i := range m.FuncType(e.Index).Params {
				args = append(args, uint64(3*i+round))
			}
			res, err := inst.ExportedFunction(e.Name).Call(ctx, args...)
			switch {
			case errors.Is(err, meter.ErrTable):
				// Where the specification answers -1; the tables of generated modules stay below.
				t.Fatal(err)
			case err != nil:
				r.Calls = append(r.Calls, e.Name+": "+Trap(err))
			default:
				r.Calls = append(r.Calls, fmt.Sprint(e.Name, res))
			}
		}
	}
	if mem := inst.Memory(); mem != nil {
		b, _ := mem.Read(0, mem.Size())
		r.State = fmt.Sprintf("%x", sha256.Sum256(b))
	}
	for _, e := range m.Exports {
		if e.Kind == binary.ExternGlobal {
			r.State += fmt.Sprint(" ", inst.ExportedGlobal(e.Name).Get())
		}
	}
	if c != nil {
		r.Fuel = inst.ExportedGlobal(c.Counter).Get()
		if c.Tank != nil {
			r.Fuel = c.Tank.Used(int64(r.Fuel))
		}
	}
	return r
}

// Trap is the kind of a trap, in wazero's words.
func Trap(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if _, kind, ok := strings.Cut(line, "wasm error: "); ok {
		return kind
	}
	return "not a trap: " + line
}

// Provide adds the host's side of the counter of metered modules, one tank for all of
// a runtime.
func Provide(tank *meter.Tank) func(context.Context, wazero.Runtime) {
	return func(ctx context.Context, r wazero.Runtime) {
		i64 := api.ValueTypeI64
		_, err := r.NewHostModuleBuilder(meter.ImportModule).NewFunctionBuilder().
			WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, _ api.Module, s []uint64) {
				next, err := tank.Refuel(int64(s[0]), int64(s[1]))
				if err != nil {
					panic(err)
				}
				s[0] = uint64(next)
			}), []api.ValueType{i64, i64}, []api.ValueType{i64}).
			Export(meter.ImportRefuel).Instantiate(ctx)
		if err != nil {
			panic(err)
		}
	}
}
