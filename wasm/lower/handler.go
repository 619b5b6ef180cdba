package lower

import (
	"slices"

	"openskill/wasm/binary"
)

// try opens a try_table: a block that its own branches leave, and in it another
// one whose label is the dispatch.
func (e *emitter) try() {
	e.tries++
	e.flush()
	e.op(binary.OpBlock)
	e.blockType(e.in.Const)
	f := e.enter(e.labels)
	f.clauses = len(e.clauses)
	e.labels++
	e.clauses = e.r.Catches(&e.in, e.clauses)
	if len(e.clauses) == f.clauses {
		f.op = binary.OpBlock
		return
	}
	f.dispatch, f.handler, f.try = true, e.labels, len(e.frames)-1
	e.op(binary.OpBlock)
	into, ok := uint32(0), false
	if f.typ >= 0 {
		into, ok = e.l.added.into[uint32(f.typ)]
	}
	if ok {
		e.out = binary.AppendS64(e.out, int64(into))
	} else {
		e.out = append(e.out, 0x40)
	}
	e.labels++
}

// raise notes that exceptions with these tags go to the handler around the code
// at hand, and gives its label.
func (e *emitter) raise(f *frame, tags uint64) int {
	if f.try >= 0 {
		e.frames[f.try].arrives |= tags
	}
	return f.handler
}

// check looks behind a call for an exception.
func (e *emitter) check(tags uint64) {
	e.calls++
	if tags == 0 {
		return
	}
	e.checked++
	e.out = append(e.out, e.body[e.from:e.in.End]...)
	e.from = e.in.End
	e.index(binary.OpGlobalGet, e.l.plan.tag)
	e.branch(binary.OpBrIf, e.raise(&e.frames[len(e.frames)-1], tags))
}

func (e *emitter) call() {
	switch {
	case e.in.Op == binary.OpCallIndirect:
		e.check(e.l.indirect[e.l.canon[e.in.A]])
	case e.in.A >= e.l.nimp:
		e.check(e.l.fns[e.in.A-e.l.nimp].throws)
	}
}

func (e *emitter) throw() {
	e.throws++
	e.flush()
	e.out = append(e.out, e.l.tags[e.in.A].put...)
	e.branch(binary.OpBr, e.raise(&e.frames[len(e.frames)-1], bit(e.in.A)))
	e.dead = true
}

// throwRef sets the exception in flight from a reference. The reference may be
// null, which traps; so does every one if no clause of the module makes any.
func (e *emitter) throwRef() {
	e.throws++
	e.flush()
	if e.l.rethrown != 0 {
		p, t := &e.l.plan, e.locals.temporary()
		e.out = append(e.out, e.l.exn.put...)
		e.index(binary.OpLocalTee, t)
		e.out = append(e.out, opI32WrapI64)
		e.index(binary.OpGlobalSet, p.value)
		e.index(binary.OpLocalGet, t)
		e.out = append(e.out, byte(binary.OpI64Const), 32, opI64ShrU, opI32WrapI64)
		e.index(binary.OpGlobalSet, p.tag)
		e.index(binary.OpGlobalGet, p.tag)
		e.branch(binary.OpBrIf, e.raise(&e.frames[len(e.frames)-1], e.l.rethrown))
	}
	e.op(binary.OpUnreachable)
	e.dead = true
}

// handlers closes a try_table. What falls out of its body goes around the
// dispatch; the dispatch compares the tag with those of its clauses, as far as
// one can be there.
func (e *emitter) handlers(f *frame) {
	e.flush()
	if !e.dead {
		e.branch(binary.OpBr, f.label)
	}
	e.op(binary.OpEnd)
	e.labels--
	outer := &e.frames[len(e.frames)-2]
	left := f.arrives
	for _, c := range e.clauses[f.clauses:] {
		if left == 0 || !e.room() {
			break
		}
		left = e.clause(c, left)
	}
	switch {
	case left != 0:
		e.branch(binary.OpBr, e.raise(outer, left))
	case f.arrives == 0:
		e.op(binary.OpUnreachable)
	}
	e.op(binary.OpEnd)
	e.clauses = e.clauses[:f.clauses]
}

