package binary

import "fmt"

// ValType is the type of a value, by its byte in the binary format.
type ValType byte

// The value types.
const (
	I32       ValType = 0x7f
	I64       ValType = 0x7e
	F32       ValType = 0x7d
	F64       ValType = 0x7c
	V128      ValType = 0x7b
	FuncRef   ValType = 0x70
	ExternRef ValType = 0x6f
	ExnRef    ValType = 0x69
)

// IsRef reports whether t is a reference.
func (t ValType) IsRef() bool { return t == FuncRef || t == ExternRef || t == ExnRef }

// String gives the name of the text format.
func (t ValType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	case ExnRef:
		return "exnref"
	}
	return fmt.Sprintf("valtype(%#x)", byte(t))
}

// FuncType is the type of a function or a tag.
type FuncType struct{ Params, Results []ValType }

// Equal reports whether two types are the same.
func (t FuncType) Equal(o FuncType) bool {
	return string(valBytes(t.Params)) == string(valBytes(o.Params)) &&
		string(valBytes(t.Results)) == string(valBytes(o.Results))
}

// Key is a string that is equal for equal types only. The byte between parameters
// and results is that of no type.
func (t FuncType) Key() string {
	return string(valBytes(t.Params)) + "\x00" + string(valBytes(t.Results))
}

// String gives (i32 i64) -> (f32).
func (t FuncType) String() string { return fmt.Sprintf("%v -> %v", t.Params, t.Results) }

func valBytes(v []ValType) []byte {
	b := make([]byte, len(v))
	for i, t := range v {
		b[i] = byte(t)
	}
	return b
}

// Extent is what the specification calls limits: of a memory in pages of 64 KiB,
// of a table in entries.
type Extent struct {
	Min    uint32
	Max    uint32 // meaningful if HasMax
	HasMax bool
}

// TableType is the type of a table.
type TableType struct {
	Elem ValType
	Extent
}

// GlobalType is the type of a global.
type GlobalType struct {
	Type    ValType
	Mutable bool
}

// ExternKind is what an import or export is.
type ExternKind byte

// The kinds of imports and exports.
const (
	ExternFunc   ExternKind = 0
	ExternTable  ExternKind = 1
	ExternMemory ExternKind = 2
	ExternGlobal ExternKind = 3
	ExternTag    ExternKind = 4
)

var externNames = [...]string{"function", "table", "memory", "global", "tag"}

// String gives the word for messages.
func (k ExternKind) String() string {
	if int(k) < len(externNames) {
		return externNames[k]
	}
	return fmt.Sprintf("extern(%d)", byte(k))
}

// Import is one import. Which of the last fields counts, Kind says.
type Import struct {
	Module, Name string
	Kind         ExternKind
	Type         uint32 // of a function or tag: index into Types
	Table        TableType
	Memory       Extent
	Global       GlobalType
}

// Export is one export.
type Export struct {
	Name  string
	Kind  ExternKind
	Index uint32
}

// ConstExpr is a constant expression with its closing end.
type ConstExpr []byte

// Global is a global that the module defines.
type Global struct {
	GlobalType
	Init ConstExpr
}

// SegmentMode is how a segment is used.
type SegmentMode byte

// The modes of segments.
const (
	Active SegmentMode = iota
	Passive
	Declarative // element segments only
)

// Elem is an element segment: either Funcs or Exprs is used.
type Elem struct {
	Mode   SegmentMode
	Table  uint32    // if Active
	Offset ConstExpr // if Active
	Type   ValType
	Funcs  []uint32
	Exprs  []ConstExpr
}

// Data is a data segment.
type Data struct {
	Mode   SegmentMode
	Memory uint32
	Offset ConstExpr // if Active
	Init   []byte
}

// LocalGroup declares Count locals of one type.
type LocalGroup struct {
	Count uint32
	Type  ValType
}

// Code is the body of one function.
type Code struct {
	Locals []LocalGroup
	Body   []byte // instructions with the closing end
	Offset int    // of Body in the module that was decoded
}

// Custom is a custom section.
type Custom struct {
	Name   string
	Data   []byte
	Before byte // id of the section that it stood before; 0 for the end
}

// Module is a decoded module. Index spaces begin with the imports, in order.
type Module struct {
	Types     []FuncType
	Imports   []Import
	Funcs     []uint32 // types of the functions that the module defines
	Tables    []TableType
	Memories  []Extent
	Tags      []uint32 // types
	Globals   []Global
	Exports   []Export
	Start     *uint32
	Elems     []Elem
	DataCount *uint32
	Codes     []Code // one for each of Funcs
	Datas     []Data
	Customs   []Custom
}

// Imported counts the imports of one kind.
func (m *Module) Imported(k ExternKind) uint32 {
	var n uint32
	for i := range m.Imports {
		if m.Imports[i].Kind == k {
			n++
		}
	}
	return n
}

// FuncType is the type of a function, imported or defined. The index must be one
// that package check has accepted.
func (m *Module) FuncType(f uint32) FuncType {
	for i := range m.Imports {
		if m.Imports[i].Kind != ExternFunc {
			continue
		}
		if f == 0 {
			return m.Types[m.Imports[i].Type]
		}
		f--
	}
	return m.Types[m.Funcs[f]]
}
