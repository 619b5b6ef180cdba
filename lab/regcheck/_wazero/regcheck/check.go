package regcheck

import (
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero/internal/engine/wazevo/backend/regalloc"
)

// firstVirtual is the first number of a value; below it are the registers themselves, which
// calls and some instructions name.
const firstVirtual = regalloc.VRegIDNonReservedBegin

type checker struct {
	*Function
	slots  map[regalloc.VRegID]int // numbers of those in Slots
	callee uint64                  // registers that a callee leaves as they were
	saved  uint64
	states []*state // at each leader
	dirty  []bool
	place  map[int]int // of a leader among them
	effect Effect
	report bool
	faults []Fault
	told   map[string]bool
}

// Check gives the faults of a function.
func Check(f *Function) []Fault {
	c := &checker{Function: f, slots: map[regalloc.VRegID]int{}, place: map[int]int{}, told: map[string]bool{}}
	for v := range f.Slots {
		c.slots[v] = len(c.slots)
	}
	c.callee = uint64(f.Info.CalleeSavedRegisters)
	for _, v := range f.Saved {
		c.saved |= 1 << v.RealReg()
	}
	c.overlaps()
	f.Leaders = append(f.Leaders, 0)
	slices.Sort(f.Leaders)
	f.Leaders = slices.Compact(f.Leaders)
	for i, at := range f.Leaders {
		c.place[at] = i
	}
	c.states, c.dirty = make([]*state, len(f.Leaders)), make([]bool, len(f.Leaders))
	entry := &state{slot: make([]uint64, len(c.slots)/64+1)}
	for r, v := range f.Info.RealRegToVReg {
		if v.Valid() {
			entry.reg[r] = v.ID()
		}
	}
	c.states[0], c.dirty[0] = entry, true
	// Blocks are in an order in which most come behind those that lead to them.
	for again := true; again; {
		again = false
		for i := range c.dirty {
			if c.dirty[i] {
				again, c.dirty[i] = true, false
				c.block(i)
			}
		}
	}
	c.report = true
	for i := range c.states {
		if c.states[i] != nil {
			c.block(i)
		}
	}
	return c.faults
}

// overlaps holds that no two slots share a byte.
func (c *checker) overlaps() {
	type slot struct {
		at, end int64
		v       regalloc.VRegID
	}
	var all []slot
	for v, at := range c.Slots {
		all = append(all, slot{at, at + c.SlotSize(v), v})
	}
	slices.SortFunc(all, func(a, b slot) int { return int(a.at - b.at) })
	for i, s := range all {
		if s.end > c.SlotsEnd || i > 0 && s.at < all[i-1].end {
			c.fault(0, fmt.Sprintf("the slot of v%d at %d overlaps another one or the end", s.v, s.at))
		}
	}
}

// block follows the instructions from a leader to the next one.
func (c *checker) block(i int) {
	s := c.states[i].clone()
	for at := c.Leaders[i]; at < c.Instructions; at++ {
		if at > c.Leaders[i] {
			if _, ok := c.place[at]; ok {
				c.flow(at, s)
				return
			}
		}
		if !c.step(at, s) {
			return
		}
	}
}

// flow hands a state to where a path goes on.
func (c *checker) flow(to int, s *state) {
	i := c.place[to]
	switch {
	case c.report:
	case c.states[i] == nil:
		c.states[i], c.dirty[i] = s.clone(), true
	case c.states[i].meet(s):
		c.dirty[i] = true
	}
}

// step follows one instruction, and reports whether the next one follows.
func (c *checker) step(at int, s *state) bool {
	e := &c.effect
	e.reset()
	c.Effect(at, e)
	switch e.Kind {
	case Store:
		if w, bit, ok := c.slotOf(e.Value); ok {
			s.slot[w] &^= bit
			if s.reg[e.From] == e.Value {
				s.slot[w] |= bit
			}
		}
		return true
	case Load:
		s.reg[e.To] = nothing
		if w, bit, ok := c.slotOf(e.Value); ok && s.slot[w]&bit != 0 {
			s.reg[e.To] = e.Value
		}
		c.keeps(at, e.To)
		return true
	case Move:
		s.reg[e.To] = s.reg[e.From]
		c.keeps(at, e.To)
		return true
	case Swap:
		s.reg[e.To], s.reg[e.From] = s.reg[e.From], s.reg[e.To]
		c.keeps(at, e.To)
		c.keeps(at, e.From)
		return true
	}
	c.lowered(at, e, s)
	return !e.Ends
}

func (c *checker) lowered(at int, e *Effect, s *state) {
	if e.Unknown != "" && c.report {
		c.fault(at, e.Unknown)
	}
	for _, v := range e.Reads {
		c.read(at, v, s)
	}
	for _, v := range e.Merges {
		c.read(at, v, s)
	}
	if e.Call {
		for r := range s.reg {
			if c.callee&(1<<r) == 0 {
				s.reg[r] = nothing
			}
		}
	}
	for _, vs := range [][]regalloc.VReg{e.Writes, e.Merges, e.Undefined} {
		for _, v := range vs {
			if !c.outside(v) {
				c.define(s, v)
				c.keeps(at, v.RealReg())
			}
		}
	}
	for _, v := range e.Undefined {
		if v.ID() >= firstVirtual {
			s.undefined = append(s.undefined, v.ID())
		}
	}
	for _, to := range e.Jumps {
		c.flow(to, s)
	}
}

func (c *checker) outside(v regalloc.VReg) bool {
	r := v.RealReg()
	return int(r) >= len(state{}.reg) || uint64(c.Outside)&(1<<r) != 0
}

// read holds that a value is where an instruction reads it.
func (c *checker) read(at int, v regalloc.VReg, s *state) {
	r := v.RealReg()
	if !c.report || !v.Valid() || c.outside(v) || s.reg[r] == v.ID() || slices.Contains(s.undefined, v.ID()) {
		return
	}
	holds := "something else"
	if h := s.reg[r]; h != nothing {
		holds = c.name(h)
	}
	where := "and is nowhere else on every path"
	for other, h := range s.reg {
		if h == v.ID() {
			where = "and is in " + c.Info.RealRegName(regalloc.RealReg(other)) // below 64
		}
	}
	if w, bit, ok := c.slotOf(v.ID()); ok && s.slot[w]&bit != 0 {
		where = "and is in its slot of the stack"
	}
	c.fault(at, fmt.Sprintf("reads %s from %s, which holds %s; the value was defined before %s", c.name(v.ID()), c.Info.RealRegName(r), holds, where))
}

func (c *checker) name(v regalloc.VRegID) string {
	if v < firstVirtual {
		return "the register " + c.Info.RealRegName(regalloc.RealReg(v)) // below 128
	}
	return fmt.Sprintf("v%d (%s)", v, c.Type(v))
}

// keeps holds that a register that callers rely on is written only if the prologue saves it.
func (c *checker) keeps(at int, r regalloc.RealReg) {
	if c.report && c.callee&^c.saved&(1<<r) != 0 {
		c.fault(at, "writes "+c.Info.RealRegName(r)+", which callers rely on, and no prologue saves it")
	}
}
