package wasmtest

import (
	"fmt"

	"openskill/wasm/binary"
	"openskill/wasm/wasi"
)

// Value types, for parameters, results and locals.
const (
	TypeI32 = binary.I32
	TypeI64 = binary.I64
)

// Builder puts a module together. Imports come first, since they are numbered
// before the functions. It panics when it is used wrongly; what it builds need
// not be valid.
type Builder struct {
	m    binary.Module
	nimp uint32
}

// New begins an empty module.
func New() *Builder { return &Builder{} }

// Type gives the index of a function type.
func (b *Builder) Type(params, results []binary.ValType) uint32 {
	t := binary.FuncType{Params: params, Results: results}
	for i := range b.m.Types {
		if b.m.Types[i].Equal(t) {
			return uint32(i)
		}
	}
	b.m.Types = append(b.m.Types, t)
	return uint32(len(b.m.Types) - 1)
}

// Import imports a function of preview1 or what stands beside it, with its right type.
func (b *Builder) Import(name string) (index uint32) {
	return b.importFrom(name, func(module string) bool { return module != wasi.PluginModule })
}

// ImportPlugin imports a function that plug-ins of Extism import, with its right type.
func (b *Builder) ImportPlugin(name string) (index uint32) {
	return b.importFrom(name, func(module string) bool { return module == wasi.PluginModule })
}

func (b *Builder) importFrom(name string, of func(module string) bool) (index uint32) {
	for _, f := range wasi.Functions() {
		if f.Name == name && of(f.Module) {
			var t binary.FuncType
			for _, p := range f.Params {
				t.Params = append(t.Params, binary.ValType(p))
			}
			for _, r := range f.Results {
				t.Results = append(t.Results, binary.ValType(r))
			}
			return b.ImportFunc(f.Module, name, t.Params, t.Results)
		}
	}
	panic(fmt.Sprintf("wasmtest: there is no function %s to import", name))
}

// ImportFunc imports any function.
func (b *Builder) ImportFunc(module, name string, params, results []binary.ValType) (index uint32) {
	if len(b.m.Funcs) > 0 {
		panic("wasmtest: imports come before functions")
	}
	b.m.Imports = append(b.m.Imports, binary.Import{Module: module, Name: name, Kind: binary.ExternFunc, Type: b.Type(params, results)})
	b.nimp++
	return b.nimp - 1
}

// ImportMemory imports a memory of at least one page.
func (b *Builder) ImportMemory(module, name string) {
	b.m.Imports = append(b.m.Imports, binary.Import{Module: module, Name: name, Kind: binary.ExternMemory, Memory: binary.Extent{Min: 1}})
}

// Next is the index that the next function will have, for calls ahead.
func (b *Builder) Next() uint32 { return b.nimp + uint32(len(b.m.Funcs)) }

// Func adds a function without its closing end.
func (b *Builder) Func(params, results []binary.ValType, locals []binary.LocalGroup, body Code) (index uint32) {
	i := b.Next()
	b.m.Funcs = append(b.m.Funcs, b.Type(params, results))
	b.m.Codes = append(b.m.Codes, binary.Code{Locals: locals, Body: []byte(body + "\x0b")})
	return i
}

// Void adds a function without parameters and results, with four locals of i32
// (0 to 3) and one of i64 (4).
func (b *Builder) Void(body Code) (index uint32) {
	return b.Func(nil, nil, []binary.LocalGroup{{Count: 4, Type: TypeI32}, {Count: 1, Type: TypeI64}}, body)
}

// Command adds a function like Void and exports it as _start.
func (b *Builder) Command(body Code) (index uint32) {
	i := b.Void(body)
	b.Export("_start", i)
	return i
}

// Export exports a function.
func (b *Builder) Export(name string, f uint32) {
	b.m.Exports = append(b.m.Exports, binary.Export{Name: name, Kind: binary.ExternFunc, Index: f})
}

// Start makes f the start function.
func (b *Builder) Start(f uint32) { b.m.Start = &f }

// Memory defines and exports a memory of min pages of 64 KiB, without a maximum.
func (b *Builder) Memory(minPages uint32) {
	b.m.Memories = append(b.m.Memories, binary.Extent{Min: minPages})
	b.m.Exports = append(b.m.Exports, binary.Export{Name: "memory", Kind: binary.ExternMemory})
}

// Limit gives the memory a maximum of so many pages.
func (b *Builder) Limit(pages uint32) {
	m := &b.m.Memories[0]
	m.HasMax, m.Max = true, pages
}

// LimitTable gives the last table a maximum of so many entries.
func (b *Builder) LimitTable(entries uint32) {
	t := &b.m.Tables[len(b.m.Tables)-1]
	t.HasMax, t.Max = true, entries
}

// Data puts bytes into the memory at an address.
func (b *Builder) Data(at int64, bytes string) {
	b.m.Datas = append(b.m.Datas, binary.Data{Offset: binary.ConstExpr(I32(at) + "\x0b"), Init: []byte(bytes)})
}

// Table defines a table of funcref with these functions from 0 on.
func (b *Builder) Table(minEntries uint32, funcs ...uint32) {
	b.m.Tables = append(b.m.Tables, binary.TableType{Elem: binary.FuncRef, Extent: binary.Extent{Min: minEntries}})
	if len(funcs) > 0 {
		b.Elem(uint32(len(b.m.Tables)-1), I32(0), funcs...)
	}
}

// Elem puts functions into a table, from an offset on.
func (b *Builder) Elem(table uint32, offset Code, funcs ...uint32) {
	b.m.Elems = append(b.m.Elems, binary.Elem{
		Table: table, Offset: binary.ConstExpr(offset + "\x0b"), Type: binary.FuncRef, Funcs: funcs,
	})
}

// Global defines a mutable i32.
func (b *Builder) Global(v int64) (index uint32) {
	b.m.Globals = append(b.m.Globals, binary.Global{
		GlobalType: binary.GlobalType{Type: TypeI32, Mutable: true}, Init: binary.ConstExpr(I32(v) + "\x0b"),
	})
	return uint32(len(b.m.Globals) - 1)
}

// GlobalOf defines a mutable global of any type.
func (b *Builder) GlobalOf(typ binary.ValType, init Code) (index uint32) {
	b.m.Globals = append(b.m.Globals, binary.Global{
		GlobalType: binary.GlobalType{Type: typ, Mutable: true}, Init: binary.ConstExpr(init + "\x0b"),
	})
	return uint32(len(b.m.Globals) - 1)
}

// Custom adds a custom section at the end.
func (b *Builder) Custom(name string, data []byte) {
	b.m.Customs = append(b.m.Customs, binary.Custom{Name: name, Data: data})
}

// Bytes gives the module.
func (b *Builder) Bytes() []byte { return b.m.Encode() }
