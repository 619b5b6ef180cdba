package amend

import (
	"openskill/wasm/binary"
)

// form is what becomes of an instruction.
type form uint8

const (
	_ form = iota
	// one defines the operand on top again.
	one
	// choose is a select of integers, or a mask, see [walker.choice].
	choose
	// divide takes a remainder from a division, see remainder.
	divide
	// signs takes the lanes one by one, see lanes.
	signs
	// simple is computed with other instructions, see [walker.simple].
	simple
)

// shapes says what becomes of instructions for each processor. In the words of wazero
// v1.12.0, internal/engine/wazevo/backend/isa:
var shapes = map[string]map[binary.Op]form{
	"amd64": {
		// xmmCMov does not declare that it reads its destination.
		binary.OpSelect: choose, binary.OpSelectT: choose,
		// Instructions that change a temporary do not declare that they define it, so that it
		// is stored before the change, and loaded after it, where another instruction of the
		// same sequence takes its register.
		0x98: simple, 0xa6: simple, // copysign
		0x252:                 simple, // v128.bitselect
		0x262:                 simple, // i8x16.popcnt
		binary.OpI8x16Shuffle: simple, //
		// Comparisons that are the opposite of another one.
		0x224: simple, 0x226: simple, 0x228: simple, 0x229: simple, 0x22b: simple, // i8x16.ne, lt_u, gt_u, le_s, ge_s
		0x22e: simple, 0x230: simple, 0x232: simple, 0x233: simple, 0x235: simple, // i16x8
		0x238: simple, 0x23a: simple, 0x23c: simple, 0x23d: simple, 0x23f: simple, // i32x4
		0x2d7: simple, 0x2da: simple, 0x2db: simple, // i64x2.ne, le_s, ge_s
		0x207: simple, 0x20f: simple, // v128.load8_splat, i8x16.splat
		0x26b: simple, 0x26d: simple, // i8x16.shl, shr_u
		0x26c: simple,                                              // i8x16.shr_s
		0x2d5: simple,                                              // i64x2.mul
		0x2dc: simple, 0x2dd: simple, 0x2de: simple, 0x2df: simple, // i64x2.extmul, which are a mul
		0x2e8: simple, 0x2e9: simple, // f32x4.min, max
		0x2f4: simple, 0x2f5: simple, // f64x2.min, max
		0x2f8: simple, 0x2f9: simple, // i32x4.trunc_sat_f32x4_s, u
		0x2fc: simple, 0x2fd: simple, // i32x4.trunc_sat_f64x2_s_zero, u_zero
		// These define their temporary twice, for a constant each: it is stored after the
		// second one, and loaded before that from where nothing was stored.
		0x2fb: simple, 0x2ff: simple, // f32x4.convert_i32x4_u, f64x2.convert_low_i32x4_u
		// movsd as an xmmUnaryRmR does not declare that it keeps the other lane.
		0x222: simple, // f64x2.replace_lane
		// Branches inside the sequence of an instruction, of which the allocator does not
		// know; the last four on processors without BMI1 or ABM, which are refused.
		0xb5: simple, 0xba: simple, // f32.convert_i64_u, f64.convert_i64_u
		0x67: one, 0x68: one, 0x79: one, 0x7a: one, // clz, ctz
	},
	"arm64": {
		// vecMovElement does not declare that it reads its destination.
		0x220: simple, 0x222: simple, // f32x4.replace_lane, f64x2.replace_lane
		// These define a temporary twice.
		0x2ba: simple, 0x2d5: simple, // i32x4.dot_i16x8_s, i64x2.mul
		0x2dc: simple, 0x2dd: simple, 0x2de: simple, 0x2df: simple, // i64x2.extmul
		// This one defines its result three times, and is stored after one of them.
		0x2c4: signs,                                // i64x2.bitmask
		0x264: simple, 0x284: simple, 0x2a4: simple, // those of smaller lanes define a temporary twice
		// lowerIRem defines its result twice: by the division, and by the multiplication
		// and subtraction behind the test for 0. Only the second one is stored, and between
		// the two the execution context may have to be loaded, so that the quotient is
		// loaded from where nothing was stored. A division defines its result once.
		0x6f: divide, 0x70: divide, 0x81: divide, 0x82: divide, // rem
	},
}

