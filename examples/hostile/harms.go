package hostile

import (
	"fmt"
	"time"

	"openskill/sdk/skill"
	asm "openskill/wasm/wasmtest"
)

// CanaryData is what a canary answers.
const CanaryData = `{"canary": true}`

// Canary is a skill that does right, for whoever wants to see that others are still
// served.
func Canary() *Upload {
	c := ofModule(Case{Name: "canary", Limits: skill.Limits{Timeout: 5 * time.Second}}, prints(CanaryData))
	return c.Upload()
}

// The harms that a skill of [Harmful] does, by the number in its input.
const (
	Harmless = iota
	Loops
	Recurses
	Grows
	Prints
	Fills
	Sleeps
	Draws // randomness
	Calls // without a loop
	harms
)

// Harm is the input of [Harmful] for the i-th call of many: each harm in turn, and now
// and then none, since a host may take a skill away that never does well.
func Harm(i int) []byte { return fmt.Appendf(nil, `{"n": %d}`, i%harms) }

// HarmOf is the input for one harm.
func HarmOf(harm int) []byte { return fmt.Appendf(nil, `{"n": %d}`, harm) }

// HarmEnds are the codes that a call of [Harmful] may end with.
func HarmEnds() []skill.Code {
	return []skill.Code{
		"", skill.Timeout, skill.FuelExhausted, skill.StackLimit, skill.MemoryLimit, skill.OutputLimit,
	}
}

// harmAt is where the digit stands in the standard input, {"input":{"n": 1},…
const harmAt = len(`{"input":{"n": `)

// Harmful is one skill that does any of the harms, and ends within timeout.
func Harmful(name string, timeout time.Duration) *Upload {
	c := ofModule(Case{Name: name, Limits: skill.Limits{Timeout: timeout, Memory: 64 << 20}}, harmful)
	return c.Upload()
}

func harmful() []byte {
	g := newGuest(16, "fd_read", "poll_oneoff", "random_get")
	input := g.numbers(512, 256)
	sleep := g.numbers(1, 0, 0, 0, 1, 0, 0x1a000000, 0x13a, 0, 0, 0, 0)
	text := g.text("never-ending words\n")
	words := g.numbers(text, 19)
	const page = 1 << 16

	recursion := g.Void(asm.Call(g.Next()))
	tree := g.Void("")
	for range 59 {
		tree = g.Void(asm.Call(tree) + asm.Call(tree))
	}
	of := map[int]asm.Code{
		Loops:    asm.Loop(asm.Br(0)),
		Recurses: asm.Call(recursion),
		Grows: asm.Loop(asm.I32(1) + asm.MemoryGrow + asm.Tee(0) + asm.I32(-1) + asm.Eq + asm.If(asm.Unreachable) +
			asm.Get(0) + asm.I32(page) + asm.Mul + asm.I32(7) + asm.I32(page) + asm.MemoryFill + asm.Br(0)),
		Prints: asm.Loop(g.call("fd_write", asm.I32(1), asm.I32(words), asm.I32(1), asm.I32(0)) + asm.Drop + asm.Br(0)),
		Fills:  asm.Loop(asm.I32(page) + asm.I32(1) + asm.I32(8*page) + asm.MemoryFill + asm.Br(0)),
		Sleeps: g.call("poll_oneoff", asm.I32(sleep), asm.I32(256), asm.I32(1), asm.I32(0)) + asm.Drop,
		Draws:  asm.Loop(g.call("random_get", asm.I32(page), asm.I32(8*page)) + asm.Drop + asm.Br(0)),
		Calls:  asm.Call(tree),
	}
	var c asm.Code
	for harm := 1; harm < harms; harm++ {
		c += asm.Get(2) + asm.I32(int64('0'+harm)) + asm.Eq + asm.If(of[harm])
	}
	g.Command(g.call("fd_read", asm.I32(0), asm.I32(input), asm.I32(1), asm.I32(0)) + asm.Drop +
		asm.I32(512+int64(harmAt)) + asm.Load8 + asm.Set(2) + c + g.print("{}"))
	return g.Bytes()
}
