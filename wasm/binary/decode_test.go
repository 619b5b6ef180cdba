package binary_test

import (
	"encoding/hex"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"openskill/wasm/binary"
)

const head = "0061736d01000000"

func fromHex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// TestLimits reaches every cap: a module at the cap decodes, one beyond it is
// refused as too complex.
func TestLimits(t *testing.T) {
	empty := binary.Code{Body: []byte{0x0b}}
	zero := binary.ConstExpr{0x41, 0, 0x0b}
	one := func(t ...binary.ValType) []binary.ValType { return t }
	for _, c := range []struct {
		what  string
		limit func(l *binary.Limits, n uint32)
		grow  func(m *binary.Module) // adds one
	}{
		{"types", func(l *binary.Limits, n uint32) { l.Types = n }, func(m *binary.Module) { m.Types = append(m.Types, binary.FuncType{}) }},
		{"imports", func(l *binary.Limits, n uint32) { l.Imports = n }, func(m *binary.Module) {
			m.Imports = append(m.Imports, binary.Import{Kind: binary.ExternMemory})
		}},
		{"exports", func(l *binary.Limits, n uint32) { l.Exports = n }, func(m *binary.Module) { m.Exports = append(m.Exports, binary.Export{}) }},
		{"functions", func(l *binary.Limits, n uint32) { l.Functions = n }, func(m *binary.Module) {
			m.Funcs, m.Codes = append(m.Funcs, 0), append(m.Codes, empty)
		}},
		{"tables", func(l *binary.Limits, n uint32) { l.Tables = n }, func(m *binary.Module) { m.Tables = append(m.Tables, binary.TableType{Elem: binary.FuncRef}) }},
		{"table entries", func(l *binary.Limits, n uint32) { l.TableEntries = n }, func(m *binary.Module) {
			m.Elems = append(m.Elems, binary.Elem{Mode: binary.Passive, Type: binary.FuncRef, Funcs: []uint32{0}})
		}},
		{"globals", func(l *binary.Limits, n uint32) { l.Globals = n }, func(m *binary.Module) {
			m.Globals = append(m.Globals, binary.Global{GlobalType: binary.GlobalType{Type: binary.I32}, Init: zero})
		}},
		{"tags", func(l *binary.Limits, n uint32) { l.Tags = n }, func(m *binary.Module) { m.Tags = append(m.Tags, 0) }},
		{"element segments", func(l *binary.Limits, n uint32) { l.Elems = n }, func(m *binary.Module) {
			m.Elems = append(m.Elems, binary.Elem{Type: binary.FuncRef, Offset: zero})
		}},
		{"data segments", func(l *binary.Limits, n uint32) { l.Datas = n }, func(m *binary.Module) { m.Datas = append(m.Datas, binary.Data{Offset: zero}) }},
		{"data segments", func(l *binary.Limits, n uint32) { l.Datas = n }, func(m *binary.Module) { // by the data count section alone
			if m.DataCount == nil {
				m.DataCount = new(uint32)
			}
			*m.DataCount++
			m.Datas = append(m.Datas, binary.Data{Mode: binary.Passive})
		}},
		{"bytes of a function body", func(l *binary.Limits, n uint32) { l.BodySize = n }, func(m *binary.Module) {
			if len(m.Codes) == 0 {
				m.Funcs, m.Codes = []uint32{0}, []binary.Code{{}} // one byte: no locals
				return
			}
			m.Codes[0].Body = append(m.Codes[0].Body, 0x0b)
		}},
		{"locals", func(l *binary.Limits, n uint32) { l.Locals = n }, func(m *binary.Module) {
			m.Funcs = []uint32{0}
			if len(m.Codes) == 0 {
				m.Codes = []binary.Code{{Body: []byte{0x0b}, Locals: []binary.LocalGroup{{Type: binary.I64}}}}
			}
			m.Codes[0].Locals[0].Count++
		}},
		{"groups of locals", func(l *binary.Limits, n uint32) { l.LocalGroups = n }, func(m *binary.Module) {
			m.Funcs = append(m.Funcs, 0)
			m.Codes = append(m.Codes, binary.Code{Body: []byte{0x0b}, Locals: []binary.LocalGroup{{Count: 1, Type: binary.V128}}})
		}},
		{"parameters", func(l *binary.Limits, n uint32) { l.Values = n }, func(m *binary.Module) {
			if len(m.Types) == 0 {
				m.Types = []binary.FuncType{{}}
			}
			m.Types[0].Params = append(m.Types[0].Params, one(binary.F32)...)
		}},
		{"results", func(l *binary.Limits, n uint32) { l.Values = n }, func(m *binary.Module) {
			if len(m.Types) == 0 {
				m.Types = []binary.FuncType{{}}
			}
			m.Types[0].Results = append(m.Types[0].Results, one(binary.ExternRef)...)
		}},
		{"bytes of a name", func(l *binary.Limits, n uint32) { l.NameLength = n }, func(m *binary.Module) {
			if len(m.Exports) == 0 {
				m.Exports = []binary.Export{{}}
			}
			m.Exports[0].Name += "x"
		}},
		{"custom sections", func(l *binary.Limits, n uint32) { l.Customs = n }, func(m *binary.Module) { m.Customs = append(m.Customs, binary.Custom{}) }},
	} {
		const most = 3
		var l binary.Limits
		c.limit(&l, most)
		m := &binary.Module{}
		for range most {
			c.grow(m)
		}
		if _, err := binary.Decode(m.Encode(), &l); err != nil {
			t.Errorf("%s: %d are refused: %v", c.what, most, err)
		}
		c.grow(m)
		_, err := binary.Decode(m.Encode(), &l)
		var e *binary.Error
		if !errors.As(err, &e) || e.Kind != binary.TooComplex || !strings.Contains(e.Msg, c.what) {
			t.Errorf("%s: %d: %v; want a refusal as too complex", c.what, most+1, err)
		}
	}
	if _, err := binary.Decode(fromHex(head), &binary.Limits{Size: 7}); err == nil {
		t.Error("bytes of the module: 8 are accepted where 7 may be")
	}
	long := &binary.Module{Globals: []binary.Global{{GlobalType: binary.GlobalType{Type: binary.I32}, Init: append(append([]byte{0x41, 0}, make([]byte, 0, 6000)...), []byte(strings.Repeat("\x41\x00\x6a", 2000)+"\x0b")...)}}}
	var e *binary.Error
	if _, err := binary.Decode(long.Encode(), nil); !errors.As(err, &e) || e.Kind != binary.TooComplex {
		t.Errorf("a constant expression of 6,000 bytes: %v", err)
	}
}

