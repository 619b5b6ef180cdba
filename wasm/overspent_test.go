package wasm_test

import (
	"context"
	"testing"

	"openskill/wasm"
	"openskill/wasm/wasmtest"
)

// TestFuelAtTheEnd holds that a run which used more fuel than it may does not succeed,
// though its last units were charged without a test.
func TestFuelAtTheEnd(t *testing.T) {
	e := open(t, nil)
	b := wasmtest.New()
	g := b.Global(0)
	b.Command(wasmtest.Repeat(500, wasmtest.GlobalGet(g)+wasmtest.I32(1)+wasmtest.Add+wasmtest.GlobalSet(g)))
	exits := wasmtest.New()
	exit := exits.Import("proc_exit")
	g = exits.Global(0)
	exits.Command(wasmtest.Repeat(500, wasmtest.GlobalGet(g)+wasmtest.I32(1)+wasmtest.Add+wasmtest.GlobalSet(g)) + wasmtest.I32(0) + wasmtest.Call(exit))
	for name, module := range map[string][]byte{"returns": b.Bytes(), "exits": exits.Bytes()} {
		m := compile(t, e, module)
		out, err := m.Run(context.Background(), &wasm.Run{})
		if err != nil || out.Ended != wasm.Returned && out.Ended != wasm.Exited || out.Fuel < 2000 {
			t.Fatalf("%s: %+v, %v", name, out, err)
		}
		for _, c := range []struct {
			fuel uint64
			want wasm.Ended
		}{{out.Fuel, out.Ended}, {out.Fuel - 1, wasm.OutOfFuel}, {1000, wasm.OutOfFuel}} {
			got, err := m.Run(context.Background(), &wasm.Run{Limits: wasm.Limits{Fuel: c.fuel}})
			if err != nil || got.Ended != c.want || got.Fuel > c.fuel {
				t.Errorf("%s with %d units of %d: %+v, %v", name, c.fuel, out.Fuel, got, err)
			}
		}
	}
}
