// Package metertest verifies metered modules: an oracle for tests that shares no code with
// the rewriter.
package metertest

import (
	"bytes"
	"errors"
	"fmt"

	"openskill/wasm/binary"
	"openskill/wasm/meter"
)

// Violation says where a rewritten module breaks a rule.
type Violation struct { //nolint:errname // named for what it is: a rule was broken
	Func int // index among the functions that the input defines; -1 for the module itself
	At   int // byte of the rewritten body
	Msg  string
}

// Error gives the place and the rule.
func (v *Violation) Error() string {
	if v.Func < 0 {
		return "meter: " + v.Msg
	}
	return fmt.Sprintf("meter: function %d at byte %d of its rewritten body: %s", v.Func, v.At, v.Msg)
}

// Verify proves on the rewritten bytes that rw is in with its fuel paid. It
// shares no code with the rewriter, and believes nothing of [meter.Proof]: the claims
// there say what to look for, and everything is looked for.
//
// What is proved, for every path of every function:
//   - The instructions of the input are all there, in order, and nothing else is
//     but the patterns that metering inserts; branches go to the construct they
//     went to. Only inserted code touches the fuel.
//   - Each instruction is paid before it runs, whoever calls the function (rules
//     1 and 2), and so are the frame of the function (rule 7) and the lengths of
//     bulk operations (rule 6).
//   - Every cycle of control flow, and every cycle of calls, passes a test.
//   - At most 104,000 units are charged between two tests, on any path through any
//     functions; and behind a call that may come back to its function at most 1,000
//     units of work are done beyond what is charged there, so that a stack of calls
//     returns in bounded time (rule 3).
//
// What is not: callers in other modules that share a table. A block of straight code is
// charged at once, behind its test if it has one, and is one step however long it is.
//
// The module must have been accepted by package check, and rewritten with
// [Options].Trace.
func Verify(in *binary.Module, rw *meter.Rewritten) error {
	if rw.Proof == nil {
		return errors.New("meter: Verify needs a module that was rewritten with Options.Trace")
	}
	v := &verifier{in: in, out: rw.Module, claim: rw.Proof, nimp: in.Imported(binary.ExternFunc)}
	v.fuel = in.Imported(binary.ExternGlobal) + uint32(len(in.Globals)) // at most Limits.Globals and Imports
	for _, step := range []func() error{v.sections, v.claims, v.helpers} {
		if err := step(); err != nil {
			return err
		}
	}
	w := &walker{v: v}
	if err := v.walks(w); err != nil {
		return err
	}
	return v.callCycles()
}

type verifier struct {
	in, out *binary.Module
	claim   *meter.Proof
	nimp    uint32
	fuel    uint32   // the global
	first   uint32   // the first helper among the functions of the output
	shapes  []uint32 // type index to one number a shape
	nshapes int
	taken   []bool
	calls   [][]int32 // of functions and shapes: calls that are reached without a test
	all     [][]int32 // of functions and shapes: all calls
	sums    []sums    // of functions and shapes
	knots   []int32   // of functions and shapes: equal for those that call each other in a cycle
}

func broken(format string, a ...any) error {
	return &Violation{Func: -1, Msg: fmt.Sprintf(format, a...)}
}

// at gives the place of a function of the input in the index space of the output.
func (v *verifier) at(f uint32) uint32 {
	if f < v.nimp {
		return f
	}
	return f + 1
}

// sections holds what stands around the code against the input.
func (v *verifier) sections() error {
	in, out := v.in, v.out
	n := len(in.Imports)
	if len(out.Imports) != n+1 {
		return broken("%d imports became %d", n, len(out.Imports))
	}
	for i := range in.Imports {
		if in.Imports[i] != out.Imports[i] {
			return broken("import %d was changed", i)
		}
	}
	if len(out.Types) < len(in.Types) {
		return broken("types were lost")
	}
	for i := range in.Types {
		if !in.Types[i].Equal(out.Types[i]) {
			return broken("type %d was changed", i)
		}
	}
	r := out.Imports[n]
	i64 := binary.I64
	if r.Kind != binary.ExternFunc || r.Module != meter.ImportModule || r.Name != meter.ImportRefuel ||
		!v.hasType(r.Type, []binary.ValType{i64, i64}, []binary.ValType{i64}) {
		return broken("the import behind those of the input is not %s.%s", meter.ImportModule, meter.ImportRefuel)
	}
	if len(in.Funcs) > len(out.Funcs) || len(out.Funcs) != len(out.Codes) {
		return broken("functions were lost")
	}
	for i, t := range in.Funcs {
		if out.Funcs[i] != t {
			return broken("function %d got another type", i)
		}
	}
	for _, step := range []func() error{v.stores, v.names} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) hasType(i uint32, params, results []binary.ValType) bool {
	return int(i) < len(v.out.Types) && v.out.Types[i].Equal(binary.FuncType{Params: params, Results: results})
}

