package wasmtest

import "openskill/wasm/check"

// Disguised gives modules whose bytes are other instructions to who reads them in
// another way than package binary does.
func Disguised() []Case {
	// i16x8.shr_s is number 0x8c behind the prefix of vectors, and v128.const is 0x0c,
	// which may be written as 0x8c 0x00. Who takes the first byte for the number finds
	// a shift, a trap, and sixteen instructions that nobody has paid for.
	b := New()
	exit := b.Import("proc_exit")
	b.Memory(1)
	hidden := "\x0b" + I32(42) + Call(exit) + "\x02\x40" + Unreachable // out of the block, and into another one
	hidden += Repeat(16-len(hidden), Nop)
	b.Command(Block(I32(1) + BrIf(0) +
		I32(0) + "\xfd\x0f" + I32(0) + "\xfd\x8c\x00" + hidden + Drop + Drop + Drop))
	return []Case{
		{Name: "W17 instructions inside a constant", Module: b.Bytes(), Refused: check.InvalidModule},
	}
}
