package lower

import (
	"openskill/wasm/binary"
)

// operands follows the types of the operands of one function, where it matters:
// drop and ref.is_null do not say whether they mean an exnref. The function is
// valid and unreachable code is left out, so that the type of every operand is
// known.
type operands struct {
	l      *lowerer
	on     bool
	vals   []binary.ValType
	locals []binary.ValType
}

func (s *operands) set(l *lowerer, i int) {
	f := &l.fns[i]
	s.l, s.on, s.vals, s.locals = l, f.touched && (f.isNull || l.several()), s.vals[:0], s.locals[:0]
	if !s.on {
		return
	}
	s.locals = append(s.locals, l.m.Types[l.m.Funcs[i]].Params...)
	for _, g := range l.m.Codes[i].Locals {
		for range g.Count {
			s.locals = append(s.locals, g.Type)
		}
	}
}

func (s *operands) depth() int { return len(s.vals) }

func (s *operands) top() binary.ValType {
	if len(s.vals) == 0 {
		return 0
	}
	return s.vals[len(s.vals)-1]
}

func (s *operands) pop(n int) {
	if s.on {
		s.vals = s.vals[:len(s.vals)-n]
	}
}

// params counts what a block takes.
func (s *operands) params(c int64) int {
	if !s.on || c < 0 {
		return 0
	}
	return len(s.l.m.Types[c].Params)
}

// otherwise begins the else arm of an if.
func (s *operands) otherwise(f *frame) {
	if !s.on {
		return
	}
	s.vals = s.vals[:f.base]
	if f.typ >= 0 {
		s.vals = append(s.vals, s.l.m.Types[f.typ].Params...)
	}
}

// close leaves a block with what it gives.
func (s *operands) close(f *frame) {
	if !s.on {
		return
	}
	s.vals = s.vals[:f.base]
	switch {
	case f.typ >= 0:
		s.vals = append(s.vals, s.l.m.Types[f.typ].Results...)
	case f.typ != binary.BlockEmpty:
		s.vals = append(s.vals, binary.BlockValue(f.typ))
	}
}

var letters = [256]binary.ValType{'i': binary.I32, 'l': binary.I64, 'f': binary.F32, 'd': binary.F64, 'v': binary.V128}

// effect carries the stack over an instruction that ends no block and opens none.
func (s *operands) effect(in *binary.Instr) {
	if !s.on {
		return
	}
	if sig := in.Op.Signature(); sig != "" {
		at := 0
		for sig[at] != ':' {
			at++
		}
		s.pop(at)
		for _, c := range []byte(sig[at+1:]) {
			s.vals = append(s.vals, letters[c])
		}
		return
	}
	m := s.l.m
	switch in.Op {
	case binary.OpLocalGet:
		s.vals = append(s.vals, s.locals[in.A])
	case binary.OpGlobalGet:
		s.vals = append(s.vals, s.l.globals[in.A])
	case binary.OpLocalSet, binary.OpGlobalSet, binary.OpDrop, binary.OpBrIf:
		s.pop(1)
	case binary.OpSelect, binary.OpSelectT:
		s.pop(2) // one of the two that are left behind the condition, which have one type
	case binary.OpCall:
		s.call(&m.Types[s.l.typeOf(in.A)])
	case binary.OpCallIndirect:
		s.pop(1)
		s.call(&m.Types[in.A])
	case binary.OpTableGet:
		s.pop(1)
		s.vals = append(s.vals, s.l.tables[in.A])
	case binary.OpTableSet:
		s.pop(2)
	case binary.OpTableGrow:
		s.pop(2)
		s.vals = append(s.vals, binary.I32)
	case binary.OpTableFill:
		s.pop(3)
	case binary.OpRefNull:
		s.vals = append(s.vals, binary.ValType(in.A))
	case binary.OpRefIsNull:
		s.pop(1)
		s.vals = append(s.vals, binary.I32)
	case binary.OpRefFunc:
		s.vals = append(s.vals, binary.FuncRef)
	}
}

func (s *operands) call(t *binary.FuncType) {
	s.pop(len(t.Params))
	s.vals = append(s.vals, t.Results...)
}
