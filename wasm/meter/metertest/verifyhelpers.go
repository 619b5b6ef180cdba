package metertest

import (
	"bytes"

	"openskill/wasm/binary"
)

// The helpers that Rewrite adds stand behind the functions of the input, in this
// order; one for each table follows.
const (
	helperRefuel = iota
	helperEntries
	helperPages
	helperGrow
)

// A listing is a body written by hand, byte by byte, to compare with.
type listing []byte

func (l listing) op(b ...byte) listing              { return append(l, b...) }
func (l listing) index(op byte, i uint32) listing   { return binary.AppendU32(append(l, op), i) }
func (l listing) constant(op byte, c int64) listing { return binary.AppendS64(append(l, op), c) }

// helpers compares the added functions with listings of what they must be.
func (v *verifier) helpers() error {
	in, out := v.in, v.out
	imported := in.Imported(binary.ExternTable)
	tables := imported + uint32(len(in.Tables)) // at most Limits.Tables
	n := len(in.Codes)
	v.first = v.nimp + 1 + uint32(n) // at most Limits.Functions
	added := helperGrow + int(tables)
	if len(v.claim.Main) > 0 {
		added++ // behind the others
	}
	if len(out.Codes) != n+added {
		return broken("%d functions were added, %d expected", len(out.Codes)-n, added)
	}
	ask := v.nimp
	spend := func(l listing, local uint32) listing { // the rest of: fuel less what stands on the stack, tested
		l = l.op(0x7d).index(0x22, local).index(0x24, v.fuel).index(0x20, local)
		return l.constant(0x42, 0).op(0x53, 0x04, 0x40).constant(0x42, 0).index(0x10, v.first+helperRefuel).op(0x0b)
	}
	begin := func() listing { return listing{}.index(0x23, v.fuel) }
	refuel := begin().index(0x20, 0).index(0x10, ask).index(0x24, v.fuel).op(0x0b)
	entries := spend(begin().index(0x20, 0).op(0xad), 1).index(0x20, 0)
	pages := listing{}.index(0x20, 0).op(0x40, 0).index(0x21, 0)
	if len(in.Memories) == 1 && !in.Memories[0].HasMax { // the host hears of growth beyond 4 GiB
		pages = pages.index(0x20, 0).constant(0x41, -1).op(0x46, 0x04, 0x40)
		pages = pages.constant(0x42, -1<<63+1).index(0x10, v.first+helperRefuel).op(0x0b)
	}
	pages = pages.index(0x23, v.fuel).op(0x3f, 0).index(0x20, 0).op(0x6b, 0xad).constant(0x42, 13).op(0x86).
		constant(0x42, 0).index(0x20, 0).constant(0x41, -1).op(0x47, 0x1b, 0x7d).constant(0x42, 256)
	pages = spend(pages, 1).index(0x20, 0).op(0x0b)
	if !hasMemory(in) {
		pages = listing{}.index(0x20, 0).op(0x0b)
	}

	i32, i64 := []binary.ValType{binary.I32}, []binary.ValType{binary.I64}
	if err := v.helper(helperRefuel, i64, nil, refuel); err != nil {
		return err
	}
	if err := v.helper(helperEntries, i32, i32, append(entries[:len(entries):len(entries)], 0x0b)); err != nil {
		return err
	}
	if err := v.helper(helperPages, i32, i32, pages); err != nil {
		return err
	}
	for k := range tables {
		beyond := func(l listing, most int64) listing {
			return listing(binary.AppendU32(l.op(0xfc, 0x10), k)).op(0xad).index(0x20, 0).op(0xad, 0x7c).constant(0x42, most).op(0x56)
		}
		want := listing{}
		if limit, ok := v.tableCap(k, imported); ok {
			want = beyond(want, limit).op(0x04, 0x40).constant(0x42, -1<<63).index(0x10, v.first+helperRefuel).op(0x0b)
			want = append(want, entries...)
		} else if k < imported {
			want = append(want, entries...)
		} else { // what the table's own maximum refuses costs nothing
			want = spend(beyond(begin().constant(0x42, 0).index(0x20, 0).op(0xad), int64(out.Tables[k-imported].Max)).op(0x1b), 1).index(0x20, 0)
		}
		want = want.op(0x0b)
		if err := v.helper(helperGrow+k, i32, i32, want); err != nil {
			return err
		}
	}
	return v.main()
}

