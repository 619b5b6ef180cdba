package amend

import (
	"fmt"

	"openskill/wasm/binary"
)

// References has bodies take references to functions from a table of their own, which
// no instruction of the module can name. wazero v1.12.0 makes a new object for each
// execution of ref.func on a function of the module, and keeps it as long as the
// instance lives: a loop of three instructions takes 32 bytes of the host's memory each
// time, which no limit of the guest's bounds. In a table each function has one.
//
// References cannot be compared, so that nobody can tell the two apart. The height of
// operand stacks stays the same. The table counts, so this goes before metering. m must be
// valid, and is not changed.
func References(m *binary.Module) (*binary.Module, error) {
	slots := map[uint32]int64{} // by function
	var funcs []uint32
	table := m.Imported(binary.ExternTable) + uint32(len(m.Tables)) // at most Limits.Tables and Imports
	out := m
	for i := range m.Codes {
		c := &m.Codes[i]
		var body []byte
		from := 0
		r := binary.NewReader(c.Body, c.Offset)
		var in binary.Instr
		for r.Next(&in) {
			if in.Op != binary.OpRefFunc {
				continue
			}
			k, known := slots[in.A]
			if !known {
				k = int64(len(funcs))
				slots[in.A], funcs = k, append(funcs, in.A)
			}
			body = append(body, c.Body[from:in.Pos]...)
			body = binary.AppendS64(append(body, byte(binary.OpI32Const)), k)
			body = binary.AppendU32(append(body, byte(binary.OpTableGet)), table)
			from = in.End
		}
		if err := r.Err(); err != nil {
			return nil, fmt.Errorf("amend: %w", err)
		}
		if body == nil {
			continue
		}
		if out == m {
			changed := *m
			out = &changed
			out.Codes = append([]binary.Code(nil), m.Codes...)
		}
		out.Codes[i].Body = append(body, c.Body[from:]...)
	}
	if len(funcs) == 0 {
		return m, nil
	}
	n := uint32(len(funcs)) // at most Limits.Functions
	out.Tables = append(m.Tables[:len(m.Tables):len(m.Tables)], binary.TableType{Elem: binary.FuncRef, Extent: binary.Extent{Min: n, Max: n, HasMax: true}})
	out.Elems = append(m.Elems[:len(m.Elems):len(m.Elems)], binary.Elem{
		Mode: binary.Active, Table: table, Offset: binary.ConstExpr{byte(binary.OpI32Const), 0, 0x0b}, Type: binary.FuncRef, Funcs: funcs,
	})
	return out, nil
}
