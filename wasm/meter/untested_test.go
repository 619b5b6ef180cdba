package meter_test

import (
	"strings"
	"testing"

	"openskill/wasm/binary"
	"openskill/wasm/meter"
	"openskill/wasm/meter/metertest"
)

// working is a module that exports f, its first function, and the work that is done.
func working(locals uint32, bodies ...[]byte) *binary.Module {
	m := &binary.Module{
		Types:   []binary.FuncType{{Params: []binary.ValType{binary.I32}}, {}},
		Globals: []binary.Global{{GlobalType: binary.GlobalType{Type: binary.I32, Mutable: true}, Init: []byte{0x41, 0, 0x0b}}},
		Exports: []binary.Export{{Name: "f", Kind: binary.ExternFunc}, {Name: "work", Kind: binary.ExternGlobal}},
	}
	for i, b := range bodies {
		m.Funcs = append(m.Funcs, uint32(min(i, 1)))
		m.Codes = append(m.Codes, binary.Code{Body: b, Locals: []binary.LocalGroup{{Count: locals, Type: binary.I32}}})
	}
	return m
}

// steps is work: each step adds 1, for four units.
func steps(n int) []byte { return rep(n, 0x23, 0, 0x41, 1, 0x6a, 0x24, 0) }

// TestNestedLoops has loops in loops, none of which needs a test, as each iteration passes
// that of a small loop in it; and a way out that comes back to each of them once, from the
// innermost to the outermost, with work at each and no test. What is charged on that way
// adds up over all of them.
func TestNestedLoops(t *testing.T) {
	t.Parallel()
	const depth, each = 100, 500
	body := []byte{0x41, 1, 0x21, 1} // from now on it is on its way out
	for range depth {
		body = join([]byte{0x02, 0x40, 0x03, 0x40}, steps(each), // block, loop
			[]byte{0x20, 1, 0x0d, 1},                   // on the way out: behind the block
			[]byte{0x03, 0x40, 0x20, 0, 0x0d, 0, 0x0b}, // a loop that tests, and is left at once
			body,
			[]byte{0x0c, 0, 0x0b, 0x0b}) // to the header, end, end
	}
	res, rw := traced(t, working(1, join(body, []byte{0x0b})).Encode(), nil)
	if err := metertest.Verify(res.Module, rw); err != nil {
		t.Error(err)
	}
	if done, most := work(t, rw.Module.Encode(), 0); done != 2*depth*each || most > 4*each {
		t.Errorf("%d steps of work of %d, and up to %d between two tests", done, 2*depth*each, most)
	}
}

// TestVerifyAddsCharges takes out of metered modules the tests that stand for nothing but
// the sum of charges: no cycle is without one, and every instruction is paid.
func TestVerifyAddsCharges(t *testing.T) {
	t.Parallel()
	const times = 200
	calls := func(f byte, n int) []byte { return rep(n, 0x10, f) }
	for name, m := range map[string]*binary.Module{
		"along a path":    working(0, join(calls(1, times), []byte{0x0b}), join(steps(300), []byte{0x0b})),
		"down and back":   working(0, join(calls(1, 20), []byte{0x0b}), join(calls(2, 20), []byte{0x0b}), join(steps(200), []byte{0x0b})),
		"through a table": tabled(join(rep(times, 0x41, 0, 0x11, 1, 0), []byte{0x0b}), join(steps(150), []byte{0x0b})),
	} {
		res, rw := traced(t, m.Encode(), nil)
		if err := metertest.Verify(res.Module, rw); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i := range rw.Module.Codes[:len(res.Module.Codes)] {
			untest(rw, i)
		}
		if err := metertest.Verify(res.Module, rw); err == nil || !strings.Contains(err.Error(), "between two tests") {
			t.Errorf("%s, without tests: %v", name, err)
		}
	}
}

// tabled is a module as working makes, with a table that has its second function.
func tabled(bodies ...[]byte) *binary.Module {
	m := working(0, bodies...)
	m.Tables = []binary.TableType{{Elem: binary.FuncRef, Extent: binary.Extent{Min: 1}}}
	m.Elems = []binary.Elem{{Type: binary.FuncRef, Offset: []byte{0x41, 0, 0x0b}, Funcs: []uint32{1}}}
	return m
}

// untest takes the tests behind charges out of a function, and leaves the charges; those of
// loops, and of functions that test at their entry, stay.
func untest(rw *meter.Rewritten, fn int) {
	body := rw.Module.Codes[fn].Body
	list := read(body)
	steps := append([]meter.Step(nil), rw.Proof.Steps[fn]...)
	asks := []binary.Op{binary.OpI64Const, binary.OpI64LtS, binary.OpIf, binary.OpI64Const, binary.OpCall, binary.OpEnd}
	stores := append([]binary.Op{binary.OpLocalTee, binary.OpGlobalSet, binary.OpLocalGet}, asks...)
	alone := append([]binary.Op{binary.OpGlobalGet}, asks...)
	is := func(at int, ops []binary.Op) bool {
		for i := range ops {
			if at+i >= len(list) || list[at+i].Op != ops[i] {
				return false
			}
		}
		return true
	}
	var out []byte
	for at := 0; at < len(list); at++ {
		begin, keep, n := list[at].Pos, body[list[at].Pos:list[at].End], 1
		switch {
		case is(at, alone):
			keep, n = nil, len(alone)
		case is(at, stores):
			set := list[at+1]
			keep, n = body[set.Pos:set.End], len(stores)
		}
		out = append(out, keep...)
		at += n - 1
		end := list[at].End
		for i := range steps {
			if rw.Proof.Steps[fn][i].Out >= end {
				steps[i].Out -= end - begin - len(keep)
			}
		}
	}
	rw.Module.Codes[fn].Body, rw.Proof.Steps[fn] = out, steps
}

// TestSurplusIsNotUnwound has a function with an arm that is not taken, and costs a little
// more than the work that the other one does when a call of the function itself has
// returned. The arm is paid in advance, and what is left over must not pay for that work:
// it would be done without a visit to the host, for each of a stack of calls.
func TestSurplusIsNotUnwound(t *testing.T) {
	t.Parallel()
	const each, levels = 2_000, 100
	body := join([]byte{0x20, 0, 0x45, 0x04, 0x40, 0x0f, 0x0b}, // the last of the calls returns
		[]byte{0x20, 0, 0x45, 0x04, 0x40}, steps(each+50), []byte{0x0f, 0x0b},
		[]byte{0x20, 0, 0x41, 1, 0x6b, 0x10, 0}, steps(each), []byte{0x0b})
	res, rw := traced(t, working(0, body).Encode(), nil)
	if err := metertest.Verify(res.Module, rw); err != nil {
		t.Error(err)
	}
	if done, most := work(t, rw.Module.Encode(), levels); done != levels*each || most > 2*each {
		t.Errorf("%d steps of work of %d, and up to %d between two tests", done, levels*each, most)
	}
}
