package lower

import (
	"openskill/wasm/binary"
)

// emitter writes the new body of one function after the other.
type emitter struct {
	l       *lowerer
	f       *fn
	r       binary.Reader
	in      binary.Instr
	body    []byte // of the input
	from    int    // what of the body is not written yet, and goes over unchanged
	out     []byte
	most    int // bytes that out may have: no bound in itself, but one on the memory of a function
	labels  int // open labels of the output
	frames  []frame
	targets []uint32
	clauses []binary.Catch
	dead    bool // the code cannot be reached
	nested  int  // blocks that were opened in it
	extra   uint32
	locals  locals
	types   operands

	calls, checked, tries, throws int64
}

// frame is an open block of the input.
type frame struct {
	op       binary.Op
	typ      int64  // as binary.Instr has it
	label    int    // its label among the open ones of the output
	handler  int    // the label to which an exception goes that is thrown in it; -1 if none can be
	try      int    // the frame with that handler, whose own it is; -1 for the function
	dispatch bool   // it is a try_table with a handler of its own
	arrives  uint64 // the tags that come to it
	clauses  int    // where its clauses begin
	base     int    // operands below it
}

func newEmitter(l *lowerer) *emitter { return &emitter{l: l} }

func (e *emitter) op(o binary.Op)              { e.out = append(e.out, byte(o)) }
func (e *emitter) index(o binary.Op, i uint32) { e.out = index(e.out, o, i) }

// flush writes what goes over unchanged, up to the instruction at hand, which
// does not.
func (e *emitter) flush() {
	e.out = append(e.out, e.body[e.from:e.in.Pos]...)
	e.from = e.in.End
}

// branch writes a branch to a label of the output.
func (e *emitter) branch(o binary.Op, label int) { e.index(o, uint32(e.labels-1-label)) }

// to gives the label of the output for a depth of the input.
func (e *emitter) to(depth uint32) int { return e.frames[len(e.frames)-1-int(depth)].label }

func (e *emitter) room() bool { return len(e.out) <= e.most }

// function gives the new body of a function, and by how much more operands it
// may hold than before.
func (e *emitter) function(i int) (binary.Code, uint32, error) {
	l, c := e.l, &e.l.m.Codes[i]
	e.f, e.body, e.from, e.out = &l.fns[i], c.Body, 0, e.out[:0]
	e.most = len(c.Body) + l.o.Growth
	e.labels, e.dead, e.nested, e.extra = 1, false, 0, 2
	e.frames, e.clauses = e.frames[:0], e.clauses[:0]
	results := l.m.Types[l.m.Funcs[i]].Results
	if err := e.locals.set(l, i); err != nil {
		return binary.Code{}, 0, err
	}
	e.types.set(l, i)

	f := frame{op: binary.OpBlock, typ: int64(l.m.Funcs[i]), handler: -1, try: -1}
	wrapped := e.f.throws != 0 && len(results) > 0
	switch {
	case wrapped: // an exception leaves by a label without values, behind which zeros are pushed
		e.out = append(e.out, byte(binary.OpBlock), 0x40)
		e.labels, f.handler = 2, 1
	case e.f.throws != 0:
		f.handler = 0
	}
	e.frames = append(e.frames, f)
	e.r.Reset(c.Body, c.Offset)
	for len(e.frames) > 0 && e.r.Next(&e.in) {
		if !e.room() {
			break
		}
		if !e.dead || e.wakes() {
			e.instr()
		}
	}
	if wrapped {
		for _, t := range l.values(results) {
			e.out = zero(e.out, t)
		}
		e.op(binary.OpEnd)
	}
	e.count()
	if !e.room() || l.room.Add(-int64(max(len(e.out)-len(c.Body), 0))) < 0 {
		return binary.Code{}, 0, tooComplex("without exceptions its code would grow by more than %d bytes", l.o.Growth)
	}
	return binary.Code{Locals: e.locals.groups(c), Body: append([]byte(nil), e.out...), Offset: c.Offset}, e.extra, nil
}

