package meter_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"openskill/internal/musttest"
	"openskill/wasm/binary"
	"openskill/wasm/meter"
	"openskill/wasm/passtest"
	"openskill/wasm/wasmtest"
)

// instantiate gives a module a name.
func instantiate(ctx context.Context, r wazero.Runtime, name string, m *binary.Module) (api.Module, error) {
	return r.InstantiateWithConfig(ctx, m.Encode(), wazero.NewModuleConfig().WithName(name).WithStartFunctions())
}

func metered(t *testing.T, b *wasmtest.Builder) *binary.Module {
	t.Helper()
	return musttest.Get(rewrite(b.Bytes()))(t)
}

// TestNoFunctionsOfOthers: compiled code that has the fuel in a register would take a register of
// another module's for it, so nothing that may have functions in it is imported, either way.
func TestNoFunctionsOfOthers(t *testing.T) {
	_, edited := wazero.NewRuntimeConfigCompiler().(interface{ Edits() (string, []string) })
	has := wasmtest.New()
	has.Export("f", has.Void(wasmtest.Loop()))
	has.Table(1)
	has.Memory(1)
	inner := metered(t, has)
	inner.Exports = append(inner.Exports, binary.Export{Name: "table", Kind: binary.ExternTable})
	plain := func(imp *binary.Import) *binary.Module {
		b := wasmtest.New()
		b.Export("g", b.Void(wasmtest.Loop()))
		m := musttest.Get(binary.Decode(b.Bytes(), nil))(t)
		imp.Module = "inner"
		m.Imports = append(m.Imports, *imp)
		if imp.Kind == binary.ExternFunc {
			m.Exports[0].Index++
		}
		return m
	}
	for _, engine := range passtest.Engines(features) {
		for name, imp := range map[string]*binary.Import{
			"function": {Name: "f", Kind: binary.ExternFunc},
			"table":    {Name: "table", Kind: binary.ExternTable, Table: binary.TableType{Elem: binary.FuncRef}},
			"memory":   {Name: "memory", Kind: binary.ExternMemory, Memory: binary.Extent{Min: 1}},
		} {
			t.Run(engine.Name+"/"+name, func(t *testing.T) {
				ctx := engine.Context(t)
				r := wazero.NewRuntimeWithConfig(ctx, engine.Config)
				defer func() { _ = r.Close(ctx) }()
				passtest.Provide(&meter.Tank{Budget: 1 << 40, Slice: 100})(ctx, r)
				musttest.Get(instantiate(ctx, r, "inner", inner))(t)
				refused := edited && engine.Name != "interpreter" && runtime.GOARCH == "amd64" && imp.Kind != binary.ExternMemory
				outer := plain(imp)
				_, err := instantiate(ctx, r, "plain", outer)
				if (err != nil) != refused || refused && !strings.Contains(err.Error(), "shares no functions") {
					t.Errorf("plain: %v", err)
				}
				m := musttest.Get(rewrite(outer.Encode()))(t)
				if _, err := instantiate(ctx, r, "metered", m); (err != nil) != refused || refused && !strings.Contains(err.Error(), "shares no functions") {
					t.Errorf("metered: %v", err)
				}
			})
		}
	}
}

// TestCalledByTheHostAgain: the host sees all fuel that is left while the guest waits for it, and what
// another call of the guest uses meanwhile, or the host takes, is not given back.
func TestCalledByTheHostAgain(t *testing.T) {
	b := wasmtest.New()
	host := b.ImportFunc("host", "call", nil, nil)
	work := wasmtest.Times(5000, 0)
	i32 := []binary.LocalGroup{{Count: 1, Type: binary.I32}}
	b.Export("inner", b.Func(nil, nil, i32, work))
	b.Export("outer", b.Func(nil, nil, i32, work+wasmtest.Call(host)+work+wasmtest.Call(host)+work))
	m := metered(t, b)
	var want, seen []uint64
	for _, engine := range passtest.Engines(features) {
		ctx := engine.Context(t)
		r := wazero.NewRuntimeWithConfig(ctx, engine.Config)
		tank := &meter.Tank{Budget: 1 << 40, Slice: 100}
		passtest.Provide(tank)(ctx, r)
		seen = nil
		_, err := r.NewHostModuleBuilder("host").NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module, _ []uint64) {
			fuel := m.ExportedGlobal(meter.ExportFuel).(api.MutableGlobal)
			seen = append(seen, tank.Used(int64(fuel.Get())))
			if _, err := m.ExportedFunction("inner").Call(ctx); err != nil {
				panic(err)
			}
			seen = append(seen, tank.Used(int64(fuel.Get())))
			fuel.Set(uint64(int64(fuel.Get()) - 1_000_000))
		}), nil, nil).Export("call").Instantiate(ctx)
		musttest.Do(t, err)
		inst := musttest.Get(instantiate(ctx, r, "guest", m))(t)
		musttest.Get(inst.ExportedFunction("outer").Call(ctx))(t)
		seen = append(seen, tank.Used(int64(inst.ExportedGlobal(meter.ExportFuel).Get())))
		if want == nil {
			want = seen
		}
		for i := range seen {
			if seen[i] != want[i] || i > 0 && seen[i] < seen[i-1]+15_000 {
				t.Errorf("%s: used %d, want %d", engine.Name, seen, want)
				break
			}
		}
		_ = r.Close(ctx)
	}
	t.Log(want)
}
