package meter_test

import (
	"math/rand/v2"
	"testing"

	wasm "openskill/wasm/binary"
	"openskill/wasm/meter/metertest"
	"openskill/wasm/passtest"
)

// TestTreesAreTested has functions call each other many times without a cycle: nothing of
// rule 3 but the sum of what is charged makes them visit the host. Each leaf does enough
// that it may not return untested.
func TestTreesAreTested(t *testing.T) {
	t.Parallel()
	const steps = 1100 // of a leaf, four units each: more than a function may leave untested
	worked := rep(steps, 0x23, 0, 0x41, 1, 0x6a, 0x24, 0)
	calls := func(n int, f byte) []byte { return rep(n, 0x10, f) }
	end := []byte{0x0b}
	for name, c := range map[string]struct {
		bodies [][]byte // the first is called, by the host alone
		steps  uint64
	}{
		"by their ends": {[][]byte{
			join(calls(10, 3), end),
			join(worked, end),
			join(calls(70, 1), end),
			join(calls(10, 2), end),
		}, 10 * 10 * 70 * steps},
		"by a branch": {[][]byte{
			join(calls(10, 3), end),
			join(worked, []byte{0x41, 1, 0x0d, 0, 0x0b}),
			join(calls(40, 1), []byte{0x41, 1, 0x0d, 0, 0x0b}),
			join(calls(40, 2), []byte{0x41, 1, 0x0d, 0, 0x0b}),
		}, 10 * 40 * 40 * steps},
		"by a table of branches": {[][]byte{
			join(calls(10, 3), end),
			join([]byte{0x02, 0x40}, worked, []byte{0x41, 1, 0x0e, 1, 0, 1, 0x0b, 0x0b}),
			join([]byte{0x02, 0x40}, calls(40, 1), []byte{0x41, 1, 0x0e, 1, 0, 1, 0x0b, 0x0b}),
			join([]byte{0x02, 0x40}, calls(40, 2), []byte{0x41, 1, 0x0e, 1, 0, 1, 0x0b, 0x0b}),
		}, 10 * 40 * 40 * steps},
		"from deep in a block": {[][]byte{
			join(calls(10, 3), end),
			join([]byte{0x02, 0x40}, worked, []byte{0x41, 1, 0x0d, 1, 0x0b, 0x0b}),
			join([]byte{0x02, 0x40}, calls(40, 1), []byte{0x41, 1, 0x0d, 1, 0x0b, 0x0b}),
			join([]byte{0x02, 0x40}, calls(40, 2), []byte{0x41, 1, 0x0d, 1, 0x0b, 0x0b}),
		}, 10 * 40 * 40 * steps},
	} {
		if done, most := tree(t, c.bodies); done != c.steps || most > mostSteps {
			t.Errorf("%s: %d steps of work of %d, and up to %d between two tests", name, done, c.steps, most)
		}
	}
}

// mostSteps is how many steps of four units may be done between two tests: up to twice
// what may be untested where a function is entered, and once more within it.
const mostSteps = 3 * 32_000 / 4

// tree runs a module of functions without parameters, of which the first is called; see work.
func tree(t *testing.T, bodies [][]byte) (done, most uint64) {
	t.Helper()
	// Each has a local to count with; the first one's is behind its parameter.
	m := working(2, bodies...)
	m.Tables = []wasm.TableType{{Elem: wasm.FuncRef, Extent: wasm.Extent{Min: uint32(len(bodies))}}}
	called := wasm.Elem{Type: wasm.FuncRef, Offset: []byte{0x41, 0, 0x0b}}
	for i := range bodies {
		if i%2 == 1 {
			called.Funcs = append(called.Funcs, uint32(i))
		}
	}
	m.Elems = []wasm.Elem{called}
	res, rw := traced(t, m.Encode(), nil)
	if err := metertest.Verify(res.Module, rw); err != nil {
		t.Error(err)
	}
	return work(t, rw.Module.Encode(), 0)
}

