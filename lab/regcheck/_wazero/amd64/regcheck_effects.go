package amd64

import (
	"github.com/tetratelabs/wazero/internal/engine/wazevo/backend/regalloc"
	"github.com/tetratelabs/wazero/internal/engine/wazevo/backend/regcheck"
	"github.com/tetratelabs/wazero/internal/engine/wazevo/ssa"
)

// stated corrects e, which has what wazero says that i uses and defines, by what the
// processor does. Every kind that occurs before the allocation is named here.
func (c *allocation) stated(i *instruction, e *regcheck.Effect) {
	switch i.kind {
	case aluRmiR, shiftR, xmmRmiReg, xmmRmR, xmmRmRImm, cmove, blendvpd:
		// Operations of two operands: the second one, which is among the uses, gets the result.
		e.Writes = append(e.Writes, i.op2.reg())
	case xmmCMov:
		// A jump over a move: where it jumps, the destination stays what it was.
		e.Reads = append(e.Reads, i.op2.reg())
	case xmmUnaryRmR, xmmUnaryRmRImm, gprToXmm:
		if c.keepsUpper(i) {
			e.Writes, e.Merges = e.Writes[:0], append(e.Merges, i.op2.reg())
		}
	case neg:
		if i.op1.kind == operandKindReg {
			e.Writes = append(e.Writes, i.op1.reg())
		}
	case xchg, lockxadd:
		e.Writes = append(e.Writes, i.op1.reg()) // gets what the memory held
	case lockcmpxchg:
		e.Writes = append(e.Writes, raxVReg) // gets what the memory held
	case fcvtToSintSequence, fcvtToUintSequence:
		// The uses are the context of the execution, the source, and the registers to work
		// with, which are declared undefined before.
		e.Writes = append(e.Writes, e.Reads[2:]...)
	case idivRemSequence:
		// The dividend in rax and rdx becomes quotient and remainder, of which one is
		// defined; the last use is a register to work with.
		e.Writes = append(e.Writes, raxVReg, rdxVReg, e.Reads[4])
	case call, callIndirect:
		e.Call = true
	case nopUseReg:
		// It reads nothing: that a register is in use up to here is all that it says.
		e.Reads = e.Reads[:0]
	case defineUninitializedReg:
		e.Writes, e.Undefined = e.Writes[:0], append(e.Undefined, i.op2.reg())
	case nop0, ret, movRR, movRM, xmmMovRM, imm, unaryRmR, xmmCmpRmR, mov64MR, movsxRmR, movzxRmR, xmmToGpr, ud2, jmp, jmpIf,
		jmpTableIsland, cmpRmiR, exitSequence, exitIf, charge, lea, zeros, sourceOffsetInfo, mfence, tailCall, tailCallIndirect:
		// These do what wazero says of them.
	case setcc:
		// It writes one byte of a temporary, which a zero extension of that byte, or an and
		// with another such byte, follows: the others are not looked at.
	default:
		e.Unknown = "an instruction that is not known here"
	}
}

// keepsUpper reports whether an instruction on a scalar leaves the rest of a vector as it
// was, as movsd between registers does. Where the destination is a scalar, nobody looks at
// the rest; where it was declared undefined before (f64x2.splat), nothing is there to lose.
func (c *allocation) keepsUpper(i *instruction) bool {
	if v := i.op2.reg(); v.ID() < regalloc.VRegIDNonReservedBegin || c.m.c.TypeOf(v) != ssa.TypeV128 {
		return false
	}
	switch sseOpcode(i.u1) {
	case sseOpcodeMovss, sseOpcodeMovsd:
		return i.op1.kind == operandKindReg // a load clears the rest
	case sseOpcodeSqrtss, sseOpcodeSqrtsd, sseOpcodeRoundss, sseOpcodeRoundsd, sseOpcodeCvtss2sd, sseOpcodeCvtsd2ss,
		sseOpcodeCvtsi2ss, sseOpcodeCvtsi2sd:
		return true
	}
	return false
}
