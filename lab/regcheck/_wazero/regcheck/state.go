package regcheck

import (
	"slices"

	"github.com/tetratelabs/wazero/internal/engine/wazevo/backend/regalloc"
)

// nothing is what a register holds whose content no value stands for.
const nothing regalloc.VRegID = 0

// state is what is certain at a place of a function: which value a register holds, and which
// slots hold their value. Only the latest definition of a value counts.
type state struct {
	reg       [64]regalloc.VRegID
	slot      []uint64 // a bit for each slot
	undefined []regalloc.VRegID
}

func (s *state) clone() *state {
	return &state{reg: s.reg, slot: slices.Clone(s.slot), undefined: slices.Clone(s.undefined)}
}

// meet keeps what is certain on both paths, and reports whether that is less than before.
func (s *state) meet(o *state) (less bool) {
	for i := range s.reg {
		if s.reg[i] != nothing && s.reg[i] != o.reg[i] {
			s.reg[i], less = nothing, true
		}
	}
	for i, w := range s.slot {
		if w&^o.slot[i] != 0 {
			s.slot[i], less = w&o.slot[i], true
		}
	}
	n := len(s.undefined)
	s.undefined = slices.DeleteFunc(s.undefined, func(v regalloc.VRegID) bool { return !slices.Contains(o.undefined, v) })
	return less || len(s.undefined) < n
}

func (c *checker) slotOf(v regalloc.VRegID) (word int, bit uint64, ok bool) {
	n, ok := c.slots[v]
	return n / 64, 1 << (n % 64), ok
}

// forget ends what is held of a value: it gets a new definition.
func (c *checker) forget(s *state, v regalloc.VRegID) {
	for r := range s.reg {
		if s.reg[r] == v {
			s.reg[r] = nothing
		}
	}
	if w, bit, ok := c.slotOf(v); ok {
		s.slot[w] &^= bit
	}
	if i := slices.Index(s.undefined, v); i >= 0 {
		s.undefined = slices.Delete(s.undefined, i, i+1)
	}
}

func (c *checker) define(s *state, v regalloc.VReg) {
	c.forget(s, v.ID())
	s.reg[v.RealReg()] = v.ID()
}
