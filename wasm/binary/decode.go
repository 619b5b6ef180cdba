package binary

import (
	"bytes"
	"unicode/utf8"
)

// Section ids, in the order of the format.
const (
	secCustom byte = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElem
	secCode
	secData
	secDataCount
	secTag
)

// sectionOrder gives the place of each id: data count stands before code, tags
// stand between memories and globals.
var sectionOrder = [...]int{
	secType: 1, secImport: 2, secFunction: 3, secTable: 4, secMemory: 5, secTag: 6, secGlobal: 7,
	secExport: 8, secStart: 9, secElem: 10, secDataCount: 11, secCode: 12, secData: 13,
}

type decoder struct {
	reader
	lim     Limits
	m       *Module
	entries uint64 // of element segments so far
	groups  uint64 // of locals so far
	customs uint64 // bytes of custom sections so far
}

// Decode reads a module. limits may be nil for the defaults. The module keeps
// views of b. An error is always an [*Error].
func Decode(b []byte, limits *Limits) (*Module, error) {
	d := &decoder{reader: reader{b: b}, lim: limits.WithDefaults(), m: &Module{}}
	if len(b) > d.lim.Size {
		return nil, tooMany(0, "bytes of the module", uint64(len(b)), uint64(d.lim.Size))
	}
	if len(b) < 8 || string(b[:4]) != "\x00asm" {
		return nil, malformed(0, "not a WebAssembly module: it does not begin with \\0asm")
	}
	switch {
	case bytes.Equal(b[4:8], []byte{1, 0, 0, 0}):
	case b[6] == 1 && b[7] == 0:
		return nil, unsupported(4, FeatureComponents, "this is a component; build a core module (wasm32-wasip1)")
	default:
		return nil, malformed(4, "unknown binary version")
	}
	d.p = 8
	last := 0
	var customsAt int // customs before this index still wait for their place
	for d.p < len(b) && d.err == nil {
		at := d.p
		id := d.u8()
		size := d.u32()
		data := d.bytes(size)
		if d.err != nil {
			break
		}
		s := &decoder{reader: reader{b: data, base: d.p - len(data)}, lim: d.lim, m: d.m, entries: d.entries, customs: d.customs}
		if id == secCustom {
			s.custom()
			if s.err != nil {
				return nil, s.err
			}
			d.customs = s.customs
			continue
		}
		if int(id) >= len(sectionOrder) {
			return nil, malformed(at, "malformed section id %d", id)
		}
		if sectionOrder[id] <= last {
			return nil, malformed(at, "unexpected content after last section: section %d is repeated or out of order", id)
		}
		last = sectionOrder[id]
		for ; customsAt < len(d.m.Customs); customsAt++ {
			d.m.Customs[customsAt].Before = id
		}
		s.section(id)
		if s.err == nil && s.p != len(s.b) {
			s.malformed("section size mismatch: %d bytes are left over in section %d", s.left(), id)
		}
		if s.err != nil {
			return nil, s.err
		}
		d.entries = s.entries
	}
	if d.err != nil {
		return nil, d.err
	}
	if len(d.m.Funcs) != len(d.m.Codes) {
		return nil, malformed(len(b), "function and code section have inconsistent lengths")
	}
	if n := d.m.DataCount; n != nil && int(*n) != len(d.m.Datas) {
		return nil, malformed(len(b), "data count and data section have inconsistent lengths")
	}
	return d.m, nil
}

