package passtest

import (
	"slices"

	"openskill/wasm/binary"
)

// Arithmetic makes a module that computes: every instruction whose types are its own,
// on numbers of every type and vectors, in functions that take and give many values,
// call each other, branch and count. At its end everything that it holds is written to
// its memory. Where a float is not a number, its bits are the machine's choice, so it
// is replaced at once.
func Arithmetic(data []byte) []byte {
	a := &arithmetic{chance: newChance(data)}
	functions := 1 + a.n(4)
	for i := range functions {
		a.function(i, i == functions-1)
	}
	return a.m.Encode()
}

type arithmetic struct {
	*chance
	m      binary.Module
	out    []byte
	params []binary.ValType
	budget int
	loops  int
	calls  int
	pool   func(kind int) int // chooses the local of a value; nil: local does
	lean   bool               // bits of floats are replaced only where the machine chose them
}

// kinds are the types of values; each function has perKind locals of each, behind its
// parameters, then one that counts for each loop in a loop, and one of each type that
// may be no number.
var kinds = []binary.ValType{binary.I32, binary.I64, binary.F32, binary.F64, binary.V128}

const (
	perKind  = 4
	counters = 2
	mostCall = 3 // calls in a function: what they cost multiplies
)

// giving are the instructions that compute, by the type that they give: kinds, and
// then what gives nothing.
var giving = func() (by [6][]binary.Op) {
	for op := range binary.Op(0x300) {
		s := op.Signature()
		switch op.Imm() {
		case binary.ImmNone, binary.ImmMem, binary.ImmMemLane, binary.ImmLane, binary.ImmShuffle,
			binary.ImmI32, binary.ImmI64, binary.ImmF32, binary.ImmF64, binary.ImmV128:
		default:
			continue
		}
		if s == "" {
			continue
		}
		k := len(kinds)
		if s[len(s)-1] != ':' {
			k = kindOf(s[len(s)-1])
		}
		by[k] = append(by[k], op)
	}
	return by
}()

// kindOf gives the place among kinds of a letter of a signature.
func kindOf(letter byte) int { return slices.Index([]byte("ilfdv"), letter) }

func (a *arithmetic) op(b ...byte)          { a.out = append(a.out, b...) }
func (a *arithmetic) opu(b byte, i int)     { a.out = binary.AppendU32(append(a.out, b), uint32(i)) }
func (a *arithmetic) byte() byte            { return byte(a.n(256)) } // below 256
func (a *arithmetic) blockOf(t int)         { a.op(byte(kinds[t])) }
func (a *arithmetic) counter(depth int) int { return len(a.params) + perKind*len(kinds) + depth }

// scratch is where a value of f, d or v is looked at; nothing else reads it.
func (a *arithmetic) scratch(kind byte) int { return a.counter(counters) + kindOf(kind) - kindOf('f') }

// local chooses a local of a kind.
func (a *arithmetic) local(kind int) int {
	if a.pool != nil {
		return a.pool(kind)
	}
	if at := slices.Index(a.params, kinds[kind]); at >= 0 && a.one(3) {
		return at
	}
	return len(a.params) + kind*perKind + a.n(perKind)
}

func (a *arithmetic) types(most int) (ts []binary.ValType) {
	for range a.n(most + 1) {
		ts = append(ts, kinds[a.n(len(kinds))])
	}
	return ts
}