// stores compares globals, tables, memories and segments.
func (v *verifier) stores() error {
	in, out := v.in, v.out
	if len(out.Globals) != len(in.Globals)+1 {
		return broken("%d globals became %d", len(in.Globals), len(out.Globals))
	}
	for i := range in.Globals {
		if in.Globals[i].GlobalType != out.Globals[i].GlobalType || !v.sameExpr(in.Globals[i].Init, out.Globals[i].Init) {
			return broken("global %d was changed", i)
		}
	}
	g := out.Globals[len(in.Globals)]
	if g.Type != binary.I64 || !g.Mutable || !bytes.Equal(g.Init, []byte{0x42, 0, 0x0b}) {
		return broken("the last global is not an empty counter of fuel")
	}
	if len(in.Elems) != len(out.Elems) || len(in.Datas) != len(out.Datas) || len(in.Tables) != len(out.Tables) ||
		len(in.Memories) != len(out.Memories) || len(out.Tags) != 0 {
		return broken("segments, tables or memories were lost")
	}
	for i := range in.Memories {
		if in.Memories[i] != out.Memories[i] {
			return broken("memory %d was changed", i)
		}
	}
	for i := range in.Datas {
		a, b := &in.Datas[i], &out.Datas[i]
		if a.Mode != b.Mode || a.Memory != b.Memory || !bytes.Equal(a.Offset, b.Offset) || !bytes.Equal(a.Init, b.Init) {
			return broken("data segment %d was changed", i)
		}
	}
	for i := range in.Elems {
		if !v.sameElem(&in.Elems[i], &out.Elems[i]) {
			return broken("element segment %d was changed", i)
		}
	}
	for i := range in.Tables {
		a, b := in.Tables[i], out.Tables[i]
		if a.Elem != b.Elem || a.Min != b.Min || !b.HasMax && a.HasMax || a.HasMax && b.Max > a.Max && b.Max != b.Min {
			return broken("table %d was changed", i)
		}
	}
	return nil
}

func (v *verifier) sameElem(a, b *binary.Elem) bool {
	if a.Mode != b.Mode || a.Type != b.Type || a.Table != b.Table || len(a.Funcs) != len(b.Funcs) ||
		len(a.Exprs) != len(b.Exprs) || !v.sameExpr(a.Offset, b.Offset) {
		return false
	}
	for i, f := range a.Funcs {
		if b.Funcs[i] != v.at(f) {
			return false
		}
	}
	for i := range a.Exprs {
		if !v.sameExpr(a.Exprs[i], b.Exprs[i]) {
			return false
		}
	}
	return true
}

// sameExpr compares constant expressions, functions at their new places.
func (v *verifier) sameExpr(a, b binary.ConstExpr) bool {
	var x, y binary.Instr
	r, s := binary.NewReader(a, 0), binary.NewReader(b, 0)
	for r.Next(&x) {
		if !s.Next(&y) || x.Op != y.Op {
			return false
		}
		if x.Op == binary.OpRefFunc {
			if y.A != v.at(x.A) {
				return false
			}
		} else if !bytes.Equal(a[x.Pos:x.End], b[y.Pos:y.End]) {
			return false
		}
	}
	return !s.Next(&y)
}

