package meter

import (
	"openskill/wasm/binary"
)

// emitter writes the rewritten bodies; one a worker.
type emitter struct {
	w       *rewriter
	f       *fn
	code    *binary.Code
	out     []byte
	depth   int // open blocks of the output
	labels  []label
	next    int    // the next node whose charge was not yet met
	t, n    uint32 // locals that are added: fuel, and a length
	useT    bool
	useN    bool
	targets []uint32
	copying int // loops that are being laid out several times, inside each other
	trace   []Step
}

// label is an open block of the input and its place among those of the output.
type label struct {
	op     binary.Op
	abs    int
	closes []byte // what the output needs behind its end
}

func (e *emitter) op(b ...byte)         { e.out = append(e.out, b...) }
func (e *emitter) opu(b byte, x uint32) { e.out = binary.AppendU32(append(e.out, b), x) }
func (e *emitter) i64(x int64)          { e.out = binary.AppendS64(append(e.out, byte(binary.OpI64Const)), x) }
func (e *emitter) i32(x int64)          { e.out = binary.AppendS64(append(e.out, byte(binary.OpI32Const)), x) }
func (e *emitter) get(local uint32)     { e.opu(byte(binary.OpLocalGet), local) }
func (e *emitter) load()                { e.opu(byte(binary.OpGlobalGet), e.w.fuel) }
func (e *emitter) store()               { e.opu(byte(binary.OpGlobalSet), e.w.fuel) }
func (e *emitter) call(fn uint32)       { e.opu(byte(binary.OpCall), fn) }

const (
	emptyBlock = 0x40
	opEnd      = byte(binary.OpEnd)
	opBlock    = byte(binary.OpBlock)
	opLoop     = byte(binary.OpLoop)
	opIf       = byte(binary.OpIf)
	opBr       = byte(binary.OpBr)
	opBrIf     = byte(binary.OpBrIf)
	opTee      = byte(binary.OpLocalTee)
	opLtS      = byte(binary.OpI64LtS)
	opSub      = byte(binary.OpI64Sub)
	opOr       = 0x84
	opShl      = 0x86
	opShrU     = 0x88
	opExtendU  = 0xad
	opGtU      = 0x56
	opEq       = 0x46
	opNe       = 0x47
	opUnreach  = byte(binary.OpUnreachable)
)

// charge takes c units, and calls the host when nothing is left.
func (e *emitter) charge(c int64, test bool) {
	e.load()
	if c == 0 && test { // what was called may have charged without a test
		e.ask()
		return
	}
	e.i64(c)
	e.op(opSub)
	e.settle(test)
}

// settle stores the counter that stands on the stack, and tests it.
func (e *emitter) settle(test bool) {
	if !test {
		e.store()
		return
	}
	e.useT = true
	e.opu(opTee, e.t)
	e.store()
	e.get(e.t)
	e.ask()
}

// ask calls the host if the counter, which stands on the stack and is stored, is below zero.
func (e *emitter) ask() {
	e.i64(0)
	e.op(opLtS, opIf, emptyBlock)
	e.i64(0)
	e.call(e.w.refuel)
	e.op(opEnd)
}

// head takes need from the fuel, and leaves the innermost block of the output
// when less is left; nothing is stored then.
func (e *emitter) head(need int64) {
	e.useT = true
	e.load()
	e.i64(need)
	e.op(opSub)
	e.opu(opTee, e.t)
	e.i64(0)
	e.op(opLtS, opBrIf, 0)
	e.get(e.t)
	e.store()
}

// blockType appends the type of a block of the input, whose types kept their places.
func (e *emitter) blockType(c int64) { e.out = binary.AppendS64(e.out, c) }

// function writes one body. One that tests at its entry is laid out as
//
//	loop
//	  block                         ;; the slow path is behind its end
//	    charge, test, body, return
//	  end
//	  ask the host, br 0
//	end
//	unreachable
func (e *emitter) function(f *fn, c *binary.Code) binary.Code {
	nl := len(e.w.m.Types[f.typ].Params)
	for _, g := range c.Locals {
		nl += int(g.Count)
	}
	e.f, e.code, e.next = f, c, 1
	e.t = uint32(nl) // at most Limits.Locals and Values
	e.n, e.useT, e.useN = e.t+1, false, false
	e.out, e.labels, e.trace = make([]byte, 0, len(c.Body)+len(c.Body)/8+32), e.labels[:0], e.trace[:0]
	e.depth = 1
	if f.tested {
		e.op(opLoop, emptyBlock, opBlock, emptyBlock)
		e.depth = 3
		e.head(max(f.entry, 1))
	} else if f.entry > 0 {
		e.charge(f.entry, false)
	}
	e.labels = append(e.labels, label{op: binary.OpBlock, abs: 0})
	e.body(0, len(c.Body)-1)
	e.arm(len(c.Body) - 1)
	if f.tested {
		e.op(byte(binary.OpReturn), opEnd)
		e.i64(max(f.entry, 1))
		e.call(e.w.refuel)
		e.op(opBr, 0, opEnd, opUnreach)
	}
	e.op(opEnd)
	return binary.Code{Locals: e.locals(c), Body: e.out}
}

