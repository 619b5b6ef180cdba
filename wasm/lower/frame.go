package lower

import (
	"openskill/wasm/binary"
)

// maxGlobals is how many globals may be added.
const maxGlobals = 20_000

// added are the types that lowered code needs beside those of the input.
type added struct {
	into   map[uint32]uint32 // by type of the input: what it takes, giving nothing
	give   uint32            // an exnref of several values as the result of a block
	choose uint32            // takes two of them, gives one
}

// frame lays out all of the output but the bodies.
func (l *lowerer) frame() (*binary.Module, error) {
	m := *l.m
	out := &m
	if err := l.addTypes(out); err != nil {
		return nil, err
	}
	if err := l.addGlobals(out); err != nil {
		return nil, err
	}
	out.Tags = nil
	out.Exports = nil
	for _, e := range l.m.Exports {
		// Nobody can import them: a tag or an exnref means nothing outside.
		if e.Kind == binary.ExternTag || e.Kind == binary.ExternGlobal && l.globals[e.Index] == binary.ExnRef {
			continue
		}
		out.Exports = append(out.Exports, e)
	}
	out.Exports = append(out.Exports, binary.Export{Name: Export, Kind: binary.ExternGlobal, Index: l.plan.tag})
	out.Codes = append([]binary.Code(nil), l.m.Codes...)
	return out, nil
}

func (l *lowerer) addTypes(out *binary.Module) error {
	out.Types = make([]binary.FuncType, 0, len(l.m.Types)+4)
	const most = 1000 // what binary.Limits accepts
	for i := range l.m.Types {
		t := l.lowered(&l.m.Types[i])
		if l.exnType[i] && max(len(t.Params), len(t.Results)) > most {
			return tooComplex("type %d takes or gives more than %d values when each exnref is %d", i, most, len(l.exn.types))
		}
		out.Types = append(out.Types, t)
	}
	add := func(t binary.FuncType) uint32 {
		out.Types = append(out.Types, t)
		return uint32(len(out.Types) - 1) // at most twice Limits.Types
	}
	l.added.into = map[uint32]uint32{}
	for i := range l.m.Types {
		if l.tried[i].Load() && len(l.m.Types[i].Params) > 0 {
			l.added.into[uint32(i)] = add(binary.FuncType{Params: out.Types[i].Params})
		}
	}
	if x := l.exn.types; len(x) > 1 {
		l.added.give = add(binary.FuncType{Results: x})
		l.added.choose = add(binary.FuncType{Params: append(append([]binary.ValType(nil), x...), x...), Results: x})
	}
	return nil
}

var zeros = map[binary.ValType]binary.ConstExpr{
	binary.I32:       {0x41, 0, 0x0b},
	binary.I64:       {0x42, 0, 0x0b},
	binary.F32:       {0x43, 0, 0, 0, 0, 0x0b},
	binary.F64:       {0x44, 0, 0, 0, 0, 0, 0, 0, 0, 0x0b},
	binary.V128:      {0xfd, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0b},
	binary.FuncRef:   {0xd0, byte(binary.FuncRef), 0x0b},
	binary.ExternRef: {0xd0, byte(binary.ExternRef), 0x0b},
}

// zero appends the code that pushes the zero of a type.
func zero(b []byte, t binary.ValType) []byte {
	z := zeros[t]
	return append(b, z[:len(z)-1]...)
}

func (l *lowerer) addGlobals(out *binary.Module) error {
	if l.plan.end-uint32(len(l.globals)) > maxGlobals { // at most Limits.Globals
		return tooComplex("its globals of exnref would become more than %d", maxGlobals)
	}
	out.Globals = append([]binary.Global(nil), l.m.Globals...)
	for i := range out.Globals {
		if g := &out.Globals[i]; g.Type == binary.ExnRef {
			g.Type, g.Init = binary.I64, zeros[binary.I64] // only null is a constant
		}
	}
	add := func(t binary.ValType) {
		out.Globals = append(out.Globals, binary.Global{GlobalType: binary.GlobalType{Type: t, Mutable: true}, Init: zeros[t]})
	}
	add(binary.I32)
	add(binary.I32)
	for c, n := range l.flight {
		for range n {
			add(classTypes[c])
		}
	}
	for i := range l.m.Globals {
		if l.m.Globals[i].Type == binary.ExnRef {
			for _, t := range l.exn.types[1:] {
				add(t)
			}
		}
	}
	return nil
}
