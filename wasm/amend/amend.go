// Package amend rewrites what wazero's compiler gets wrong, so that it gets it right.
// What a program computes stays the same, and all else stays byte for byte.
//
// [Module] goes last, over the module that the compiler gets: a pass behind it could
// take apart what it put together. The faults of v1.12.0 are of two kinds.
//
// # A comparison with 0 on its left
//
// On amd64 a branch on a comparison whose left side is the constant 0 and whose right
// side is the result of and is wrong: the compiler tests the bits of the right side, as
// for 0 on the right, and then asks for less where it should ask for more.
//
//	i32.const 0  local.get $a  local.get $b  i32.and  i32.lt_u  br_if 0
//
// never branches. Where a comparison could be one of that kind, its right side goes
// through an or with 0, which the compiler does not look through.
//
// # Operands that are loaded in the middle of a sequence
//
// The compiler makes several machine instructions of one of these instructions, and
// tells the register allocator less than they do: that they change a register, that they
// read one, or that a branch among them leaves one of them out. Where an operand was put
// on the stack and has to be loaded in between, a value is lost: the result, or the
// operand later on, is what another register holds, which can be what the host left in
// it, an address of the host's, or an address in the memory that nothing has tested.
//
// So such an instruction is computed with others, of each of which the compiler makes one
// machine instruction, or a copy, a change of the copy, and a copy of that, between which
// nothing else takes a register. Then it is right however few registers there are:
//
//	f32.copysign  becomes  x & 0x7fffffff | y & 0x80000000, as integers
//
// To define an operand again right before the instruction, so that it is in a register, is not
// enough: values that a loop keeps can hold all registers but two.
// Which instructions these are, the tables in shapes.go say for each processor.
//
// A function gets some locals more. Fuel is counted before, so it does not depend on the
// processor.
//
// References to functions are taken from a table, see [References].
package amend

import (
	"fmt"

	"openskill/wasm/binary"
)

// Module gives m with its bodies amended for the compiler of a processor, by its name in
// Go; it must be valid, has no exceptions, and is not changed.
func Module(m *binary.Module, arch string) (*binary.Module, error) {
	w := walker{m: m, arch: arch}
	if arch != "amd64" && arch != "arm64" {
		return m, nil // no compiler
	}
	for i := range m.Imports {
		switch m.Imports[i].Kind {
		case binary.ExternFunc:
			w.funcs = append(w.funcs, m.Imports[i].Type)
		case binary.ExternGlobal:
			w.globals = append(w.globals, m.Imports[i].Global.Type)
		default:
		}
	}
	w.funcs = append(w.funcs, m.Funcs...)
	for i := range m.Globals {
		w.globals = append(w.globals, m.Globals[i].Type)
	}
	out := m
	for i := range m.Codes {
		if err := w.function(i); err != nil {
			return nil, fmt.Errorf("amend: function %d: %w", i, err)
		}
		if len(w.edits) == 0 {
			continue
		}
		if out == m {
			changed := *m
			out = &changed
			out.Codes = append([]binary.Code(nil), m.Codes...)
		}
		c := &out.Codes[i]
		c.Body = w.body(c.Body)
		c.Locals = append(c.Locals[:len(c.Locals):len(c.Locals)], w.extra...)
	}
	return out, nil
}

// edit replaces the bytes [at, end) of a body.
type edit struct {
	at, end int
	code    []byte
}

func (w *walker) body(old []byte) []byte {
	n := len(old)
	for i := range w.edits {
		n += len(w.edits[i].code)
	}
	out := make([]byte, 0, n)
	from := 0
	for i := range w.edits {
		e := &w.edits[i]
		out = append(append(out, old[from:e.at]...), e.code...)
		from = e.end
	}
	return append(out, old[from:]...)
}
