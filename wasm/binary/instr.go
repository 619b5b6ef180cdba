package binary

import "encoding/binary"

// Instr is one instruction. Which of A, B and Const count, [Op.Imm] says.
type Instr struct {
	Op       Op
	Pos, End int // bytes [Pos, End) of the body
	A, B     uint32
	Const    int64
}

// BlockEmpty is the type of a block without values. [Instr].Const holds the type of
// a block: an index of a type, or negative, BlockEmpty or a value type as a number.
const BlockEmpty int64 = -64

// BlockValue gives the value type of a block type that is negative and not
// [BlockEmpty].
func BlockValue(c int64) ValType { return ValType(c & 0x7f) }

// Reader reads the instructions of a function body or expression.
type Reader struct {
	reader
	targets int // position of the targets of the last br_table, or of catch clauses
}

// NewReader reads body, which begins at byte offset of its module (for messages).
func NewReader(body []byte, offset int) *Reader {
	r := &Reader{}
	r.Reset(body, offset)
	return r
}

// Reset makes r read another body.
func (r *Reader) Reset(body []byte, offset int) {
	r.reader = reader{b: body, base: offset}
}

// Err is what ended the reading, nil at the end of the body.
func (r *Reader) Err() error { return r.err }

// Pos is the position of the next instruction in the body.
func (r *Reader) Pos() int { return r.p }

// Next reads one instruction. It gives false at the end and on an error.
func (r *Reader) Next(in *Instr) bool {
	if r.p >= len(r.b) {
		return false
	}
	in.Pos = r.p
	c := r.b[r.p]
	r.p++
	op := Op(c)
	if c >= 0xfb {
		op = r.prefixed(c)
	}
	in.Op = op
	switch ops[op].imm {
	case ImmNone:
	case ImmIndex, ImmLabel:
		in.A = r.u32()
	case ImmMem:
		r.memArg(in)
	case ImmI32:
		in.Const = r.sN(32)
	case ImmI64:
		in.Const = r.sN(64)
	case ImmBlock:
		in.Const = r.blockType()
	default:
		r.rare(in, ops[op].imm)
	}
	in.End = r.p
	return r.err == nil
}

func (r *Reader) prefixed(c byte) Op {
	at := r.p - 1
	switch c {
	case 0xfc:
		n := r.u32()
		if n < 18 {
			return 0x100 + Op(n)
		}
		if n >= 19 && n <= 22 {
			r.fail(unsupported(r.base+at, FeatureWideMath, "128-bit arithmetic"))
		}
	case 0xfd:
		n := r.u32()
		if n < 0x100 {
			// The compiler behind this takes one byte for all of the number: what is longer
			// than it need be would be other instructions there, which nobody has looked at.
			if r.err == nil && r.p-at != 1+u32Len(n) {
				r.fail(malformed(r.base+at, "the number of a vector instruction takes more bytes than it needs"))
			}
			return 0x200 + Op(n) // below 0x100
		}
		if n < 0x114 {
			r.fail(unsupported(r.base+at, FeatureRelaxedSIMD, "a relaxed instruction"))
		}
	case 0xfe:
		r.fail(unsupported(r.base+at, FeatureThreads, "an atomic instruction"))
	case 0xfb:
		r.fail(unsupported(r.base+at, FeatureGC, "an instruction of garbage collection"))
	}
	r.fail(malformed(r.base+at, "illegal opcode"))
	return OpUnreachable
}

func (r *Reader) memArg(in *Instr) {
	a := r.u32()
	if a >= 64 {
		if a < 128 {
			r.fail(unsupported(r.base+in.Pos, FeatureMultiMemory, "a memory index"))
		} else {
			r.malformed("malformed memop flags")
		}
	}
	in.A, in.Const = a, int64(r.u32())
}

func (r *Reader) blockType() int64 {
	if r.p >= len(r.b) {
		r.malformed("unexpected end")
		return 0
	}
	c := r.b[r.p]
	if c&0xc0 == 0x40 { // a negative number of one byte
		if c == 0x40 {
			r.p++
			return BlockEmpty
		}
		d := decoder{reader: reader{b: r.b, p: r.p, base: r.base}}
		d.valType()
		if d.err != nil {
			r.fail(d.err)
			return 0
		}
		r.p++
		return int64(c) - 128
	}
	v := r.sN(33)
	if v < 0 {
		r.malformed("malformed block type")
		return 0
	}
	return v
}

