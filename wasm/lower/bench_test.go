package lower_test

import (
	"context"
	"os"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"openskill/wasm/binary"
	"openskill/wasm/lower"
	w "openskill/wasm/wasmtest"
)

// BenchmarkLower lowers the module that OPENSKILL_LOWER_MODULE names, which is
// taken to be valid.
func BenchmarkLower(b *testing.B) {
	path := os.Getenv("OPENSKILL_LOWER_MODULE")
	if path == "" {
		b.Skip("OPENSKILL_LOWER_MODULE names no module")
	}
	wasm, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	m, err := binary.Decode(wasm, runtimeLimits.Limits)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(wasm)))
	for b.Loop() {
		if _, err := lower.Exceptions(m, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTry calls a million small functions that might throw and do not, each
// in a try_table, and every thousandth that does, on wazero's compiler: lowered,
// and with wazero's own exceptions. The third has no exceptions at all.
func BenchmarkTry(b *testing.B) {
	program := func(handler func(body w.Code) w.Code, fail w.Code) *w.Builder {
		p := w.New()
		f := p.Func(one32, one32, nil, w.Get(0)+w.I32(1000)+"\x70"+w.Eqz+w.If(fail)+w.Get(0)+w.I32(3)+w.Add)
		p.Export("f", p.Func(nil, one32, []binary.LocalGroup{{Count: 2, Type: i32}},
			w.Times(1_000_000, 0, handler(w.Get(0)+w.Call(f)+w.Get(1)+w.Add+w.Set(1)))+w.Get(1)))
		return p
	}
	throws := program(func(body w.Code) w.Code { return w.Block(try(0x40, []on{{0, 0, 0}}, body)) }, throw(0))
	thrower := source(b, throws, nil, noTypes)
	low, _, _, err := lowered(b, thrower)
	if err != nil {
		b.Fatal(err)
	}
	plain := program(func(body w.Code) w.Code { return w.Block(body) }, "").Bytes()
	for _, c := range []struct {
		name     string
		wasm     []byte
		features api.CoreFeatures
	}{{"lowered", low, base}, {"wazero", thrower, exceptions}, {"none", plain, base}} {
		b.Run(c.name, func(b *testing.B) {
			ctx := context.Background()
			rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(c.features))
			defer func() { _ = rt.Close(ctx) }()
			inst, err := rt.Instantiate(ctx, c.wasm)
			if err != nil {
				b.Fatal(err)
			}
			f := inst.ExportedFunction("f")
			for b.Loop() {
				if _, err := f.Call(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
