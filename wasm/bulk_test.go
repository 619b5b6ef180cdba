package wasm_test

import (
	"context"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/wasmtest"
)

// TestBulkOperationsAreCharged holds each instruction whose work grows with an operand to its
// price by length, to a budget that the length exceeds, and to a context that has ended: one
// that charged by instruction would do work for hours on fuel for a second.
func TestBulkOperationsAreCharged(t *testing.T) {
	e := open(t, nil)
	with := func(ctx context.Context, m *wasm.Module, fuel uint64) *wasm.Outcome {
		t.Helper()
		return musttest.Get(m.Run(ctx, &wasm.Run{Limits: wasm.Limits{Fuel: fuel, Memory: 1 << 40}}))(t)
	}
	for _, op := range wasmtest.Bulks() {
		t.Run(op.Name, func(t *testing.T) {
			length := int64(wasmtest.Most)
			if op.Name == "memory.grow" {
				length = 1 << 10 // pages of 64 KiB
			}
			units := op.Units * length / wasmtest.Most
			none := with(context.Background(), compile(t, e, op.Module(1, 0)), 1<<40)
			m := compile(t, e, op.Module(1, length))
			all := with(context.Background(), m, 1<<40)
			if none.Ended != wasm.Returned || all.Ended != wasm.Returned || all.Fuel-none.Fuel != uint64(units) { // positive
				t.Errorf("%v for %d units without a length, %v for %d with one of %d: it costs %d", none.Ended, none.Fuel, all.Ended, all.Fuel, length, units)
			}
			if out := with(context.Background(), m, uint64(units)-1); out.Ended != wasm.OutOfFuel { // positive
				t.Errorf("one unit too few: %v", out.Ended)
			}
			// The largest length there can be does not overflow the price, and is paid before it
			// traps. Memory that is refused costs the asking.
			most := compile(t, e, op.Module(1, -1))
			if out := with(context.Background(), most, 1<<17); out.Ended != wasm.OutOfFuel && out.Ended != wasm.OutOfTable && op.Name != "memory.grow" {
				t.Errorf("a length of 2^32-1 on little fuel: %v", out.Ended)
			}
			switch out := with(context.Background(), most, 1<<60); out.Ended {
			case wasm.Trapped, wasm.OutOfTable: // out of bounds, or beyond the cap
			case wasm.Returned:
				if op.Name != "memory.grow" {
					t.Error("a length of 2^32-1 is within bounds")
				}
			default:
				t.Errorf("a length of 2^32-1: %v", out.Ended)
			}
		})
	}
}

// TestLateRunsDoNotSucceed holds that a run which is over after its deadline ends as one that
// is out of time: a single fill of half a GiB passes no test on the way, and takes long.
func TestLateRunsDoNotSucceed(t *testing.T) {
	e := open(t, nil)
	const size = 1 << 29
	b := wasmtest.New()
	b.Memory(size >> 16)
	b.Command(wasmtest.I32(0) + wasmtest.I32(1) + wasmtest.I32(size) + wasmtest.MemoryFill)
	out := run(t, e, b.Bytes(), &wasm.Run{Limits: wasm.Limits{Memory: size, Timeout: 10 * time.Millisecond}})
	if out.Ended != wasm.OutOfTime {
		t.Errorf("%v after %v", out.Ended, out.Total)
	}
}