// names compares exports, and the start function, which becomes one.
func (v *verifier) names() error {
	in, out := v.in, v.out
	want := make([]binary.Export, 0, len(in.Exports)+2)
	for _, e := range in.Exports {
		if e.Kind == binary.ExternFunc {
			e.Index = v.at(e.Index)
		}
		want = append(want, e)
	}
	want = append(want, binary.Export{Name: meter.ExportFuel, Kind: binary.ExternGlobal, Index: v.fuel})
	if in.Start != nil {
		want = append(want, binary.Export{Name: meter.ExportStart, Kind: binary.ExternFunc, Index: v.at(*in.Start)})
	}
	if len(v.claim.Main) > 0 {
		last := v.nimp + uint32(len(out.Codes))
		want = append(want, binary.Export{Name: meter.ExportMain, Kind: binary.ExternFunc, Index: last})
	}
	if out.Start != nil {
		return broken("a start function would run without fuel")
	}
	if len(out.Exports) != len(want) {
		return broken("%d exports, %d expected", len(out.Exports), len(want))
	}
	for i := range want {
		if out.Exports[i] != want[i] {
			return broken("export %d was changed", i)
		}
	}
	return nil
}

// claims holds what the proof says of prepaid fuel against those who can call.
func (v *verifier) claims() error {
	in, c := v.in, v.claim
	if len(c.Steps) != len(in.Codes) || len(c.Prepaid) != len(in.Codes) || len(c.Indirect) != len(in.Types) {
		return broken("the proof does not cover the module")
	}
	numbers := map[string]uint32{}
	for i := range in.Types {
		k := in.Types[i].Key()
		if _, ok := numbers[k]; !ok {
			numbers[k] = uint32(len(numbers)) // at most Limits.Types
		}
		v.shapes = append(v.shapes, numbers[k])
	}
	v.nshapes = len(numbers)
	v.calls = make([][]int32, len(in.Codes)+v.nshapes)
	v.taken = make([]bool, len(in.Codes))
	v.takenByTables()
	exported := func(f uint32, how string) error {
		if f >= v.nimp {
			v.taken[f-v.nimp] = true
			if q := c.Prepaid[f-v.nimp]; q != 0 {
				return broken("function %d is %s, and expects %d units from its callers", f-v.nimp, how, q)
			}
		}
		return nil
	}
	for _, e := range in.Exports {
		if e.Kind == binary.ExternFunc {
			if err := exported(e.Index, "exported"); err != nil {
				return err
			}
		}
	}
	if in.Start != nil {
		if err := exported(*in.Start, "the start function"); err != nil {
			return err
		}
	}
	for _, f := range c.Main {
		if f >= v.nimp+uint32(len(in.Codes)) { // at most Limits.Functions
			return broken("the main function calls function %d, which does not exist", f)
		}
		if err := exported(f, "called by the main function"); err != nil {
			return err
		}
	}
	needs := make([]int64, v.nshapes)
	for f, q := range c.Prepaid {
		if q < 0 || q > mostCharge {
			return broken("function %d expects %d units", f, q)
		}
		if v.taken[f] {
			s := v.shapes[in.Funcs[f]]
			needs[s] = max(needs[s], q)
			v.calls[len(in.Codes)+int(s)] = append(v.calls[len(in.Codes)+int(s)], int32(f)) // at most Limits.Functions
		}
	}
	for t, q := range c.Indirect {
		if q < needs[v.shapes[t]] || q > mostCharge {
			return broken("calls of type %d through a table pay %d units, and a function there expects %d", t, q, needs[v.shapes[t]])
		}
	}
	return nil
}

// takenByTables marks the functions that a reference can be had of.
func (v *verifier) takenByTables() {
	mark := func(f uint32) {
		if f >= v.nimp {
			v.taken[f-v.nimp] = true
		}
	}
	expr := func(x binary.ConstExpr) {
		r := binary.NewReader(x, 0)
		for in := (binary.Instr{}); r.Next(&in); {
			if in.Op == binary.OpRefFunc {
				mark(in.A)
			}
		}
	}
	for i := range v.in.Elems {
		for _, f := range v.in.Elems[i].Funcs {
			mark(f)
		}
		for _, x := range v.in.Elems[i].Exprs {
			expr(x)
		}
	}
	for i := range v.in.Globals {
		expr(v.in.Globals[i].Init)
	}
}
