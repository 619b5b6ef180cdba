package passtest

import (
	"openskill/wasm/binary"
)

// Program makes a valid module from bytes, the same one each time: loops,
// branches, tables of branches, calls of every kind, blocks of many values, bulk
// operations on memory and tables. Every run of it ends: functions and loops
// count down the global [Gas], and trap when it is used up.
func Program(data []byte) []byte {
	g := &program{chance: newChance(data)}
	return g.module().Encode()
}

type program struct {
	*chance
	m      binary.Module
	f      uint32 // the function that is written
	out    []byte
	locals []binary.ValType
	params int
	labels []target
	loops  int // open loops that count
	budget int // statements and expressions that may still be written
}

// target is an open block: what a branch to it takes, and whether branches may.
type target struct {
	types []binary.ValType
	open  bool
}

const (
	guestGas   = 0 // the global that counts down
	maxMemory  = 3
	tableItems = 12
)

var (
	i32, i64, f32, f64 = binary.I32, binary.I64, binary.F32, binary.F64
	valTypes           = []binary.ValType{i32, i64, i32, i64, f64, f32}
)

func (g *program) types(most int) []binary.ValType {
	var t []binary.ValType
	for range g.n(most + 1) {
		t = append(t, valTypes[g.n(len(valTypes))])
	}
	return t
}

func (g *program) module() *binary.Module {
	m := &g.m
	m.Types = []binary.FuncType{{}, {Results: []binary.ValType{i32}}, {Params: []binary.ValType{i32}, Results: []binary.ValType{i32}}}
	for range g.n(5) {
		m.Types = append(m.Types, binary.FuncType{Params: g.types(3), Results: g.types(3)})
	}
	m.Types = append(m.Types, m.Types[2]) // the same shape under another number
	nf := 2 + g.n(8)
	for range nf {
		m.Funcs = append(m.Funcs, uint32(g.n(len(m.Types))))
	}
	m.Tables = []binary.TableType{{Elem: binary.FuncRef, Extent: binary.Extent{Min: tableItems, Max: 40, HasMax: g.one(2)}}}
	m.Memories = []binary.Extent{{Min: 1, Max: maxMemory, HasMax: true}}
	konst := func(t binary.ValType, v int64) binary.ConstExpr {
		switch t {
		case i64:
			return append(binary.AppendS64([]byte{0x42}, v), 0x0b)
		case f32:
			return []byte{0x43, 0, 0, 0x80, 0x3f, 0x0b}
		case f64:
			return []byte{0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x0b}
		}
		return append(binary.AppendS64([]byte{0x41}, v), 0x0b)
	}
	m.Globals = []binary.Global{{GlobalType: binary.GlobalType{Type: i32, Mutable: true}, Init: konst(i32, 300)}}
	for _, t := range []binary.ValType{i32, i64, f64} {
		m.Globals = append(m.Globals, binary.Global{GlobalType: binary.GlobalType{Type: t, Mutable: true}, Init: konst(t, 5)})
	}
	var refs []uint32
	for range tableItems - 2 { // two stay null
		refs = append(refs, uint32(g.n(nf)))
	}
	m.Elems = []binary.Elem{
		{Type: binary.FuncRef, Offset: konst(i32, 0), Funcs: refs},
		{Mode: binary.Passive, Type: binary.FuncRef, Funcs: []uint32{0, 1}},
	}
	two := uint32(1)
	m.DataCount = &two
	m.Datas = []binary.Data{{Mode: binary.Passive, Init: []byte("bytes of a passive segment, longer than eight")}}
	for i := range nf {
		if i < 2 || g.one(3) {
			m.Exports = append(m.Exports, binary.Export{Name: string(rune('a' + i)), Kind: binary.ExternFunc, Index: uint32(i)})
		}
	}
	m.Exports = append(m.Exports, binary.Export{Name: "memory", Kind: binary.ExternMemory})
	for i := range m.Globals {
		m.Exports = append(m.Exports, binary.Export{Name: "g" + string(rune('0'+i)), Kind: binary.ExternGlobal, Index: uint32(i)})
	}
	for i := range nf {
		m.Codes = append(m.Codes, g.function(uint32(i)))
	}
	return m
}

func (g *program) function(i uint32) binary.Code {
	t := g.m.Types[g.m.Funcs[i]]
	g.f, g.out, g.labels = i, nil, nil
	g.locals = append([]binary.ValType(nil), t.Params...)
	g.params = len(t.Params)
	g.locals = append(g.locals, i32, i64, f64)
	g.budget = 10 + g.n(120)
	g.labels = []target{{types: t.Results, open: true}}
	g.gas()
	g.statements(1 + g.n(6))
	for _, r := range t.Results {
		g.expr(r)
	}
	g.op(0x0b)
	c := binary.Code{Body: g.out}
	for _, l := range g.locals[g.params:] {
		c.Locals = append(c.Locals, binary.LocalGroup{Count: 1, Type: l})
	}
	return c
}