// function writes one; the last one is exported, takes nothing, and writes all that it
// holds to memory.
func (a *arithmetic) function(i int, last bool) {
	t := binary.FuncType{}
	if !last {
		t = binary.FuncType{Params: a.types(9), Results: a.types(5)}
	}
	a.m.Types = append(a.m.Types, t)
	a.m.Funcs = append(a.m.Funcs, uint32(i))
	a.out, a.params, a.budget, a.loops, a.calls = nil, t.Params, 60+a.n(200), 0, 0
	for k := range kinds {
		for j := range perKind {
			a.constant(k)
			a.opu(0x21, len(a.params)+k*perKind+j)
		}
	}
	a.statements(3 + a.n(12))
	if last {
		a.dump()
	}
	for _, r := range t.Results {
		a.value(slices.Index(kinds, r), 2)
	}
	a.op(0x0b)
	c := binary.Code{Body: a.out}
	for _, k := range kinds {
		c.Locals = append(c.Locals, binary.LocalGroup{Count: perKind, Type: k})
	}
	c.Locals = append(c.Locals, binary.LocalGroup{Count: counters, Type: binary.I32},
		binary.LocalGroup{Count: 1, Type: binary.F32}, binary.LocalGroup{Count: 1, Type: binary.F64}, binary.LocalGroup{Count: 1, Type: binary.V128})
	a.m.Codes = append(a.m.Codes, c)
	if last {
		a.m.Memories = []binary.Extent{{Min: 1, Max: 1, HasMax: true}}
		a.m.Exports = []binary.Export{{Name: "f", Kind: binary.ExternFunc, Index: uint32(i)}, {Name: "memory", Kind: binary.ExternMemory}}
	}
}

// dump writes every local to a place of its own.
func (a *arithmetic) dump() {
	for k := range kinds {
		for j := range perKind {
			a.op(0x41, 0, 0x20, byte(len(a.params)+k*perKind+j))
			switch kinds[k] {
			case binary.V128:
				a.op(0xfd, 11, 0)
			default:
				a.op([]byte{0x36, 0x37, 0x38, 0x39}[k], 0)
			}
			a.out = binary.AppendU32(a.out, uint32(60_000+16*(k*perKind+j)))
		}
	}
}

func (a *arithmetic) statements(n int) {
	for range n {
		if a.budget > 0 {
			a.statement()
		}
	}
}

func (a *arithmetic) statement() {
	a.budget--
	switch n := a.n(16); {
	case n < 8:
		k := a.n(len(kinds))
		a.value(k, 4)
		a.opu(0x21, a.local(k))
	case n < 10:
		stores := giving[len(kinds)]
		a.instruction(stores[a.n(len(stores))], 3)
	case n < 12:
		a.value(0, 2)
		a.op(0x04, 0x40)
		a.statements(1 + a.n(3))
		if a.one(2) {
			a.op(0x05)
			a.statements(1 + a.n(3))
		}
		a.op(0x0b)
	case n == 12:
		a.op(0x02, 0x40)
		a.statements(1 + a.n(3))
		a.value(0, 2)
		a.op(0x0d, 0)
		a.statements(1 + a.n(3))
		a.op(0x0b)
	case n == 13 && a.loops < counters:
		c := a.counter(a.loops)
		a.loops++
		a.op(0x41, byte(1+a.n(9))) // below ten
		a.opu(0x21, c)
		a.op(0x03, 0x40)
		a.statements(1 + a.n(4))
		a.opu(0x20, c)
		a.op(0x41, 1, 0x6b)
		a.opu(0x22, c)
		a.op(0x0d, 0, 0x0b)
		a.loops--
	case n == 14 && len(a.m.Codes) > 0 && a.loops == 0 && a.calls < mostCall:
		a.call(a.n(len(a.m.Codes)))
	default:
		k := a.n(len(kinds))
		a.value(k, 2)
		a.opu(0x22, a.local(k))
		a.opu(0x21, a.local(k))
	}
}

// call keeps what a function gives.
func (a *arithmetic) call(f int) {
	a.calls++
	t := a.m.Types[f]
	for _, p := range t.Params {
		a.value(slices.Index(kinds, p), 2)
	}
	a.opu(0x10, f)
	for _, r := range slices.Backward(t.Results) {
		a.opu(0x21, a.local(slices.Index(kinds, r)))
	}
}