// locals are those of the input and the ones that the body came to use.
func (e *emitter) locals(c *binary.Code) []binary.LocalGroup {
	l := c.Locals[:len(c.Locals):len(c.Locals)]
	if e.useT || e.useN {
		l = append(l, binary.LocalGroup{Count: 1, Type: binary.I64})
	}
	if e.useN {
		l = append(l, binary.LocalGroup{Count: 1, Type: binary.I32})
	}
	return l
}

// arm writes the charge of the block that begins at byte pos of the input.
func (e *emitter) arm(pos int) {
	N := e.f.nodes
	for e.next < len(N) && int(N[e.next].at) < pos {
		e.next++
	}
	if e.next >= len(N) || int(N[e.next].at) != pos {
		return
	}
	n := &N[e.next]
	e.next++
	if !n.loop && (n.chg > 0 || n.test) {
		e.charge(n.chg, n.test)
	}
}

// header finds the node of a loop whose first instruction is at pos; nil if the
// loop is dead code.
func (e *emitter) header(pos int) *node {
	N := e.f.nodes
	for i := e.next; i < len(N) && int(N[i].at) <= pos; i++ {
		if int(N[i].at) == pos && N[i].loop {
			e.next = i + 1
			return &N[i]
		}
	}
	return nil
}

// body writes the instructions [from, to) of the input.
func (e *emitter) body(from, to int) {
	r := binary.NewReader(e.code.Body[:to], e.code.Offset)
	r.Seek(from)
	var in binary.Instr
	base := len(e.labels)
	constant, constNode := int64(-1), -1
	for r.Next(&in) {
		e.arm(in.Pos)
		isStatic := static(in.Op, constant) && constNode == e.next
		constant = -1
		switch in.Op {
		case binary.OpLoop:
			if h := e.header(in.End); h != nil && e.small(h, &in, to) {
				end := e.copied(h, &in)
				r.Seek(end)
			} else {
				e.loop(h, &in)
			}
		case binary.OpBlock, binary.OpIf:
			e.mark(&in)
			e.op(byte(in.Op))
			e.blockType(in.Const)
			e.labels = append(e.labels, label{op: in.Op, abs: e.depth})
			e.depth++
		case binary.OpEnd:
			if len(e.labels) == base {
				break
			}
			l := e.labels[len(e.labels)-1]
			e.labels = e.labels[:len(e.labels)-1]
			if l.closes != nil {
				e.out = append(e.out, l.closes...)
			} else {
				e.op(opEnd)
			}
			e.depth = l.abs
			if l.op == binary.OpLoop {
				e.depth = l.abs - loopExtra(l.closes)
			}
		case binary.OpBr, binary.OpBrIf:
			e.mark(&in)
			e.opu(byte(in.Op), e.label(in.A))
		case binary.OpBrTable:
			e.mark(&in)
			e.targets = r.Targets(&in, e.targets[:0])
			e.opu(byte(in.Op), in.A)
			for _, t := range e.targets {
				e.out = binary.AppendU32(e.out, e.label(t))
			}
		default:
			if !isStatic {
				e.bulk(&in)
			}
			e.plain(&in)
			if in.Op == binary.OpI32Const {
				constant, constNode = in.Const, e.next
			}
		}
	}
}

// label gives the branch depth of the output for one of the input.
func (e *emitter) label(d uint32) uint32 {
	return uint32(e.depth - 1 - e.labels[len(e.labels)-1-int(d)].abs)
}

// plain copies an instruction, with the function that it names at its new place. The
// memory grows in a function, which pays for it.
func (e *emitter) plain(in *binary.Instr) {
	e.mark(in)
	switch in.Op {
	case binary.OpCall, binary.OpReturnCall, binary.OpRefFunc:
		e.opu(byte(in.Op), e.w.moved(in.A))
	case binary.OpMemoryGrow:
		e.call(e.w.helpers.pages)
	default:
		e.out = append(e.out, e.code.Body[in.Pos:in.End]...)
	}
}

func (e *emitter) mark(in *binary.Instr) {
	if e.w.trace != nil {
		e.trace = append(e.trace, Step{Out: len(e.out), In: in.Pos})
	}
}

// bulk writes the charge for the length that stands on the stack.
func (e *emitter) bulk(in *binary.Instr) {
	switch in.Op {
	case binary.OpMemoryCopy, binary.OpMemoryFill, binary.OpMemoryInit:
		e.useT, e.useN = true, true
		e.opu(opTee, e.n)
		e.load()
		e.get(e.n)
		e.op(opExtendU)
		e.i64(3)
		e.op(opShrU, opSub)
		e.settle(true)
	case binary.OpTableInit, binary.OpTableCopy, binary.OpTableFill:
		e.call(e.w.helpers.entries)
	case binary.OpTableGrow:
		e.call(e.w.helpers.grow[in.A])
	}
}