// main compares the function that calls those of the claim.
func (v *verifier) main() error {
	fs := v.claim.Main
	if len(fs) == 0 {
		return nil
	}
	want := listing{}
	for i, f := range fs {
		t := v.in.FuncType(f)
		if len(t.Params) > 0 || len(t.Results) > 1 || len(t.Results) == 1 && t.Results[0] != binary.I32 {
			return broken("the main function calls function %d, which has another type", f)
		}
		want = want.index(0x10, v.at(f))
		if len(t.Results) > 0 {
			want = want.index(0x21, 0)
		}
		want = want.index(0x23, v.fuel)
		if i < len(fs)-1 {
			want = want.constant(0x42, -1<<63+1<<40)
		} else {
			want = want.constant(0x42, -1<<63+2<<40).index(0x20, 0).op(0xad, 0x84)
		}
		want = want.index(0x10, v.nimp).index(0x24, v.fuel)
	}
	last := len(v.out.Codes) - 1
	c := &v.out.Codes[last]
	if !v.hasType(v.out.Funcs[last], nil, nil) || len(c.Locals) != 1 || c.Locals[0] != (binary.LocalGroup{Count: 1, Type: binary.I32}) {
		return broken("the main function has another type or other locals")
	}
	if !bytes.Equal(c.Body, want.op(0x0b)) {
		return broken("the main function is not what it must be: % x, expected % x", c.Body, []byte(want.op(0x0b)))
	}
	return nil
}

func (v *verifier) helper(i uint32, params, results []binary.ValType, want listing) error {
	n := len(v.in.Codes) + int(i)
	c := &v.out.Codes[n]
	if !v.hasType(v.out.Funcs[n], params, results) {
		return broken("helper %d has another type", i)
	}
	if i >= helperEntries && (len(c.Locals) != 1 || c.Locals[0] != binary.LocalGroup{Count: 1, Type: binary.I64}) ||
		i < helperEntries && len(c.Locals) != 0 {
		return broken("helper %d has other locals", i)
	}
	if !bytes.Equal(c.Body, want) {
		return broken("helper %d is not what it must be: % x, expected % x", i, c.Body, []byte(want))
	}
	return nil
}

// tableCap gives the number of entries beyond which growing table k must end the
// run: its maximum in the output, unless that is the module's own or the table
// begins with more.
func (v *verifier) tableCap(k, imported uint32) (int64, bool) {
	if k < imported {
		return 0, false
	}
	a, b := v.in.Tables[k-imported], v.out.Tables[k-imported]
	if a == b && a.HasMax {
		return 0, false
	}
	if b.Max > b.Min {
		return int64(b.Max), true
	}
	// Which cap below the minimum was meant cannot be seen from the table: any is
	// as good, as long as the helper ends every growth.
	return min(v.capOf(k), int64(b.Min)), true
}

// capOf reads the constant that the helper of table k compares with; -1 if it
// compares with none.
func (v *verifier) capOf(k uint32) int64 {
	r := binary.NewReader(v.out.Codes[len(v.in.Codes)+helperGrow+int(k)].Body, 0)
	last := int64(-1)
	for in := (binary.Instr{}); r.Next(&in); {
		switch in.Op {
		case binary.OpI64Const:
			last = in.Const
		case 0x56: // i64.gt_u
			return last
		}
	}
	return -1
}

func hasMemory(m *binary.Module) bool {
	return m.Imported(binary.ExternMemory) > 0 || len(m.Memories) > 0
}
