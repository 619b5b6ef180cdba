package metertest

import (
	"openskill/wasm/binary"
)

// original reads an instruction that the proof claims to be the input's next.
func (w *walker) original() error {
	s := w.steps[0]
	op := w.a.Op
	if op == binary.OpMemoryGrow {
		op = binary.OpCall // of the function that grows and pays
	}
	if !w.aok || s.In != w.a.Pos || op != w.b.Op {
		return w.fail("the instruction at byte %d of the input is claimed here, and %v at byte %d comes next", s.In, w.a.Op, w.a.Pos)
	}
	w.steps = w.steps[1:]
	if err := w.use(w.price()); err != nil {
		return err
	}
	if err := w.lengths(); err != nil {
		return err
	}
	if w.a.Op == binary.OpI32Const {
		w.last, w.length = w.a.End, w.a.Const
	}
	if err := w.effect(); err != nil {
		return err
	}
	w.high = max(w.high, w.st.height)
	w.advance()
	w.next()
	return nil
}

// price is what an instruction costs, and what its callee takes as paid.
func (w *walker) price() int64 {
	c := w.v.claim
	switch w.a.Op {
	case binary.OpNop, binary.OpBlock, binary.OpLoop, binary.OpElse, binary.OpEnd:
		return 0
	case binary.OpCall, binary.OpReturnCall:
		if w.a.A >= w.v.nimp {
			return 1 + c.Prepaid[w.a.A-w.v.nimp]
		}
	case binary.OpCallIndirect, binary.OpReturnCallI:
		return 1 + c.Indirect[w.a.A]
	}
	return 1
}

// lengths checks that bulk operations are paid by their length.
func (w *walker) lengths() error {
	switch w.a.Op {
	case binary.OpMemoryCopy, binary.OpMemoryFill, binary.OpMemoryInit:
		if w.at == w.b.Pos {
			return nil
		}
		if w.last != w.a.Pos {
			return w.fail("a bulk operation is not paid by its length")
		}
		if w.length < 0 || w.length >= 4<<10 {
			return w.fail("a bulk operation of length %d is not paid by its length", w.length)
		}
		return w.use(w.length >> 3)
	case binary.OpTableInit, binary.OpTableCopy, binary.OpTableFill, binary.OpTableGrow:
		if w.at != w.b.Pos {
			return w.fail("an operation on tables is not paid by its length")
		}
	}
	return nil
}

// effect compares the immediates, and carries the state over the instruction.
func (w *walker) effect() error {
	a, b := &w.a, &w.b
	switch a.Op {
	case binary.OpBlock, binary.OpIf:
		return w.openOwn()
	case binary.OpElse:
		return w.otherwise()
	case binary.OpLoop, binary.OpEnd:
		return w.fail("%v is claimed to be an instruction of the input", a.Op)
	case binary.OpBr:
		err := w.follow(a.A, b.A)
		w.st = state{}
		return err
	case binary.OpBrIf:
		w.st.height--
		return w.follow(a.A, b.A)
	case binary.OpBrTable:
		return w.table()
	case binary.OpReturn, binary.OpUnreachable:
		if a.Op == binary.OpReturn {
			w.leave()
		}
		w.st = state{}
		return nil
	case binary.OpCall, binary.OpReturnCall:
		if b.A != w.v.at(a.A) {
			return w.fail("a call of function %d became one of %d", a.A, b.A)
		}
		return w.called(w.calleeType(a.A), int32(a.A)-int32(w.v.nimp)) // at most Limits.Functions
	case binary.OpCallIndirect, binary.OpReturnCallI:
		w.st.height--
		if err := w.same(); err != nil {
			return err
		}
		return w.called(&w.v.in.Types[a.A], int32(len(w.v.in.Codes))+int32(w.v.shapes[a.A]))
	case binary.OpMemoryGrow:
		if b.A != w.v.first+helperPages {
			return w.fail("memory.grow became a call of function %d", b.A)
		}
	case binary.OpRefFunc:
		if b.A != w.v.at(a.A) {
			return w.fail("a reference to function %d became one to %d", a.A, b.A)
		}
	case binary.OpGlobalGet, binary.OpGlobalSet:
		if b.A == w.v.fuel {
			return w.fail("an instruction of the input touches the fuel")
		}
		if err := w.same(); err != nil {
			return err
		}
	default:
		if err := w.same(); err != nil {
			return err
		}
	}
	w.st.height += moves(a.Op)
	return nil
}

// moves is by how much an instruction without control flow changes the number
// of operands.
func moves(op binary.Op) int {
	n := 1
	if sig := op.Signature(); sig != "" {
		d := 0
		for _, c := range sig {
			if c == ':' {
				n = -1
			} else {
				d -= n
			}
		}
		return d
	}
	switch op {
	case binary.OpLocalGet, binary.OpGlobalGet, binary.OpRefNull, binary.OpRefFunc:
		return 1
	case binary.OpLocalSet, binary.OpGlobalSet, binary.OpDrop, binary.OpTableGrow:
		return -1
	case binary.OpSelect, binary.OpSelectT, binary.OpTableSet:
		return -2
	case binary.OpTableFill:
		return -3
	}
	return 0
}

