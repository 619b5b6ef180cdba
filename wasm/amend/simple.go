package amend

import (
	"bytes"
	"encoding/binary"

	wasm "openskill/wasm/binary"
)

// The instructions of SIMD that are used here, behind 0xfd.
const (
	vConst, vSwizzle            = 12, 14
	vSplat32, vSplat64          = 17, 18
	vLane32, vPut32             = 27, 28
	vLane64, vPut64             = 29, 30
	vLaneF32, vLaneF64          = 31, 33
	vEqF32, vEqF64              = 65, 71
	vNot, vNarrow16, vNarrow32  = 77, 101, 133
	vAnd, vAndNot, vOr, vXor    = 78, 79, 80, 81
	vAdd8                       = 110
	vShl16, vShrS16, vShrU16    = 139, 140, 141
	vShl32, vShrS32, vShrU32    = 171, 172, 173
	vAdd32, vMul32              = 174, 181
	vAddF32, vMulF32            = 228, 230
	vAddF64                     = 240
	vConvertF32, vConvertLowF64 = 250, 254
)

// code is a sequence of instructions of which the compiler makes right ones, however few
// registers it has: of each it makes either one, or a copy, a change of the copy, and a copy of
// that, between which nothing else takes a register.
type code struct{ bytes.Buffer }

func (c *code) op(b ...byte) *code    { c.Write(b); return c }
func (c *code) get(l uint32) *code    { return c.op(get(nil, l)...) }
func (c *code) set(l uint32) *code    { return c.op(set(nil, l)...) }
func (c *code) i32(n int64) *code     { return c.op(wasm.AppendS64([]byte{byte(wasm.OpI32Const)}, n)...) }
func (c *code) i64(n int64) *code     { return c.op(wasm.AppendS64([]byte{byte(wasm.OpI64Const)}, n)...) }
func (c *code) v(op uint32) *code     { return c.op(wasm.AppendU32([]byte{0xfd}, op)...) }
func (c *code) lane(op, l byte) *code { return c.op(0xfd, op, l) }
func (c *code) vector(b []byte) *code { return c.v(vConst).op(b...) }

func (c *code) each32(n uint32) *code {
	return c.vector(bytes.Repeat(binary.LittleEndian.AppendUint32(nil, n), 4))
}

func (c *code) each64(n uint64) *code {
	return c.vector(bytes.Repeat(binary.LittleEndian.AppendUint64(nil, n), 2))
}

// choice is a select of floats as a select of integers, and of vectors by a mask.
func (w *walker) choice(t wasm.ValType) []byte {
	c := &code{}
	if t == wasm.V128 { // x & m | y & ^m, where m is -1 or 0
		y, m := w.local(t, 1), w.local(t, 2)
		c.op(0x45, 0xad).i64(1).op(0x7d).v(vSplat64).set(m)
		return c.get(m).v(vAndNot).set(y).get(m).v(vAnd).get(y).v(vOr).Bytes()
	}
	i, bits, toBits, fromBits := w.local(wasm.I32, 0), w.local(wasm.I32, 1), byte(0xbc), byte(0xbe)
	if t == wasm.F64 {
		bits, toBits, fromBits = w.local(wasm.I64, 0), 0xbd, 0xbf
	}
	return c.set(i).op(toBits).set(bits).op(toBits).get(bits).get(i).op(byte(wasm.OpSelect), fromBits).Bytes()
}

// simple computes what an instruction computes with others. All are exact, and bits of NaNs
// are where they were.
func (w *walker) simple(in *wasm.Instr) []byte {
	c := &code{}
	switch in.Op {
	case 0x98: // f32.copysign
		t := w.local(wasm.I32, 0)
		c.op(0xbc).i32(-1<<31).op(0x71).set(t).op(0xbc).i32(1<<31-1).op(0x71).get(t).op(0x72, 0xbe)
	case 0xa6: // f64.copysign
		t := w.local(wasm.I64, 0)
		c.op(0xbd).i64(-1<<63).op(0x83).set(t).op(0xbd).i64(1<<63-1).op(0x83).get(t).op(0x84, 0xbf)
	case 0xb5: // f32.convert_i64_u
		w.unsigned(c, 0xb4, 0x94)
	case 0xba: // f64.convert_i64_u
		w.unsigned(c, 0xb9, 0xa2)
	default:
		w.vectors(c, in)
	}
	return c.Bytes()
}