// amend notes what becomes of an instruction whose operands are still on the stack. typ
// is that of the operands of a select.
func (w *walker) amend(in *binary.Instr, typ binary.ValType) {
	f, ok := shapes[w.arch][in.Op]
	if !ok || w.top().dead {
		return
	}
	if f != choose {
		typ = letter(in.Op.Signature()[0])
	}
	e := edit{at: in.Pos, end: in.Pos}
	switch f {
	case one:
		e.code = again(nil, typ)
	case choose:
		if typ != binary.F32 && typ != binary.F64 && typ != binary.V128 {
			return
		}
		e.code, e.end = w.choice(typ), in.End
	case simple:
		e.code, e.end = w.simple(in), in.End
	case divide:
		e.code, e.end = w.remainder(in.Op, typ), in.End
	case signs:
		e.code, e.end = w.lanes(), in.End
	}
	w.edits = append(w.edits, e)
}

// remainder is x - (x / y) * y. The smallest number by -1 has a remainder, which is 0,
// but no quotient; by 1 the remainder is 0 for all numbers, so 1 stands for -1.
func (w *walker) remainder(op binary.Op, typ binary.ValType) []byte {
	x, y := w.local(typ, 0), w.local(typ, 1)
	konst, eq, div, mul, sub := byte(binary.OpI32Const), byte(0x46), byte(op)-2, byte(binary.OpI32Mul), byte(binary.OpI32Sub)
	if typ == binary.I64 {
		konst, eq, mul, sub = byte(binary.OpI64Const), 0x51, byte(binary.OpI64Mul), byte(binary.OpI64Sub)
	}
	var b []byte
	if signed := op == 0x6f || op == 0x81; signed {
		b = append(set(b, y), konst, 1)
		b = get(b, y)
		b = append(get(b, y), konst, 0x7f, eq, byte(binary.OpSelect))
	}
	b = set(b, y)
	b = get(set(b, x), x)
	b = get(get(b, x), y)
	b = append(get(append(b, div), y), mul, sub)
	return b
}

// lanes is i64x2.bitmask of the sign of each lane, shifted to its place.
func (w *walker) lanes() []byte {
	const extract, shl, shrU, or, wrap = 0x1d, 0x86, 0x88, 0x84, 0xa7
	x := w.local(binary.V128, 0)
	b := append(get(set(nil, x), x), 0xfd, extract, 0, byte(binary.OpI64Const), 63, shrU)
	b = append(get(b, x), 0xfd, extract, 1, byte(binary.OpI64Const), 63, shrU)
	return append(b, byte(binary.OpI64Const), 1, shl, or, wrap)
}

// local gives local number n of a type among those that are added.
func (w *walker) local(t binary.ValType, n int) uint32 {
	for i, g := range w.extra {
		if g.Type == t {
			if n == 0 {
				return uint32(len(w.locals) + i) // at most Limits.Locals and Values
			}
			n--
		}
	}
	for ; n > 0; n-- {
		w.extra = append(w.extra, binary.LocalGroup{Count: 1, Type: t})
	}
	w.extra = append(w.extra, binary.LocalGroup{Count: 1, Type: t})
	return uint32(len(w.locals) + len(w.extra) - 1)
}

func set(b []byte, l uint32) []byte { return binary.AppendU32(append(b, byte(binary.OpLocalSet)), l) }
func get(b []byte, l uint32) []byte { return binary.AppendU32(append(b, byte(binary.OpLocalGet)), l) }

// again makes a new value of the same bits of the one on top.
func again(b []byte, t binary.ValType) []byte {
	switch t {
	case binary.F32:
		return append(b, 0xbc, 0xbe) // i32.reinterpret_f32, f32.reinterpret_i32
	case binary.F64:
		return append(b, 0xbd, 0xbf)
	case binary.V128:
		b = append(b, 0xfd, byte(binary.OpV128Const-0x200))
		b = append(b, make([]byte, 16)...)
		return append(b, 0xfd, 80) // v128.or
	case binary.I64:
		return append(b, byte(binary.OpI64Const), 0, 0x84) // i64.or
	default:
		return append(b, byte(binary.OpI32Const), 0, 0x72)
	}
}
