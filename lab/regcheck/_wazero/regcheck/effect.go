// Package regcheck checks an allocation of registers symbolically. It is laid into a copy
// of wazero, and shared by the backends there: each says what its instructions do, and this
// package follows which value each register and each slot of the stack holds, on every path
// of a function. An instruction that reads a value from a place that may hold another one is
// a fault.
//
// What instructions do is stated here anew, by what the processor does. The allocator works
// with what the backend says of them, which is what this check doubts.
package regcheck

import "github.com/tetratelabs/wazero/internal/engine/wazevo/backend/regalloc"

// Kind says where an instruction comes from.
type Kind byte

// The kinds: Lowered is an instruction of the program; the others were inserted by the
// allocator.
const (
	Lowered Kind = iota
	Store        // of Value, from From to its slot
	Load         // of Value, from its slot to To
	Move         // from From to To
	Swap         // of From and To
)

// Effect is what one instruction does.
type Effect struct {
	Kind     Kind
	Value    regalloc.VRegID
	From, To regalloc.RealReg

	Reads  []regalloc.VReg // each from its register
	Writes []regalloc.VReg // each to its register, after all was read
	// Merges are written in part only: what they held before is read as well, if they held
	// anything.
	Merges []regalloc.VReg
	// Undefined may hold anything from here on.
	Undefined []regalloc.VReg
	Call      bool  // overwrites every register that callees do not save
	Jumps     []int // places of instructions that may be next, beside the following one
	Ends      bool  // the following one is not next
	Unknown   string
}

func (e *Effect) reset() {
	*e = Effect{Reads: e.Reads[:0], Writes: e.Writes[:0], Merges: e.Merges[:0], Undefined: e.Undefined[:0], Jumps: e.Jumps[:0]}
}

// Function is an allocated function, as its backend shows it.
type Function struct {
	Instructions int
	Leaders      []int // places that jumps lead to, and where blocks begin
	Effect       func(at int, e *Effect)
	Text         func(at int) string
	Type         func(regalloc.VRegID) string
	Info         *regalloc.RegisterInfo
	Outside      regalloc.RegSet // registers that are not allocated, such as the stack pointer
	Saved        []regalloc.VReg // registers that the prologue saves
	Slots        map[regalloc.VRegID]int64
	SlotSize     func(regalloc.VRegID) int64
	SlotsEnd     int64
}
