package lower

import (
	"slices"

	"openskill/wasm/binary"
)

// maxValues is how many values may stand for one exnref: each parameter, local
// and result of that type becomes so many.
const maxValues = 16

// The values of an exception in flight lie in globals. The first value of 32
// bits has one of its own, so that with the tag it fits an i64; the other
// numbers lie in words of 64 bits, and what is no number in globals of its type.
type class int

const (
	classWord class = iota
	classVector
	classFunc
	classExtern
	numClasses
)

var classTypes = [numClasses]binary.ValType{binary.I64, binary.V128, binary.FuncRef, binary.ExternRef}

func classOf(t binary.ValType) class {
	switch t {
	case binary.V128:
		return classVector
	case binary.FuncRef:
		return classFunc
	case binary.ExternRef:
		return classExtern
	}
	return classWord
}

// tag is the code for one tag: put takes its values from the stack and sets the
// exception in flight, get pushes the values of one.
type tag struct {
	put, get []byte
	params   int
}

// reference is how an exnref is represented: the types of its values, the first
// an i64; the code that pushes the exception in flight as one; and the code that
// sets it from one on the stack, but for the first value.
type reference struct {
	types []binary.ValType
	get   []byte
	put   []byte
}

// plan is where the globals lie.
type plan struct {
	tag, value uint32 // i32
	first      [numClasses]uint32
	extra      uint32 // the second and later values of the module's globals of exnref
	end        uint32
}

// represent decides how exceptions and references to them look.
func (l *lowerer) represent() error {
	var flight, ref [numClasses]int // how many of each class
	for t := range l.m.Tags {
		if !l.thrown[t].Load() {
			continue
		}
		var n [numClasses]int
		l.places(t, func(_ int, _ binary.ValType, c class, at int) {
			if at >= 0 {
				n[c] = at + 1
			}
		})
		captured := l.captured[t].Load() || l.capturedAll.Load()
		total := 1
		for c := range n {
			flight[c] = max(flight[c], n[c])
			total += n[c]
		}
		if captured && total > maxValues {
			return unsupported("%s catches tag %d, whose values take %d places of 64 bits beside the tag; at most %d can be kept in an exnref, any number by catch",
				l.clauseFor(t), t, total-1, maxValues-1)
		}
		for c := range n {
			if captured {
				ref[c] = max(ref[c], n[c])
			}
		}
	}
	l.exn.types = []binary.ValType{binary.I64}
	for c, n := range ref {
		for range n {
			l.exn.types = append(l.exn.types, classTypes[c])
		}
	}
	padding := 0
	for ; len(l.exn.types) <= maxValues && l.clash(); padding++ {
		l.exn.types = append(l.exn.types, binary.I32)
	}
	if len(l.exn.types) > maxValues {
		return unsupported("an exnref takes %d values here; at most %d are possible", len(l.exn.types), maxValues)
	}
	l.layout(&flight)
	l.code(&ref, padding)
	return nil
}

func (l *lowerer) clauseFor(t int) string {
	if l.captured[t].Load() {
		return "catch_ref"
	}
	return "catch_all_ref"
}

// places tells where each parameter of a tag goes: at place at of class c, or
// -1 for the value beside the tag.
func (l *lowerer) places(t int, do func(i int, v binary.ValType, c class, at int)) {
	var n [numClasses]int
	beside := false
	for i, v := range l.m.Types[l.m.Tags[t]].Params {
		if !beside && (v == binary.I32 || v == binary.F32) {
			beside = true
			do(i, v, classWord, -1)
			continue
		}
		c := classOf(v)
		do(i, v, c, n[c]) //nolint:gosec // a class
		n[c]++            //nolint:gosec // as above
	}
}

// clash reports whether two types that differ would become the same, so that a
// call through a table would find a function of the wrong one.
func (l *lowerer) clash() bool {
	if !slices.Contains(l.exnType, true) {
		return false
	}
	used := make([]bool, len(l.m.Types))
	for t := range l.called {
		used[t] = l.called[t].Load()
	}
	if !slices.Contains(used, true) {
		return false
	}
	for i := range l.fns {
		used[l.m.Funcs[i]] = used[l.m.Funcs[i]] || l.taken[i].Load()
	}
	for _, t := range l.imports { // they may stand in a table as well
		used[t] = true
	}
	seen := map[string]uint32{}
	for t, u := range used {
		if !u {
			continue
		}
		x := l.lowered(&l.m.Types[t])
		k := x.Key()
		if c, ok := seen[k]; ok && c != l.canon[t] {
			return true
		}
		seen[k] = l.canon[t]
	}
	return false
}