func (g *program) op(b ...byte)           { g.out = append(g.out, b...) }
func (g *program) opu(b byte, i int)      { g.out = binary.AppendU32(append(g.out, b), uint32(i)) }
func (g *program) i32c(v int64)           { g.out = binary.AppendS64(append(g.out, 0x41), v) }
func (g *program) index(b byte, i uint32) { g.opu(b, int(i)) }
func (g *program) push(t target)          { g.labels = append(g.labels, t) }
func (g *program) pop()                   { g.labels = g.labels[:len(g.labels)-1] }
func (g *program) blockType(t int)        { g.out = binary.AppendS64(g.out, int64(t)) }
func (g *program) valBlock(t ...binary.ValType) { // no type or one
	if len(t) == 0 {
		g.op(0x40)
		return
	}
	g.op(byte(t[0]))
}

// gas counts down, and traps at the end of it.
func (g *program) gas() {
	g.opu(0x23, guestGas)
	g.i32c(1)
	g.op(0x6b)
	g.opu(0x24, guestGas)
	g.opu(0x23, guestGas)
	g.i32c(0)
	g.op(0x48, 0x04, 0x40, 0x00, 0x0b) // i32.lt_s if unreachable end
}

func (g *program) local(t binary.ValType) int {
	at := g.n(len(g.locals))
	for i := range g.locals {
		if k := (i + at) % len(g.locals); g.locals[k] == t {
			return k
		}
	}
	g.locals = append(g.locals, t)
	return len(g.locals) - 1
}

func (g *program) statements(n int) {
	for range n {
		if g.budget <= 0 {
			return
		}
		g.statement()
	}
}

func (g *program) values(ts []binary.ValType) {
	for _, t := range ts {
		g.expr(t)
	}
}

func (g *program) drop(n int) {
	for range n {
		g.op(0x1a)
	}
}

func (g *program) statement() {
	g.budget--
	deep := len(g.labels) > 7
	switch k := g.n(22); {
	case k < 4 || deep && k < 12:
		t := valTypes[g.n(len(valTypes))]
		g.expr(t)
		g.opu(0x21, g.local(t))
	case k == 4:
		i := 1 + g.n(3)
		g.expr(g.m.Globals[i].Type)
		g.opu(0x24, i)
	case k == 5:
		g.store()
	case k < 8:
		g.loop()
	case k < 10:
		g.expr(i32)
		g.op(0x04, 0x40)
		g.push(target{open: true})
		g.statements(1 + g.n(3))
		if g.one(2) {
			g.op(0x05)
			g.statements(1 + g.n(3))
		}
		g.pop()
		g.op(0x0b)
	case k == 10:
		g.op(0x02, 0x40)
		g.push(target{open: true})
		g.statements(1 + g.n(4))
		g.pop()
		g.op(0x0b)
	case k == 11:
		g.typed()
	case k < 14:
		g.branch()
	case k == 14:
		g.brTable()
	case k < 17:
		g.call(g.n(len(g.m.Funcs)))
	case k == 17:
		g.bulk()
	case k == 18:
		g.table()
	case k == 19 && g.one(6):
		g.leave()
	default:
		g.op(0x01)
	}
}

// loop writes a loop that counts, one that uses gas, or both.
func (g *program) loop() {
	counts, gas := true, g.one(2) || g.loops > 1 // loops that only count multiply
	if gas {
		counts = g.one(2)
	}
	c := len(g.locals)
	g.locals = append(g.locals, i32)
	g.i32c(int64(1 + g.n(9)))
	g.opu(0x21, c)
	g.locals[c] = binary.V128 // nobody else may set the counter
	g.op(0x03, 0x40)
	g.push(target{open: gas})
	g.loops++
	if gas {
		g.gas()
	}
	g.statements(g.n(4))
	g.loops--
	if counts {
		g.opu(0x20, c)
		g.i32c(1)
		g.op(0x6b)
		g.opu(0x22, c)
		g.opu(0x0d, 0)
	} else {
		g.expr(i32)
		g.opu(0x0d, 0)
	}
	g.pop()
	g.op(0x0b)
	g.locals[c] = i32
}

// typed writes a block or loop that takes and gives values.
func (g *program) typed() {
	t := g.n(len(g.m.Types))
	ft := g.m.Types[t]
	g.values(ft.Params)
	if loop := g.one(3); loop {
		g.op(0x03)
		g.blockType(t)
		g.push(target{types: ft.Params, open: true})
		g.gas()
	} else {
		g.op(0x02)
		g.blockType(t)
		g.push(target{types: ft.Results, open: true})
	}
	g.drop(len(ft.Params))
	g.statements(1 + g.n(3))
	g.values(ft.Results)
	g.pop()
	g.op(0x0b)
	g.drop(len(ft.Results))
}

