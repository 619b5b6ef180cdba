package amd64

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
		Type:         func(v regalloc.VRegID) string { return m.c.TypeOf(regalloc.VReg(v)).String() },
		Info:         regInfo,
		Outside:      regalloc.NewRegSet(rsp, rbp),
		Saved:        m.clobberedRegs,
		Slots:        m.spillSlots,
		SlotSize:     func(v regalloc.VRegID) int64 { return int64(m.c.TypeOf(regalloc.VReg(v)).Size()) },
		SlotsEnd:     m.spillSlotSize,
	}
	if m.fuelInRegister {
		f.Info, f.Outside = fuelRegInfo, regalloc.NewRegSet(rsp, rbp, fuelVReg.RealReg())
	}
	for _, pos := range m.orderedSSABlockLabelPos {
		c.labels[ssaBlockLabel(pos.sb)] = at[pos.begin]
	}
	for _, place := range c.labels {
		f.Leaders = append(f.Leaders, place)
	}
	regcheck.Report(f)
}

type allocation struct {
	m      *machine
	all    []*instruction
	labels map[label]int
	regs   []regalloc.VReg
}

func (c *allocation) effect(at int, e *regcheck.Effect) {
	i := c.all[at]
	if !i.addedBeforeRegAlloc {
		c.inserted(i, e)
		return
	}
	e.Reads = append(e.Reads, i.Uses(&c.regs)...)
	e.Writes = append(e.Writes, i.Defs(&c.regs)...)
	c.stated(i, e)
	switch i.kind {
	case ret, exitSequence, ud2, tailCall, tailCallIndirect:
		e.Ends = true
	case jmp:
		// Without a label it goes through a table, whose targets the next instruction has.
		if i.op1.kind == operandKindLabel {
			c.jump(i.op1.label(), e)
			e.Ends = true
		}
	case jmpIf:
		if i.op1.kind == operandKindLabel {
			c.jump(i.op1.label(), e)
		}
	case jmpTableIsland:
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
	switch {
	case i.kind == nop0:
	case i.kind == movRM || i.kind == xmmMovRM:
		v := i.op1.reg()
		e.Kind, e.Value, e.From = regcheck.Store, v.ID(), v.RealReg()
	case i.kind == movzxRmR || i.kind == mov64MR || i.kind == xmmUnaryRmR && i.op1.kind == operandKindMem:
		v := i.op2.reg()
		e.Kind, e.Value, e.To = regcheck.Load, v.ID(), v.RealReg()
	case i.kind == movRR || i.kind == xmmUnaryRmR:
		e.Kind, e.From, e.To = regcheck.Move, i.op1.reg().RealReg(), i.op2.reg().RealReg()
	case i.kind == xchg:
		e.Kind, e.From, e.To = regcheck.Swap, i.op1.reg().RealReg(), i.op2.reg().RealReg()
	default:
		e.Unknown = "inserted by the allocator, and not known here"
	}
}
