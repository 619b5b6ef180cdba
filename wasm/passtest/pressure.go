package passtest

import (
	"slices"

	"openskill/wasm/binary"
)

// Pressure makes a module like Arithmetic, whose functions hold more values of every type
// than there are registers, most of them over calls, loops, branches by table and operations
// on memory: where the compiler must move values to the stack and back between any two
// instructions. It ends, and leaves in its memory all that it held.
func Pressure(data []byte) []byte {
	p := &pressure{arithmetic: arithmetic{chance: newChance(data)}}
	p.common = binary.FuncType{Params: carried, Results: []binary.ValType{binary.I64}}
	return p.module()
}

// Calls makes a module like Pressure, whose functions take and give more values than
// registers pass: some 20 of each in half of the modules, and up to 120 in the others, which
// not every processor is given. Arguments are often constants, and the same one more than once.
func Calls(data []byte) []byte {
	p := &pressure{arithmetic: arithmetic{chance: newChance(data)}, constants: true}
	most := 24
	if p.one(2) {
		most = 120
	}
	p.common = binary.FuncType{Params: p.types(most), Results: p.types(most)}
	return p.module()
}

func (p *pressure) module() []byte {
	p.lean, p.pool = true, p.held
	p.often = sequences[p.n(len(sequences))]
	if ops := giving[p.n(len(kinds))]; p.one(2) {
		p.often = ops[(p.n(16)*16+p.n(16))%len(ops)]
	}
	functions := leaves + p.n(3)
	for i := range functions {
		p.function(i, p.common, false)
	}
	p.function(functions, binary.FuncType{}, true)
	p.m.Memories = []binary.Extent{{Min: 1, Max: 2, HasMax: true}}
	p.m.Tables = []binary.TableType{{Elem: binary.FuncRef, Extent: binary.Extent{Min: 4, Max: 4, HasMax: true}}}
	p.m.Elems = []binary.Elem{{Type: binary.FuncRef, Offset: []byte{0x41, 0, 0x0b}, Funcs: []uint32{0, 1, 1, 0}}}
	p.m.Globals = []binary.Global{{GlobalType: binary.GlobalType{Type: binary.I64, Mutable: true}, Init: []byte{0x42, 1, 0x0b}}}
	p.m.Exports = []binary.Export{{Name: "f", Kind: binary.ExternFunc, Index: uint32(functions)}, {Name: "memory", Kind: binary.ExternMemory}}
	return p.m.Encode()
}

// leaves are functions that call nothing, so that they can be called from loops.
const leaves = 2

// carried are parameters: more integers than the convention of calls has registers.
var carried = []binary.ValType{
	binary.I32, binary.I64, binary.I64, binary.I64, binary.I64, binary.I64, binary.I64, binary.I64, binary.I64, binary.I64, binary.F32, binary.F64, binary.V128,
}

// many is how many values of each of kinds a function holds, or up to three times as many:
// some processors have 32 registers.
var many = [...]int{10, 12, 7, 7, 7}

// sequences are the instructions of which compilers make several, some with branches between
// them, and those whose result takes the place of an operand.
var sequences = []binary.Op{
	0x67, 0x68, 0x69, 0x79, 0x7a, 0x7b, 0x6f, 0x70, 0x81, 0x82, 0x98, 0xa6, 0xb3, 0xb4, 0xb5, 0xb8, 0xb9, 0xba,
	0x96, 0x97, 0xa4, 0xa5, 0x20d, 0x20e, 0x220, 0x222, 0x21a, 0x21c, 0x21e, 0x252, 0x262, 0x26b, 0x26c, 0x26d,
	0x263, 0x264, 0x283, 0x284, 0x2a3, 0x2a4, 0x2c3, 0x2c4, 0x2cb, 0x2cc, 0x2cd, 0x2d5, 0x2e8, 0x2e9, 0x2f4, 0x2f5, 0x2f8, 0x2f9, 0x2fc, 0x2fd,
}

type pressure struct {
	arithmetic
	common    binary.FuncType // of all functions but the last
	constants bool            // arguments are often constants
	often     binary.Op       // what the program computes with more than with others
	many      [len(many)]int
	index     int
	hot       int // how many of the values of a kind most instructions take
	deep      int
	counts    int
}

// held chooses the local of a value; those that are used often are used soon again.
func (p *pressure) held(kind int) int {
	at := p.counter(counters) + 3 // behind the locals that arithmetic has
	for k := range kind {
		at += p.many[k]
	}
	if p.one(3) {
		return at + p.n(min(p.hot, p.many[kind]))
	}
	return at + p.n(p.many[kind])
}