// value pushes one value of a kind.
func (a *arithmetic) value(kind, depth int) {
	a.budget--
	switch n := a.n(12); {
	case depth <= 0 || n < 3:
		a.opu(0x20, a.local(kind))
	case n == 3:
		a.constant(kind)
	case n == 4:
		a.value(kind, depth-1)
		a.value(kind, depth-1)
		a.value(0, depth-1)
		a.op(0x1b)
	case n == 5:
		a.value(0, depth-1)
		a.op(0x04)
		a.blockOf(kind)
		a.value(kind, depth-1)
		a.op(0x05)
		a.value(kind, depth-1)
		a.op(0x0b)
	case n == 6:
		a.value(kind, depth-1)
		a.opu(0x22, a.local(kind))
	default:
		ops := giving[kind]
		a.instruction(ops[(a.n(16)*16+a.n(16))%len(ops)], depth-1)
	}
}

// instruction writes an instruction with its operands.
func (a *arithmetic) instruction(op binary.Op, depth int) {
	s := op.Signature()
	memory := op.Imm() == binary.ImmMem || op.Imm() == binary.ImmMemLane
	i := 0
	for ; s[i] != ':'; i++ {
		a.value(kindOf(s[i]), depth)
		switch {
		case memory && i == 0 && !a.one(40):
			a.op(0x41, 0xff, 0xbf, 0x01, 0x71) // and 0x5fff
		case i == 1 && (op >= 0x6d && op <= 0x70 || op >= 0x7f && op <= 0x82) && !a.one(20): // a divisor that is not zero
			if s[1] == 'i' {
				a.op(0x41, 1, 0x72)
			} else {
				a.op(0x42, 1, 0x84)
			}
		case i == 0 && op >= 0xa8 && op <= 0xb1 && s[0] == 'f' && !a.one(20): // a float that an integer can hold
			a.op(0x43, 0, 0, 0x80, 0x3f, 0x98, 0x43, 0, 0, 0, 0x46, 0x96, 0x43, 0, 0, 0, 0x3f, 0x97) // its sign, between 0.5 and 8192
		case i == 0 && op >= 0xa8 && op <= 0xb1 && s[0] == 'd' && !a.one(20):
			a.op(0x44, 0, 0, 0, 0, 0, 0, 0xc0, 0x40, 0xa4, 0x44, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 0xa5)
		}
	}
	a.code(op)
	a.immediates(op)
	if i+1 < len(s) && !(a.lean && exact(op)) {
		a.number(op, s[i+1])
	}
}

// exact reports whether an instruction that gives a float gives bits that the
// specification names, whatever it is given: loads, abs, neg, copysign, conversions of
// integers, reinterpretations.
func exact(op binary.Op) bool {
	switch op {
	case 0x2a, 0x2b, 0x8b, 0x8c, 0x98, 0x99, 0x9a, 0xa6, 0xb2, 0xb3, 0xb4, 0xb5, 0xb7, 0xb8, 0xb9, 0xba, 0xbe, 0xbf:
		return true
	}
	return false
}

func (a *arithmetic) code(op binary.Op) {
	switch {
	case op < 0x100:
		a.op(byte(op))
	case op < 0x200:
		a.opu(0xfc, int(op-0x100))
	default:
		a.opu(0xfd, int(op-0x200))
	}
}

func (a *arithmetic) immediates(op binary.Op) {
	lanes := func() byte { return byte(a.n(int(op.Lanes()))) } // at most 16
	switch op.Imm() {
	case binary.ImmMem, binary.ImmMemLane:
		a.op(byte(a.n(int(op.MaxAlign()) + 1)))                    // at most four
		a.out = binary.AppendU32(a.out, uint32(a.n(256)*a.n(128))) // below the end of the memory
		if op.Imm() == binary.ImmMemLane {
			a.op(lanes())
		}
	case binary.ImmLane:
		a.op(lanes())
	case binary.ImmShuffle:
		for range 16 {
			a.op(byte(a.n(32))) // below 32
		}
	case binary.ImmI32, binary.ImmI64, binary.ImmF32, binary.ImmF64, binary.ImmV128:
		a.bits(op)
	}
}