func (w *walker) calleeType(f uint32) *binary.FuncType {
	if f >= w.v.nimp {
		return &w.v.in.Types[w.v.in.Funcs[f-w.v.nimp]]
	}
	for i := range w.v.in.Imports {
		if w.v.in.Imports[i].Kind != binary.ExternFunc {
			continue
		}
		if f == 0 {
			return &w.v.in.Types[w.v.in.Imports[i].Type]
		}
		f--
	}
	return nil
}

// called carries the state over a call, and notes it if no test was passed. to
// is a function, or behind those a shape; below 0 it is an import.
func (w *walker) called(t *binary.FuncType, to int32) error {
	if w.st.live && w.st.free && to >= 0 {
		list := &w.v.calls[w.fn]
		if n := len(*list); n == 0 || (*list)[n-1] != to {
			*list = append(*list, to)
		}
	}
	if err := w.enter(to); err != nil {
		return err
	}
	if w.a.Op == binary.OpReturnCall || w.a.Op == binary.OpReturnCallI {
		w.leave()
		w.st = state{}
		return nil
	}
	w.st.height += len(t.Results) - len(t.Params)
	return nil
}

func (w *walker) table() error {
	w.st.height--
	if w.a.A != w.b.A {
		return w.fail("a br_table of %d targets became one of %d", w.a.A, w.b.A)
	}
	w.labels[0] = w.src.Targets(&w.a, w.labels[0][:0])
	w.labels[1] = w.dst.Targets(&w.b, w.labels[1][:0])
	for i := range w.labels[0] {
		if err := w.follow(w.labels[0][i], w.labels[1][i]); err != nil {
			return err
		}
	}
	w.st = state{}
	return nil
}

// arity counts what a block takes and gives.
func (w *walker) arity(c int64) (params, results int) {
	switch {
	case c == binary.BlockEmpty:
		return 0, 0
	case c < 0:
		return 0, 1
	}
	t := &w.v.in.Types[c]
	return len(t.Params), len(t.Results)
}

func (w *walker) push(op binary.Op, target int) *construct {
	p, r := w.arity(w.a.Const)
	w.cons = append(w.cons, construct{op: op, target: target, base: w.st.height - p, params: p, results: r})
	return &w.cons[len(w.cons)-1]
}

// openOwn opens a block or an if of the input.
func (w *walker) openOwn() error {
	if w.a.Const != w.b.Const {
		return w.fail("a block got another type")
	}
	if w.a.Op == binary.OpIf {
		w.st.height--
	}
	c := w.push(w.a.Op, len(w.opens))
	c.cond = w.st
	w.opens = append(w.opens, open{})
	return nil
}

func (w *walker) otherwise() error {
	c, o := &w.cons[len(w.cons)-1], &w.opens[len(w.opens)-1]
	if c.op != binary.OpIf || c.els || o.role != roleOwn || c.target != len(w.opens)-1 {
		return w.fail("an else without its if")
	}
	c.els = true
	o.end = o.end.merge(w.st)
	w.st = c.cond
	return nil
}

// end closes a construct of the input that has one block in the output.
func (w *walker) end() error {
	c, o := &w.cons[len(w.cons)-1], &w.opens[len(w.opens)-1]
	if c.target != len(w.opens)-1 {
		return w.fail("an end closes another block than in the input")
	}
	if len(w.cons) == 1 {
		w.leave()
	}
	if !o.loop {
		if c.op == binary.OpIf && !c.els {
			o.end = o.end.merge(c.cond)
		}
		w.st = w.st.merge(o.end)
	}
	w.opens = w.opens[:len(w.opens)-1]
	w.close()
	w.next()
	return nil
}

// close takes the construct that the input's next end closes.
func (w *walker) close() {
	c := &w.cons[len(w.cons)-1]
	w.st.height = c.base + c.results
	w.high = max(w.high, w.st.height)
	w.cons = w.cons[:len(w.cons)-1]
	w.advance()
}

// plainLoop opens a loop that is one loop of the output, too.
func (w *walker) plainLoop() error {
	if w.a.Const != w.b.Const {
		return w.fail("a loop got another type")
	}
	w.push(binary.OpLoop, len(w.opens))
	w.header()
	w.advance()
	w.next()
	return nil
}

// header opens a loop of the output. What is paid when it is entered is taken as
// paid whenever it goes on, and each branch back must have as much.
func (w *walker) header() {
	w.st.loop = min(w.st.loop, len(w.opens))
	w.opens = append(w.opens, open{loop: true, head: w.nheads, pays: w.st.paid})
	w.begins()
}
