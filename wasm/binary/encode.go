package binary

// Encode writes the module in the binary format, numbers in their shortest
// form. It writes what the fields say and checks nothing.
func (m *Module) Encode() []byte {
	size := 1024
	for i := range m.Codes {
		size += len(m.Codes[i].Body) + 16
	}
	for i := range m.Datas {
		size += len(m.Datas[i].Init) + 16
	}
	e := &encoder{out: append(make([]byte, 0, size), "\x00asm\x01\x00\x00\x00"...), m: m}
	e.module()
	return e.out
}

type encoder struct {
	out []byte
	m   *Module
}

func (e *encoder) module() {
	m := e.m
	vector(e, secType, m.Types, appendFuncType)
	vector(e, secImport, m.Imports, appendImport)
	vector(e, secFunction, m.Funcs, AppendU32)
	vector(e, secTable, m.Tables, appendTable)
	vector(e, secMemory, m.Memories, appendExtent)
	vector(e, secTag, m.Tags, appendTag)
	vector(e, secGlobal, m.Globals, appendGlobal)
	vector(e, secExport, m.Exports, func(b []byte, x Export) []byte {
		return AppendU32(append(AppendName(b, x.Name), byte(x.Kind)), x.Index)
	})
	if m.Start != nil {
		e.section(secStart, func(b []byte) []byte { return AppendU32(b, *m.Start) })
	}
	vector(e, secElem, m.Elems, appendElem)
	if m.DataCount != nil {
		e.section(secDataCount, func(b []byte) []byte { return AppendU32(b, *m.DataCount) })
	}
	vector(e, secCode, m.Codes, appendCode)
	vector(e, secData, m.Datas, appendData)
	e.customs(0)
}

func (e *encoder) customs(before byte) {
	for _, c := range e.m.Customs {
		if c.Before != before {
			continue
		}
		e.raw(secCustom, func(b []byte) []byte { return append(AppendName(b, c.Name), c.Data...) })
	}
}

// vector writes a section of items; an empty one is left out, but the custom
// sections that stood before it are kept.
func vector[T any](e *encoder, id byte, items []T, put func([]byte, T) []byte) {
	if len(items) == 0 {
		e.customs(id)
		return
	}
	e.section(id, func(b []byte) []byte {
		b = AppendU32(b, uint32(len(items)))
		for i := range items {
			b = put(b, items[i])
		}
		return b
	})
}

func (e *encoder) section(id byte, put func([]byte) []byte) {
	e.customs(id)
	e.raw(id, put)
}

// raw leaves five bytes for the size, writes the content in place, and moves it
// down once the size is known: a code section of 30 MB is not built twice.
func (e *encoder) raw(id byte, put func([]byte) []byte) {
	e.out = append(e.out, id, 0, 0, 0, 0, 0)
	at := len(e.out)
	e.out = put(e.out)
	n := len(e.out) - at
	head := AppendU32(e.out[:at-5], uint32(n))
	e.out = append(head, e.out[at:at+n]...)
}

func appendValTypes(b []byte, v []ValType) []byte {
	b = AppendU32(b, uint32(len(v))) // at most Limits.Values
	for _, t := range v {
		b = append(b, byte(t))
	}
	return b
}

func appendFuncType(b []byte, t FuncType) []byte {
	return appendValTypes(appendValTypes(append(b, 0x60), t.Params), t.Results)
}

func appendExtent(b []byte, x Extent) []byte {
	if x.HasMax {
		return AppendU32(AppendU32(append(b, 1), x.Min), x.Max)
	}
	return AppendU32(append(b, 0), x.Min)
}

func appendTable(b []byte, t TableType) []byte {
	return appendExtent(append(b, byte(t.Elem)), t.Extent)
}

func appendTag(b []byte, t uint32) []byte { return AppendU32(append(b, 0), t) }

func appendGlobalType(b []byte, g GlobalType) []byte {
	var mut byte
	if g.Mutable {
		mut = 1
	}
	return append(b, byte(g.Type), mut)
}

func appendGlobal(b []byte, g Global) []byte {
	return append(appendGlobalType(b, g.GlobalType), g.Init...)
}

func appendImport(b []byte, i Import) []byte {
	b = append(AppendName(AppendName(b, i.Module), i.Name), byte(i.Kind))
	switch i.Kind {
	case ExternFunc:
		return AppendU32(b, i.Type)
	case ExternTable:
		return appendTable(b, i.Table)
	case ExternMemory:
		return appendExtent(b, i.Memory)
	case ExternGlobal:
		return appendGlobalType(b, i.Global)
	default:
		return appendTag(b, i.Type)
	}
}

func appendElem(b []byte, s Elem) []byte {
	var f uint32
	switch s.Mode {
	case Passive:
		f = 1
	case Declarative:
		f = 3
	default:
		if s.Table != 0 || s.Type != FuncRef {
			f = 2
		}
	}
	if s.Exprs != nil {
		f |= 4
	}
	b = AppendU32(b, f)
	if s.Mode == Active {
		if f&2 != 0 {
			b = AppendU32(b, s.Table)
		}
		b = append(b, s.Offset...)
	}
	if f&3 != 0 {
		if f&4 != 0 {
			b = append(b, byte(s.Type))
		} else {
			b = append(b, 0)
		}
	}
	if f&4 != 0 {
		b = AppendU32(b, uint32(len(s.Exprs))) // at most Limits.TableEntries
		for _, x := range s.Exprs {
			b = append(b, x...)
		}
		return b
	}
	b = AppendU32(b, uint32(len(s.Funcs))) // at most Limits.TableEntries
	for _, x := range s.Funcs {
		b = AppendU32(b, x)
	}
	return b
}

func appendCode(b []byte, c Code) []byte {
	n := u32Len(uint32(len(c.Locals))) + len(c.Body) // at most Limits.Locals groups
	for _, g := range c.Locals {
		n += u32Len(g.Count) + 1
	}
	b = AppendU32(b, uint32(n))
	b = AppendU32(b, uint32(len(c.Locals)))
	for _, g := range c.Locals {
		b = append(AppendU32(b, g.Count), byte(g.Type))
	}
	return append(b, c.Body...)
}

func u32Len(v uint32) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

func appendData(b []byte, s Data) []byte {
	switch {
	case s.Mode == Passive:
		b = append(b, 1)
	case s.Memory != 0:
		b = append(AppendU32(append(b, 2), s.Memory), s.Offset...)
	default:
		b = append(append(b, 0), s.Offset...)
	}
	return append(AppendU32(b, uint32(len(s.Init))), s.Init...)
}
