package check

import (
	"sync/atomic"

	"openskill/wasm/binary"
)

// raise keeps the largest value that was seen.
func raise(a *atomic.Uint32, v int) {
	n := uint32(v)
	for {
		old := a.Load()
		if n <= old || a.CompareAndSwap(old, n) {
			return
		}
	}
}

// instr validates the instructions whose types depend on their surroundings.
func (f *funcValidator) instr() {
	in := &f.in
	if in.Op >= binary.OpBlock && in.Op <= binary.OpReturnCallI && in.Op != binary.OpEnd || in.Op == binary.OpTryTable {
		f.points++
	}
	switch in.Op {
	case binary.OpNop:
	case binary.OpUnreachable:
		f.unreachable()
	case binary.OpLocalGet:
		f.cost.get(in.A)
		f.push(f.local(in.A))
	case binary.OpLocalSet:
		f.cost.set(in.A)
		f.pop(f.local(in.A))
	case binary.OpLocalTee:
		f.cost.set(in.A)
		t := f.local(in.A)
		f.pop(t)
		f.push(t)
	case binary.OpGlobalGet, binary.OpGlobalSet:
		f.global()
	case binary.OpBlock, binary.OpLoop, binary.OpIf:
		if in.Op == binary.OpIf {
			f.pop(binary.I32)
		}
		start, end := f.blockType(in.Const)
		f.popAll(start)
		f.open(in.Op, start, end)
		raise(&f.v.depth, len(f.ctrls)-1)
	case binary.OpElse:
		c := f.close()
		if c.op != binary.OpIf {
			f.fail("else without if")
		}
		f.open(binary.OpElse, c.start, c.end)
		f.ctrls[len(f.ctrls)-1].flow = c.flow
		f.cost.otherwise(&f.ctrls[len(f.ctrls)-1], len(f.vals))
	case binary.OpEnd:
		c := f.close()
		f.cost.close(&c, f.in.Pos, len(f.vals)+len(c.end))
		if c.op == binary.OpIf && !sameTypes(c.start, c.end) {
			f.fail("type mismatch: an if without else must give what it takes")
		}
		f.pushAll(c.end)
	case binary.OpBr:
		f.branch(in.A, false)
		f.popAll(f.label(in.A))
		f.unreachable()
	case binary.OpBrIf:
		f.branch(in.A, false)
		f.cost.next(len(f.vals))
		f.pop(binary.I32)
		l := f.label(in.A)
		f.popAll(l)
		f.pushAll(l)
	case binary.OpBrTable:
		f.brTable()
	case binary.OpReturn:
		f.cost.returns(len(f.ctrls[0].end))
		f.popAll(f.ctrls[0].end)
		f.unreachable()
	case binary.OpCall, binary.OpReturnCall, binary.OpCallIndirect, binary.OpReturnCallI:
		f.call()
	case binary.OpDrop:
		f.popAny()
	case binary.OpSelect:
		f.pop(binary.I32)
		a, b := f.popAny(), f.popAny()
		if a.IsRef() || b.IsRef() || a != b && a != anyType && b != anyType {
			f.fail("type mismatch: select")
		}
		if a == anyType {
			a = b
		}
		f.cost.choose(a)
		f.push(a)
	case binary.OpSelectT:
		if in.A != 1 {
			f.fail("invalid result arity of select")
			return
		}
		t := binary.ValType(in.B)
		f.useType(t)
		f.pop(binary.I32)
		f.pop(t)
		f.pop(t)
		f.cost.choose(t)
		f.push(t)
	default:
		f.reference()
	}
}

func (f *funcValidator) global() {
	in := &f.in
	if int(in.A) >= len(f.v.globals) {
		f.fail("unknown global %d", in.A)
		return
	}
	g := f.v.globals[in.A]
	if in.Op == binary.OpGlobalGet {
		f.cost.readGlobal(in.A, len(f.v.globals))
		f.push(g.Type)
		return
	}
	f.cost.wroteGlobal(in.A, len(f.v.globals))
	if !g.Mutable {
		f.fail("global %d is immutable", in.A)
	}
	f.pop(g.Type)
}

// reference validates instructions on references, tables and exceptions.
func (f *funcValidator) reference() {
	in := &f.in
	switch in.Op {
	case binary.OpRefNull:
		t := binary.ValType(in.A)
		f.useType(t)
		f.push(t)
	case binary.OpRefIsNull:
		if t := f.popAny(); !t.IsRef() && t != anyType {
			f.fail("type mismatch: ref.is_null")
		}
		f.push(binary.I32)
	case binary.OpRefFunc:
		if int(in.A) >= len(f.v.funcs) {
			f.fail("unknown function %d", in.A)
			return
		}
		if !f.v.isDeclared(in.A) {
			f.fail("undeclared function reference")
		}
		f.push(binary.FuncRef)
	case binary.OpTableGet:
		t := f.table(in.A)
		f.pop(binary.I32)
		f.push(t)
	case binary.OpTableSet:
		f.pop(f.table(in.A))
		f.pop(binary.I32)
	case binary.OpTableGrow:
		t := f.table(in.A)
		f.pop(binary.I32)
		f.pop(t)
		f.push(binary.I32)
	case binary.OpTableFill:
		t := f.table(in.A)
		f.pop(binary.I32)
		f.pop(t)
		f.pop(binary.I32)
	case binary.OpThrow:
		f.exception("throw")
		if int(in.A) >= len(f.v.tags) {
			f.fail("unknown tag %d", in.A)
			return
		}
		f.popAll(f.v.m.Types[f.v.tags[in.A]].Params)
		f.unreachable()
	case binary.OpThrowRef:
		f.exception("throw_ref")
		f.pop(binary.ExnRef)
		f.unreachable()
	case binary.OpTryTable:
		f.tryTable()
	default:
		f.fail("illegal opcode %v", in.Op)
	}
}