// unsigned converts a number of 64 bits as a signed one, and times 1. Of one that is none it is the
// half, whose last bit says whether any below was set, so that it is rounded once, and times 2.
func (w *walker) unsigned(c *code, convert, mul byte) {
	x, sign := w.local(wasm.I64, 0), w.local(wasm.I64, 1) // -1 or 0
	c.set(x).get(x).i64(63).op(0x87).set(sign)
	c.get(x).get(sign).i64(1).op(0x83, 0x88).get(x).get(sign).op(0x83).i64(1).op(0x83, 0x84, convert)
	c.i64(1).get(sign).op(0x7d, convert, mul)
}

func (w *walker) vectors(c *code, in *wasm.Instr) {
	x, y := w.local(wasm.V128, 0), w.local(wasm.V128, 1)
	switch in.Op {
	case 0x207: // v128.load8_splat
		c.op(0x2d).op(memarg(w.source[in.Pos:in.End])...).i32(0x01010101).op(0x6c).v(vSplat32)
	case 0x20f: // i8x16.splat
		c.i32(0xff).op(0x71).i32(0x01010101).op(0x6c).v(vSplat32)
	case 0x26b, 0x26d: // i8x16.shl, shr_u: of pairs, without the bits that come from the other one
		n, shift, bits := w.local(wasm.I32, 0), uint32(vShl16), byte(0x74) // i32.shl
		if in.Op == 0x26d {
			shift, bits = vShrU16, 0x76
		}
		c.i32(7).op(0x71).set(n).get(n).v(shift)
		c.i32(0xff).get(n).op(bits).i32(0xff).op(0x71).i32(0x01010101).op(0x6c).v(vSplat32).v(vAnd)
	case 0x220: // f32x4.replace_lane
		c.op(0xbc).lane(vPut32, byte(in.A)) // below 4
	case 0x222: // f64x2.replace_lane
		c.op(0xbd).lane(vPut64, byte(in.A))
	case 0x224, 0x22e, 0x238, 0x2d7: // ne
		c.v(uint32(in.Op - 0x200 - 1)).v(vNot)
	case 0x229, 0x22b, 0x233, 0x235, 0x23d, 0x23f: // le_s, ge_s: not gt_s, lt_s
		c.v(uint32(in.Op - 0x200 - 2 - (in.Op-0x229)%10*2)).v(vNot)
	case 0x2da, 0x2db: // i64x2.le_s, ge_s
		c.v(uint32(0xd9 - (in.Op - 0x2da))).v(vNot)
	case 0x226, 0x228, 0x230, 0x232, 0x23a, 0x23c: // lt_u, gt_u: not the one that is the smaller one
		lanes := (in.Op - 0x226) / 10
		eq, minU, smaller := uint32(0x23+10*lanes), uint32(0x77+32*lanes), x
		if (in.Op-0x226)%10 == 0 {
			smaller = y
		}
		c.set(y).set(x).get(x).get(y).v(minU).get(smaller).v(eq).v(vNot)
	case 0x264: // i8x16.bitmask
		c.set(x)
		w.signs(c, x, 0)
		w.signs(c, x, 1)
		c.i32(8).op(0x74, 0x72)
	case 0x284: // i16x8.bitmask, of lanes made small, which keep their signs
		c.set(x).get(x).get(x).v(vNarrow16).set(x)
		w.signs(c, x, 0)
	case 0x2a4: // i32x4.bitmask
		c.set(x).get(x).get(x).v(vNarrow32).set(x).get(x).get(x).v(vNarrow16).set(x)
		w.signs(c, x, 0)
		c.i32(15).op(0x71)
	case 0x252: // v128.bitselect: x & z | y & ^z
		z := w.local(wasm.V128, 2)
		c.set(z).get(z).v(vAndNot).set(y).get(z).v(vAnd).get(y).v(vOr)
	case 0x262: // i8x16.popcnt: of both halves of each byte, from a table
		table, low := []byte{0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4}, bytes.Repeat([]byte{15}, 16)
		c.set(x).vector(table).get(x).vector(low).v(vAnd).v(vSwizzle)
		c.vector(table).get(x).i32(4).v(vShrU16).vector(low).v(vAnd).v(vSwizzle).v(vAdd8)
	case 0x26c: // i8x16.shr_s: the high byte of each pair, and the low one
		n := w.local(wasm.I32, 0)
		c.i32(7).op(0x71).set(n).set(x)
		c.get(x).get(n).v(vShrS16).each32(0xff00ff00).v(vAnd)
		c.get(x).i32(8).v(vShl16).get(n).i32(8).op(0x6a).v(vShrS16).each32(0x00ff00ff).v(vAnd).v(vOr)
	case wasm.OpI8x16Shuffle:
		w.shuffle(c, in)
	case 0x2d5: // i64x2.mul
		c.set(y).set(x).get(x).lane(vLane64, 0).get(y).lane(vLane64, 0).op(0x7e).v(vSplat64)
		c.get(x).lane(vLane64, 1).get(y).lane(vLane64, 1).op(0x7e).lane(vPut64, 1)
	case 0x2dc, 0x2dd, 0x2de, 0x2df: // i64x2.extmul: low_s, high_s, low_u, high_u
		extend, first := byte(0xac+(in.Op-0x2dc)/2), byte((in.Op-0x2dc)%2*2) // at most 0xad and 2
		c.set(y).set(x)
		for l := first; l < first+2; l++ {
			c.get(x).lane(vLane32, l).op(extend).get(y).lane(vLane32, l).op(extend, 0x7e)
			if l == first {
				c.v(vSplat64)
			}
		}
		c.lane(vPut64, 1)
	case 0x2ba: // i32x4.dot_i16x8_s: of the high halves, and of the low ones
		c.set(y).set(x).get(x).i32(16).v(vShrS32).get(y).i32(16).v(vShrS32).v(vMul32)
		for _, v := range []uint32{x, y} {
			c.get(v).i32(16).v(vShl32).i32(16).v(vShrS32)
		}
		c.v(vMul32).v(vAdd32)
	case 0x2e8, 0x2f4: // min, where one of both is 0 and the other -0: or gives -0
		w.extreme(c, in.Op, vOr)
	case 0x2e9, 0x2f5: // max: and gives 0
		w.extreme(c, in.Op, vAnd)
	case 0x2f8, 0x2f9: // i32x4.trunc_sat_f32x4
		trunc := byte(in.Op - 0x2f8)
		c.set(x).get(x).lane(vLaneF32, 0).op(0xfc, trunc).v(vSplat32)
		for l := byte(1); l < 4; l++ {
			c.get(x).lane(vLaneF32, l).op(0xfc, trunc).lane(vPut32, l)
		}
	case 0x2fc, 0x2fd: // i32x4.trunc_sat_f64x2_zero
		trunc := byte(in.Op - 0x2fc + 2)
		c.set(x).each32(0)
		for l := range byte(2) {
			c.get(x).lane(vLaneF64, l).op(0xfc, trunc).lane(vPut32, l)
		}
	case 0x2fb: // f32x4.convert_i32x4_u: both halves are exact, and the sum is rounded once
		c.set(x).get(x).i32(16).v(vShrU32).v(vConvertF32).each32(0x47800000).v(vMulF32)
		c.get(x).each32(0xffff).v(vAnd).v(vConvertF32).v(vAddF32)
	case 0x2ff: // f64x2.convert_low_i32x4_u: 2^31 less as a signed number, and 2^31 more
		c.each32(1 << 31).v(vXor).v(vConvertLowF64).each64(0x41e0000000000000).v(vAddF64)
	}
}

