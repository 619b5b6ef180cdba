package binary

import "fmt"

// Op is an instruction: its byte, or 0x100 and the number behind the prefix
// 0xfc, or 0x200 and the number behind the prefix 0xfd.
type Op uint16

// The instructions that rewriters and validators treat one by one. All others
// are described by [Op.Signature].
const (
	OpUnreachable  Op = 0x00
	OpNop          Op = 0x01
	OpBlock        Op = 0x02
	OpLoop         Op = 0x03
	OpIf           Op = 0x04
	OpElse         Op = 0x05
	OpThrow        Op = 0x08
	OpThrowRef     Op = 0x0a
	OpEnd          Op = 0x0b
	OpBr           Op = 0x0c
	OpBrIf         Op = 0x0d
	OpBrTable      Op = 0x0e
	OpReturn       Op = 0x0f
	OpCall         Op = 0x10
	OpCallIndirect Op = 0x11
	OpReturnCall   Op = 0x12
	OpReturnCallI  Op = 0x13
	OpDrop         Op = 0x1a
	OpSelect       Op = 0x1b
	OpSelectT      Op = 0x1c
	OpTryTable     Op = 0x1f
	OpLocalGet     Op = 0x20
	OpLocalSet     Op = 0x21
	OpLocalTee     Op = 0x22
	OpGlobalGet    Op = 0x23
	OpGlobalSet    Op = 0x24
	OpTableGet     Op = 0x25
	OpTableSet     Op = 0x26
	OpMemorySize   Op = 0x3f
	OpMemoryGrow   Op = 0x40
	OpI32Const     Op = 0x41
	OpI64Const     Op = 0x42
	OpF32Const     Op = 0x43
	OpF64Const     Op = 0x44
	OpI32Eqz       Op = 0x45
	OpI32LtU       Op = 0x49
	OpI64LtS       Op = 0x53
	OpI32Add       Op = 0x6a
	OpI32Sub       Op = 0x6b
	OpI32Mul       Op = 0x6c
	OpI64Add       Op = 0x7c
	OpI64Sub       Op = 0x7d
	OpI64Mul       Op = 0x7e
	OpRefNull      Op = 0xd0
	OpRefIsNull    Op = 0xd1
	OpRefFunc      Op = 0xd2
	OpMemoryInit   Op = 0x108
	OpDataDrop     Op = 0x109
	OpMemoryCopy   Op = 0x10a
	OpMemoryFill   Op = 0x10b
	OpTableInit    Op = 0x10c
	OpElemDrop     Op = 0x10d
	OpTableCopy    Op = 0x10e
	OpTableGrow    Op = 0x10f
	OpTableSize    Op = 0x110
	OpTableFill    Op = 0x111
	OpV128Const    Op = 0x20c
	OpI8x16Shuffle Op = 0x20d
)

const numOps = 0x300

// String gives the bytes of the instruction.
func (o Op) String() string {
	switch {
	case o >= 0x200:
		return fmt.Sprintf("0xfd %#x", int(o-0x200))
	case o >= 0x100:
		return fmt.Sprintf("0xfc %#x", int(o-0x100))
	}
	return fmt.Sprintf("%#x", int(o))
}

// Imm is the form of an instruction's immediates.
type Imm uint8

// The forms of immediates, and where [Instr] keeps them.
const (
	ImmNone      Imm = iota
	ImmBlock         // block type: Const
	ImmLabel         // A
	ImmBrTable       // A targets beside the default; read them with Reader.Targets
	ImmIndex         // A: a function, local, global, table, tag, segment or type
	ImmIndex2        // A and B, in the order of the format
	ImmMem           // memory argument: A the exponent of the alignment, Const the offset
	ImmMemLane       // memory argument and B the lane
	ImmLane          // A
	ImmI32           // Const
	ImmI64           // Const
	ImmF32           // Const holds the bits
	ImmF64           // Const holds the bits
	ImmV128          // 16 bytes
	ImmShuffle       // 16 lanes
	ImmZero          // a memory, which is 0
	ImmZero2         // two memories, which are 0
	ImmIndexZero     // A, and a memory, which is 0
	ImmRef           // A holds the reference type
	ImmSelect        // A holds the number of types, B the first
	ImmTryTable      // block type: Const; A catch clauses; read them with Reader.Catches
	immUnknown   Imm = 255
)

type opInfo struct {
	imm   Imm
	align uint8  // largest exponent for memory arguments
	lanes uint8  // number of lanes for ImmLane and ImmMemLane
	sig   string // "params:results", one letter a type; "" if it depends on more than the instruction
}

// Signature gives what an instruction pops and pushes, one letter for a type (i
// i32, l i64, f f32, d f64, v v128), as "il:l". It is empty for instructions
// whose types depend on more than the instruction itself.
func (o Op) Signature() string {
	if o >= numOps {
		return ""
	}
	return ops[o].sig
}

