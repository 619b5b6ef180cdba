package amend

import (
	"openskill/wasm/binary"
)

// may is what an integer may be, as far as is known.
type may uint8

const (
	zero may = 1 << iota // the constant 0
	and                  // the result of and
)

const unknown = zero | and

// value is what is known of an operand or a local.
type value struct {
	typ binary.ValType // 0: that of code that is never reached
	may may
}

// block is an open block.
type block struct {
	height int
	typ    binary.FuncType
	dead   bool // what follows in it is never reached
}

// walker follows the operands of one function after the other.
type walker struct {
	m       *binary.Module
	arch    string
	funcs   []uint32 // types of all functions
	globals []binary.ValType
	source  []byte // the body of the function

	locals []value
	stack  []value
	blocks []block
	again  bool // a local may be more than was taken for granted
	edits  []edit
	extra  []binary.LocalGroup
}

// rounds is how often a function is looked at before its locals may be anything.
const rounds = 8

// function finds what is to be changed in a function.
func (w *walker) function(i int) error {
	c, t := &w.m.Codes[i], w.m.Types[w.m.Funcs[i]]
	w.source, w.locals = c.Body, w.locals[:0]
	for _, p := range t.Params {
		w.locals = append(w.locals, value{typ: p})
	}
	for _, g := range c.Locals {
		for range g.Count {
			w.locals = append(w.locals, value{g.Type, zero}) // what no one has set is a constant
		}
	}
	// A local may be what any local may be that it is set from, somewhere; values are
	// handed on from local to local only so often.
	for round := 0; ; round++ {
		if round == rounds {
			for l := range w.locals {
				w.locals[l].may = unknown
			}
		}
		w.stack, w.edits, w.extra, w.again = w.stack[:0], w.edits[:0], nil, false
		w.blocks = append(w.blocks[:0], block{typ: binary.FuncType{Results: t.Results}})
		r := binary.NewReader(c.Body, c.Offset)
		var in binary.Instr
		for len(w.blocks) > 0 && r.Next(&in) {
			w.instr(&in)
		}
		if err := r.Err(); err != nil || !w.again {
			return err
		}
	}
}

func (w *walker) top() *block { return &w.blocks[len(w.blocks)-1] }

func (w *walker) push(v value) { w.stack = append(w.stack, v) }

func (w *walker) pushAll(ts []binary.ValType, m may) {
	for _, t := range ts {
		w.push(value{t, m})
	}
}

func (w *walker) pop() value {
	n := len(w.stack)
	if n == w.top().height {
		return value{may: unknown} // in code that is never reached
	}
	v := w.stack[n-1]
	w.stack = w.stack[:n-1]
	return v
}

func (w *walker) popN(n int) {
	for range n {
		w.pop()
	}
}

// die ends the code that is reached in the innermost block.
func (w *walker) die() {
	b := w.top()
	w.stack, b.dead = w.stack[:b.height], true
}

func (w *walker) set(l uint32, v value) {
	if have := &w.locals[l]; have.may|v.may != have.may {
		have.may |= v.may
		w.again = true
	}
}

func (w *walker) call(t uint32) {
	w.popN(len(w.m.Types[t].Params))
	w.pushAll(w.m.Types[t].Results, 0)
}

func (w *walker) instr(in *binary.Instr) {
	op := in.Op
	switch op {
	case binary.OpBlock, binary.OpLoop, binary.OpIf:
		w.open(in)
	case binary.OpElse:
		b := w.top()
		w.stack = w.stack[:b.height]
		w.pushAll(b.typ.Params, unknown)
		b.dead = w.blocks[len(w.blocks)-2].dead
	case binary.OpEnd:
		b := w.top()
		w.stack = w.stack[:b.height]
		w.blocks = w.blocks[:len(w.blocks)-1]
		w.pushAll(b.typ.Results, unknown)
	case binary.OpUnreachable, binary.OpBr, binary.OpBrTable, binary.OpReturn, binary.OpReturnCall, binary.OpReturnCallI:
		w.die()
	case binary.OpNop:
	case binary.OpBrIf, binary.OpDrop, binary.OpGlobalSet:
		w.pop()
	case binary.OpLocalGet:
		w.push(w.locals[in.A])
	case binary.OpLocalSet:
		w.set(in.A, w.pop())
	case binary.OpLocalTee:
		v := w.pop()
		w.set(in.A, v)
		w.push(value{w.locals[in.A].typ, v.may})
	case binary.OpGlobalGet:
		w.push(value{typ: w.globals[in.A]})
	case binary.OpSelect, binary.OpSelectT:
		w.pop()
		y, x := w.pop(), w.pop()
		if x.typ == 0 {
			x = y
		}
		w.amend(in, x.typ)
		w.push(value{typ: x.typ})
	case binary.OpCall:
		w.call(w.funcs[in.A])
	case binary.OpCallIndirect:
		w.pop()
		w.call(in.A)
	default:
		w.plain(in)
	}
}

func (w *walker) open(in *binary.Instr) {
	if in.Op == binary.OpIf {
		w.pop()
	}
	b := block{dead: w.top().dead}
	switch {
	case in.Const >= 0:
		b.typ = w.m.Types[in.Const]
	case in.Const != binary.BlockEmpty:
		b.typ.Results = []binary.ValType{binary.BlockValue(in.Const)}
	}
	w.popN(len(b.typ.Params))
	b.height = len(w.stack)
	w.blocks = append(w.blocks, b)
	w.pushAll(b.typ.Params, unknown)
}

// rest are the instructions without a signature whose operands are not looked at: only
// their number and the type of the result count.
var rest = map[binary.Op]struct {
	pops   int
	result binary.ValType
}{
	binary.OpRefNull: {0, binary.FuncRef}, binary.OpRefFunc: {0, binary.FuncRef}, binary.OpRefIsNull: {1, binary.I32},
	binary.OpTableGet: {1, binary.FuncRef}, binary.OpTableSet: {2, 0}, binary.OpTableGrow: {2, binary.I32}, binary.OpTableFill: {3, 0},
}

// plain follows an instruction that has a type of its own.
func (w *walker) plain(in *binary.Instr) {
	op := in.Op
	sig := op.Signature()
	if sig == "" {
		r := rest[op]
		w.popN(r.pops)
		if r.result != 0 {
			w.push(value{typ: r.result})
		}
		return
	}
	w.amend(in, 0)
	var x, y value
	at := 0
	for ; sig[at] != ':'; at++ {
		x, y = w.pop(), x // the last one popped is the left side
	}
	if at+1 == len(sig) {
		return
	}
	v := value{typ: letter(sig[at+1])}
	switch {
	case (op == binary.OpI32Const || op == binary.OpI64Const) && in.Const == 0:
		v.may = zero
	case op == 0x71 || op == 0x83: // and
		v.may = and
	case op >= 0x74 && op <= 0x76 || op >= 0x86 && op <= 0x88: // shifts, by 0 perhaps
		v.may = x.may
	case op >= 0x48 && op <= 0x4f || op >= 0x53 && op <= 0x5a: // less, greater
		if w.arch == "amd64" && y.may&and != 0 && x.may&zero != 0 {
			w.edits = append(w.edits, edit{in.Pos, in.Pos, again(nil, letter(sig[0]))})
		}
	}
	w.push(v)
}

func letter(c byte) binary.ValType {
	switch c {
	case 'i':
		return binary.I32
	case 'l':
		return binary.I64
	case 'f':
		return binary.F32
	case 'd':
		return binary.F64
	}
	return binary.V128
}
