package meter

import (
	"math"

	"openskill/wasm/binary"
)

// frame makes the output's sections: what was there, moved, and what is added:
// an import, a global, an export, and a few functions behind those of the input.
func (w *rewriter) frame() {
	m := *w.m
	w.out = &m
	m.Customs = nil
	m.Types = append([]binary.FuncType(nil), m.Types...)
	i32, i64 := binary.I32, binary.I64
	tVoid := w.typeOf(nil, nil)
	tNeed := w.typeOf([]binary.ValType{i64}, nil)
	tRefuel := w.typeOf([]binary.ValType{i64, i64}, []binary.ValType{i64})
	tLength := w.typeOf([]binary.ValType{i32}, []binary.ValType{i32})
	m.Imports = append(append([]binary.Import(nil), m.Imports...), binary.Import{
		Module: ImportModule, Name: ImportRefuel, Kind: binary.ExternFunc, Type: tRefuel,
	})
	w.fuel = m.Imported(binary.ExternGlobal) + uint32(len(m.Globals)) // at most Limits.Globals and Imports
	m.Globals = append([]binary.Global(nil), m.Globals...)
	for i := range m.Globals {
		m.Globals[i].Init = w.movedExpr(m.Globals[i].Init)
	}
	m.Globals = append(m.Globals, binary.Global{
		GlobalType: binary.GlobalType{Type: i64, Mutable: true}, Init: binary.ConstExpr{byte(binary.OpI64Const), 0, opEnd},
	})
	m.Exports = append([]binary.Export(nil), m.Exports...)
	for i := range m.Exports {
		if m.Exports[i].Kind == binary.ExternFunc {
			m.Exports[i].Index = w.moved(m.Exports[i].Index)
		}
	}
	m.Exports = append(m.Exports, binary.Export{Name: ExportFuel, Kind: binary.ExternGlobal, Index: w.fuel})
	if m.Start != nil {
		// As an export the host can call it like any other function, with a deadline
		// and with a measure of its stack.
		m.Exports = append(m.Exports, binary.Export{Name: ExportStart, Kind: binary.ExternFunc, Index: w.moved(*m.Start)})
		m.Start = nil
	}
	w.elems()

	m.Funcs = append([]uint32(nil), m.Funcs...)
	m.Codes = make([]binary.Code, len(w.fns), len(w.fns)+8)
	add := func(t uint32, locals []binary.LocalGroup, body func(e *emitter)) uint32 {
		e := &emitter{w: w}
		body(e)
		m.Funcs = append(m.Funcs, t)
		m.Codes = append(m.Codes, binary.Code{Locals: locals, Body: append(e.out, opEnd)})
		return w.nimp + uint32(len(m.Funcs))
	}
	refuel := w.nimp // the import
	w.refuel = add(tNeed, nil, func(e *emitter) {
		e.load()
		e.get(0)
		e.call(refuel)
		e.store()
	})
	t := []binary.LocalGroup{{Count: 1, Type: i64}}
	w.helpers.entries = add(tLength, t, func(e *emitter) {
		e.entries()
		e.get(0)
	})
	w.helpers.pages = add(tLength, t, func(e *emitter) {
		if !hasMemory(w.m) { // nobody calls it
			e.get(0)
			return
		}
		// Only the host knows what it will refuse, so the memory grows first, which its
		// limit bounds, and is then paid for: a page costs as much as filling it.
		e.t = 1
		e.get(0)
		e.op(byte(binary.OpMemoryGrow), 0)
		e.opu(byte(binary.OpLocalSet), 0)
		if w.unboundedMemory() {
			// Beyond 4 GiB the instruction answers by itself; the host is told of it here.
			e.get(0)
			e.i32(refused)
			e.op(opEq, opIf, emptyBlock)
			e.i64(needMemory)
			e.call(w.refuel)
			e.op(opEnd)
		}
		e.load()
		e.op(byte(binary.OpMemorySize), 0)
		e.get(0)
		e.op(byte(binary.OpI32Sub), opExtendU)
		e.i64(13)
		e.op(opShl)
		e.i64(0)
		e.get(0)
		e.i32(refused)
		e.op(opNe, byte(binary.OpSelect), opSub)
		e.i64(askMemory)
		e.op(opSub)
		e.settle(true)
		e.get(0)
	})
	w.helpers.grow = map[uint32]uint32{}
	imported := w.m.Imported(binary.ExternTable)
	tables := imported + uint32(len(m.Tables)) // at most Limits.Tables
	for k := range tables {
		w.helpers.grow[k] = add(tLength, t, func(e *emitter) {
			e.t = 1
			if w.capped(k) { // looked at before the charge, which could use up the fuel
				e.beyond(k, w.o.TableCap)
				e.op(opIf, emptyBlock)
				e.i64(needTable)
				e.call(w.refuel)
				e.op(opEnd)
				e.entries()
			} else if k < imported {
				e.entries()
			} else { // what the table's own maximum refuses costs nothing
				e.load()
				e.i64(0)
				e.get(0)
				e.op(opExtendU)
				e.beyond(k, w.m.Tables[k-imported].Max)
				e.op(byte(binary.OpSelect), opSub)
				e.settle(true)
			}
			e.get(0)
		})
	}
	if len(w.o.Main) > 0 {
		i := add(tVoid, []binary.LocalGroup{{Count: 1, Type: i32}}, w.main)
		m.Exports = append(m.Exports, binary.Export{Name: ExportMain, Kind: binary.ExternFunc, Index: i})
	}
}

