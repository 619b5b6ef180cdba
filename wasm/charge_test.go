package wasm_test

import (
	"context"
	"strings"
	"testing"

	"openskill/internal/musttest"
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
	m := musttest.Get(open(t, nil).Compile(context.Background(), b.Bytes(), nil))(t)
	run := func(fuel uint64) *wasm.Outcome {
		return musttest.Get(m.Run(context.Background(), &wasm.Run{Stdin: strings.NewReader(""), Limits: wasm.Limits{Fuel: fuel}}))(t)
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

// What is refused or cannot be done costs the asking: twenty attempts at a gigabyte, each
// refused, had used up the fuel that the gigabytes would have cost.
func TestRefusedGrowthCostsTheAsking(t *testing.T) {
	const times, memory = 20, 64 // pages that the run may have
	bounded := func(b *wasmtest.Builder) {
		b.Memory(1)
		b.Limit(60_000)
	}
	table := func(most uint32) func(*wasmtest.Builder) {
		return func(b *wasmtest.Builder) {
			b.Memory(1)
			b.Table(10)
			b.LimitTable(most)
		}
	}
	grow := func(pages int64) wasmtest.Code { return wasmtest.I32(pages) + wasmtest.MemoryGrow + wasmtest.Drop }
	grow0 := func(n int64) wasmtest.Code {
		return wasmtest.NullFunc + wasmtest.I32(n) + wasmtest.TableGrow(0) + wasmtest.Drop
	}
	for _, c := range []struct {
		name  string
		world func(*wasmtest.Builder)
		body  wasmtest.Code
		least uint64 // of all attempts
		most  uint64
	}{
		{"a memory that the host bounds", func(b *wasmtest.Builder) { b.Memory(1) }, grow(15_259), times * 256, times * 300},
		{"a memory beyond what it declares", bounded, grow(60_000), times * 256, times * 300},
		{"beyond 4 GiB", func(b *wasmtest.Builder) { b.Memory(1) }, grow(-2), times * 256, times * 300},
		{"a table beyond what it declares", table(1000), grow0(991), times, times * 50},
		{"a table of 4 G entries", table(1000), grow0(-1), times, times * 50},
		// What is given is paid: 3 pages twenty times are 60, and 40 entries 800.
		{"a memory that grows", bounded, grow(3), times * 3 << 13, times * (3<<13 + 300)},
		{"a table that grows", table(1000), grow0(40), times * 40, times * 90},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := wasmtest.New()
			c.world(b)
			b.Command(wasmtest.Times(times, 0, c.body))
			out := run(t, open(t, nil), b.Bytes(), &wasm.Run{Limits: wasm.Limits{Memory: memory << 16, Fuel: 1e9}})
			if out.Ended != wasm.Returned || out.Fuel < c.least || out.Fuel > c.most {
				t.Errorf("%v after %d units; %d to %d were expected", out.Ended, out.Fuel, c.least, c.most)
			}
			if out := run(t, open(t, nil), b.Bytes(), &wasm.Run{Limits: wasm.Limits{Memory: memory << 16, Fuel: out.Fuel - 1}}); out.Ended != wasm.OutOfFuel {
				t.Errorf("with a unit less: %v", out.Ended)
			}
		})
	}
}