// TestMalformed lists what is not a module, and what is said of it.
func TestMalformed(t *testing.T) {
	for _, c := range []struct{ name, hex, says string }{
		{"nothing", "", "does not begin"},
		{"another magic", "0061736e01000000", "does not begin"},
		{"another version", "0061736d02000000", "unknown binary version"},
		{"an unknown section", head + "0e00", "malformed section id 14"},
		{"a section twice", head + "0100 0100", "unexpected end"},
		{"a section that comes too late", head + "030100 010100", "out of order"},
		{"a section beyond the end", head + "0105", "length out of bounds"},
		{"a section size that never ends", head + "01ffffffffff", "integer representation too long"},
		{"a section size too large", head + "01ffffffff7f", "integer too large"},
		{"a section with something left over", head + "01020000", "size mismatch"},
		{"a function without a body", head + "01040160 0000 03020100", "inconsistent lengths"},
		{"a data count without data", head + "0c0101", "data count and data section"},
		{"a name that is not UTF-8", head + "00 02 01 ff", "UTF-8"},
		{"a name beyond its section", head + "00 02 05 61", "length out of bounds"},
		{"an unknown value type", head + "01 05 01 60 01 00 00", "malformed value type"},
		{"an unknown type form", head + "01 04 01 61 00 00", "malformed type form"},
		{"limits with unknown flags", head + "05 03 01 10 00", "malformed limits flags"},
		{"a shared table", head + "04 04 01 70 02 00", "malformed limits flags"},
		{"a table of numbers", head + "04 04 01 7f 00 00", "malformed reference type"},
		{"a tag with an attribute", head + "0d 03 01 01 00", "malformed tag attribute"},
		{"an unknown mutability", head + "06 06 01 7f 04 41 00 0b", "malformed mutability"},
		{"an unknown import kind", head + "02 05 01 00 00 05 00", "malformed import kind"},
		{"an unknown export kind", head + "07 04 01 00 05 00", "malformed export kind"},
		{"an expression without an end", head + "06 05 01 7f 00 41 00", "END opcode expected"},
		{"an expression that is cut", head + "06 05 01 7f 00 41 80", "unexpected end"},
		{"an element segment of kind 8", head + "09 02 01 08 00", "length out of bounds|malformed element segment kind"},
		{"an element segment of kind 9", head + "09 03 01 09 00", "malformed element segment kind"},
		{"an element kind", head + "09 04 01 01 01 00", "malformed element kind"},
		{"a data segment of kind 3", head + "0b 03 01 03 00", "malformed data segment kind"},
		{"locals beyond 2^32", head + "01 04 01 60 00 00 03 02 01 00 0a 10 01 0e 02 01 7f ff ff ff ff 0f 7e 0b 00 00 00 00", "locals"},
	} {
		_, err := binary.Decode(fromHex(c.hex), nil)
		var e *binary.Error
		ok := false
		for _, s := range strings.Split(c.says, "|") {
			ok = ok || err != nil && strings.Contains(err.Error(), s)
		}
		if !errors.As(err, &e) || !ok {
			t.Errorf("%s: %v; want %q", c.name, err, c.says)
		}
	}
}