// pick chooses an open label whose values are of the given types, or any; -1 if
// there is none.
func (g *program) pick(want []binary.ValType, all bool) int {
	at := g.n(len(g.labels))
	for i := range g.labels {
		d := (i + at) % len(g.labels)
		l := g.labels[len(g.labels)-1-d]
		if l.open && (all || string(bytesOf(l.types)) == string(bytesOf(want))) {
			return d
		}
	}
	return -1
}

func bytesOf(ts []binary.ValType) []byte {
	var b []byte
	for _, t := range ts {
		b = append(b, byte(t))
	}
	return b
}

func (g *program) branch() {
	d := g.pick(nil, true)
	if d < 0 {
		return
	}
	ts := g.labels[len(g.labels)-1-d].types
	g.values(ts)
	g.expr(i32)
	g.opu(0x0d, d)
	g.drop(len(ts))
}

func (g *program) brTable() {
	d := g.pick(nil, true)
	if d < 0 {
		return
	}
	ts := g.labels[len(g.labels)-1-d].types
	g.op(0x02, 0x40)
	g.push(target{})
	n := g.n(6)
	targets := []int{}
	for range n {
		targets = append(targets, g.pick(ts, false))
	}
	for i, x := range targets {
		if x < 0 {
			targets[i] = d + 1
		}
	}
	g.values(ts)
	g.expr(i32)
	g.i32c(7)
	g.op(0x71)
	g.opu(0x0e, n)
	for _, x := range targets {
		g.out = binary.AppendU32(g.out, uint32(x))
	}
	g.out = binary.AppendU32(g.out, uint32(d+1))
	if g.one(2) {
		g.statements(1) // dead code
	}
	g.pop()
	g.op(0x0b)
}

// leave ends the path: a branch, a return, a trap or a tail of dead code.
func (g *program) leave() {
	g.op(0x02, 0x40)
	g.push(target{})
	switch g.n(3) {
	case 0:
		g.op(0x00)
	case 1:
		g.values(g.labels[0].types)
		g.op(0x0f)
	default:
		if d := g.pick(nil, true); d >= 0 {
			g.values(g.labels[len(g.labels)-1-d].types)
			g.opu(0x0c, d)
		}
	}
	if g.one(2) {
		g.loop()
	}
	g.pop()
	g.op(0x0b)
}

func (g *program) call(f int) {
	t := g.m.Types[g.m.Funcs[f]]
	g.values(t.Params)
	if g.one(3) {
		g.i32c(int64(g.n(tableItems + 1)))
		g.index(0x11, g.m.Funcs[f])
		g.op(0)
	} else {
		g.opu(0x10, f)
	}
	g.drop(len(t.Results))
}

func (g *program) address() {
	g.expr(i32)
	if !g.one(8) {
		g.i32c(0xfff)
		g.op(0x71)
	}
}

func (g *program) store() {
	t := valTypes[g.n(len(valTypes))]
	g.address()
	g.expr(t)
	op := map[binary.ValType]byte{i32: 0x36, i64: 0x37, f32: 0x38, f64: 0x39}[t]
	g.op(op, 0)
	g.out = binary.AppendU32(g.out, uint32(g.n(64)))
}

// bulk writes an operation on memory, with a length that is constant or not.
func (g *program) bulk() {
	length := func() {
		switch g.n(4) {
		case 0:
			g.address()
		case 1:
			g.i32c([]int64{0, 7, 1 << 16, 1 << 20, -1, 1<<20 - 1}[g.n(6)])
		default:
			g.i32c(int64(g.n(200)))
		}
	}
	g.address()
	g.address()
	switch g.n(4) {
	case 0:
		length()
		g.op(0xfc, 10, 0, 0)
	case 1, 2:
		length()
		g.op(0xfc, 11, 0)
	default:
		g.i32c(int64(g.n(50)))
		g.op(0xfc, 8, 0, 0)
	}
}

func (g *program) table() {
	small := func() {
		g.expr(i32)
		g.i32c(7)
		g.op(0x71)
	}
	switch g.n(7) {
	case 0:
		small()
		g.op(0x25, 0, 0x1a) // get, drop
	case 1:
		small()
		g.index(0xd2, g.m.Elems[0].Funcs[g.n(len(g.m.Elems[0].Funcs))])
		g.op(0x26, 0)
	case 2:
		g.op(0xd0, 0x70)
		small()
		g.op(0xfc, 15, 0, 0x1a) // grow
	case 3:
		small()
		g.op(0xd0, 0x70)
		small()
		g.op(0xfc, 17, 0) // fill
	case 4:
		small()
		small()
		small()
		g.op(0xfc, 14, 0, 0) // copy
	case 5:
		small()
		g.i32c(0)
		g.i32c(int64(g.n(3)))
		g.op(0xfc, 12, 1, 0) // init
	default:
		g.i32c(int64(g.n(3)))
		g.op(0x40, 0, 0x1a) // memory.grow
	}
}
