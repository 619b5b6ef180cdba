package wasmtest

import (
	"strings"
	"time"

	"openskill/wasm"
)

// Bulk is an instruction whose work grows with an operand. Module gives a module that runs it
// n times with this length in a loop; the length is a parameter to the compiler.
type Bulk struct {
	Name   string
	Units  int64 // of fuel for a length of 1<<16
	Module func(n, length int64) []byte
}

// Most is the largest length for which each of [Bulks] stays within bounds: bytes, entries,
// or, for what grows, pages and entries that are added.
const Most = 1 << 16

// Bulks gives all instructions of that kind.
func Bulks() []Bulk {
	of := func(name string, units int64, op func(b *Builder, length Code) Code) Bulk {
		return Bulk{name, units, func(n, length int64) []byte {
			b := New()
			f := b.Void("")
			b.Memory(2 * Most >> 16)
			b.Table(Most, f)
			g := b.Global(length)
			b.Command(Times(n, 0, op(b, GlobalGet(g))))
			return b.Bytes()
		}}
	}
	zeros := I32(0) + I32(0)
	return []Bulk{
		of("memory.fill", Most>>3, func(_ *Builder, n Code) Code { return zeros + n + MemoryFill }),
		of("memory.copy", Most>>3, func(_ *Builder, n Code) Code { return zeros + n + MemoryCopy }),
		of("memory.init", Most>>3, func(b *Builder, n Code) Code {
			return zeros + n + MemoryInit(b.PassiveData(strings.Repeat("x", Most)))
		}),
		of("memory.grow", Most<<13, func(_ *Builder, n Code) Code { return n + MemoryGrow + Drop }),
		of("table.fill", Most, func(_ *Builder, n Code) Code { return I32(0) + NullFunc + n + TableFill(0) }),
		of("table.copy", Most, func(_ *Builder, n Code) Code { return zeros + n + TableCopy }),
		of("table.init", Most, func(b *Builder, n Code) Code {
			return zeros + n + TableInit(b.PassiveElem(make([]uint32, Most)...))
		}),
		of("table.grow", Most, func(_ *Builder, n Code) Code { return NullFunc + n + TableGrow(0) + Drop }),
	}
}

// bulk runs each of them without end, in pieces of half of a KiB of work and more. What grows
// does so by nothing: more ends at the limit of memory or tables.
func bulk() []Case {
	var all []Case
	add := func(name string, module []byte) {
		all = append(all,
			Case{Name: "E06 " + name + " without end", Module: module, Want: wasm.OutOfFuel, Limits: wasm.Limits{Fuel: 20_000_000, Timeout: time.Minute}},
			Case{Name: "E06 " + name + " until the deadline", Module: module, Want: wasm.OutOfTime, Limits: clock})
	}
	for _, op := range Bulks() {
		length := int64(Most)
		if strings.HasSuffix(op.Name, ".grow") {
			length = 0
		}
		add(op.Name, op.Module(1<<31, length))
	}
	drop := New()
	data, elem := drop.PassiveData("x"), drop.PassiveElem(drop.Void(""))
	drop.Memory(1)
	drop.Command(Loop(DataDrop(data) + ElemDrop(elem) + Br(0)))
	add("data.drop and elem.drop", drop.Bytes())
	return all
}
