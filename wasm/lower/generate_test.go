package lower_test

import (
	"fmt"
	"slices"

	"openskill/wasm/binary"
)

const (
	i32, i64, f32, f64, v128   = binary.I32, binary.I64, binary.F32, binary.F64, binary.V128
	funcref, externref, exnref = binary.FuncRef, binary.ExternRef, binary.ExnRef
)

var kinds = []binary.ValType{i32, i64, f32, f64, v128, funcref, externref, exnref}

// The globals of a generated module: what it still may do, what it did so far,
// and a reference that outlives calls.
const (
	globalBudget = iota
	globalHash
	globalExn
)

// lab is a label that a branch may name.
type lab struct {
	types []binary.ValType // what a branch to it carries
	loop  bool
}

// generator turns bytes into a module that throws, catches and keeps
// exceptions. Every choice takes a byte; when there are none left, it takes the
// simplest.
type generator struct {
	data   []byte
	out    []byte
	m      *binary.Module
	types  map[string]uint32
	params []binary.ValType
	result []binary.ValType
	labels []lab
	left   int // instructions
}

func (g *generator) n(k int) int {
	if len(g.data) == 0 {
		return 0
	}
	b := g.data[0]
	g.data = g.data[1:]
	return int(b) % k
}

func (g *generator) op(b ...byte) { g.out = append(g.out, b...) }

func (g *generator) opu(o byte, i int) {
	g.out = binary.AppendU32(append(g.out, o), uint32(i))
}

func (g *generator) typ(params, results []binary.ValType) uint32 {
	t := binary.FuncType{Params: params, Results: results}
	if i, ok := g.types[t.Key()]; ok {
		return i
	}
	i := uint32(len(g.m.Types))
	g.m.Types = append(g.m.Types, t)
	g.types[t.Key()] = i
	return i
}

// list gives up to k types.
func (g *generator) list(k int, from []binary.ValType) []binary.ValType {
	var ts []binary.ValType
	for range g.n(k + 1) {
		ts = append(ts, from[g.n(len(from))])
	}
	return ts
}

// generate makes a module. Its exported functions take and give numbers only.
func generate(data []byte) []byte {
	g := &generator{data: data, m: &binary.Module{}, types: map[string]uint32{}}
	zero := func(t binary.ValType, init ...byte) {
		g.m.Globals = append(g.m.Globals, binary.Global{GlobalType: binary.GlobalType{Type: t, Mutable: true}, Init: append(init, 0x0b)})
	}
	zero(i32, 0x41, 0)
	zero(i32, 0x41, 0)
	zero(exnref, 0xd0, byte(exnref))
	g.m.Exports = []binary.Export{
		{Name: "budget", Kind: binary.ExternGlobal, Index: globalBudget}, {Name: "hash", Kind: binary.ExternGlobal, Index: globalHash},
	}

	tags := 1 + g.n(5)
	shape := g.n(5)
	if shape == 3 {
		tags = 66 + g.n(4)
	}
	for range tags {
		var ts []binary.ValType
		switch shape {
		case 0:
			ts = g.list(1, []binary.ValType{i32, f32})
		case 1:
			ts = g.list(3, []binary.ValType{i32, i64, f32, f64})
		case 4:
			ts = g.list(4, kinds[:7])
		default:
			ts = g.list(4, []binary.ValType{i32, i64, f32, f64, funcref, externref})
		}
		g.m.Tags = append(g.m.Tags, g.typ(ts, nil))
	}
	for i := range 2 + g.n(6) {
		from := kinds
		if i < 2 {
			from = kinds[:4]
		}
		g.m.Funcs = append(g.m.Funcs, g.typ(g.list(3, from), g.list(2, from)))
	}
	elem := binary.Elem{Offset: binary.ConstExpr{0x41, 0, 0x0b}, Type: funcref}
	for i, t := range g.m.Funcs {
		elem.Funcs = append(elem.Funcs, uint32(i))
		if ft := g.m.Types[t]; numbers(ft.Params) && numbers(ft.Results) {
			g.m.Exports = append(g.m.Exports, binary.Export{Name: fmt.Sprintf("f%d", i), Kind: binary.ExternFunc, Index: uint32(i)})
		}
	}
	g.m.Tables = []binary.TableType{{Elem: funcref, Extent: binary.Extent{Min: uint32(len(elem.Funcs) + 1)}}}
	g.m.Elems = []binary.Elem{elem}
	share := len(g.data) / len(g.m.Funcs)
	rest := g.data
	for i := range g.m.Funcs {
		at := min(i*share, len(rest))
		g.data = rest[at:min(at+share, len(rest))]
		g.function(i)
	}
	return g.m.Encode()
}