// main calls the functions of Options.Main, and the host after each.
func (w *rewriter) main(e *emitter) {
	for i, f := range w.o.Main {
		e.call(w.moved(f))
		if len(w.m.FuncType(f).Results) > 0 {
			e.opu(byte(binary.OpLocalSet), 0)
		}
		e.load()
		if i < len(w.o.Main)-1 {
			e.i64(needReturn)
		} else {
			e.i64(needEnd)
			e.get(0)
			e.op(opExtendU, opOr)
		}
		e.call(w.nimp)
		e.store()
	}
}

const (
	refused   = -1  // what memory.grow answers
	askMemory = 256 // units of a call of memory.grow, which leaves the guest, whatever its answer
)

// What the guest says instead of a need of fuel: that a table would grow beyond
// its cap, or the memory beyond what the host can give.
const (
	needTable  = math.MinInt64
	needMemory = math.MinInt64 + 1
	// Not needs at all: a function of Options.Main returned; and the last one did,
	// with the exit code in the lower half.
	needReturn = math.MinInt64 + 1<<40
	needEnd    = math.MinInt64 + 2<<40
)

// Visit tells what a call of [ImportRefuel] is about that is no need of fuel.
type Visit int

// The visits.
const (
	NeedsFuel Visit = iota // for Tank.Refuel
	Return                 // a function of Options.Main returned, and the next one follows
	End                    // the last one returned
)

// VisitOf reads the second argument of [ImportRefuel]. code is what the last
// function returned, 0 if it returns nothing.
func VisitOf(need int64) (v Visit, code uint32) {
	switch {
	case need == needReturn:
		return Return, 0
	case need >= needEnd && need <= needEnd|math.MaxUint32:
		return End, uint32(need)
	}
	return NeedsFuel, 0
}

func hasMemory(m *binary.Module) bool {
	return m.Imported(binary.ExternMemory) > 0 || len(m.Memories) > 0
}

// unboundedMemory reports whether the module has a memory without a maximum.
func (w *rewriter) unboundedMemory() bool {
	return len(w.m.Memories) == 1 && !w.m.Memories[0].HasMax
}

// entries charges one unit an entry for the length in local 0.
func (e *emitter) entries() {
	e.t = 1
	e.load()
	e.get(0)
	e.op(opExtendU, opSub)
	e.settle(true)
}

// beyond pushes whether table k would have more than most entries with those of local 0.
func (e *emitter) beyond(k, most uint32) {
	e.op(0xfc)
	e.out = binary.AppendU32(e.out, uint32(binary.OpTableSize-0x100))
	e.out = binary.AppendU32(e.out, k)
	e.op(opExtendU)
	e.get(0)
	e.op(opExtendU, byte(binary.OpI64Add))
	e.i64(int64(most))
	e.op(opGtU)
}

// capped reports whether the host's cap, and not a maximum of the module's own,
// is what bounds table k; its maximum is then set to the cap.
func (w *rewriter) capped(k uint32) bool {
	imported := w.m.Imported(binary.ExternTable)
	if k < imported {
		return false // whose table it is, bounds it
	}
	t := w.m.Tables[k-imported]
	return !t.HasMax || t.Max > max(w.o.TableCap, t.Min)
}

func (w *rewriter) elems() {
	m := w.out
	m.Tables = append([]binary.TableType(nil), m.Tables...)
	imported := w.m.Imported(binary.ExternTable)
	for i := range m.Tables {
		if w.capped(imported + uint32(i)) { // at most Limits.Tables
			m.Tables[i].HasMax, m.Tables[i].Max = true, max(w.o.TableCap, m.Tables[i].Min)
		}
	}
	m.Elems = append([]binary.Elem(nil), m.Elems...)
	for i := range m.Elems {
		s := &m.Elems[i]
		s.Offset = w.movedExpr(s.Offset)
		if s.Exprs != nil {
			x := make([]binary.ConstExpr, len(s.Exprs))
			for j := range x {
				x[j] = w.movedExpr(s.Exprs[j])
			}
			s.Exprs = x
			continue
		}
		fs := make([]uint32, len(s.Funcs))
		for j := range fs {
			fs[j] = w.moved(s.Funcs[j])
		}
		s.Funcs = fs
	}
}

// typeOf finds a type of the output, or adds it.
func (w *rewriter) typeOf(params, results []binary.ValType) uint32 {
	if w.types == nil {
		w.types = make(map[string]uint32, len(w.out.Types))
		for i := range w.out.Types {
			w.types[w.out.Types[i].Key()] = uint32(i) // at most Limits.Types
		}
	}
	t := binary.FuncType{Params: params, Results: results}
	if i, ok := w.types[t.Key()]; ok {
		return i
	}
	i := uint32(len(w.out.Types)) // at most Limits.Types and a few
	w.types[t.Key()] = i
	w.out.Types = append(w.out.Types, t)
	return i
}