// lowered gives a type with every exnref replaced.
func (l *lowerer) lowered(t *binary.FuncType) binary.FuncType {
	return binary.FuncType{Params: l.values(t.Params), Results: l.values(t.Results)}
}

func (l *lowerer) values(ts []binary.ValType) []binary.ValType {
	if !slices.Contains(ts, binary.ExnRef) {
		return ts
	}
	out := make([]binary.ValType, 0, len(ts)+len(l.exn.types))
	for _, t := range ts {
		if t == binary.ExnRef {
			out = append(out, l.exn.types...)
		} else {
			out = append(out, t)
		}
	}
	return out
}

// layout places the globals behind those of the module.
func (l *lowerer) layout(flight *[numClasses]int) {
	at := uint32(len(l.globals)) // at most Limits.Globals
	l.plan.tag, l.plan.value = at, at+1
	at += 2
	for c, n := range flight {
		l.plan.first[c] = at
		at += uint32(n) // at most Limits.Values
	}
	l.plan.extra = at
	l.flight = *flight
	l.extraOf = map[uint32]uint32{}
	for g, t := range l.globals {
		if t == binary.ExnRef {
			l.extraOf[uint32(g)] = at
			at += uint32(len(l.exn.types)) - 1 // at most maxValues
		}
	}
	l.plan.end = at
}

// The instructions that change numbers into words and back.
const (
	opI32WrapI64        = 0xa7
	opI64ExtendI32U     = 0xad
	opI32ReinterpretF32 = 0xbc
	opI64ReinterpretF64 = 0xbd
	opF32ReinterpretI32 = 0xbe
	opF64ReinterpretI64 = 0xbf
	opI32Eq             = 0x46
	opI64Eqz            = 0x50
	opI64Or             = 0x84
	opI64Shl            = 0x86
	opI64ShrU           = 0x88
)

func index(b []byte, op binary.Op, i uint32) []byte { return binary.AppendU32(append(b, byte(op)), i) }

func i32Const(b []byte, v int64) []byte {
	return binary.AppendS64(append(b, byte(binary.OpI32Const)), v)
}

// code writes the sequences that move exceptions between stack and globals.
func (l *lowerer) code(ref *[numClasses]int, padding int) {
	l.tags = make([]tag, len(l.m.Tags))
	for t := range l.tags {
		x := &l.tags[t]
		if !l.thrown[t].Load() {
			continue
		}
		x.params = len(l.m.Types[l.m.Tags[t]].Params)
		var puts [][]byte
		l.places(t, func(_ int, v binary.ValType, c class, at int) {
			put, get := l.move(v, c, at)
			puts = append(puts, put)
			x.get = append(x.get, get...)
		})
		for _, p := range slices.Backward(puts) {
			x.put = append(x.put, p...)
		}
		x.put = i32Const(x.put, int64(t)+1)
		x.put = index(x.put, binary.OpGlobalSet, l.plan.tag)
	}
	r := &l.exn
	r.get = index(r.get, binary.OpGlobalGet, l.plan.tag)
	r.get = append(r.get, opI64ExtendI32U, byte(binary.OpI64Const), 32, opI64Shl)
	r.get = index(r.get, binary.OpGlobalGet, l.plan.value)
	r.get = append(r.get, opI64ExtendI32U, opI64Or)
	var order []uint32
	for c, n := range ref {
		for k := range n {
			order = append(order, l.plan.first[c]+uint32(k)) // at most maxValues
		}
	}
	for range padding {
		r.put = append(r.put, byte(binary.OpDrop))
	}
	for _, g := range slices.Backward(order) {
		r.put = index(r.put, binary.OpGlobalSet, g)
	}
	for _, g := range order {
		r.get = index(r.get, binary.OpGlobalGet, g)
	}
	for range padding {
		r.get = i32Const(r.get, 0)
	}
}

// move gives the code that moves one value from the stack to its place, and back.
func (l *lowerer) move(v binary.ValType, c class, at int) (put, get []byte) {
	g := l.plan.value
	if at >= 0 {
		g = l.plan.first[c] + uint32(at) // at most Limits.Values
	}
	get = index(get, binary.OpGlobalGet, g)
	switch {
	case at < 0 && v == binary.F32:
		put, get = append(put, opI32ReinterpretF32), append(get, opF32ReinterpretI32)
	case at < 0:
	case v == binary.I32:
		put, get = append(put, opI64ExtendI32U), append(get, opI32WrapI64)
	case v == binary.F32:
		put, get = append(put, opI32ReinterpretF32, opI64ExtendI32U), append(get, opI32WrapI64, opF32ReinterpretI32)
	case v == binary.F64:
		put, get = append(put, opI64ReinterpretF64), append(get, opF64ReinterpretI64)
	}
	return index(put, binary.OpGlobalSet, g), get
}
