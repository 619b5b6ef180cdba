package tune

import (
	"cmp"
	"slices"

	"openskill/wasm/binary"
)

// entries takes functions that do nothing but trap out of tables: an entry that is
// empty traps as well, and costs an instance nothing. A runtime that was cut out of a
// larger one has seven such entries for each that is used, and each takes 40 bytes of
// every instance.
//
// It holds for modules that only call through their tables, and whose segments lie
// inside them and beside each other; others are left alone. It gives the number of
// entries taken out.
func entries(m *binary.Module) int {
	traps := make([]bool, len(m.Codes))
	nimp := m.Imported(binary.ExternFunc)
	found := false
	for i := range m.Codes {
		b := m.Codes[i].Body
		traps[i] = len(b) == 2 && binary.Op(b[0]) == binary.OpUnreachable
		found = found || traps[i]
	}
	if !found || looked(m) || !apart(m) {
		return 0
	}
	stub := func(f uint32) bool { return f >= nimp && traps[f-nimp] }
	taken := 0
	var out []binary.Elem
	for _, s := range m.Elems {
		if s.Mode != binary.Active || s.Exprs != nil || !slices.ContainsFunc(s.Funcs, stub) {
			out = append(out, s)
			continue
		}
		at, _ := place(s.Offset)
		for from := 0; from < len(s.Funcs); {
			to := from
			for to < len(s.Funcs) && stub(s.Funcs[to]) == stub(s.Funcs[from]) {
				to++
			}
			if stub(s.Funcs[from]) {
				taken += to - from
			} else {
				part := s
				part.Funcs = s.Funcs[from:to:to]
				part.Offset = append(binary.AppendS64([]byte{byte(binary.OpI32Const)}, int64(int32(at)+int32(from))), byte(binary.OpEnd))
				out = append(out, part)
			}
			from = to
		}
	}
	if taken > 0 {
		m.Elems = out
	}
	return taken
}

// apart reports whether every active segment has a place of its own in its table: of
// two at one place the later one counts, whatever stands in it, and one that does not
// fit ends the instance.
func apart(m *binary.Module) bool {
	type span struct{ table, from, to uint32 }
	var spans []span
	imported := m.Imported(binary.ExternTable)
	for i := range m.Elems {
		s := &m.Elems[i]
		if s.Mode != binary.Active {
			continue
		}
		from, ok := place(s.Offset)
		to := uint64(from) + uint64(max(len(s.Funcs), len(s.Exprs)))
		if !ok || s.Table < imported || to > uint64(m.Tables[s.Table-imported].Min) {
			return false
		}
		spans = append(spans, span{s.Table, from, uint32(to)}) // within the table
	}
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.from, b.from))
	})
	for i := 1; i < len(spans); i++ {
		if a, b := spans[i-1], spans[i]; a.table == b.table && b.from < a.to {
			return false
		}
	}
	return true
}

// place reads an offset that is a constant.
func place(x binary.ConstExpr) (uint32, bool) {
	r := binary.NewReader(x, 0)
	var in binary.Instr
	if !r.Next(&in) || in.Op != binary.OpI32Const {
		return 0, false
	}
	at := uint32(in.Const)
	return at, r.Next(&in) && in.Op == binary.OpEnd
}

// looked reports whether an instruction looks at a table or at a segment, other than
// to call.
func looked(m *binary.Module) bool {
	for i := range m.Codes {
		r := binary.NewReader(m.Codes[i].Body, 0)
		var in binary.Instr
		for r.Next(&in) {
			switch in.Op {
			case binary.OpTableGet, binary.OpTableSet, binary.OpTableInit, binary.OpTableCopy, binary.OpTableGrow,
				binary.OpTableFill, binary.OpElemDrop:
				return true
			}
		}
	}
	return false
}
