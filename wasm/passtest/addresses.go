package passtest

import "openskill/wasm/binary"

// Addresses makes a module whose code is mostly what package tune looks for: addresses
// out of a few locals and small constants, locals that are set from each other, blocks
// that are left early. No sum in it wraps: what could is cut to size before it is kept,
// so that a tuned module must do the same. Some accesses lie beyond the memory, and trap.
func Addresses(data []byte) []byte {
	a := &addresses{chance: newChance(data), budget: 150}
	for l := range byte(locals) {
		a.op(0x41)
		a.out = binary.AppendS64(a.out, int64(low)+int64(a.n(256))*150)
		a.op(0x21, l)
	}
	a.statements(3)
	a.value(3)
	a.op(0x0b)
	content := make([]byte, 1<<16)
	for i := range content {
		content[i] = byte(a.rnd.Uint32())
	}
	m := binary.Module{
		Types:    []binary.FuncType{{Results: []binary.ValType{i32}}, {Params: []binary.ValType{i32}, Results: []binary.ValType{i32}}},
		Funcs:    []uint32{0, 1},
		Memories: []binary.Extent{{Min: 1, Max: 1, HasMax: true}},
		Globals: []binary.Global{
			{GlobalType: binary.GlobalType{Type: i32, Mutable: true}, Init: []byte{0x41, 0, 0x0b}},
		},
		Exports: []binary.Export{
			{Name: "f", Kind: binary.ExternFunc},
			{Name: "memory", Kind: binary.ExternMemory},
			{Name: Gas, Kind: binary.ExternGlobal},
		},
		Codes: []binary.Code{
			{Locals: []binary.LocalGroup{{Count: locals, Type: i32}}, Body: a.out},
			{Body: []byte{0x20, 0, 0x0b}},
		},
		Datas: []binary.Data{{Offset: []byte{0x41, 0, 0x0b}, Init: content}},
	}
	return m.Encode()
}

// The locals hold numbers between low and high at least: the later ones may lie outside
// by a step for each that they come later, so that one can be made of another by a sum.
const (
	locals = 6
	low    = 16_384
	high   = 65_400
	step   = 256
)

type addresses struct {
	*chance
	out    []byte
	budget int
}

// within is what a value lies between.
type within struct{ low, high int64 }

// of is what a local lies between.
func of(l byte) within {
	return within{low - step*int64(l), high + step*int64(l)}
}

func (a *addresses) op(b ...byte) { a.out = append(a.out, b...) }

func (a *addresses) local() byte { return byte(a.n(locals)) }

// constant is -64 to 127, of which the first half is rare.
func (a *addresses) constant() int64 {
	if a.one(4) {
		return -1 - int64(a.n(64))
	}
	return int64(a.n(128))
}

// offset is mostly small, and at times at the edge of what is folded.
func (a *addresses) offset() {
	o := uint32(a.n(128)) // below 128
	if a.one(6) {
		o += 897 - 64
	}
	a.op(0)
	a.out = binary.AppendU32(a.out, o)
}

// value pushes an i32, and tells what it lies between.
func (a *addresses) value(depth int) within {
	a.budget--
	switch n := a.n(16); {
	case depth == 0 || n < 5:
		l := a.local()
		a.op(0x20, l)
		return of(l)
	case n < 10:
		w, c := a.value(depth-1), a.constant()
		a.op(0x41)
		a.out = binary.AppendS64(a.out, c)
		a.op(0x6a)
		return within{w.low + c, w.high + c}
	case n < 12:
		w, l := a.value(depth-1), a.local()
		w = a.fit(w, l)
		a.op(0x22, l)
		return w
	case n < 13:
		a.value(depth - 1)
		a.op([]byte{0x28, 0x2c, 0x2d, 0x2e, 0x2f}[a.n(5)]) //nolint:gosec // five of them
		a.offset()
		return a.cut()
	case n < 14:
		w := a.value(depth - 1)
		a.op(0x10, 1)
		return w
	case n < 15:
		v, w := a.value(depth-1), a.value(depth-1)
		a.value(0)
		a.op(0x41, 1, 0x71, 0x1b) // by its lowest bit
		return within{min(v.low, w.low), max(v.high, w.high)}
	default:
		v, w := a.value(depth-1), a.value(depth-1)
		a.op(0x6a)
		return within{v.low + w.low, v.high + w.high}
	}
}

// cut makes a number of the innermost range of what stands on the stack.
func (a *addresses) cut() within {
	a.op(0x41, 0xff, 0xff, 0x01, 0x71, 0x41) // and 0x7fff
	a.out = binary.AppendS64(a.out, low)
	a.op(0x6a)
	return within{low, low + 0x7fff}
}

// fit cuts what stands on the stack if the local may not hold it.
func (a *addresses) fit(w within, l byte) within {
	if may := of(l); w.low < may.low || w.high > may.high {
		return a.cut()
	}
	return w
}

func (a *addresses) statements(depth int) {
	for range 1 + a.n(6) {
		if a.budget <= 0 {
			return
		}
		switch n := a.n(12); {
		case n < 5:
			w, l := a.value(3), a.local()
			a.fit(w, l)
			a.op(0x21, l)
		case n < 8:
			a.value(2)
			a.value(2)
			a.op([]byte{0x36, 0x3a, 0x3b}[a.n(3)]) //nolint:gosec // three of them
			a.offset()
		case depth > 0 && n < 10:
			a.op(0x02, 0x40)
			a.statements(depth - 1)
			a.value(0)
			a.op(0x41, 1, 0x71, 0x0d, 0)
			a.statements(depth - 1)
			a.op(0x0b)
		case depth > 0 && n == 10:
			a.value(0)
			a.op(0x41, 2, 0x71, 0x04, 0x40)
			a.statements(depth - 1)
			if a.one(2) {
				a.op(0x05)
				a.statements(depth - 1)
			}
			a.op(0x0b)
		case depth > 0:
			a.op(0x03, 0x40)
			a.statements(depth - 1)
			a.op(0x23, 0, 0x41, 40, 0x6b, 0x24, 0, 0x23, 0, 0x41, 0, 0x4a, 0x0d, 0) // as long as there is gas
			a.op(0x0b)
		}
	}
}