func numbers(ts []binary.ValType) bool {
	return !slices.ContainsFunc(ts, func(t binary.ValType) bool { return t.IsRef() || t == v128 })
}

func (g *generator) function(i int) {
	t := g.m.Types[g.m.Funcs[i]]
	g.params, g.result, g.out, g.left = t.Params, t.Results, nil, 400
	g.labels = append(g.labels[:0], lab{types: t.Results})
	var groups []binary.LocalGroup
	for _, k := range kinds {
		groups = append(groups, binary.LocalGroup{Count: 2, Type: k})
	}
	g.pay()
	g.statements(3 + g.n(4))
	g.values(t.Results)
	g.op(0x0b)
	g.m.Codes = append(g.m.Codes, binary.Code{Locals: groups, Body: g.out})
}

// pay ends the run by a trap when the budget is used up.
func (g *generator) pay() {
	g.opu(0x23, globalBudget)
	g.op(0x41, 1, 0x6b)
	g.opu(0x24, globalBudget)
	g.opu(0x23, globalBudget)
	g.op(0x41, 0, 0x48, 0x04, 0x40, 0x00, 0x0b)
}

func (g *generator) local(t binary.ValType) int {
	if at := slices.Index(g.params, t); at >= 0 && g.n(2) == 1 {
		return at
	}
	return len(g.params) + 2*slices.Index(kinds, t) + g.n(2)
}

func (g *generator) values(ts []binary.ValType) {
	for _, t := range ts {
		g.value(t)
	}
}

// value pushes one value.
func (g *generator) value(t binary.ValType) {
	switch g.n(5) {
	case 1, 2:
		g.opu(0x20, g.local(t))
		return
	case 3:
		if t != externref {
			g.value(t)
			g.opu(0x22, g.local(t)) // tee
			return
		}
	case 4:
		if len(g.data) > 0 && t != exnref { // wazero does not select exnref
			g.value(t)
			g.value(t)
			g.value(i32)
			g.op(0x1c, 1, byte(t))
			return
		}
	}
	switch t {
	case i32:
		g.out = binary.AppendS64(append(g.out, 0x41), int64(g.n(100)))
	case i64:
		g.out = binary.AppendS64(append(g.out, 0x42), int64(g.n(100))<<g.n(60))
	case f32:
		g.op(0x43, byte(g.n(256)), byte(g.n(256)), byte(g.n(100)), byte(g.n(100)))
	case f64:
		g.op(0x44, byte(g.n(256)), byte(g.n(256)), 0, 0, byte(g.n(256)), 0, byte(g.n(100)), byte(g.n(100)))
	case v128:
		g.op(0xfd, 12, byte(g.n(256)), 0, 0, 0, byte(g.n(256)), 0, 0, 0, byte(g.n(256)), 0, 0, 0, byte(g.n(256)), 0, 0, 0)
	case funcref:
		if k := g.n(len(g.m.Funcs) + 1); k > 0 {
			g.opu(0xd2, k-1)
		} else {
			g.op(0xd0, byte(funcref))
		}
	case exnref:
		if g.n(2) == 1 {
			g.opu(0x23, globalExn)
		} else {
			g.op(0xd0, byte(exnref))
		}
	default:
		g.op(0xd0, byte(t))
	}
}

