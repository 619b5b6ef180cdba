package runtimes

import (
	"errors"
	"fmt"
	"slices"

	"openskill/wasm/binary"
)

// addresses is a range of a module's memory, without its end.
type addresses struct{ from, to uint32 }

// blanking says which initial data belongs to functions that were cut. The linker
// laid the data out as it did the functions, package after package, so what code
// names in a range tells whose it is.
type blanking struct {
	ranges []addresses
	// masks are constants of code that stays which look like addresses in the
	// ranges and are none: sets of bits, looked at one by one.
	masks []uint32
}

// blank takes initial data out of the module. It is an error if a function that
// stays names an address in it.
func (s *surgeon) blank(b *blanking) error {
	if len(b.ranges) == 0 {
		return nil
	}
	for i := range s.m.Codes {
		if f := s.imported + uint32(i); int(f) < len(s.cut) && s.cut[f] { // at most 100,000
			continue
		}
		c := &s.m.Codes[i]
		r := binary.NewReader(c.Body, c.Offset)
		for in := (binary.Instr{}); r.Next(&in); {
			if at, ok := named(&in); ok && b.has(at) && !slices.Contains(b.masks, at) {
				return fmt.Errorf("%s names the address %#x of data that was cut", s.names[s.imported+uint32(i)], at) // at most 100,000
			}
		}
		if err := r.Err(); err != nil {
			return err
		}
	}
	var kept []binary.Data
	for _, d := range s.m.Datas {
		if d.Mode != binary.Active {
			return errors.New("a data segment has no place of its own")
		}
		at, err := offset(d.Offset)
		if err != nil {
			return err
		}
		kept = b.split(kept, &d, at)
	}
	s.m.Datas = kept
	return nil
}

// named gives the address that an instruction may name: a constant, or the offset of
// an access.
func named(in *binary.Instr) (at uint32, ok bool) {
	imm := in.Op.Imm()
	ok = in.Op == binary.OpI32Const || imm == binary.ImmMem || imm == binary.ImmMemLane
	return uint32(in.Const), ok
}

func (b *blanking) has(at uint32) bool {
	return slices.ContainsFunc(b.ranges, func(r addresses) bool { return at >= r.from && at < r.to })
}

// split appends what is left of a segment at an address to dst.
func (b *blanking) split(dst []binary.Data, d *binary.Data, at uint32) []binary.Data {
	end := at + uint32(len(d.Init)) // within a memory
	add := func(from, to uint32) {
		if from < to {
			expr := binary.AppendS64([]byte{byte(binary.OpI32Const)}, int64(int32(from)))
			dst = append(dst, binary.Data{Offset: append(expr, byte(binary.OpEnd)), Init: d.Init[from-at : to-at]})
		}
	}
	from := at
	for _, r := range b.ranges { // in order
		add(from, min(max(r.from, from), end))
		from = max(from, min(r.to, end))
	}
	add(from, end)
	return dst
}

// offset is the value of the constant expression that says where a segment goes.
func offset(e binary.ConstExpr) (uint32, error) {
	r := binary.NewReader(e, 0)
	var in binary.Instr
	if !r.Next(&in) || in.Op != binary.OpI32Const {
		return 0, errors.New("a segment's place is not a constant")
	}
	return uint32(in.Const), nil
}
