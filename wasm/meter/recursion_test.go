package meter_test

import (
	"math/rand/v2"
	"testing"

	wasm "openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/meter/metertest"
	"openskill/wasm/passtest"
)

// TestRandomRecursion has functions of any form call themselves and each other, with work
// before and behind the calls, tail calls of those and of ones that work alone, and arms that cost nearly as much as what stands beside them.
// However deep the stack is, its way back visits the host.
func TestRandomRecursion(t *testing.T) {
	t.Parallel()
	const functions, depth, entries = 4, 200, 600
	// What is charged between two tests, and what each frame may do beyond its charges, in
	// steps of four units. A frame has up to 2,000 of them, more in loops.
	const bound = (104_000 + depth*1_000) / 4
	few := uint64(30)
	if testing.Short() || raceDetector {
		few = 10
	}
	first, end := passtest.Seeds(t, few)
	for seed := first; seed < end; seed++ {
		m := &wasm.Module{
			Types:  []wasm.FuncType{{Params: []wasm.ValType{wasm.I32}}},
			Tables: []wasm.TableType{{Elem: wasm.FuncRef, Extent: wasm.Extent{Min: 4}}},
			Elems:  []wasm.Elem{{Type: wasm.FuncRef, Offset: []byte{0x41, 0, 0x0b}, Funcs: []uint32{0, 1, functions, functions + 1}}},
			Globals: []wasm.Global{
				{GlobalType: wasm.GlobalType{Type: wasm.I32, Mutable: true}, Init: []byte{0x41, 0, 0x0b}},
				{GlobalType: wasm.GlobalType{Type: wasm.I32, Mutable: true}, Init: []byte{0x41, entries&0x7f | 0x80, entries >> 7, 0x0b}},
			},
			Exports: []wasm.Export{{Name: "f", Kind: wasm.ExternFunc}, {Name: "work", Kind: wasm.ExternGlobal}},
		}
		r := rand.New(rand.NewPCG(seed, 11))
		for range functions {
			m.Funcs = append(m.Funcs, 0)
			m.Codes = append(m.Codes, wasm.Code{
				Body:   randomRecursion(r, functions),
				Locals: []wasm.LocalGroup{{Count: deepest, Type: wasm.I32}},
			})
		}
		for range 2 { // these call nobody
			m.Funcs = append(m.Funcs, 0)
			m.Codes = append(m.Codes, wasm.Code{Body: join(steps(1+r.IntN(990)), []byte{0x0b})})
		}
		res, rw := traced(t, m.Encode(), &check.Options{TailCalls: true})
		if err := metertest.Verify(res.Module, rw); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if done, most := work(t, rw.Module.Encode(), depth); most > bound {
			t.Errorf("seed %d: %d steps of work, and up to %d between two tests", seed, done, most)
		}
	}
}

const deepest = 3 // constructs in each other, each with a local to count with

// randomRecursion is the body of a function that does nothing if its parameter is 0 or no
// entries are left, and calls others, or itself, with one less.
func randomRecursion(r *rand.Rand, functions int) []byte {
	leave := []byte{0x45, 0x04, 0x40, 0x0f, 0x0b} // if it is zero
	body := join([]byte{0x20, 0}, leave, []byte{0x23, 1}, leave, []byte{0x23, 1, 0x41, 1, 0x6b, 0x24, 1})
	usual, left := 1+r.IntN(700), 2_000
	some := func() []byte {
		n := 1 + r.IntN(700)
		if r.IntN(2) == 0 { // about as much as elsewhere, so that an arm is paid with another
			n = usual + r.IntN(20)
		}
		n = min(n, left)
		left -= n
		return steps(n)
	}
	call := func() []byte {
		less := []byte{0x20, 0, 0x41, 1, 0x6b}
		if r.IntN(3) == 0 {
			return join(less, []byte{0x41, byte(r.IntN(2)), 0x11, 0, 0})
		}
		return join(less, []byte{0x10, byte(r.IntN(functions))})
	}
	tail := func() []byte { // also of what works alone, which is 1 and 2 behind the others
		less := []byte{0x20, 0, 0x41, 1, 0x6b}
		if r.IntN(2) == 0 {
			return join(less, []byte{0x41, byte(r.IntN(4)), 0x13, 0, 0})
		}
		return join(less, []byte{0x12, byte(r.IntN(functions + 2))})
	}
	whether := func() []byte {
		switch r.IntN(4) {
		case 0:
			return []byte{0x41, byte(r.IntN(2))}
		case 1:
			return []byte{0x20, 0, 0x45} // never
		}
		return []byte{0x20, 0, 0x41, byte(1 + r.IntN(7)), 0x71}
	}
	var parts func(deep int) []byte
	parts = func(deep int) (out []byte) {
		for range 1 + r.IntN(3) {
			kind := r.IntN(9)
			if deep == 0 {
				kind = r.IntN(5)
			}
			switch kind {
			case 0, 1:
				out = append(out, some()...)
			case 2, 3:
				out = append(out, call()...)
			case 4: // an arm that leaves
				leave := []byte{0x0f}
				if r.IntN(3) == 0 {
					leave = tail()
				}
				out = join(out, whether(), []byte{0x04, 0x40}, some(), leave, []byte{0x0b})
			case 5:
				out = join(out, whether(), []byte{0x04, 0x40}, parts(deep-1), []byte{0x0b})
			case 6:
				out = join(out, whether(), []byte{0x04, 0x40}, parts(deep-1), []byte{0x05}, parts(deep-1), []byte{0x0b})
			case 7: // a block that is left in its middle
				out = join(out, []byte{0x02, 0x40}, parts(deep-1), whether(), []byte{0x0d, 0}, parts(deep-1), []byte{0x0b})
			case 8: // twice
				n := byte(deep)
				out = join(out, []byte{0x41, 2, 0x21, n, 0x03, 0x40}, parts(deep-1),
					[]byte{0x20, n, 0x41, 1, 0x6b, 0x22, n, 0x0d, 0, 0x0b})
			}
		}
		return out
	}
	if r.IntN(3) == 0 {
		return join(body, parts(deepest), call(), tail(), []byte{0x0b})
	}
	return join(body, parts(deepest), call(), some(), []byte{0x0b})
}