func (p *pressure) function(i int, t binary.FuncType, last bool) {
	p.index, p.hot, p.deep, p.counts = i, 1+p.n(6), 0, 0
	times := 1 + p.n(3)
	if p.constants && p.one(3) {
		times *= 3
	}
	for k := range many {
		p.many[k] = many[k] * times
	}
	p.m.Types = append(p.m.Types, t)
	p.m.Funcs = append(p.m.Funcs, uint32(i))
	p.out, p.params, p.loops, p.calls = nil, t.Params, 0, 0
	p.budget = 40 + p.n(200)
	if i < leaves {
		p.budget = 10 + p.n(40)
	}
	at := p.counter(counters) + 3
	for k := range kinds {
		for range p.many[k] {
			if from := p.parameter(k); from >= 0 && !p.one(3) {
				p.opu(0x20, from)
			} else {
				p.constant(k)
			}
			p.opu(0x21, at)
			at++
		}
	}
	p.statements(6 + p.n(40))
	if last {
		p.dump()
	}
	for _, r := range t.Results {
		p.opu(0x20, p.held(kindOf(letterOf(r))))
		if r == binary.I64 {
			for range 3 {
				p.opu(0x20, p.held(1))
				p.op(0x85) // xor
			}
		}
	}
	p.op(0x0b)
	c := binary.Code{Body: p.out}
	for _, k := range kinds {
		c.Locals = append(c.Locals, binary.LocalGroup{Count: perKind, Type: k})
	}
	c.Locals = append(c.Locals, binary.LocalGroup{Count: counters, Type: binary.I32},
		binary.LocalGroup{Count: 1, Type: binary.F32}, binary.LocalGroup{Count: 1, Type: binary.F64}, binary.LocalGroup{Count: 1, Type: binary.V128})
	for k, n := range p.many {
		c.Locals = append(c.Locals, binary.LocalGroup{Count: uint32(n), Type: kinds[k]})
	}
	p.m.Codes = append(p.m.Codes, c)
}

// parameter chooses a parameter of a kind; -1 without one.
func (p *pressure) parameter(kind int) int {
	var of []int
	for i, t := range p.params {
		if t == kinds[kind] {
			of = append(of, i)
		}
	}
	if len(of) == 0 {
		return -1
	}
	return of[p.n(len(of))]
}

// dump writes every value to a place of its own.
func (p *pressure) dump() {
	l, place := p.counter(counters)+3, 60_000
	for k, n := range p.many {
		for range n {
			p.op(0x41, 0)
			p.opu(0x20, l)
			if kinds[k] == binary.V128 {
				p.op(0xfd, 11, 0)
			} else {
				p.op(byte(0x36+k), 0)
			}
			p.out = binary.AppendU32(p.out, uint32(place)) // below 65,536
			l, place = l+1, place+16
		}
	}
}

func (p *pressure) statements(n int) {
	for range n {
		if p.budget > 0 {
			p.statement()
		}
	}
}

func (p *pressure) statement() {
	p.budget--
	switch n := p.n(40); {
	case n < 18:
		p.plain()
	case n < 22:
		p.choose()
	case n < 24:
		k := p.n(len(kinds))
		p.value(k, 2)
		p.opu(0x21, p.held(k))
	case n < 29:
		p.invoke()
	case n < 31:
		p.global()
	case n < 33:
		p.bulk()
	case n < 34:
		p.wide()
	case p.deep >= 3:
	case n < 36:
		p.either()
	case n < 38:
		p.loop()
	default:
		p.table()
	}
}

// plain computes with what is held.
func (p *pressure) plain() {
	k := p.n(len(kinds) + 1)
	ops := giving[k]
	op := ops[(p.n(16)*16+p.n(16))%len(ops)]
	switch p.n(6) {
	case 0:
		op = sequences[p.n(len(sequences))]
	case 1:
		op = p.often
	}
	p.instruction(op, 0)
	if s := op.Signature(); s[len(s)-1] != ':' {
		p.opu(0x21, p.held(kindOf(s[len(s)-1])))
	}
}

// choose selects one of two values of any kind, by a number or by a comparison.
func (p *pressure) choose() {
	k := p.n(len(kinds))
	p.opu(0x20, p.held(k))
	p.opu(0x20, p.held(k))
	p.opu(0x20, p.held(0))
	if p.one(2) {
		p.opu(0x20, p.held(0))
		p.op(byte(0x46 + p.n(10)))
	}
	if p.one(2) {
		p.op(0x1c, 1, byte(kinds[k]))
	} else {
		p.op(0x1b)
	}
	p.opu(0x21, p.held(k))
}