func (e *emitter) count() {
	n := &e.l.count
	n.changed.Add(1)
	n.calls.Add(e.calls)
	n.checked.Add(e.checked)
	n.tries.Add(e.tries)
	n.throws.Add(e.throws)
	e.calls, e.checked, e.tries, e.throws = 0, 0, 0, 0
}

// wakes skips unreachable code, and reports whether the instruction at hand ends
// it.
func (e *emitter) wakes() bool {
	switch e.in.Op {
	case binary.OpBlock, binary.OpLoop, binary.OpIf, binary.OpTryTable:
		e.nested++
	case binary.OpElse:
		if e.nested == 0 {
			e.from = e.in.Pos
			return true
		}
	case binary.OpEnd:
		if e.nested == 0 {
			e.from = e.in.Pos
			return true
		}
		e.nested--
	}
	return false
}

// die notes that what follows cannot be reached. The instruction at hand is
// written.
func (e *emitter) die() {
	e.out = append(e.out, e.body[e.from:e.in.End]...)
	e.from = e.in.End
	e.dead = true
}

func (e *emitter) instr() {
	in := &e.in
	switch in.Op {
	case binary.OpBlock, binary.OpLoop, binary.OpIf:
		e.open()
	case binary.OpTryTable:
		e.try()
	case binary.OpElse:
		e.types.otherwise(&e.frames[len(e.frames)-1])
		e.dead = false
	case binary.OpEnd:
		e.end()
	case binary.OpBr:
		e.flush()
		e.branch(in.Op, e.to(in.A))
		e.die()
	case binary.OpBrIf:
		e.flush()
		e.branch(in.Op, e.to(in.A))
		e.types.effect(in)
	case binary.OpBrTable:
		e.flush()
		e.targets = e.r.Targets(in, e.targets[:0])
		e.index(in.Op, in.A)
		for _, t := range e.targets {
			e.out = binary.AppendU32(e.out, uint32(e.labels-1-e.to(t)))
		}
		e.die()
	case binary.OpReturn, binary.OpUnreachable, binary.OpReturnCall, binary.OpReturnCallI:
		e.die()
	case binary.OpCall, binary.OpCallIndirect:
		e.types.effect(in)
		e.call()
	case binary.OpThrow:
		e.throw()
	case binary.OpThrowRef:
		e.throwRef()
	default:
		if e.f.touched {
			e.values()
			e.types.effect(in)
		}
	}
}

// open opens a block, a loop or an if. Its type may be an exnref.
func (e *emitter) open() {
	in := &e.in
	if in.Op == binary.OpIf {
		e.types.pop(1)
	}
	e.enter(e.labels)
	if in.Const < 0 && in.Const != binary.BlockEmpty && binary.BlockValue(in.Const) == binary.ExnRef {
		e.flush()
		e.op(in.Op)
		e.blockType(in.Const)
	}
	e.labels++
}

// enter puts the block at hand on the stack of frames.
func (e *emitter) enter(label int) *frame {
	p := &e.frames[len(e.frames)-1]
	base := e.types.depth() - e.types.params(e.in.Const)
	e.frames = append(e.frames, frame{op: e.in.Op, typ: e.in.Const, label: label, handler: p.handler, try: p.try, base: base})
	return &e.frames[len(e.frames)-1]
}

func (e *emitter) blockType(c int64) {
	switch {
	case c >= 0 || c == binary.BlockEmpty || binary.BlockValue(c) != binary.ExnRef:
		e.out = binary.AppendS64(e.out, c)
	case len(e.l.exn.types) == 1:
		e.out = append(e.out, byte(binary.I64))
	default:
		e.out = binary.AppendS64(e.out, int64(e.l.added.give))
	}
}

func (e *emitter) end() {
	f := &e.frames[len(e.frames)-1]
	switch {
	case f.dispatch:
		e.handlers(f)
	case len(e.frames) == 1 && e.labels == 2: // the function, with a label for exceptions
		e.flush()
		if !e.dead {
			e.op(binary.OpReturn)
		}
		e.op(binary.OpEnd)
	default:
		e.flush()
		e.op(binary.OpEnd)
	}
	e.types.close(f)
	e.frames = e.frames[:len(e.frames)-1]
	e.labels--
	e.dead = false
}