func (d *decoder) section(id byte) {
	switch id {
	case secType:
		list(d, &d.m.Types, d.lim.Types, 3, "types", d.funcType)
	case secImport:
		list(d, &d.m.Imports, d.lim.Imports, 4, "imports", d.imported)
	case secFunction:
		list(d, &d.m.Funcs, d.lim.Functions, 1, "functions", d.u32)
	case secTable:
		list(d, &d.m.Tables, d.lim.Tables, 3, "tables", d.table)
	case secMemory:
		list(d, &d.m.Memories, 1_000, 2, "memories", d.memory)
	case secTag:
		list(d, &d.m.Tags, d.lim.Tags, 2, "tags", d.tag)
	case secGlobal:
		list(d, &d.m.Globals, d.lim.Globals, 4, "globals", d.global)
	case secExport:
		list(d, &d.m.Exports, d.lim.Exports, 3, "exports", d.export)
	case secStart:
		v := d.u32()
		d.m.Start = &v
	case secElem:
		list(d, &d.m.Elems, d.lim.Elems, 2, "element segments", d.elem)
	case secDataCount:
		v := d.u32()
		if v > d.lim.Datas {
			d.fail(tooMany(d.base, "data segments", uint64(v), uint64(d.lim.Datas)))
		}
		d.m.DataCount = &v
	case secCode:
		list(d, &d.m.Codes, d.lim.Functions, 3, "function bodies", d.code)
	case secData:
		list(d, &d.m.Datas, d.lim.Datas, 2, "data segments", d.data)
	}
}

// list reads a vector whose items take at least size bytes each, so that a
// count which the bytes left cannot hold is refused before it is believed.
func list[T any](d *decoder, dst *[]T, limit uint32, size int, what string, item func() T) {
	n := d.count(limit, size, what)
	if d.err != nil {
		return
	}
	*dst = make([]T, 0, n)
	for range n {
		v := item()
		if d.err != nil {
			return
		}
		*dst = append(*dst, v)
	}
}

func (d *decoder) count(limit uint32, size int, what string) int {
	at := d.base + d.p
	n := d.u32()
	if d.err == nil && uint64(n)*uint64(size) > uint64(d.left()) {
		d.fail(malformed(at, "length out of bounds: %d %s announced in %d bytes", n, what, d.left()))
	}
	if d.err == nil && n > limit {
		d.fail(tooMany(at, what, uint64(n), uint64(limit)))
	}
	if d.err != nil {
		return 0
	}
	return int(n)
}

func (d *decoder) name() string {
	at := d.base + d.p
	n := d.u32()
	b := d.bytes(n)
	if d.err != nil {
		return ""
	}
	if n > d.lim.NameLength {
		d.fail(tooMany(at, "bytes of a name", uint64(n), uint64(d.lim.NameLength)))
		return ""
	}
	if !utf8.Valid(b) {
		d.fail(malformed(at, "malformed UTF-8 encoding in a name"))
		return ""
	}
	return string(b)
}

func (d *decoder) custom() {
	if len(d.m.Customs) >= int(d.lim.Customs) {
		d.fail(tooMany(d.base, "custom sections", uint64(len(d.m.Customs)+1), uint64(d.lim.Customs)))
		return
	}
	name := d.name()
	if d.err != nil {
		return
	}
	d.customs += uint64(len(d.b))
	if d.customs > uint64(d.lim.CustomBytes) {
		d.fail(tooMany(d.base, "bytes of custom sections (strip the module of debug information and names)", d.customs, uint64(d.lim.CustomBytes)))
		return
	}
	if name == "name" {
		d.names(d.b[d.p:])
	}
	d.m.Customs = append(d.m.Customs, Custom{Name: name, Data: d.b[d.p:]})
}

func (d *decoder) valType() ValType {
	at := d.base + d.p
	t := ValType(d.u8())
	switch t {
	case I32, I64, F32, F64, V128, FuncRef, ExternRef, ExnRef:
		return t
	case 0x63, 0x64, 0x73, 0x72:
		d.fail(unsupported(at, FeatureTypedRefs, "typed references"))
	case 0x6e, 0x6d, 0x6c, 0x6b, 0x6a, 0x71, 0x78, 0x77:
		d.fail(unsupported(at, FeatureGC, "heap types"))
	case 0x74, 0x68, 0x75:
		d.fail(unsupported(at, FeatureExceptions, "only exnref is known of its types"))
	default:
		d.fail(malformed(at, "malformed value type %#x", byte(t)))
	}
	return 0
}

func (d *decoder) refType() ValType {
	at := d.base + d.p
	t := d.valType()
	if d.err == nil && !t.IsRef() {
		d.fail(malformed(at, "malformed reference type"))
	}
	return t
}