// Imm is the form of the immediates of o.
func (o Op) Imm() Imm {
	if o >= numOps {
		return immUnknown
	}
	return ops[o].imm
}

// MaxAlign is the largest exponent of an alignment that a memory instruction
// may state (its natural alignment).
func (o Op) MaxAlign() uint32 { return uint32(ops[o].align) }

// Lanes is the number of lanes that a lane immediate chooses from.
func (o Op) Lanes() uint32 { return uint32(ops[o].lanes) }

// ops is a table of constants, filled once by a pure function.
var ops = buildOps()

func buildOps() (t [numOps]opInfo) {
	for i := range t {
		t[i].imm = immUnknown
	}
	set := func(from, to Op, imm Imm, sig string) {
		for o := from; o <= to; o++ {
			t[o] = opInfo{imm: imm, sig: sig}
		}
	}
	mem := func(op Op, align uint8, sig string) { t[op] = opInfo{imm: ImmMem, align: align, sig: sig} }

	for _, c := range []struct {
		op  Op
		imm Imm
	}{
		{OpUnreachable, ImmNone},
		{OpNop, ImmNone},
		{OpBlock, ImmBlock},
		{OpLoop, ImmBlock},
		{OpIf, ImmBlock},
		{OpElse, ImmNone},
		{OpThrow, ImmIndex},
		{OpThrowRef, ImmNone},
		{OpEnd, ImmNone},
		{OpBr, ImmLabel},
		{OpBrIf, ImmLabel},
		{OpBrTable, ImmBrTable},
		{OpReturn, ImmNone},
		{OpCall, ImmIndex},
		{OpCallIndirect, ImmIndex2},
		{OpReturnCall, ImmIndex},
		{OpReturnCallI, ImmIndex2},
		{OpDrop, ImmNone},
		{OpSelect, ImmNone},
		{OpSelectT, ImmSelect},
		{OpTryTable, ImmTryTable},
		{OpLocalGet, ImmIndex},
		{OpLocalSet, ImmIndex},
		{OpLocalTee, ImmIndex},
		{OpGlobalGet, ImmIndex},
		{OpGlobalSet, ImmIndex},
		{OpTableGet, ImmIndex},
		{OpTableSet, ImmIndex},
		{OpRefNull, ImmRef},
		{OpRefIsNull, ImmNone},
		{OpRefFunc, ImmIndex},
		{OpMemoryInit, ImmIndexZero},
		{OpDataDrop, ImmIndex},
		{OpMemoryCopy, ImmZero2},
		{OpMemoryFill, ImmZero},
		{OpTableInit, ImmIndex2},
		{OpElemDrop, ImmIndex},
		{OpTableCopy, ImmIndex2},
		{OpTableGrow, ImmIndex},
		{OpTableSize, ImmIndex},
		{OpTableFill, ImmIndex},
	} {
		t[c.op].imm = c.imm
	}
	t[OpI32Const] = opInfo{imm: ImmI32, sig: ":i"}
	t[OpI64Const] = opInfo{imm: ImmI64, sig: ":l"}
	t[OpF32Const] = opInfo{imm: ImmF32, sig: ":f"}
	t[OpF64Const] = opInfo{imm: ImmF64, sig: ":d"}
	t[OpMemorySize] = opInfo{imm: ImmZero, sig: ":i"}
	t[OpMemoryGrow] = opInfo{imm: ImmZero, sig: "i:i"}
	t[OpMemoryInit].sig, t[OpMemoryCopy].sig, t[OpMemoryFill].sig = "iii:", "iii:", "iii:"
	t[OpTableInit].sig, t[OpTableCopy].sig, t[OpTableSize].sig = "iii:", "iii:", ":i"
	t[OpDataDrop].sig, t[OpElemDrop].sig = ":", ":"

	for i, a := range []uint8{2, 3, 2, 3} {
		mem(0x28+Op(i), a, "i:"+string("ilfd"[i]))
	}
	for i, a := range []uint8{0, 0, 1, 1} {
		mem(0x2c+Op(i), a, "i:i")
	}
	for i, a := range []uint8{0, 0, 1, 1, 2, 2} {
		mem(0x30+Op(i), a, "i:l")
	}
	for i, a := range []uint8{2, 3, 2, 3} {
		mem(0x36+Op(i), a, "i"+string("ilfd"[i])+":")
	}
	mem(0x3a, 0, "ii:")
	mem(0x3b, 1, "ii:")
	mem(0x3c, 0, "il:")
	mem(0x3d, 1, "il:")
	mem(0x3e, 2, "il:")

	set(0x45, 0x45, ImmNone, "i:i")
	set(0x46, 0x4f, ImmNone, "ii:i")
	set(0x50, 0x50, ImmNone, "l:i")
	set(0x51, 0x5a, ImmNone, "ll:i")
	set(0x5b, 0x60, ImmNone, "ff:i")
	set(0x61, 0x66, ImmNone, "dd:i")
	set(0x67, 0x69, ImmNone, "i:i")
	set(0x6a, 0x78, ImmNone, "ii:i")
	set(0x79, 0x7b, ImmNone, "l:l")
	set(0x7c, 0x8a, ImmNone, "ll:l")
	set(0x8b, 0x91, ImmNone, "f:f")
	set(0x92, 0x98, ImmNone, "ff:f")
	set(0x99, 0x9f, ImmNone, "d:d")
	set(0xa0, 0xa6, ImmNone, "dd:d")
	for i, s := range []string{
		"l:i", "f:i", "f:i", "d:i", "d:i", "i:l", "i:l", "f:l", "f:l", "d:l", "d:l", // a7..b1
		"i:f", "i:f", "l:f", "l:f", "d:f", // b2..b6
		"i:d", "i:d", "l:d", "l:d", "f:d", // b7..bb
		"f:i", "d:l", "i:f", "l:d", // bc..bf
		"i:i", "i:i", "l:l", "l:l", "l:l", // c0..c4
	} {
		set(0xa7+Op(i), 0xa7+Op(i), ImmNone, s)
	}
	for i, s := range []string{"f:i", "f:i", "d:i", "d:i", "f:l", "f:l", "d:l", "d:l"} {
		set(0x100+Op(i), 0x100+Op(i), ImmNone, s)
	}
	vectorOps(&t)
	return t
}

