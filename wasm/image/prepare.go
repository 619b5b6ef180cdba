package image

import (
	"strconv"

	"openskill/wasm/binary"
)

// The names that Prepare adds. A module that uses names with this prefix must be
// refused before.
const (
	// ExportGlobal is the name of the first mutable global that the module defines,
	// followed by its number among them: "openskill:global:0".
	ExportGlobal = "openskill:global:"
	// ExportTouched names an i32 that is not 0 once a table was changed or a segment
	// dropped. The module has one only if it has an instruction for that.
	ExportTouched = "openskill:touched"
)

// GlobalName is the name of mutable global i.
func GlobalName(i int) string { return ExportGlobal + strconv.Itoa(i) }

// Prepared is a module whose instances can be frozen, or why they cannot.
type Prepared struct {
	Module   *binary.Module
	MaxStack []uint32
	// Unfit says why instances of this module cannot be frozen; "" if they can.
	Unfit string
}

// Prepare makes a module's state reachable: what the host does not see it cannot
// put back. maxStack is the height of the operand stack of each function, as
// package check gives it. The input is not changed, and the result shares its data.
//
// Memory needs nothing, the host provides it. Mutable globals become exports.
// Tables and segments are not copied: before each instruction that changes one a
// mark is set, and an instance with the mark is not used again.
func Prepare(m *binary.Module, maxStack []uint32) *Prepared {
	p := &Prepared{Module: m, MaxStack: maxStack}
	if len(m.Memories) == 0 {
		p.Unfit = "the module has no memory"
		return p
	}
	out := *m
	out.Exports = append([]binary.Export(nil), m.Exports...)
	first := m.Imported(binary.ExternGlobal)
	n := 0
	for i := range m.Globals {
		g := &m.Globals[i]
		if !g.Mutable {
			continue
		}
		if g.Type == binary.V128 {
			p.Unfit = "the module has a mutable global of type v128"
			return p
		}
		out.Exports = append(out.Exports, binary.Export{Name: GlobalName(n), Kind: binary.ExternGlobal, Index: first + uint32(i)}) // at most Limits.Globals
		n++
	}
	touched := first + uint32(len(m.Globals)) // at most Limits.Globals
	found := false
	for i := range m.Codes {
		body := mark(m.Codes[i].Body, touched)
		if body == nil {
			continue
		}
		if !found {
			found = true
			out.Codes = append([]binary.Code(nil), m.Codes...)
			p.MaxStack = append([]uint32(nil), maxStack...)
		}
		out.Codes[i].Body = body
		if i < len(p.MaxStack) {
			p.MaxStack[i]++
		}
	}
	if found {
		out.Globals = append(m.Globals[:len(m.Globals):len(m.Globals)], binary.Global{
			GlobalType: binary.GlobalType{Type: binary.I32, Mutable: true},
			Init:       binary.ConstExpr{byte(binary.OpI32Const), 0, byte(binary.OpEnd)},
		})
		out.Exports = append(out.Exports, binary.Export{Name: ExportTouched, Kind: binary.ExternGlobal, Index: touched})
	}
	p.Module = &out
	return p
}

// changes reports whether an instruction changes a table, or drops a segment.
func changes(op binary.Op) bool {
	switch op {
	case binary.OpTableSet, binary.OpTableGrow, binary.OpTableFill, binary.OpTableCopy, binary.OpTableInit,
		binary.OpElemDrop, binary.OpDataDrop:
		return true
	}
	return false
}

// mark sets the global before each instruction that changes something; nil if
// there is none.
func mark(body []byte, global uint32) []byte {
	var out []byte
	from := 0
	r := binary.NewReader(body, 0)
	var in binary.Instr
	for r.Next(&in) {
		if !changes(in.Op) {
			continue
		}
		out = append(out, body[from:in.Pos]...)
		out = append(out, byte(binary.OpI32Const), 1)
		out = binary.AppendU32(append(out, byte(binary.OpGlobalSet)), global)
		from = in.Pos
	}
	if out == nil {
		return nil
	}
	return append(out, body[from:]...)
}