// extreme takes the smaller or the larger number of each lane in both orders, which differ
// where both are 0, and both together; where one is none, the sum is what is wanted.
func (w *walker) extreme(c *code, op wasm.Op, both uint32) {
	x, y := w.local(wasm.V128, 0), w.local(wasm.V128, 1)
	pseudo, eq, add := uint32(op-0x200+2), uint32(vEqF32), uint32(vAddF32) // pmin, pmax
	if op >= 0x2f4 {
		eq, add = vEqF64, vAddF64
	}
	numbers := w.local(wasm.V128, 2)
	c.set(y).set(x).get(x).get(x).v(eq).get(y).get(y).v(eq).v(vAnd).set(numbers)
	c.get(x).get(y).v(pseudo).get(y).get(x).v(pseudo).v(both).get(numbers).v(vAnd)
	c.get(y).get(x).v(add).get(numbers).v(vAndNot).v(vOr)
}

// signs gathers the signs of the bytes of a half by a product that moves each to the top.
func (w *walker) signs(c *code, x uint32, half byte) {
	c.get(x).lane(vLane64, half).i64(7).op(0x88).i64(0x0101010101010101).op(0x83).i64(0x0102040810204080).op(0x7e).i64(56).op(0x88, 0xa7)
}

// memarg is what stands behind the code of an instruction with a prefix.
func memarg(in []byte) []byte {
	in = in[1:]
	for in[0]&0x80 != 0 {
		in = in[1:]
	}
	return in[1:]
}

// shuffle takes what comes of each operand from it alone: an index that is none gives 0.
func (w *walker) shuffle(c *code, in *wasm.Instr) {
	y := w.local(wasm.V128, 1)
	of := [2][]byte{bytes.Repeat([]byte{0xff}, 16), bytes.Repeat([]byte{0xff}, 16)}
	for i, l := range w.source[in.End-16 : in.End] {
		of[l>>4&1][i] = l & 15
	}
	c.set(y).vector(of[0]).v(vSwizzle).get(y).vector(of[1]).v(vSwizzle).v(vOr)
}