// constant pushes a number of a kind, often one at an edge.
func (a *arithmetic) constant(kind int) {
	op := []binary.Op{binary.OpI32Const, binary.OpI64Const, binary.OpF32Const, binary.OpF64Const, binary.OpV128Const}[kind]
	a.code(op)
	a.bits(op)
	a.number(op, "ilfdv"[kind])
}

var (
	edges  = []int64{0, 1, -1, 2, 7, 31, 32, 63, 64, 127, 128, 255, 1 << 15, 1 << 16, 1<<31 - 1, -1 << 31, 1 << 31, 1 << 32, 1<<63 - 1, -1 << 63}
	edges4 = [][]byte{{0, 0, 0, 0}, {0, 0, 0, 0x80}, {0, 0, 0x80, 0x3f}, {0, 0, 0x80, 0x7f}, {0, 0, 0x80, 0xff}, {1, 0, 0, 0}, {0, 0, 0, 0x4f}, {0xff, 0xff, 0x7f, 0x7f}}
	edges8 = [][]byte{
		{0, 0, 0, 0, 0, 0, 0, 0},
		{0, 0, 0, 0, 0, 0, 0, 0x80},
		{0, 0, 0, 0, 0, 0, 0xf0, 0x3f},
		{0, 0, 0, 0, 0, 0, 0xf0, 0x7f},
		{0, 0, 0, 0, 0, 0, 0xe0, 0x43},
		{1, 0, 0, 0, 0, 0, 0, 0},
		{0, 0, 0xc0, 0xff, 0xff, 0xff, 0xdf, 0x41},
		{0, 0, 0, 0, 0, 0, 0xf0, 0xff},
	}
)

// bits writes the immediate of a constant.
func (a *arithmetic) bits(op binary.Op) {
	edge := a.one(2)
	random := func(n int) {
		for range n {
			a.op(a.byte())
		}
	}
	switch op {
	case binary.OpI32Const, binary.OpI64Const:
		v := edges[a.n(len(edges))]
		if !edge {
			v = int64(a.byte()) | int64(a.byte())<<8 | int64(a.byte())<<24 | int64(a.byte())<<56
		}
		if op == binary.OpI32Const {
			v = int64(int32(v))
		}
		a.out = binary.AppendS64(a.out, v)
	case binary.OpF32Const:
		if edge {
			a.op(edges4[a.n(len(edges4))]...)
		} else {
			random(4)
		}
	case binary.OpF64Const:
		if edge {
			a.op(edges8[a.n(len(edges8))]...)
		} else {
			random(8)
		}
	default:
		random(16)
	}
}

// number replaces what is not a number behind an instruction that may give one.
func (a *arithmetic) number(op binary.Op, kind byte) {
	lane := byte(0) // the comparison for equal of the lanes
	switch {
	case kind == 'f':
		t := a.scratch(kind)
		a.opu(0x22, t)
		a.op(0x43, 0, 0, 0xc0, 0x3f)
		a.opu(0x20, t)
		a.opu(0x20, t)
		a.op(0x5b, 0x1b)
	case kind == 'd':
		t := a.scratch(kind)
		a.opu(0x22, t)
		a.op(0x44, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f)
		a.opu(0x20, t)
		a.opu(0x20, t)
		a.op(0x61, 0x1b)
	case kind != 'v':
	case op >= 0x2e0 && op <= 0x2eb || op >= 0x267 && op <= 0x26a || op == 0x25e || op == 0x2fa || op == 0x2fb:
		lane = 0x41 // f32x4.eq
	case op >= 0x2ec && op <= 0x2f7 || op >= 0x274 && op <= 0x275 || op == 0x27a || op == 0x294 || op == 0x25f || op == 0x2fe || op == 0x2ff:
		lane = 0x47 // f64x2.eq
	}
	if lane != 0 {
		t := a.scratch(kind)
		a.opu(0x22, t)
		a.opu(0x20, t)
		a.opu(0x20, t)
		a.op(0xfd, lane, 0xfd, 0x4e) // and: lanes that differ from themselves become zero
	}
}
