package wasm_test

import (
	"context"
	"strings"
	"testing"

	"openskill/wasm"
	"openskill/wasm/wasmtest"
)

// TestChargeWithinBudget has a guest use little fuel in many calls of the host: the
// slice that it was handed out is part of its budget, and not lost to it.
func TestChargeWithinBudget(t *testing.T) {
	b := wasmtest.New()
	yield := b.Import("sched_yield")
	b.Memory(1)
	b.Command(wasmtest.Times(1000, 0, wasmtest.Call(yield)+wasmtest.Drop))
	m, err := open(t, nil).Compile(context.Background(), b.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	run := func(fuel uint64) *wasm.Outcome {
		out, err := m.Run(context.Background(), &wasm.Run{Stdin: strings.NewReader(""), Limits: wasm.Limits{Fuel: fuel}})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	all := run(1e9)
	if all.Ended != wasm.Returned {
		t.Fatal(all.Ended)
	}
	if out := run(all.Fuel + 200); out.Ended != wasm.Returned || out.Fuel != all.Fuel {
		t.Errorf("with %d units: %v after %d; it needs %d", all.Fuel+200, out.Ended, out.Fuel, all.Fuel)
	}
	if out := run(all.Fuel - 200); out.Ended != wasm.OutOfFuel {
		t.Errorf("with %d units: %v; it needs %d", all.Fuel-200, out.Ended, all.Fuel)
	}
}