// clause writes one clause for what is left of the tags that arrive, and gives
// what is left behind it.
func (e *emitter) clause(c binary.Catch, left uint64) uint64 {
	pushed := 0
	if c.Kind >= 2 {
		e.catch(c, &pushed)
		e.branch(binary.OpBr, e.outside(c.Label))
		left = 0
	} else {
		if left&bit(c.Tag) == 0 || !e.l.thrown[c.Tag].Load() {
			return left
		}
		only := left == caught(c.Tag)
		if !only {
			e.index(binary.OpGlobalGet, e.l.plan.tag)
			e.out = i32Const(e.out, int64(c.Tag)+1)
			e.out = append(e.out, opI32Eq, byte(binary.OpIf), 0x40)
			e.labels++
		}
		e.catch(c, &pushed)
		e.branch(binary.OpBr, e.outside(c.Label))
		if !only {
			e.op(binary.OpEnd)
			e.labels--
		}
		left &^= caught(c.Tag)
	}
	e.extra = max(e.extra, uint32(pushed)+4) // at most Limits.Values and maxValues
	return left
}

// catch pushes what a clause gives, and ends the flight.
func (e *emitter) catch(c binary.Catch, pushed *int) {
	if c.Kind < 2 {
		e.out = append(e.out, e.l.tags[c.Tag].get...)
		*pushed += e.l.tags[c.Tag].params
	}
	if c.Kind == 1 || c.Kind == 3 {
		e.out = append(e.out, e.l.exn.get...)
		*pushed += len(e.l.exn.types)
	}
	e.out = i32Const(e.out, 0)
	e.index(binary.OpGlobalSet, e.l.plan.tag)
}

// outside gives the label of a clause, which counts from outside the try_table.
func (e *emitter) outside(depth uint32) int { return e.frames[len(e.frames)-2-int(depth)].label }

// several reports whether an exnref is more than one value.
func (l *lowerer) several() bool { return len(l.exn.types) > 1 }

// values writes an instruction that moves references to exceptions.
func (e *emitter) values() {
	in, x := &e.in, e.l.exn.types
	switch in.Op {
	case binary.OpLocalGet, binary.OpLocalSet, binary.OpLocalTee:
		if e.locals.moved {
			e.flush()
			e.out = e.locals.write(e.out, in.Op, in.A)
		}
	case binary.OpGlobalGet, binary.OpGlobalSet:
		if e.l.several() && e.l.globals[in.A] == binary.ExnRef {
			e.flush()
			e.global(in.Op, in.A)
		}
	case binary.OpRefNull:
		if in.A == uint32(binary.ExnRef) {
			e.flush()
			for _, t := range x {
				e.out = zero(e.out, t)
			}
		}
	case binary.OpRefIsNull:
		if e.types.top() == binary.ExnRef {
			e.flush()
			e.drop(len(x) - 1)
			e.out = append(e.out, opI64Eqz)
		}
	case binary.OpDrop:
		if e.l.several() && e.types.top() == binary.ExnRef {
			e.flush()
			e.drop(len(x))
		}
	case binary.OpSelectT:
		if in.B == uint32(binary.ExnRef) {
			e.flush()
			e.choose()
		}
	}
}

func (e *emitter) drop(n int) {
	for range n {
		e.op(binary.OpDrop)
	}
}

func (e *emitter) global(o binary.Op, g uint32) {
	n, extra := uint32(len(e.l.exn.types))-1, e.l.extraOf[g] // at most maxValues
	if o == binary.OpGlobalGet {
		e.index(o, g)
		for k := range n {
			e.index(o, extra+k)
		}
		return
	}
	for k := range n {
		e.index(o, extra+n-1-k)
	}
	e.index(o, g)
}

// choose selects between two references. Several values need locals.
func (e *emitter) choose() {
	if !e.l.several() {
		e.out = append(e.out, byte(binary.OpSelectT), 1, byte(binary.I64))
		return
	}
	x := e.l.exn.types
	e.op(binary.OpIf)
	e.out = binary.AppendS64(e.out, int64(e.l.added.choose))
	e.drop(len(x))
	e.op(binary.OpElse)
	first := e.locals.several()
	for i := range slices.Backward(x) {
		e.index(binary.OpLocalSet, first+uint32(i)) // at most maxValues
	}
	e.drop(len(x))
	for i := range x {
		e.index(binary.OpLocalGet, first+uint32(i))
	}
	e.op(binary.OpEnd)
}
