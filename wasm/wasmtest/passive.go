package wasmtest

import "openskill/wasm/binary"

// PassiveData adds a data segment for memory.init.
func (b *Builder) PassiveData(bytes string) (segment uint32) {
	b.m.Datas = append(b.m.Datas, binary.Data{Mode: binary.Passive, Init: []byte(bytes)})
	n := uint32(len(b.m.Datas))
	b.m.DataCount = &n
	return n - 1
}

// PassiveElem adds an element segment for table.init.
func (b *Builder) PassiveElem(funcs ...uint32) (segment uint32) {
	b.m.Elems = append(b.m.Elems, binary.Elem{Mode: binary.Passive, Type: binary.FuncRef, Funcs: funcs})
	return uint32(len(b.m.Elems) - 1)
}

// MemoryInit is memory.init.
func MemoryInit(segment uint32) Code { return indexed("\xfc\x08", segment, 0) }

// DataDrop is data.drop.
func DataDrop(segment uint32) Code { return indexed("\xfc\x09", segment) }

// TableInit is table.init on table 0.
func TableInit(segment uint32) Code { return indexed("\xfc\x0c", segment, 0) }

// ElemDrop is elem.drop.
func ElemDrop(segment uint32) Code { return indexed("\xfc\x0d", segment) }

// TableCopy is table.copy within table 0.
const TableCopy Code = "\xfc\x0e\x00\x00"