// TestBodies lists instructions that cannot be read.
func TestBodies(t *testing.T) {
	for _, c := range []struct{ name, hex, says string }{
		{"an opcode that does not exist", "27", "illegal opcode"},
		{"a prefixed one", "fc 40", "illegal opcode"},
		{"a vector one", "fd 9a 01", "illegal opcode"},
		{"a vector one beyond all", "fd ff 7f", "illegal opcode"},
		{"a prefix alone", "fc", "unexpected end"},
		{"a vector one in two bytes instead of one", "fd 8c 00", "more bytes than it needs"},
		{"a vector one in three bytes instead of two", "fd 8e 81 00", "more bytes than it needs"},
		{"a vector one that is cut", "fd 8e", "unexpected end"},
		{"a memory of two bytes", "fc 0b 80 00", "multi-memory"},
		{"two memories, the second of two bytes", "fc 0a 00 80 00", "multi-memory"},
		{"a segment and a memory of two bytes", "fc 08 00 80 00", "multi-memory"},
		{"legacy exceptions", "07 00", "legacy"},
		{"an alignment beyond all", "28 80 01 00", "malformed memop flags"},
		{"another memory", "28 40 00", "multi-memory"},
		{"a block type that does not exist", "02 41", "malformed value type"},
		{"a negative block type of two bytes", "02 ff 7f", "malformed block type"},
		{"a block without a type", "02", "unexpected end"},
		{"a number that is cut", "41 ff ff", "unexpected end"},
		{"a number too long", "41 80 80 80 80 80 00", "representation too long"},
		{"a number too large", "41 80 80 80 80 70 ", "integer too large"},
		{"a 64-bit number too large", "42 80 80 80 80 80 80 80 80 80 02", "integer too large"},
		{"a float that is cut", "43 00 00", "length out of bounds"},
		{"a double that is cut", "44 00 00 00 00", "length out of bounds"},
		{"a vector that is cut", "fd 0c 00", "length out of bounds"},
		{"a lane that is cut", "fd 15", "unexpected end"},
		{"a reserved byte that is not zero", "3f 80 00", "multi-memory"},
		{"targets beyond the body", "0e 05 00", "branch targets announced"},
		{"catch clauses beyond the body", "1f 40 05 00", "catch clauses announced"},
		{"a catch clause that does not exist", "1f 40 01 04 00 00", "malformed catch clause"},
		{"a null of a number", "d0 7f", "malformed reference type"},
		{"a select of many types beyond the body", "1c 05 7f", "length out of bounds"},
		{"a select of an unknown type", "1c 01 00", "malformed value type"},
		{"a select of a type counted in two bytes", "1c 81 00 7f", "more bytes than it needs"},
		{"typed references", "14 00", "function-references"},
		{"continuations", "e1 00", "stack-switching"},
	} {
		b := fromHex(c.hex)
		r := binary.NewReader(b, 100)
		var in binary.Instr
		for r.Next(&in) {
		}
		var e *binary.Error
		if !errors.As(r.Err(), &e) || !strings.Contains(e.Error(), c.says) {
			t.Errorf("%s: %v; want %q", c.name, r.Err(), c.says)
		} else if e.Offset < 100 || e.Offset > 100+len(b) {
			t.Errorf("%s: at byte %d of [100, %d]", c.name, e.Offset, 100+len(b))
		}
	}
}

