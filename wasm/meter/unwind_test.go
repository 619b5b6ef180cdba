package meter_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"openskill/internal/musttest"
	wasm "openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/meter"
	"openskill/wasm/meter/metertest"
)

// TestUnwindingIsTested lets functions call themselves, directly, through a table
// and through each other, and do their work on the way back. That work is paid
// for on the way down, and must pass tests all the same, or the host would not
// be asked for as long as a stack of a million frames takes.
func TestUnwindingIsTested(t *testing.T) {
	t.Parallel()
	const steps, levels = 1000, 400
	// func f(n) { if n == 0 return; call(n-1); work += 1, a thousand times }
	body := func(call ...byte) []byte {
		return join([]byte{0x20, 0, 0x45, 0x04, 0x40, 0x0f, 0x0b, 0x20, 0, 0x41, 1, 0x6b}, call,
			rep(steps, 0x23, 0, 0x41, 1, 0x6a, 0x24, 0), []byte{0x0b})
	}
	// func f(n) { if n == 0 return; call f(n-1); return_call g(n) }, where g does the work, which is
	// little enough to be left untested. Once the sum of both was not looked at.
	const few = 190
	tail := func(call, last []byte) []byte {
		return join([]byte{0x20, 0, 0x45, 0x04, 0x40, 0x0f, 0x0b, 0x20, 0, 0x41, 1, 0x6b}, call, []byte{0x20, 0}, last, []byte{0x0b})
	}
	does := join(rep(few, 0x23, 0, 0x41, 1, 0x6a, 0x24, 0), []byte{0x0b})
	for name, c := range map[string]struct {
		each   int
		bodies [][]byte
	}{
		"itself":                       {steps, [][]byte{body(0x10, 0)}},
		"through a table":              {steps, [][]byte{body(0x41, 0, 0x11, 0, 0)}},
		"each other":                   {steps, [][]byte{body(0x10, 1), body(0x10, 2), body(0x10, 0)}},
		"itself, and a tail call":      {few, [][]byte{tail([]byte{0x10, 0}, []byte{0x12, 1}), does}},
		"a table, and a tail call":     {few, [][]byte{tail([]byte{0x41, 0, 0x11, 0, 0}, []byte{0x12, 1}), does}},
		"each other, and a tail call":  {few, [][]byte{tail([]byte{0x10, 2}, []byte{0x12, 1}), does, tail([]byte{0x10, 0}, []byte{0x12, 1})}},
		"itself, and two of them":      {few, [][]byte{tail([]byte{0x10, 0}, []byte{0x12, 2}), does, join([]byte{0x20, 0, 0x12, 1, 0x0b})}},
		"a tail call through a table":  {few, [][]byte{tail([]byte{0x10, 0}, []byte{0x41, 1, 0x13, 0, 0}), does}},
		"a tail call from an arm only": {few, [][]byte{tail([]byte{0x10, 0}, join([]byte{0x1a, 0x20, 0, 0x04, 0x40, 0x20, 0, 0x12, 1, 0x0b})), does}},
	} {
		bodies := c.bodies
		m := &wasm.Module{
			Types:   []wasm.FuncType{{Params: []wasm.ValType{wasm.I32}}},
			Tables:  []wasm.TableType{{Elem: wasm.FuncRef, Extent: wasm.Extent{Min: 2}}},
			Elems:   []wasm.Elem{{Type: wasm.FuncRef, Offset: []byte{0x41, 0, 0x0b}, Funcs: []uint32{0}}},
			Globals: []wasm.Global{{GlobalType: wasm.GlobalType{Type: wasm.I32, Mutable: true}, Init: []byte{0x41, 0, 0x0b}}},
			Exports: []wasm.Export{{Name: "f", Kind: wasm.ExternFunc}, {Name: "work", Kind: wasm.ExternGlobal}},
		}
		if strings.Contains(name, "tail call through a table") {
			m.Elems[0].Funcs = []uint32{0, 1}
		}
		for _, b := range bodies {
			m.Funcs, m.Codes = append(m.Funcs, 0), append(m.Codes, wasm.Code{Body: b})
		}
		res, rw := traced(t, m.Encode(), &check.Options{TailCalls: true})
		if err := metertest.Verify(res.Module, rw); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if done, most := work(t, rw.Module.Encode(), levels); done != uint64(c.each)*levels || most > 16_000 {
			t.Errorf("%s: %d steps of work, and up to %d between two tests", name, done, most)
		}
	}
}

// work calls f(n), visits the host at every test, and gives the work that was
// done in all and at most between two visits.
func work(t *testing.T, module []byte, n uint64) (done, most uint64) {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2|experimental.CoreFeaturesTailCall))
	defer func() { _ = rt.Close(ctx) }()
	tank := &meter.Tank{Budget: 1 << 50, Slice: 1}
	var last uint64
	i64 := api.ValueTypeI64
	_, err := rt.NewHostModuleBuilder(meter.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, s []uint64) {
			now := m.ExportedGlobal("work").Get()
			most, last = max(most, now-last), now
			next, err := tank.Refuel(int64(s[0]), int64(s[1]))
			if err != nil {
				panic(err)
			}
			s[0] = uint64(next)
		}), []api.ValueType{i64, i64}, []api.ValueType{i64}).
		Export(meter.ImportRefuel).Instantiate(ctx)
	musttest.Do(t, err)
	m := musttest.Get(rt.Instantiate(ctx, module))(t)
	musttest.Get(m.ExportedFunction("f").Call(ctx, n))(t)
	done = m.ExportedGlobal("work").Get()
	return done, max(most, done-last)
}