// consume takes values from the stack, and makes them count.
func (g *generator) consume(ts []binary.ValType) {
	for _, t := range slices.Backward(ts) {
		if g.n(3) == 1 {
			g.opu(0x22, g.local(t))
		}
		if t == exnref && g.n(3) == 1 {
			g.opu(0x24, globalExn)
			continue
		}
		switch t {
		case i64:
			g.op(0xa7)
		case f32:
			g.op(0xbc)
		case f64:
			g.op(0xbd, 0x42, 20, 0x88, 0xa7)
		case v128:
			g.op(0xfd, 27, byte(g.n(4)))
		case funcref, externref:
			g.op(0xd1)
		case exnref:
			if g.n(4) == 1 {
				g.op(0x1a)
				continue
			}
			g.op(0xd1)
		}
		g.opu(0x23, globalHash)
		g.op(0x41, 31, 0x6c, 0x6a)
		g.opu(0x24, globalHash)
	}
}

func (g *generator) statements(n int) {
	for range n {
		g.statement()
	}
}

func (g *generator) statement() {
	if g.left--; g.left < 0 || len(g.data) == 0 || len(g.labels) > 12 {
		g.value(i32)
		g.consume([]binary.ValType{i32})
		return
	}
	switch g.n(16) {
	case 0:
		t := kinds[g.n(len(kinds))]
		g.value(t)
		g.opu(0x21, g.local(t))
	case 1:
		t := kinds[g.n(len(kinds))]
		g.value(t)
		g.consume([]binary.ValType{t})
	case 2, 3:
		g.throw()
	case 4:
		g.value(exnref)
		g.op(0x0a)
	case 5, 6, 7:
		g.try()
	case 8:
		g.retry()
	case 9, 10:
		g.call()
	case 11:
		g.value(i32)
		g.op(0x04, 0x40)
		g.inside(lab{}, func() { g.statements(1 + g.n(2)) })
		if g.n(2) == 1 {
			g.op(0x05)
			g.inside(lab{}, func() { g.statements(1 + g.n(2)) })
		}
		g.op(0x0b)
	case 12:
		ts := g.list(2, kinds)
		g.block(0x02, g.typ(nil, ts))
		g.inside(lab{types: ts}, func() { g.statements(1 + g.n(2)); g.values(ts) })
		g.op(0x0b)
		g.consume(ts)
	case 13:
		g.branch()
	case 14:
		g.op(0x03, 0x40)
		g.inside(lab{loop: true}, func() {
			g.pay()
			g.statements(1 + g.n(3))
			g.value(i32)
			g.op(0x0d, 0)
		})
		g.op(0x0b)
	case 15:
		g.value(exnref)
		g.op(0xd1, 0x45, 0x04, 0x40) // if it is not null, throw it again
		g.value(exnref)
		g.op(0x0a, 0x0b)
	}
}

func (g *generator) inside(l lab, body func()) {
	g.labels = append(g.labels, l)
	body()
	g.labels = g.labels[:len(g.labels)-1]
}

func (g *generator) block(o byte, t uint32) {
	g.out = binary.AppendS64(append(g.out, o), int64(t))
}

func (g *generator) throw() {
	t := g.n(len(g.m.Tags))
	g.value(i32) // something below that is thrown away
	g.value(i32)
	g.op(0x04, 0x40)
	g.inside(lab{}, func() {
		g.values(g.m.Types[g.m.Tags[t]].Params)
		g.opu(0x08, t)
		if g.n(3) == 1 { // whatever comes is unreachable, and so of any type
			g.op(0x1a, 0xd1, 0x1a, 0x6a, 0x1a)
			g.statements(1)
		}
	})
	g.op(0x0b)
	g.consume([]binary.ValType{i32})
}

func (g *generator) call() {
	f := g.n(len(g.m.Funcs))
	t := g.m.Types[g.m.Funcs[f]]
	g.value(i64) // lives across the call
	g.values(t.Params)
	switch k := g.n(4); {
	case k == 1:
		g.op(0x41)
		g.out = binary.AppendS64(g.out, int64(g.n(len(g.m.Funcs)+1))) // mostly of another type, which traps
		g.op(0x1a, 0x41)
		g.out = binary.AppendS64(g.out, int64(f))
		g.opu(0x11, int(g.m.Funcs[f]))
		g.op(0)
	case k == 2 && slices.Equal(t.Results, g.result):
		g.opu(0x12, f)
		return
	default:
		g.opu(0x10, f)
	}
	g.consume(t.Results)
	g.consume([]binary.ValType{i64})
}