// TestImmediates reads each form of immediates once.
func TestImmediates(t *testing.T) {
	for _, c := range []struct {
		hex  string
		want binary.Instr // without Pos and End
	}{
		{"0c 83 01", binary.Instr{Op: binary.OpBr, A: 131}},
		{"11 02 01", binary.Instr{Op: binary.OpCallIndirect, A: 2, B: 1}},
		{"41 7f", binary.Instr{Op: binary.OpI32Const, Const: -1}},
		{"41 80 80 80 80 78", binary.Instr{Op: binary.OpI32Const, Const: math.MinInt32}},
		{"41 ff ff ff ff 07", binary.Instr{Op: binary.OpI32Const, Const: math.MaxInt32}},
		{"42 80 80 80 80 80 80 80 80 80 7f", binary.Instr{Op: binary.OpI64Const, Const: math.MinInt64}},
		{"42 ff ff ff ff ff ff ff ff ff 00", binary.Instr{Op: binary.OpI64Const, Const: math.MaxInt64}},
		{"43 00 00 80 3f", binary.Instr{Op: binary.OpF32Const, Const: 0x3f800000}},
		{"44 00 00 00 00 00 00 f0 bf", binary.Instr{Op: binary.OpF64Const, Const: -0x4010000000000000}},
		{"28 02 90 03", binary.Instr{Op: 0x28, A: 2, Const: 400}},
		{"28 02 ff ff ff ff 0f", binary.Instr{Op: 0x28, A: 2, Const: math.MaxUint32}},
		{"02 40", binary.Instr{Op: binary.OpBlock, Const: binary.BlockEmpty}},
		{"03 7f", binary.Instr{Op: binary.OpLoop, Const: -1}},
		{"04 05", binary.Instr{Op: binary.OpIf, Const: 5}},
		{"04 c0 00", binary.Instr{Op: binary.OpIf, Const: 64}},
		{"d0 6f", binary.Instr{Op: binary.OpRefNull, A: 0x6f}},
		{"1c 01 7e", binary.Instr{Op: binary.OpSelectT, A: 1, B: 0x7e}},
		{"1c 02 7e 7f", binary.Instr{Op: binary.OpSelectT, A: 2}},
		{"fd 15 03", binary.Instr{Op: 0x215, A: 3}},
		{"fd 54 00 08 0f", binary.Instr{Op: 0x254, B: 15, Const: 8}},
		{"fc 0a 00 00", binary.Instr{Op: binary.OpMemoryCopy}},
		{"fc 88 80 00 83 00 00", binary.Instr{Op: binary.OpMemoryInit, A: 3}},
		{"fd 8e 01", binary.Instr{Op: 0x28e}},
		{"40 00", binary.Instr{Op: binary.OpMemoryGrow}},
		{"0e 01 02 03", binary.Instr{Op: binary.OpBrTable, A: 1}},
		{"1f 40 02 00 07 01 02 03", binary.Instr{Op: binary.OpTryTable, A: 2, Const: binary.BlockEmpty}},
	} {
		b := fromHex(c.hex)
		r := binary.NewReader(b, 0)
		var in binary.Instr
		if !r.Next(&in) || in.End != len(b) || r.Pos() != len(b) {
			t.Errorf("% x: read %d bytes: %v", b, in.End, r.Err())
			continue
		}
		in.Pos, in.End = 0, 0
		if in != c.want {
			t.Errorf("% x: %+v, want %+v", b, in, c.want)
		}
	}
	r := binary.NewReader(fromHex("0e 01 02 83 01"), 0)
	var in binary.Instr
	if got := r.Next(&in); !got {
		t.Fatal(r.Err())
	}
	if got := r.Targets(&in, nil); len(got) != 2 || got[0] != 2 || got[1] != 131 {
		t.Errorf("targets: %v", got)
	}
	r.Reset(fromHex("01 1f 40 02 00 07 01 02 03"), 0)
	r.Seek(1)
	if got := r.Next(&in); !got {
		t.Fatal(r.Err())
	}
	got := r.Catches(&in, nil)
	if len(got) != 2 || got[0] != (binary.Catch{Kind: 0, Tag: 7, Label: 1}) || got[1] != (binary.Catch{Kind: 2, Label: 3}) {
		t.Errorf("catches: %v", got)
	}
}

