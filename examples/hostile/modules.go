package hostile

import (
	"encoding/hex"
	"fmt"

	"openskill/sdk/skill"
	"openskill/wasm/binary"
	asm "openskill/wasm/wasmtest"
)

func raw(s string) func() []byte {
	return func() []byte {
		b, err := hex.DecodeString(s)
		if err != nil {
			panic(err)
		}
		return b
	}
}

func command(c asm.Code) func() []byte {
	return func() []byte {
		b := asm.New()
		b.Memory(1)
		b.Command(c)
		return b.Bytes()
	}
}

func importing(module, name string, params ...binary.ValType) func() []byte {
	return func() []byte {
		b := asm.New()
		b.ImportFunc(module, name, params, nil)
		b.Command("")
		return b.Bytes()
	}
}

// tooLarge are what a module beyond every cap may be refused with: a host may look at
// the size of the upload first.
func tooLarge() []skill.Code {
	return []skill.Code{skill.ModuleTooComplex, skill.PayloadTooLarge, skill.ArchiveRejected}
}

// modules are the W cases: what a checker must refuse.
func modules() []Case {
	var all []Case
	add := func(name string, module func() []byte, codes ...skill.Code) {
		all = append(all, ofModule(Case{Name: name, Promise: Admission, Limit: "refused by the checker", Refused: codes}, module))
	}
	add("W01 import count of 2^32-1", raw("0061736d010000000205ffffffff0f"), skill.InvalidModule)
	add("W02 export count of 2^32-1", raw("0061736d010000000705ffffffff0f"), skill.InvalidModule)
	add("W03 type count of 2^32-1", raw("0061736d010000000105ffffffff0f"), skill.InvalidModule)
	add("W04 parameter count of 2^32-1", raw("0061736d0100000001070160ffffffff0f"), skill.InvalidModule)
	add("W05 name count of 2^32-1", raw("0061736d01000000000c046e616d650105ffffffff0f"), skill.InvalidModule)
	add("W06 2^32-1 locals", raw("0061736d01000000010401600000030201000a0a010801ffffffff0f7e0b"), skill.ModuleTooComplex)
	add("W07 a million nested blocks", command(asm.Repeat(1_000_000, "\x02\x40")+asm.Repeat(1_000_000, "\x0b")), tooLarge()...)
	add("W07 340,000 nested blocks", command(asm.Repeat(340_000, "\x02\x40")+asm.Repeat(340_000, "\x0b")), skill.ModuleTooComplex)
	add("W08 br_table of a million", command(branches(1_000_000)), tooLarge()...)
	for _, c := range asm.Bombs() {
		add(c.Name, ready(c.Module), skill.ModuleTooComplex)
	}
	for i, c := range asm.Disguised() {
		add(c.Name, func() []byte { return asm.Disguised()[i].Module }, skill.InvalidModule)
	}
	whole := importing("wasi_snapshot_preview1", "proc_exit", binary.I32)()
	for _, n := range []int{0, 3, 9, 15, 21, 33, 45, 57, len(whole) - 1} {
		add(fmt.Sprintf("W10 cut at byte %d", n), ready(whole[:min(n, len(whole)-1)]), skill.InvalidModule)
	}
	add("W11 500,000 empty functions", func() []byte {
		b := asm.New()
		for range 500_000 {
			b.Func(nil, nil, nil, "")
		}
		return b.Bytes()
	}, tooLarge()...)
	add("W12 60 MiB of custom sections", func() []byte {
		b := asm.New()
		b.Custom(".debug_info", make([]byte, 60<<20))
		b.Command("")
		return b.Bytes()
	}, tooLarge()...)
	for _, f := range features() {
		add("W13 "+f.name, f.module, skill.FeatureDisabled)
	}
	add("W14 a foreign function", importing("env", "system", binary.I32), skill.ImportDenied)
	add("W14 a function of another type", importing("wasi_snapshot_preview1", "proc_exit", binary.I64), skill.ImportDenied)
	add("W14 a memory", func() []byte {
		b := asm.New()
		b.ImportMemory("env", "memory")
		b.Command("")
		return b.Bytes()
	}, skill.ImportDenied)
	add("W15 a table of 2^32-1 entries", func() []byte {
		b := asm.New()
		b.Table(0xffffffff)
		b.Command("")
		return b.Bytes()
	}, skill.TableLimit)
	return append(all, ofModule(Case{
		Name: "W16 a _start with parameters", Promise: Ends, Limit: "entries are called with nothing", Ends: []skill.Code{skill.InvalidModule},
	}, func() []byte {
		b := asm.New()
		b.Memory(1)
		b.Export("_start", b.Func([]binary.ValType{asm.TypeI32}, nil, nil, ""))
		return b.Bytes()
	}))
}

func branches(n int) asm.Code {
	return asm.Get(0) + asm.Code(binary.AppendU32([]byte{0x0e}, uint32(n))) + asm.Repeat(n+1, "\x00")
}

type feature struct {
	name   string
	module func() []byte
}

// features are proposals that are switched off.
func features() []feature {
	return []feature{
		{"a component", raw("0061736d0d000100")},
		{"a 64-bit memory", raw("0061736d010000000503010400")},
		{"a shared memory", raw("0061736d01000000050401030101")},
		{"a struct type", raw("0061736d010000000105015f017f00")},
		{"an atomic load", command("\x41\x00\xfe\x10\x02\x00\x1a")},
		{"a relaxed vector instruction", command("\xfd\x80\x02")},
		{"wide arithmetic", command("\xfc\x13")},
		{"garbage collection", command("\xfb\x00\x00")},
		{"typed references", command("\x14\x00")},
		{"stack switching", command("\xe0\x00")},
		{"a tail call", command("\x12\x00")},
		{"exceptions of old", command("\x06\x40\x0b")},
		{"several memories", command("\x3f\x01\x1a")},
	}
}
