// Package amend rewrites what wazero's compiler gets wrong, so that it gets it right.
//
// On amd64, v1.12.0 branches wrongly on a comparison whose left side is the constant 0
// and whose right side is the result of and: it tests the bits of the right side, as
// for 0 on the right, and then asks for less where it should ask for more.
//
//	i32.const 0  local.get $a  local.get $b  i32.and  i32.lt_u  br_if 0
//
// never branches. Where a comparison could be one of that kind, its right side goes
// through an or with 0, which the compiler does not look through:
//
//	… i32.and  i32.const 0  i32.or  i32.lt_u  br_if 0
//
// References to functions are taken from a table, see references.
//
// What a program computes stays the same, and all else stays byte for byte.
package amend

import (
	"fmt"

	"openskill/wasm/binary"
)

// Module gives m with its bodies amended; it must be valid, has no exceptions, and is
// not changed. maxStack is the height of the operand stack of each function, as package
// check gives it, and so is the result.
func Module(m *binary.Module, maxStack []uint32) (*binary.Module, []uint32, error) {
	out := m
	f := finder{m: m}
	for i := range m.Imports {
		if m.Imports[i].Kind == binary.ExternFunc {
			f.types = append(f.types, m.Imports[i].Type)
		}
	}
	f.types = append(f.types, m.Funcs...)
	for i := range m.Codes {
		body, err := f.function(i)
		if err != nil {
			return nil, nil, fmt.Errorf("amend: function %d: %w", i, err)
		}
		if body == nil {
			continue
		}
		if out == m {
			changed := *m
			out = &changed
			out.Codes = append([]binary.Code(nil), m.Codes...)
			maxStack = append([]uint32(nil), maxStack...)
		}
		out.Codes[i].Body = body
		if i < len(maxStack) {
			maxStack[i]++
		}
	}
	out, err := references(out)
	if err != nil {
		return nil, nil, fmt.Errorf("amend: %w", err)
	}
	return out, maxStack, nil
}

// may is what a value may be, as far as is known.
type may uint8

const (
	zero may = 1 << iota // the constant 0
	and                  // the result of and
)

const unknown = zero | and

// finder follows the values of one function after the other.
type finder struct {
	m      *binary.Module
	types  []uint32 // of all functions
	locals []may
	stack  []may // the top of the operand stack; below it nothing is known
	again  bool  // a local may be more than was taken for granted
	places []int // bytes before which a right side is to be changed
	wide   []bool
}

// function gives the new body of a function; nil if it stays as it is.
func (f *finder) function(i int) ([]byte, error) {
	c := &f.m.Codes[i]
	f.locals = append(f.locals[:0], make([]may, len(f.m.Types[f.m.Funcs[i]].Params))...)
	for _, g := range c.Locals {
		for range g.Count {
			f.locals = append(f.locals, zero) // what no one has set is a constant
		}
	}
	// A local may be what any local may be that it is set from, somewhere; values are
	// handed on from local to local only so often.
	for round := 0; ; round++ {
		if round == rounds {
			for l := range f.locals {
				f.locals[l] = unknown
			}
		}
		f.stack, f.places, f.wide, f.again = f.stack[:0], f.places[:0], f.wide[:0], false
		r := binary.NewReader(c.Body, c.Offset)
		var in binary.Instr
		for r.Next(&in) {
			f.instr(&in)
		}
		if err := r.Err(); err != nil {
			return nil, err
		}
		if len(f.places) == 0 && !f.again {
			return nil, nil
		}
		if !f.again {
			return f.changed(c.Body), nil
		}
	}
}

// rounds is how often a function is looked at before its locals may be anything.
const rounds = 8

func (f *finder) changed(body []byte) []byte {
	out := make([]byte, 0, len(body)+3*len(f.places))
	from := 0
	for i, at := range f.places {
		out = append(out, body[from:at]...)
		if f.wide[i] {
			out = append(out, byte(binary.OpI64Const), 0, 0x84)
		} else {
			out = append(out, byte(binary.OpI32Const), 0, 0x72)
		}
		from = at
	}
	return append(out, body[from:]...)
}

func (f *finder) push(m may) { f.stack = append(f.stack, m) }

func (f *finder) pop() may {
	n := len(f.stack)
	if n == 0 {
		return unknown
	}
	m := f.stack[n-1]
	f.stack = f.stack[:n-1]
	return m
}

func (f *finder) call(t uint32) {
	for range f.m.Types[t].Params {
		f.pop()
	}
	for range f.m.Types[t].Results {
		f.push(0)
	}
}

func (f *finder) set(l uint32, m may) {
	if f.locals[l]|m != f.locals[l] {
		f.locals[l] |= m
		f.again = true
	}
}

func (f *finder) instr(in *binary.Instr) {
	switch op := in.Op; {
	case op == binary.OpI32Const || op == binary.OpI64Const:
		m := may(0)
		if in.Const == 0 {
			m = zero
		}
		f.push(m)
	case op == 0x71 || op == 0x83: // and
		f.pop()
		f.pop()
		f.push(and)
	case op >= 0x74 && op <= 0x76 || op >= 0x86 && op <= 0x88: // shifts, by 0 perhaps
		f.pop()
		f.push(f.pop())
	case op >= 0x48 && op <= 0x4f || op >= 0x53 && op <= 0x5a: // less, greater
		y, x := f.pop(), f.pop()
		if y&and != 0 && x&zero != 0 {
			f.places, f.wide = append(f.places, in.Pos), append(f.wide, op >= 0x53)
		}
		f.push(0)
	case op == binary.OpLocalGet:
		f.push(f.locals[in.A])
	case op == binary.OpLocalSet:
		f.set(in.A, f.pop())
	case op == binary.OpLocalTee:
		m := f.pop()
		f.set(in.A, m)
		f.push(m)
	case op == binary.OpGlobalGet:
		f.push(0)
	case op == binary.OpGlobalSet || op == binary.OpDrop:
		f.pop()
	case op == binary.OpSelect || op == binary.OpSelectT:
		f.pop()
		f.pop()
		f.pop()
		f.push(0)
	case op == binary.OpCall:
		f.call(f.types[in.A])
	case op == binary.OpCallIndirect:
		f.pop()
		f.call(in.A)
	case !f.plain(op):
		f.stack = f.stack[:0] // what is on the stack may be what a block gives
	}
}

// plain follows an instruction that has a type of its own.
func (f *finder) plain(op binary.Op) bool {
	sig := op.Signature()
	if sig == "" {
		return false
	}
	at := 0
	for ; sig[at] != ':'; at++ {
		f.pop()
	}
	if at+1 < len(sig) {
		f.push(0)
	}
	return true
}
