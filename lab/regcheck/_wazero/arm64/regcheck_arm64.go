package arm64

import (
	"github.com/tetratelabs/wazero/internal/engine/wazevo/backend/regalloc"
	"github.com/tetratelabs/wazero/internal/engine/wazevo/backend/regcheck"
)

// checkAllocation has the registers checked that were just allocated.
func (m *machine) checkAllocation() {
	c := &allocation{m: m, labels: map[label]int{}}
	at := map[*instruction]int{}
	for i := m.rootInstr; i != nil; i = i.next {
		if i.kind == nop0 && i.nop0Label() != 0 {
			c.labels[i.nop0Label()] = len(c.all)
		}
		at[i] = len(c.all)
		c.all = append(c.all, i)
	}
	f := &regcheck.Function{
		Instructions: len(c.all),
		Effect:       c.effect,
		Text:         func(at int) string { return c.all[at].String() },
		Type:         func(v regalloc.VRegID) string { return m.compiler.TypeOf(regalloc.VReg(v)).String() },
		Info:         regInfo,
		Saved:        m.clobberedRegs,
		Slots:        m.spillSlots,
		SlotSize:     func(v regalloc.VRegID) int64 { return int64(m.compiler.TypeOf(regalloc.VReg(v)).Size()) },
		SlotsEnd:     m.spillSlotSize,
	}
	blocks := map[int]bool{}
	for _, pos := range m.orderedSSABlockLabelPos {
		c.labels[ssaBlockLabel(pos.sb)] = at[pos.begin]
		blocks[at[pos.begin]] = true
	}
	for _, place := range c.labels {
		f.Leaders = append(f.Leaders, place)
	}
	c.partial(blocks)
	regcheck.Report(f)
}

type allocation struct {
	m      *machine
	all    []*instruction
	labels map[label]int
	merges []bool // of the instructions that write a part of a register, those that keep something
	regs   []regalloc.VReg
}

// partial finds out which instructions that write a part of a register keep something in the
// rest: those whose destination was defined before in their block. Temporaries of a lowering
// do not outlive a block, and what is not defined in it may hold anything.
func (c *allocation) partial(blocks map[int]bool) {
	c.merges = make([]bool, len(c.all))
	defined := map[regalloc.VRegID]bool{}
	for at, i := range c.all {
		if blocks[at] {
			clear(defined)
		}
		if !i.addedBeforeRegAlloc {
			continue
		}
		defs := i.Defs(&c.regs)
		if partly(i) {
			c.merges[at] = defined[defs[0].ID()]
		}
		for _, d := range defs {
			defined[d.ID()] = true
		}
	}
}

// partly reports whether an instruction writes 16 bits or a lane of its destination.
func partly(i *instruction) bool {
	return i.kind == movK || i.kind == movToVec || i.kind == vecMovElement
}

func (c *allocation) effect(at int, e *regcheck.Effect) {
	i := c.all[at]
	if !i.addedBeforeRegAlloc {
		c.inserted(i, e)
		return
	}
	e.Reads = append(e.Reads, i.Uses(&c.regs)...)
	e.Writes = append(e.Writes, i.Defs(&c.regs)...)
	switch i.kind {
	case movK, movToVec, vecMovElement:
		if c.merges[at] {
			e.Writes, e.Merges = e.Writes[:0], append(e.Merges, i.rd)
		}
	case vecRRRRewrite, atomicCas:
		e.Writes = append(e.Writes, i.rd) // which is among the uses as well
	case call, callInd:
		e.Call = true
	case ret, exitSequence, udf, tailCall, tailCallInd:
		e.Ends = true
	case br:
		c.jump(i.brLabel(), e)
		e.Ends = true
	case condBr:
		c.jump(i.condBrLabel(), e)
	case brTableSequence:
		for _, l := range c.m.jmpTableTargets[i.u1] {
			c.jump(label(l), e)
		}
		e.Ends = true
	}
}

func (c *allocation) jump(to label, e *regcheck.Effect) {
	switch place, ok := c.labels[to]; {
	case ok:
		e.Jumps = append(e.Jumps, place)
	case to != labelReturn:
		e.Unknown = "jumps to a label that is nowhere"
	}
}

// inserted says what an instruction of the allocator's own does: regAllocFn makes them.
func (c *allocation) inserted(i *instruction, e *regcheck.Effect) {
	switch i.kind {
	case nop0:
	case store8, store16, store32, store64, fpuStore32, fpuStore64, fpuStore128:
		v := i.rn.nr()
		e.Kind, e.Value, e.From = regcheck.Store, v.ID(), v.RealReg()
	case uLoad8, uLoad16, uLoad32, uLoad64, fpuLoad32, fpuLoad64, fpuLoad128:
		e.Kind, e.Value, e.To = regcheck.Load, i.rd.ID(), i.rd.RealReg()
	case mov64, fpuMov64, fpuMov128:
		e.Kind, e.From, e.To = regcheck.Move, i.rn.nr().RealReg(), i.rd.RealReg()
	default:
		// The offset of a slot that is far away goes through a register that is not allocated;
		// a load of nothing says that it holds no value from here on.
		if i.rd.RealReg() != tmpRegVReg.RealReg() {
			e.Unknown = "inserted by the allocator, and not known here"
			return
		}
		e.Kind, e.To = regcheck.Load, i.rd.RealReg()
	}
}
