package check

import (
	"slices"

	"openskill/wasm/binary"
)

// letters maps the letters of binary.Op.Signature to types.
var letters = [256]binary.ValType{'i': binary.I32, 'l': binary.I64, 'f': binary.F32, 'd': binary.F64, 'v': binary.V128}

// sig is a signature made ready for the inner loop.
type sig struct {
	known  bool
	n      uint8
	params [3]binary.ValType // the last one first, as they are popped
	result binary.ValType    // 0 for none
}

var sigs = buildSigs()

func buildSigs() (t [0x300]sig) {
	for o := range t {
		s := binary.Op(o).Signature()
		if s == "" {
			continue
		}
		k := 0
		for s[k] != ':' {
			k++
		}
		g := sig{known: true, n: uint8(k)} // at most three
		for i := range k {
			g.params[i] = letters[s[k-1-i]]
		}
		if k+1 < len(s) {
			g.result = letters[s[k+1]]
		}
		t[o] = g
	}
	return t
}

// anyType stands for the unknown type of the specification's algorithm: what
// unreachable code pops.
const anyType binary.ValType = 0

type frame struct {
	op          binary.Op
	unreachable bool
	height      int
	start, end  []binary.ValType
	flow        flow
}

func (f *frame) label() []binary.ValType {
	if f.op == binary.OpLoop {
		return f.start
	}
	return f.end
}

type funcValidator struct {
	v       *validator
	r       binary.Reader
	in      binary.Instr
	locals  []binary.ValType
	vals    []binary.ValType
	ctrls   []frame
	targets []uint32
	catches []binary.Catch
	single  [256][1]binary.ValType
	max     int
	work    int
	points  uint64 // branches, blocks and calls
	err     error
	index   int
	cost    cost
	recent  [2]recent
}

func newFuncValidator(v *validator) *funcValidator {
	f := &funcValidator{v: v}
	for i := range f.single {
		f.single[i][0] = binary.ValType(i)
	}
	return f
}

func (f *funcValidator) fail(format string, a ...any) {
	if f.err == nil {
		f.err = invalid(f.v.m.Codes[f.index].Offset+f.in.Pos, format, a...)
	}
}

func (f *funcValidator) push(t binary.ValType) {
	f.vals = append(f.vals, t)
	if len(f.vals) > f.max {
		f.max = len(f.vals)
	}
}

// spend counts the types that instructions move. Types of a thousand values
// make an instruction of two bytes cost a thousand steps; real code moves less
// than one type a byte.
func (f *funcValidator) spend(n int) {
	f.work -= n
	if f.work >= 0 || f.err != nil {
		return
	}
	const share = 20_000
	f.work += share
	if f.v.spare.Add(-share) < 0 {
		f.err = refuse(ModuleTooComplex, 0, "the module is too complex: its code moves more values than %d for each of its bytes", workPerByte)
	}
}

const (
	workPerByte = 16
	workBase    = 1_000      // for each function
	workSpare   = 20_000_000 // for all functions together, who needs it first
)

func (f *funcValidator) pushAll(ts []binary.ValType) {
	f.spend(len(ts))
	for _, t := range ts {
		f.push(t)
	}
}

func (f *funcValidator) popAny() binary.ValType {
	c := &f.ctrls[len(f.ctrls)-1]
	if len(f.vals) == c.height {
		if !c.unreachable {
			f.fail("type mismatch: an operand is missing")
		}
		return anyType
	}
	t := f.vals[len(f.vals)-1]
	f.vals = f.vals[:len(f.vals)-1]
	return t
}

func (f *funcValidator) pop(want binary.ValType) binary.ValType {
	t := f.popAny()
	if t != want && t != anyType && want != anyType {
		f.fail("type mismatch: %v expected, %v found", want, t)
	}
	return t
}

func (f *funcValidator) popAll(ts []binary.ValType) {
	f.spend(len(ts))
	for i := len(ts) - 1; i >= 0; i-- {
		f.pop(ts[i])
	}
}