// TestNumbers encodes numbers at the edges of their lengths, and reads them back.
func TestNumbers(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 63, 64, -64, -65, 127, 128, 8191, 8192, -8192, -8193, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64} {
		r := binary.NewReader(binary.AppendS64([]byte{0x42}, v), 0)
		var in binary.Instr
		if !r.Next(&in) || in.Const != v {
			t.Errorf("%d is read as %d: %v", v, in.Const, r.Err())
		}
	}
	for _, v := range []uint32{0, 1, 127, 128, 16383, 16384, math.MaxInt32, math.MaxUint32} {
		r := binary.NewReader(binary.AppendU32([]byte{0x20}, v), 0)
		var in binary.Instr
		if !r.Next(&in) || in.A != v {
			t.Errorf("%d is read as %d: %v", v, in.A, r.Err())
		}
	}
}

// TestWords holds what people read.
func TestWords(t *testing.T) {
	ft := binary.FuncType{Params: []binary.ValType{binary.I32, binary.I64, binary.F32, binary.F64}, Results: []binary.ValType{binary.V128, binary.FuncRef, binary.ExternRef, binary.ExnRef, 1}}
	for got, want := range map[string]string{
		ft.String():                    "[i32 i64 f32 f64] -> [v128 funcref externref exnref valtype(0x1)]",
		binary.ExternGlobal.String():   "global",
		binary.ExternKind(9).String():  "extern(9)",
		binary.OpBlock.String():        "0x2",
		binary.OpMemoryFill.String():   "0xfc 0xb",
		binary.OpV128Const.String():    "0xfd 0xc",
		binary.BlockValue(-1).String(): "i32",
		binary.Op(0x300).Signature():   "",
		binary.Op(0x6a).Signature():    "ii:i",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if ft.Key() == (binary.FuncType{Params: append(ft.Params, ft.Results...)}).Key() {
		t.Error("two types have one key")
	}
	if !ft.Equal(ft) || ft.Equal(binary.FuncType{}) {
		t.Error("types are compared wrongly")
	}
	if a, l := binary.Op(0x29).MaxAlign(), binary.Op(0x215).Lanes(); a != 3 || l != 16 {
		t.Errorf("i64.load aligns to %d, i8x16 has %d lanes", a, l)
	}
	m := &binary.Module{Imports: []binary.Import{{Kind: binary.ExternFunc}, {Kind: binary.ExternGlobal}, {Kind: binary.ExternFunc}}}
	if n := m.Imported(binary.ExternFunc); n != 2 {
		t.Errorf("%d functions are imported, want 2", n)
	}
}

// TestCountsAreNotBelieved holds that a few bytes which announce as many items as there may
// be do not have the decoder make room for them.
func TestCountsAreNotBelieved(t *testing.T) {
	for id := byte(1); id <= 13; id++ {
		for _, n := range []uint32{1_000, 10_000, 100_000, 200_000, 1 << 31, 1<<32 - 1} {
			body := append(binary.AppendU32(nil, n), 0, 0, 0)
			module := append([]byte("\x00asm\x01\x00\x00\x00"), id, byte(len(body)))
			module = append(module, body...)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := binary.Decode(module, nil)
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > 64<<10 {
				t.Errorf("section %d of %d items in 3 bytes: %d bytes are allocated, %v", id, n, got, err)
			}
		}
	}
}

// TestCustomSectionsCountTogether holds that many custom sections have no more bytes than one
// may have.
func TestCustomSectionsCountTogether(t *testing.T) {
	for n := 1; n <= 3; n++ {
		m := &binary.Module{}
		for range n {
			m.Customs = append(m.Customs, binary.Custom{Name: "x", Data: make([]byte, 40)})
		}
		var e *binary.Error
		_, err := binary.Decode(m.Encode(), &binary.Limits{CustomBytes: 100})
		if n < 3 && err != nil || n == 3 && !errors.As(err, &e) {
			t.Errorf("%d sections of 42 bytes, of 100 that there may be: %v", n, err)
		}
	}
}