func (g *generator) branch() {
	d := g.n(len(g.labels))
	l := g.labels[len(g.labels)-1-d]
	switch g.n(3) {
	case 0:
		g.values(l.types)
		g.value(i32)
		g.opu(0x0d, d)
		g.consume(l.types)
	case 1:
		g.value(i32)
		g.op(0x04, 0x40)
		g.inside(lab{}, func() {
			g.values(l.types)
			g.opu(0x0c, d+1)
		})
		g.op(0x0b)
	default:
		targets := []int{d}
		for k := range g.labels {
			if slices.Equal(g.labels[len(g.labels)-1-k].types, l.types) && g.n(2) == 1 {
				targets = append(targets, k)
			}
		}
		g.value(i32)
		g.op(0x04, 0x40)
		g.values(l.types)
		g.value(i32)
		g.opu(0x0e, len(targets)-1)
		for _, k := range targets {
			g.out = binary.AppendU32(g.out, uint32(k+1))
		}
		g.op(0x0b)
	}
}

// clause is a catch clause and what it gives.
type clause struct {
	kind, tag int
	give      []binary.ValType
}

func (g *generator) clause() clause {
	c := clause{kind: g.n(4), tag: g.n(len(g.m.Tags))}
	if c.kind < 2 {
		c.give = append(c.give, g.m.Types[g.m.Tags[c.tag]].Params...)
	}
	if c.kind&1 == 1 {
		c.give = append(c.give, exnref)
	}
	return c
}

func (g *generator) catch(c clause, label int) {
	g.op(byte(c.kind))
	if c.kind < 2 {
		g.out = binary.AppendU32(g.out, uint32(c.tag))
	}
	g.out = binary.AppendU32(g.out, uint32(label))
}

// try writes a try_table, each clause of which goes to a block around it, or to
// a label that was there before if one fits.
func (g *generator) try() {
	cs := make([]clause, g.n(4))
	for i := range cs {
		cs[i] = g.clause()
	}
	params, results := g.list(2, kinds), g.list(2, kinds)
	old := len(g.labels)
	g.op(0x02, 0x40)
	g.labels = append(g.labels, lab{})
	for _, c := range slices.Backward(cs) {
		g.block(0x02, g.typ(nil, c.give))
		g.labels = append(g.labels, lab{types: c.give})
	}
	g.value(i32) // stands on the stack while the body runs
	g.values(params)
	g.block(0x1f, g.typ(params, results))
	g.out = binary.AppendU32(g.out, uint32(len(cs)))
	for i, c := range cs {
		label := i
		if g.n(3) == 1 {
			for k := range old {
				if slices.Equal(g.labels[k].types, c.give) {
					label = len(g.labels) - 1 - k
				}
			}
		}
		g.catch(c, label)
	}
	g.inside(lab{types: results}, func() {
		g.consume(params)
		g.statements(1 + g.n(3))
		g.values(results)
	})
	g.op(0x0b)
	g.consume(results)
	g.consume([]binary.ValType{i32})
	g.opu(0x0c, len(cs)) // around the handlers
	for i, c := range cs {
		g.op(0x0b)
		g.labels = g.labels[:len(g.labels)-1]
		g.consume(c.give)
		g.statements(g.n(2))
		if i < len(cs)-1 {
			g.opu(0x0c, len(cs)-1-i)
		}
	}
	g.op(0x0b)
	g.labels = g.labels[:len(g.labels)-1]
}

// retry writes a loop whose header is where a clause goes, with what it gives.
func (g *generator) retry() {
	c := g.clause()
	g.values(c.give)
	g.block(0x03, g.typ(c.give, nil))
	g.inside(lab{types: c.give, loop: true}, func() {
		g.consume(c.give)
		g.pay()
		g.op(0x1f, 0x40, 1)
		g.catch(c, 0)
		g.inside(lab{}, func() { g.statements(1 + g.n(3)) })
		g.op(0x0b)
	})
	g.op(0x0b)
}