// invoke calls a function, mostly one that calls nothing, directly or by the table.
func (p *pressure) invoke() {
	if p.index < leaves || p.counts > 12 {
		return
	}
	p.counts++
	for _, t := range p.common.Params {
		p.argument(kindOf(letterOf(t)))
	}
	switch {
	case p.one(3):
		p.opu(0x20, p.held(0))
		if !p.one(60) {
			p.op(0x41, 3, 0x71) // and 3
		}
		p.op(0x11, 0, 0)
	case p.index > leaves && p.loops == 0 && p.calls < mostCall:
		p.calls++
		p.opu(0x10, p.n(p.index))
	default:
		p.opu(0x10, p.n(leaves))
	}
	for _, t := range slices.Backward(p.common.Results) {
		p.opu(0x21, p.held(kindOf(letterOf(t))))
	}
}

// argument pushes one of a call.
func (p *pressure) argument(kind int) {
	switch {
	case !p.constants || p.one(3):
		p.opu(0x20, p.held(kind))
	case p.one(3):
		p.constant(kind)
	default: // a local of arithmetic, which is zero here
		p.opu(0x20, len(p.params)+kind*perKind+p.n(perKind))
	}
}

func letterOf(t binary.ValType) byte {
	return map[binary.ValType]byte{binary.I32: 'i', binary.I64: 'l', binary.F32: 'f', binary.F64: 'd', binary.V128: 'v'}[t]
}

func (p *pressure) global() {
	if p.one(2) {
		p.op(0x23, 0)
		p.opu(0x21, p.held(1))
		return
	}
	p.opu(0x20, p.held(1))
	p.op(0x24, 0)
}

// bulk works on memory: in bounds, but for a rare trap.
func (p *pressure) bulk() {
	within := func(mask ...byte) {
		p.opu(0x20, p.held(0))
		if !p.one(40) {
			p.op(append(append([]byte{0x41}, mask...), 0x71)...)
		}
	}
	place, length := []byte{0xff, 0xbf, 0x01}, []byte{0xff, 0x00}
	switch p.n(4) {
	case 0:
		p.op(0x41, byte(p.n(2)), 0x40, 0)
		p.opu(0x21, p.held(0))
	case 1:
		p.op(0x3f, 0)
		p.opu(0x21, p.held(0))
	case 2:
		within(place...)
		p.opu(0x20, p.held(0))
		within(length...)
		p.op(0xfc, 11, 0)
	default:
		within(place...)
		within(place...)
		within(length...)
		p.op(0xfc, 10, 0, 0)
	}
}

// wide makes an address out of numbers of 64 bits, as programs with such pointers do.
func (p *pressure) wide() {
	p.opu(0x20, p.held(1))
	p.opu(0x20, p.held(1))
	p.op(0x42, byte(p.n(32)), 0x86, 0x7c, 0xa7, 0x41, 0xff, 0xbf, 0x01, 0x71) // shl, add, wrap, and 0x5fff
	p.op(0x29, 0)                                                             // i64.load
	p.out = binary.AppendU32(p.out, uint32(p.n(200)))
	p.opu(0x21, p.held(1))
}

func (p *pressure) either() {
	p.deep++
	p.opu(0x20, p.held(0))
	p.op(0x04, 0x40)
	p.statements(1 + p.n(6))
	if p.one(2) {
		p.op(0x05)
		p.statements(1 + p.n(6))
	}
	p.op(0x0b)
	p.deep--
}

func (p *pressure) loop() {
	if p.loops == counters {
		return
	}
	p.deep++
	c := p.counter(p.loops)
	p.loops++
	p.op(0x41, byte(1+p.n(4))) // below five
	p.opu(0x21, c)
	p.op(0x03, 0x40)
	p.statements(1 + p.n(8))
	p.opu(0x20, c)
	p.op(0x41, 1, 0x6b)
	p.opu(0x22, c)
	p.op(0x0d, 0, 0x0b)
	p.loops--
	p.deep--
}

// table branches by a table out of two blocks.
func (p *pressure) table() {
	p.deep++
	p.op(0x02, 0x40, 0x02, 0x40)
	p.statements(1 + p.n(3))
	p.opu(0x20, p.held(0))
	if p.one(2) {
		p.op(0x41, 3, 0x71)
	}
	p.op(0x0e, 3, 0, 1, 0, 1, 0x0b)
	p.statements(1 + p.n(3))
	p.op(0x0b)
	p.deep--
}
