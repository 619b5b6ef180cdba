package wasmtest

import (
	"openskill/wasm/binary"
	"openskill/wasm/check"
)

var fiveThousand = []binary.LocalGroup{{Count: 5000, Type: TypeI32}}

// Bombs gives valid modules, within every cap on what is counted, that the compiler
// takes minutes or gigabytes for. Compiling cannot be interrupted, so the checker
// refuses them by its estimate.
func Bombs() []Case {
	var nested Code
	for range 4000 {
		nested = Block(nested + Get(0) + BrIf(0))
	}
	blocks := New()
	blocks.Command(Repeat(12, nested))

	wide := New()
	wide.Command(Repeat(60, Block(Get(0)+table(16_001, func(int) uint32 { return 0 }))))

	// None is too dear by itself.
	under := New()
	under.Memory(1)
	for range 200 {
		under.Void(Repeat(16_000, Get(0)+Load+Set(0)))
	}

	// Each block within reach of the one before, as short as they come.
	loops := New()
	loops.Command(Repeat(100_000, Loop()))

	// Every local goes through every merge.
	locals := New()
	known := locals.Func(nil, []binary.ValType{TypeI32}, nil, I32(1))
	locals.Func(nil, nil, fiveThousand, each(4000, func(i uint32) Code { return Call(known) + Set(i) })+
		Repeat(2000, Get(0)+If(Call(known)+Drop))+each(4000, func(i uint32) Code { return Get(i) + Drop }))

	// The addresses that were tested are copied from block to block.
	loads := New()
	loads.Memory(1)
	loads.Command(Repeat(40_000, Get(0)+Load+Set(0)) + Repeat(40_000, Get(0)+BrIf(0)))

	// Four bytes each, and five thousand locals to be written down.
	empty := New()
	for range 90_000 {
		empty.Func(nil, nil, fiveThousand, "")
	}

	// After a call, the compiler reads all globals anew.
	globals := New()
	for range 9000 {
		globals.Global(0)
	}
	globals.Command(Repeat(100_000, Call(globals.Void(""))))

	var cases []Case
	for _, c := range []struct {
		name string
		b    *Builder
	}{
		{"one function of 48,000 blocks", blocks},
		{"sixty br_table of 16,000 targets", wide},
		{"200 functions of 16,000 loads", under},
		{"one function of 100,000 loops", loops},
		{"4,000 locals through 2,000 ifs", locals},
		{"40,000 loads, then 40,000 branches", loads},
		{"90,000 functions of 5,000 locals", empty},
		{"100,000 calls beside 9,000 globals", globals},
	} {
		cases = append(cases, Case{Name: "W09 " + c.name, Module: c.b.Bytes(), Refused: check.ModuleTooComplex})
	}
	return append(cases, Case{Name: "W09 one function of 75,000 memory.copy", Module: OneLine(75_000), Refused: check.ModuleTooComplex})
}