func (r *Reader) rare(in *Instr, imm Imm) {
	switch imm {
	case ImmIndex2:
		in.A = r.u32()
		in.B = r.u32()
	case ImmZero:
		r.zero(in)
	case ImmZero2:
		r.zero(in)
		r.zero(in)
	case ImmIndexZero:
		in.A = r.u32()
		r.zero(in)
	case ImmBrTable:
		n := r.u32()
		if uint64(n) >= uint64(r.left()) {
			r.malformed("length out of bounds: %d branch targets announced, %d bytes left", n, r.left())
			return
		}
		in.A, r.targets = n, r.p
		for i := uint32(0); i <= n && r.err == nil; i++ {
			r.u32()
		}
	case ImmF32:
		if b := r.bytes(4); b != nil {
			in.Const = int64(binary.LittleEndian.Uint32(b))
		}
	case ImmF64:
		if b := r.bytes(8); b != nil {
			in.Const = int64(binary.LittleEndian.Uint64(b))
		}
	case ImmV128, ImmShuffle:
		r.bytes(16)
	case ImmLane:
		in.A = uint32(r.u8())
	case ImmMemLane:
		r.memArg(in)
		in.B = uint32(r.u8())
	case ImmRef:
		d := decoder{reader: reader{b: r.b, p: r.p, base: r.base}}
		in.A = uint32(d.refType())
		if d.err != nil {
			r.fail(d.err)
		}
		r.p++
	case ImmSelect:
		in.A = uint32(r.u8()) // more than one type is invalid, and one takes a byte
		if in.A != 1 {
			if in.A >= 0x80 {
				r.malformed("the types of a select are too many, or their number takes more bytes than it needs")
			}
			r.bytes(in.A)
			return
		}
		d := decoder{reader: reader{b: r.b, p: r.p, base: r.base}}
		in.B = uint32(d.valType())
		if d.err != nil {
			r.fail(d.err)
		}
		r.p++
	case ImmTryTable:
		r.tryTable(in)
	default:
		r.unknown(in)
	}
}

// zero reads a memory index: one byte, not a number. 2.0 reserves it, and 0x80 0x00
// is malformed.
func (r *Reader) zero(in *Instr) {
	if r.u8() != 0 && r.err == nil {
		r.fail(unsupported(r.base+in.Pos, FeatureMultiMemory, "a memory index"))
	}
}

func (r *Reader) unknown(in *Instr) {
	at := r.base + in.Pos
	switch in.Op {
	case 0x06, 0x07, 0x09, 0x18, 0x19:
		r.fail(unsupported(at, FeatureLegacyExcept, "try, catch, rethrow, delegate of the old proposal"))
	case 0x14, 0x15, 0xd3, 0xd4, 0xd5, 0xd6:
		r.fail(unsupported(at, FeatureTypedRefs, "typed references"))
	case 0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5:
		r.fail(unsupported(at, FeatureStackSwitch, "continuations"))
	default:
		r.fail(malformed(at, "illegal opcode"))
	}
}

// Catch is one clause of a try_table.
type Catch struct {
	Kind  byte   // 0 catch, 1 catch_ref, 2 catch_all, 3 catch_all_ref
	Tag   uint32 // for kinds 0 and 1
	Label uint32
}

func (r *Reader) tryTable(in *Instr) {
	in.Const = r.blockType()
	n := r.u32()
	if uint64(n)*2 > uint64(r.left()) {
		r.malformed("length out of bounds: %d catch clauses announced, %d bytes left", n, r.left())
		return
	}
	in.A, r.targets = n, r.p
	for i := uint32(0); i < n && r.err == nil; i++ {
		r.catch()
	}
}

func (r *reader) catch() (c Catch) {
	c.Kind = r.u8()
	if c.Kind > 3 {
		r.malformed("malformed catch clause")
		return c
	}
	if c.Kind < 2 {
		c.Tag = r.u32()
	}
	c.Label = r.u32()
	return c
}

// Targets appends the labels of the br_table that Next has just read to dst,
// the default last.
func (r *Reader) Targets(in *Instr, dst []uint32) []uint32 {
	q := reader{b: r.b, p: r.targets}
	for i := uint32(0); i <= in.A; i++ {
		dst = append(dst, q.u32())
	}
	return dst
}

// Catches appends the clauses of the try_table that Next has just read to dst.
func (r *Reader) Catches(in *Instr, dst []Catch) []Catch {
	q := reader{b: r.b, p: r.targets}
	for i := uint32(0); i < in.A; i++ {
		dst = append(dst, q.catch())
	}
	return dst
}

// Seek makes the instruction at byte pos of the body the next one.
func (r *Reader) Seek(pos int) { r.p = pos }