func (f *funcValidator) open(op binary.Op, start, end []binary.ValType) {
	f.ctrls = append(f.ctrls, frame{op: op, height: len(f.vals), start: start, end: end})
	if len(f.ctrls) > f.v.o.Depth+1 && f.err == nil {
		f.err = refuse(ModuleTooComplex, f.v.m.Codes[f.index].Offset+f.in.Pos, "the module is too complex: blocks are nested deeper than %d", f.v.o.Depth)
	}
	f.pushAll(start)
	f.cost.open(&f.ctrls[len(f.ctrls)-1], f.in.End, len(f.vals))
}

func (f *funcValidator) close() frame {
	c := f.ctrls[len(f.ctrls)-1]
	f.popAll(c.end)
	if len(f.vals) != c.height {
		f.fail("type mismatch: %d values remain at the end of a block", len(f.vals)-c.height)
		f.vals = f.vals[:min(len(f.vals), c.height)]
	}
	f.ctrls = f.ctrls[:len(f.ctrls)-1]
	return c
}

func (f *funcValidator) unreachable() {
	c := &f.ctrls[len(f.ctrls)-1]
	f.vals = f.vals[:c.height]
	c.unreachable = true
	f.cost.cur = dead
}

// blockType gives what a block takes and gives.
func (f *funcValidator) blockType(c int64) (start, end []binary.ValType) {
	switch {
	case c == binary.BlockEmpty:
		return nil, nil
	case c < 0:
		t := binary.BlockValue(c)
		f.useType(t)
		return nil, f.single[byte(t)][:]
	case c >= int64(len(f.v.m.Types)):
		f.fail("unknown type %d of a block", c)
		return nil, nil
	}
	t := &f.v.m.Types[c]
	return t.Params, t.Results
}

func (f *funcValidator) useType(t binary.ValType) {
	if t == binary.ExnRef {
		f.exception("exnref")
	}
}

func (f *funcValidator) exception(what string) {
	f.v.except.Store(true)
	if !f.v.o.Exceptions && f.err == nil {
		f.err = disabled(f.v.m.Codes[f.index].Offset+f.in.Pos, binary.FeatureExceptions, what)
	}
}

func (f *funcValidator) label(n uint32) []binary.ValType {
	if uint64(n) >= uint64(len(f.ctrls)) {
		f.fail("unknown label %d", n)
		return nil
	}
	return f.ctrls[len(f.ctrls)-1-int(n)].label()
}

func (f *funcValidator) function(i int) error {
	v := f.v
	c := &v.m.Codes[i]
	t := &v.m.Types[v.m.Funcs[i]]
	f.index, f.err, f.max, f.points = i, nil, 0, 0
	f.work = workPerByte*len(c.Body) + workBase
	f.locals = append(f.locals[:0], t.Params...)
	for _, g := range c.Locals {
		f.useType(g.Type)
		f.declare(g)
	}
	raise(&v.locals, len(f.locals)-len(t.Params))
	raise(&v.body, len(c.Body))
	f.vals, f.ctrls = f.vals[:0], f.ctrls[:0]
	f.in = binary.Instr{}
	f.cost.begin(len(f.locals))
	f.open(binary.OpBlock, nil, t.Results)
	f.r.Reset(c.Body, c.Offset)
	for f.err == nil && f.r.Next(&f.in) {
		if len(f.ctrls) == 0 {
			f.fail("instructions after the end of a function")
			break
		}
		if f.cost.cur != dead {
			p := &prices[f.in.Op]
			f.cost.linear += int64(p.ns)
			f.cost.memory += int64(p.bytes)
		}
		if s := &sigs[f.in.Op]; s.known {
			f.plain(s)
		} else {
			f.instr()
		}
		f.recent[1] = f.recent[0]
		f.recent[0] = recent{f.in.Op, f.in.A, f.in.Op == binary.OpLocalGet || f.in.Op >= binary.OpI32Const && f.in.Op <= binary.OpF64Const}
	}
	if f.err == nil && f.r.Err() != nil {
		f.err = verdict(f.r.Err())
	}
	if f.err == nil && len(f.ctrls) > 0 {
		f.fail("unexpected end: END opcode expected")
	}
	if v.branches.Add(f.points) > v.o.Branches && f.err == nil {
		f.err = refuse(ModuleTooComplex, 0, "the module is too complex: branches, blocks and calls: at most %d are accepted", v.o.Branches)
	}
	if f.err == nil {
		f.err = v.compiled(i, len(f.locals), len(c.Body), &f.cost)
	}
	v.maxStack[i] = uint32(f.max) // below the size of a body times Limits.Values
	return f.err
}