func (d *decoder) valTypes(what string) []ValType {
	n := d.count(d.lim.Values, 1, what)
	if n == 0 {
		return nil
	}
	v := make([]ValType, n)
	for i := range v {
		v[i] = d.valType()
	}
	return v
}

func (d *decoder) funcType() FuncType {
	at := d.base + d.p
	switch f := d.u8(); f {
	case 0x60:
	case 0x5f, 0x5e, 0x50, 0x4f, 0x4e, 0x4d, 0x4c:
		d.fail(unsupported(at, FeatureGC, "struct, array, sub and recursive types"))
	case 0x5d:
		d.fail(unsupported(at, FeatureStackSwitch, "continuation types"))
	default:
		d.fail(malformed(at, "malformed type form %#x", f))
	}
	p := d.valTypes("parameters")
	return FuncType{Params: p, Results: d.valTypes("results")}
}

func (d *decoder) extent(memory bool) Extent {
	at := d.base + d.p
	f := d.u8()
	switch {
	case f&^0x0f != 0:
		d.fail(malformed(at, "malformed limits flags %#x", f))
	case f&8 != 0:
		d.fail(unsupported(at, FeaturePageSizes, "a page size"))
	case f&4 != 0:
		d.fail(unsupported(at, FeatureMemory64, "64-bit limits"))
	case f&2 != 0 && memory:
		d.fail(unsupported(at, FeatureThreads, "a shared memory"))
	case f&2 != 0:
		d.fail(malformed(at, "malformed limits flags %#x", f))
	}
	e := Extent{Min: d.u32()}
	if f&1 != 0 {
		e.HasMax, e.Max = true, d.u32()
	}
	return e
}

func (d *decoder) table() TableType {
	if d.left() > 0 && d.b[d.p] == 0x40 {
		d.fail(unsupported(d.base+d.p, FeatureTypedRefs, "a table with an initial value"))
	}
	t := d.refType()
	return TableType{Elem: t, Extent: d.extent(false)}
}

func (d *decoder) memory() Extent { return d.extent(true) }

func (d *decoder) tag() uint32 {
	at := d.base + d.p
	if a := d.u8(); a != 0 && d.err == nil {
		d.fail(malformed(at, "malformed tag attribute %d", a))
	}
	return d.u32()
}

func (d *decoder) globalType() GlobalType {
	t := d.valType()
	at := d.base + d.p
	m := d.u8()
	switch {
	case m == 2 || m == 3:
		d.fail(unsupported(at, FeatureThreads, "a shared global"))
	case m > 1:
		d.fail(malformed(at, "malformed mutability %d", m))
	}
	return GlobalType{Type: t, Mutable: m == 1}
}

func (d *decoder) imported() Import {
	i := Import{Module: d.name(), Name: d.name()}
	at := d.base + d.p
	i.Kind = ExternKind(d.u8())
	switch i.Kind {
	case ExternFunc:
		i.Type = d.u32()
	case ExternTable:
		i.Table = d.table()
	case ExternMemory:
		i.Memory = d.memory()
	case ExternGlobal:
		i.Global = d.globalType()
	case ExternTag:
		i.Type = d.tag()
	default:
		d.fail(malformed(at, "malformed import kind %d", byte(i.Kind)))
	}
	return i
}

func (d *decoder) export() Export {
	e := Export{Name: d.name()}
	at := d.base + d.p
	e.Kind = ExternKind(d.u8())
	if e.Kind > ExternTag && d.err == nil {
		d.fail(malformed(at, "malformed export kind %d", byte(e.Kind)))
	}
	e.Index = d.u32()
	return e
}

func (d *decoder) global() Global {
	return Global{GlobalType: d.globalType(), Init: d.constExpr()}
}

// maxConstExpr bounds one constant expression, in bytes.
const maxConstExpr = 4096