// TestRandomTrees is TestTreesAreTested for trees of any form: functions that work, call
// those behind them, directly and through a table, loop, and are left in all ways.
func TestRandomTrees(t *testing.T) {
	t.Parallel()
	few := uint64(30)
	if testing.Short() || raceDetector {
		few = 10
	}
	first, end := passtest.Seeds(t, few)
	for seed := first; seed < end; seed++ {
		r := rand.New(rand.NewPCG(seed, 7))
		const functions = 7
		bodies, total := make([][]byte, functions), make([]uint64, functions)
		for i := functions - 1; i >= 0; i-- {
			bodies[i], total[i] = randomTree(r, i, total)
		}
		if done, most := tree(t, bodies); done > total[0] || most > mostSteps {
			t.Errorf("seed %d: %d steps of work of at most %d, and up to %d between two tests", seed, done, total[0], most)
		}
	}
}

// randomTree is the body of function i, which calls those behind it; and how many steps
// of work it does at most.
func randomTree(r *rand.Rand, i int, total []uint64) (body []byte, steps uint64) {
	const most = 3_000_000
	left := []byte{} // what leaves the function, at depth 0
	switch r.IntN(4) {
	case 0:
		left = []byte{0x41, 1, 0x0d, 0}
	case 1:
		left = []byte{0x41, 0, 0x0d, 0}
	case 2:
		left = []byte{0x41, 1, 0x04, 0x40, 0x0f, 0x0b}
	}
	add := func(code []byte, n uint64) {
		if steps+n <= most {
			body, steps = append(body, code...), steps+n
		}
	}
	for range 1 + r.IntN(6) {
		n := 1 + r.IntN(1500)
		switch r.IntN(5) {
		case 0:
			add(rep(n, 0x23, 0, 0x41, 1, 0x6a, 0x24, 0), uint64(n)) // positive
		case 1: // in an arm
			add(join([]byte{0x41, byte(r.IntN(2)), 0x04, 0x40}, rep(n, 0x23, 0, 0x41, 1, 0x6a, 0x24, 0), []byte{0x0b}), uint64(n))
		case 2: // in a block that is left in its middle, or with the whole function
			add(join([]byte{0x02, 0x40}, rep(n, 0x23, 0, 0x41, 1, 0x6a, 0x24, 0), []byte{0x41, byte(r.IntN(2)), 0x0d, byte(r.IntN(2)), 0x0b}), uint64(n))
		default:
			if i+1 == len(total) {
				continue
			}
			to := i + 1 + r.IntN(len(total)-i-1)
			call := []byte{0x10, byte(to)}
			if to%2 == 1 && r.IntN(2) == 0 {
				call = []byte{0x41, byte(to / 2), 0x11, 1, 0}
			}
			times := 1 + r.IntN(60)
			calls, n := rep(times, call...), uint64(times)*total[to]
			if r.IntN(3) == 0 { // a few times in a loop
				calls = join([]byte{0x41, 3, 0x21, 1, 0x03, 0x40}, calls, []byte{0x20, 1, 0x41, 1, 0x6b, 0x22, 1, 0x0d, 0, 0x0b})
				n *= 3
			}
			add(calls, n)
		}
		if r.IntN(4) == 0 {
			body = append(body, left...)
		}
	}
	return join(body, left, []byte{0x0b}), steps
}

// TestConstantLengths holds that operations on memory whose length is a constant are
// charged with their block only where that is little: a block is charged, and tested, as a
// whole, and a thousand fills of a MiB in it would pass no test for as long as they take.
func TestConstantLengths(t *testing.T) {
	fill := []byte{0x41, 0, 0x41, 1, 0x41, 0xff, 0xff, 0x3f, 0xfc, 0x0b, 0} // 2^20-1 bytes
	m := &wasm.Module{
		Types:    []wasm.FuncType{{}},
		Funcs:    []uint32{0},
		Memories: []wasm.Extent{{Min: 16}},
		Exports:  []wasm.Export{{Name: "f", Kind: wasm.ExternFunc}},
		Codes:    []wasm.Code{{Body: join(rep(1000, fill...), []byte{0x0b})}},
	}
	res, rw := traced(t, m.Encode(), nil)
	if err := metertest.Verify(res.Module, rw); err != nil {
		t.Error(err)
	}
	if most := rw.Stats.LargestCharge; most > 1_000_000 {
		t.Errorf("%d units are charged at once", most)
	}
}