// declare appends the locals of a group. There may be thousands in a few bytes,
// so they are copied by doubling.
func (f *funcValidator) declare(g binary.LocalGroup) {
	from, n := len(f.locals), int(g.Count)
	f.locals = slices.Grow(f.locals, n)[:from+n]
	if n == 0 {
		return
	}
	f.locals[from] = g.Type
	for done := 1; done < n; done *= 2 {
		copy(f.locals[from+done:], f.locals[from:from+done])
	}
}

// plain validates the instructions whose types are their own.
func (f *funcValidator) plain(s *sig) {
	for i := range s.n {
		f.pop(s.params[i])
	}
	if s.result != 0 {
		f.push(s.result)
	}
	if f.in.Op >= binary.OpMemoryInit && f.in.Op <= binary.OpMemoryFill {
		f.points++
		n := 2
		if f.in.Op == binary.OpMemoryFill {
			n = 3
		}
		f.cost.test(n, len(f.vals))
	}
	if f.in.Op >= 0x28 && f.in.Op <= 0x40 || f.in.Op >= 0x100 {
		f.immediates()
	}
}

// immediates validates alignments, lanes and indices of plain instructions.
func (f *funcValidator) immediates() {
	in, v := &f.in, f.v
	switch in.Op.Imm() {
	case binary.ImmMem, binary.ImmMemLane:
		f.memory()
		f.address()
		if in.A > in.Op.MaxAlign() {
			f.fail("alignment must not be larger than natural")
		}
		if in.Op.Imm() == binary.ImmMemLane && in.B >= in.Op.Lanes() {
			f.fail("invalid lane index %d", in.B)
		}
	case binary.ImmLane:
		if in.A >= in.Op.Lanes() {
			f.fail("invalid lane index %d", in.A)
		}
	case binary.ImmShuffle:
		for _, l := range v.m.Codes[f.index].Body[in.End-16 : in.End] {
			if l >= 32 {
				f.fail("invalid lane index %d", l)
			}
		}
	case binary.ImmZero, binary.ImmZero2, binary.ImmIndexZero:
		f.memory()
	}
	switch in.Op {
	case binary.OpMemoryInit, binary.OpDataDrop:
		f.dataIndex(in.A)
	case binary.OpTableInit:
		if t := f.table(in.B); f.elemType(in.A) != t {
			f.fail("type mismatch: table.init")
		}
	case binary.OpElemDrop:
		f.elemType(in.A)
	case binary.OpTableCopy:
		if f.table(in.A) != f.table(in.B) {
			f.fail("type mismatch: table.copy")
		}
	case binary.OpTableSize:
		f.table(in.A)
	}
}

func (f *funcValidator) memory() {
	if f.v.memories == 0 {
		f.fail("unknown memory 0")
	}
}

func (f *funcValidator) dataIndex(i uint32) {
	if f.v.m.DataCount == nil {
		f.fail("data count section required")
	} else if i >= *f.v.m.DataCount {
		f.fail("unknown data segment %d", i)
	}
}

func (f *funcValidator) elemType(i uint32) binary.ValType {
	if int(i) >= len(f.v.m.Elems) {
		f.fail("unknown elem segment %d", i)
		return anyType
	}
	return f.v.m.Elems[i].Type
}

func (f *funcValidator) table(i uint32) binary.ValType {
	if int(i) >= len(f.v.tables) {
		f.fail("unknown table %d", i)
		return anyType
	}
	return f.v.tables[i].Elem
}

func (f *funcValidator) local(i uint32) binary.ValType {
	if int(i) >= len(f.locals) {
		f.fail("unknown local %d", i)
		return anyType
	}
	return f.locals[i]
}