// constExpr finds the end of an expression by reading its instructions.
func (d *decoder) constExpr() ConstExpr {
	if d.err != nil {
		return nil
	}
	r := Reader{reader: reader{b: d.b, p: d.p, base: d.base}}
	var in Instr
	for depth := 0; r.Next(&in); {
		switch in.Op {
		case OpBlock, OpLoop, OpIf, OpTryTable:
			depth++ // not constant; the validator says so
		case OpEnd:
			depth--
		}
		if in.End-d.p > maxConstExpr {
			d.fail(tooMany(d.base+d.p, "bytes of a constant expression", uint64(in.End-d.p), maxConstExpr))
			return nil
		}
		if depth < 0 {
			e := ConstExpr(d.b[d.p:in.End:in.End])
			d.p = in.End
			return e
		}
	}
	if r.err == nil {
		r.malformed("unexpected end: END opcode expected")
	}
	d.fail(r.err)
	return nil
}

func (d *decoder) elem() Elem {
	at := d.base + d.p
	f := d.u32()
	if f > 7 {
		d.fail(malformed(at, "malformed element segment kind %d", f))
		return Elem{}
	}
	e := Elem{Type: FuncRef}
	switch {
	case f&1 == 0:
		if f&2 != 0 {
			e.Table = d.u32()
		}
		e.Offset = d.constExpr()
	case f&2 == 0:
		e.Mode = Passive
	default:
		e.Mode = Declarative
	}
	if f&3 != 0 {
		if f&4 != 0 {
			e.Type = d.refType()
		} else if k := d.u8(); k != 0 && d.err == nil {
			d.fail(malformed(at, "malformed element kind %d", k))
		}
	}
	size := 1
	if f&4 != 0 {
		size = 2
	}
	left := uint64(d.lim.TableEntries) - min(d.entries, uint64(d.lim.TableEntries))
	n := d.count(uint32(left), size, "table entries in element segments") // below TableEntries
	d.entries += uint64(n)
	if f&4 == 0 {
		e.Funcs = make([]uint32, n)
		for i := range e.Funcs {
			e.Funcs[i] = d.u32()
		}
		return e
	}
	e.Exprs = make([]ConstExpr, n)
	for i := range e.Exprs {
		e.Exprs[i] = d.constExpr()
	}
	return e
}

func (d *decoder) data() Data {
	at := d.base + d.p
	f := d.u32()
	var s Data
	switch {
	case f > 2:
		d.fail(malformed(at, "malformed data segment kind %d", f))
	case f == 1:
		s.Mode = Passive
	default:
		if f == 2 {
			s.Memory = d.u32()
		}
		s.Offset = d.constExpr()
	}
	s.Init = d.bytes(d.u32())
	return s
}

func (d *decoder) code() Code {
	at := d.base + d.p
	n := d.u32()
	b := d.bytes(n)
	if d.err != nil {
		return Code{}
	}
	if n > d.lim.BodySize {
		d.fail(tooMany(at, "bytes of a function body", uint64(n), uint64(d.lim.BodySize)))
		return Code{}
	}
	s := &decoder{reader: reader{b: b, base: d.base + d.p - len(b)}, lim: d.lim}
	var c Code
	groups := s.count(s.lim.Locals, 2, "groups of locals")
	if d.groups += uint64(groups); d.groups > uint64(d.lim.LocalGroups) && s.err == nil {
		s.fail(tooMany(s.base, "groups of locals in all functions", d.groups, uint64(d.lim.LocalGroups)))
	}
	if groups > 0 && s.err == nil {
		c.Locals = make([]LocalGroup, 0, groups)
	}
	var total uint64
	for range groups {
		g := LocalGroup{Count: s.u32()}
		total += uint64(g.Count)
		if total > 0xffffffff {
			s.malformed("too many locals")
		} else if total > uint64(s.lim.Locals) && s.err == nil {
			s.fail(tooMany(s.base+s.p, "locals of a function", total, uint64(s.lim.Locals)))
		}
		g.Type = s.valType()
		c.Locals = append(c.Locals, g)
	}
	if s.err != nil {
		d.fail(s.err)
		return Code{}
	}
	c.Body, c.Offset = b[s.p:], s.base+s.p
	return c
}