// vectorOps fills in the instructions behind 0xfd.
func vectorOps(t *[numOps]opInfo) {
	set := func(from, to Op, sig string) {
		for o := from; o <= to; o++ {
			t[0x200+o] = opInfo{imm: ImmNone, sig: sig}
		}
	}
	set(14, 14, "vv:v")
	for i, s := range []string{"i:v", "i:v", "i:v", "l:v", "f:v", "d:v"} {
		set(15+Op(i), 15+Op(i), s)
	}
	set(35, 76, "vv:v")
	set(77, 77, "v:v")
	set(78, 81, "vv:v")
	set(82, 82, "vvv:v")
	set(83, 83, "v:i")
	set(94, 95, "v:v")
	// From here on the shapes follow one pattern a lane type; what differs is set after it.
	set(96, 255, "vv:v")
	for _, r := range [][2]Op{
		{96, 98},
		{103, 106},
		{116, 117},
		{122, 122},
		{124, 129},
		{135, 138},
		{148, 148},
		{160, 161},
		{167, 170},
		{192, 193},
		{199, 202},
		{224, 225},
		{227, 227},
		{236, 237},
		{239, 239},
		{248, 255},
	} {
		set(r[0], r[1], "v:v")
	}
	for _, o := range []Op{99, 131, 163, 195} {
		set(o, o+1, "v:i")
	}
	for _, o := range []Op{107, 139, 171, 203} {
		set(o, o+2, "vi:v")
	}
	for _, o := range []Op{154, 162, 165, 166, 175, 176, 178, 179, 180, 187, 194, 197, 198, 207, 208, 210, 211, 212, 226, 238} {
		t[0x200+o] = opInfo{imm: immUnknown}
	}
	for i, a := range []uint8{4, 3, 3, 3, 3, 3, 3, 0, 1, 2, 3, 4} {
		sig := "i:v"
		if i == 11 {
			sig = "iv:"
		}
		t[0x200+i] = opInfo{imm: ImmMem, align: a, sig: sig}
	}
	t[OpV128Const] = opInfo{imm: ImmV128, sig: ":v"}
	t[OpI8x16Shuffle] = opInfo{imm: ImmShuffle, sig: "vv:v"}
	for i, l := range []struct {
		lanes uint8
		sig   string
	}{
		{16, "v:i"},
		{16, "v:i"},
		{16, "vi:v"},
		{8, "v:i"},
		{8, "v:i"},
		{8, "vi:v"},
		{4, "v:i"},
		{4, "vi:v"},
		{2, "v:l"},
		{2, "vl:v"},
		{4, "v:f"},
		{4, "vf:v"},
		{2, "v:d"},
		{2, "vd:v"},
	} {
		t[0x200+21+i] = opInfo{imm: ImmLane, lanes: l.lanes, sig: l.sig}
	}
	for i, a := range []uint8{0, 1, 2, 3, 0, 1, 2, 3} {
		sig := "iv:v"
		if i >= 4 {
			sig = "iv:"
		}
		t[0x200+84+i] = opInfo{imm: ImmMemLane, align: a, lanes: 16 >> a, sig: sig}
	}
	t[0x200+92] = opInfo{imm: ImmMem, align: 2, sig: "i:v"}
	t[0x200+93] = opInfo{imm: ImmMem, align: 3, sig: "i:v"}
}