func (f *funcValidator) brTable() {
	in := &f.in
	raise(&f.v.targets, int(in.A))
	f.cost.table(int(in.A))
	f.points += uint64(in.A) / 4 // an edge is less than a block
	if in.A > f.v.o.BranchTargets && f.err == nil {
		f.err = refuse(ModuleTooComplex, f.v.m.Codes[f.index].Offset+in.Pos, "the module is too complex: br_table with %d targets, at most %d are accepted", in.A, f.v.o.BranchTargets)
		return
	}
	f.pop(binary.I32)
	f.targets = f.r.Targets(in, f.targets[:0])
	last := f.targets[len(f.targets)-1]
	arity := len(f.label(last))
	prev := uint32(0xffffffff)
	for _, t := range f.targets {
		f.branch(t, true)
		if t == prev { // tables repeat themselves
			continue
		}
		prev = t
		l := f.label(t)
		if f.err != nil {
			return
		}
		if len(l) != arity {
			f.fail("type mismatch: targets of br_table of different arity")
			return
		}
		// pop and push back what was there, so that an unknown type stays unknown
		f.peekAll(l)
	}
	f.popAll(f.label(last))
	f.unreachable()
}

// peekAll checks that the operands on top have the types ts, and leaves them.
func (f *funcValidator) peekAll(ts []binary.ValType) {
	c := &f.ctrls[len(f.ctrls)-1]
	have := len(f.vals) - c.height
	f.spend(len(ts))
	for i := range ts {
		want := ts[len(ts)-1-i]
		if i >= have {
			if !c.unreachable {
				f.fail("type mismatch: an operand is missing")
			}
			return
		}
		if t := f.vals[len(f.vals)-1-i]; t != want && t != anyType {
			f.fail("type mismatch: %v expected, %v found", want, t)
			return
		}
	}
}

func (f *funcValidator) call() {
	in := &f.in
	var t *binary.FuncType
	switch in.Op {
	case binary.OpCall, binary.OpReturnCall:
		if int(in.A) >= len(f.v.funcs) {
			f.fail("unknown function %d", in.A)
			return
		}
		t = &f.v.m.Types[f.v.funcs[in.A]]
	default:
		if f.table(in.B) != binary.FuncRef {
			f.fail("type mismatch: call_indirect through a table that does not hold functions")
		}
		if int(in.A) >= len(f.v.m.Types) {
			f.fail("unknown type %d", in.A)
			return
		}
		t = &f.v.m.Types[in.A]
		f.pop(binary.I32)
	}
	f.cost.call(len(t.Params)+len(t.Results), f.v.bill.mutable)
	f.popAll(t.Params)
	if in.Op == binary.OpCall || in.Op == binary.OpCallIndirect {
		f.pushAll(t.Results)
		return
	}
	f.v.tail.Store(true)
	if !f.v.o.TailCalls && f.err == nil {
		f.err = disabled(f.v.m.Codes[f.index].Offset+in.Pos, binary.FeatureTailCall, "return_call")
	}
	f.spend(len(t.Results))
	if !sameTypes(t.Results, f.ctrls[0].end) {
		f.fail("type mismatch: a tail call to a function with other results")
	}
	f.unreachable()
}

func (f *funcValidator) tryTable() {
	f.exception("try_table")
	start, end := f.blockType(f.in.Const)
	f.popAll(start)
	f.catches = f.r.Catches(&f.in, f.catches[:0])
	f.points += uint64(len(f.catches)) // each becomes a comparison and a branch
	for _, c := range f.catches {
		var give []binary.ValType
		if c.Kind < 2 {
			if int(c.Tag) >= len(f.v.tags) {
				f.fail("unknown tag %d", c.Tag)
				return
			}
			give = append(give, f.v.m.Types[f.v.tags[c.Tag]].Params...)
			f.spend(2 * len(give))
		}
		if c.Kind == 1 || c.Kind == 3 {
			give = append(give, binary.ExnRef)
		}
		f.branch(c.Label, true)
		if !sameTypes(give, f.label(c.Label)) {
			f.fail("type mismatch: a catch clause and its label")
		}
	}
	f.open(binary.OpTryTable, start, end)
}

func sameTypes(a, b []binary.ValType) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
