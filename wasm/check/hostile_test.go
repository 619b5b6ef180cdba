package check_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"openskill/wasm/binary"
	"openskill/wasm/check"
)

// wasi is a table of imports with one function.
func wasi(module, name string) (binary.FuncType, bool) {
	if module == "wasi_snapshot_preview1" && name == "proc_exit" {
		return binary.FuncType{Params: []binary.ValType{binary.I32}}, true
	}
	return binary.FuncType{}, false
}

func fromHex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// with makes a module of one type, one memory, one table and functions of these bodies.
func with(bodies ...[]byte) *binary.Module {
	m := &binary.Module{
		Types:    []binary.FuncType{{}},
		Memories: []binary.Extent{{Min: 1}},
		Tables:   []binary.TableType{{Elem: binary.FuncRef, Extent: binary.Extent{Min: 1}}},
	}
	for _, b := range bodies {
		m.Funcs = append(m.Funcs, 0)
		m.Codes = append(m.Codes, binary.Code{Body: append(b[:len(b):len(b)], 0x0b)})
	}
	return m
}

func importing(im ...binary.Import) []byte {
	m := with()
	m.Types = append(m.Types, binary.FuncType{Params: []binary.ValType{binary.I64}}, binary.FuncType{Params: []binary.ValType{binary.I32}})
	m.Imports = im
	m.Memories = nil
	m.Tables = nil
	return m.Encode()
}

const (
	accepted    check.Code = ""
	mib                    = 1 << 20
	mostMemory             = 256 * mib
	slowestEver            = 10 * time.Second
)

// judge checks a module, and that judging it is cheap and its message fit to be shown.
func judge(t *testing.T, name string, b []byte, opts *check.Options, want check.Code, says string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	res, err := check.Module(b, opts)
	took := time.Since(begin)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > mostMemory {
		t.Errorf("%s: %d MiB of memory", name, got/mib)
	}
	if took > slowestEver {
		t.Errorf("%s: %v", name, took)
	}
	if want == accepted {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	var e *check.Error
	if !errors.As(err, &e) {
		t.Errorf("%s: accepted", name)
		return
	}
	if e.Code != want || !strings.Contains(e.Msg, says) {
		t.Errorf("%s: %s: %s; want %s and %q", name, e.Code, e.Msg, want, says)
	}
	if msg := e.Error(); len(msg) > 512 || strings.ContainsFunc(msg, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		t.Errorf("%s: a message that cannot be shown: %q", name, msg)
	}
	if v := res.Report.Error; v == nil || v.Code != want || res.Report.Accepted {
		t.Errorf("%s: the report says otherwise: %+v", name, res.Report)
	}
}

func TestHostileModules(t *testing.T) {
	rep := bytes.Repeat
	nested := func(n int) []byte {
		return with(append(rep([]byte{0x02, 0x40}, n), rep([]byte{0x0b}, n)...)).Encode()
	}
	branches := func(n int) []byte {
		b := binary.AppendU32([]byte{0x41, 0, 0x0e}, uint32(n))
		return with(append(b, make([]byte, n+1)...)).Encode()
	}
	customs := func(n, size int) []byte {
		m := with()
		for range n {
			m.Customs = append(m.Customs, binary.Custom{Name: "x", Data: make([]byte, size)})
		}
		return m.Encode()
	}
	named := func(section string) []byte {
		m := with()
		m.Customs = []binary.Custom{{Name: "name", Data: []byte(section)}}
		return m.Encode()
	}
	table := func(least uint32) []byte {
		m := with()
		m.Tables[0].Min = least
		return m.Encode()
	}
	memory := func(least uint32) []byte {
		m := with()
		m.Memories[0].Min = least
		return m.Encode()
	}
	var heavy [][]byte
	for range 20 {
		heavy = append(heavy, rep([]byte{0x41, 0, 0x1a}, mib/3-4))
	}
	fn := func(module, name string, typ uint32) binary.Import {
		return binary.Import{Module: module, Name: name, Kind: binary.ExternFunc, Type: typ}
	}
	imports := &check.Options{Imports: wasi, Reserved: "openskill"}
	long := strings.Repeat("\x1b[31m\n", 600)

	for _, c := range []struct {
		name string
		b    []byte
		want check.Code
		says string
	}{
		{"W01 four billion imports", fromHex("0061736d010000000205ffffffff0f"), check.InvalidModule, "imports announced"},
		{"W02 four billion exports", fromHex("0061736d010000000705ffffffff0f"), check.InvalidModule, "exports announced"},
		{"W03 four billion types", fromHex("0061736d010000000105ffffffff0f"), check.InvalidModule, "types announced"},
		{"W04 four billion parameters", fromHex("0061736d0100000001070160ffffffff0f"), check.InvalidModule, "parameters announced"},
		{"W05 four billion names", fromHex("0061736d01000000000c046e616d650105ffffffff0f"), check.InvalidModule, "4294967295 names announced in 0 bytes"},
		{"W05 a name of four billion bytes", named("\x01\x07\x01\x00\xff\xff\xff\xff\x0f"), check.InvalidModule, "a name of 4294967295 bytes"},
		{"W05 a module's name of more bytes than there are", named("\x00\x02\x02a"), check.InvalidModule, "a name of 2 bytes announced in 1"},
		{"W05 a subsection of four billion bytes", named("\x01\xff\xff\xff\xff\x0f"), check.InvalidModule, "a subsection of 4294967295 bytes"},
		{"W05 four billion locals with names", named("\x02\x07\x01\x00\xff\xff\xff\xff\x0f"), check.InvalidModule, "4294967295 names announced"},
		{"W05 the names of a compiler", named("\x00\x02\x01m" + "\x01\x05\x01\x00\x02_s" + "\x02\x06\x01\x00\x01\x00\x01x"), accepted, ""},
		{"W05 names that are malformed otherwise", named("\x01\x04\x01\x00\x01\xff" + "\x7f\x00" + "\x01\x80"), accepted, ""},
		{"W06 four billion locals", fromHex("0061736d01000000010401600000030201000a0a010801ffffffff0f7e0b"), check.ModuleTooComplex, "locals"},
		{"W06 locals that overflow", fromHex("0061736d01000000010401600000030201000a11010f02ffffffff0f7effffffff0f7e0b00"), check.ModuleTooComplex, "locals"},
		{"W07 a million nested blocks", nested(1_000_000), check.ModuleTooComplex, "bytes of a function body"},
		{"W07 as many nested blocks as a body holds", nested(340_000), check.ModuleTooComplex, "nested deeper than 4096"},
		{"W07 one nested block too many", nested(4097), check.ModuleTooComplex, "nested deeper"},
		{"W07 as deep as may be", nested(4095), accepted, ""},
		{"W08 a br_table of a million", branches(1_000_000), check.ModuleTooComplex, "br_table with 1000000 targets"},
		{"W08 one target too many", branches(16_385), check.ModuleTooComplex, "br_table"},
		{"W08 as many targets as may be", branches(16_384), accepted, ""},
		{"W08 targets that are not there", with([]byte{0x41, 0, 0x0e, 0xff, 0xff, 0xff, 0xff, 0x0f}).Encode(), check.InvalidModule, "branch targets announced"},
		{"W09 functions just under the cap", with(heavy...).Encode(), accepted, ""},
		{"W11 500,000 empty functions", with(make([][]byte, 500_000)...).Encode(), check.ModuleTooComplex, "functions: 500000, at most 100000"},
		{"W11 as many functions as may be", with(make([][]byte, 100_000)...).Encode(), accepted, ""},
		{"W12 60 MiB in one custom section", customs(1, 60*mib), check.ModuleTooComplex, "strip the module"},
		{"W12 60 MiB in a thousand custom sections", customs(1000, 60_000), check.ModuleTooComplex, "bytes of custom sections"},
		{"W12 as many bytes of custom sections as may be", customs(4, 8*mib-7), accepted, ""},
		{"W12 too many custom sections", customs(1001, 0), check.ModuleTooComplex, "custom sections"},
		{"W12 a module that is too large", customs(1, 64*mib), check.ModuleTooComplex, "bytes of the module"},
		{"W14 a foreign function", importing(fn("env", "system", 2)), check.ImportDenied, "env.system"},
		{"W14 a function of another type", importing(fn("wasi_snapshot_preview1", "proc_exit", 1)), check.ImportDenied, "has the type"},
		{"W14 a function that is there", importing(fn("wasi_snapshot_preview1", "proc_exit", 2)), accepted, ""},
		{"W14 the host's own function", importing(fn("openskill", "refuel", 2)), check.ImportDenied, "openskill.refuel"},
		{"W14 a name of control characters", importing(fn(long, long, 2)), check.ImportDenied, "?[31m?"},
		{"W14 a memory", importing(binary.Import{Module: "tenantA", Name: "memory", Kind: binary.ExternMemory}), check.ImportDenied, "is a memory"},
		{"W14 a table", importing(binary.Import{Module: "env", Name: "t", Kind: binary.ExternTable, Table: binary.TableType{Elem: binary.FuncRef}}), check.ImportDenied, "is a table"},
		{"W14 a global", importing(binary.Import{Module: "env", Name: "g", Kind: binary.ExternGlobal, Global: binary.GlobalType{Type: binary.I32}}), check.ImportDenied, "is a global"},
		{"W15 a table of four billion", table(0xffffffff), check.TableLimit, "4294967295 entries"},
		{"W15 one entry too many", table(1_000_001), check.TableLimit, "1000001"},
		{"W15 as many entries as may be", table(1_000_000), accepted, ""},
		{"W17 a vector instruction's number that is too long", with([]byte("\xfd\x8c\x00" + "0123456789abcdef\x1a")).Encode(), check.InvalidModule, "vector instruction"},
		{"W15 a memory beyond 4 GiB", memory(65537), check.InvalidModule, "65536 pages"},
	} {
		judge(t, c.name, c.b, imports, c.want, c.says)
	}
	judge(t, "W14 no table of imports at all", importing(fn("wasi_snapshot_preview1", "proc_exit", 2)), nil, check.ImportDenied, "does not exist here")
	judge(t, "W15 a memory over the host's cap", memory(65), &check.Options{MemoryPages: 64}, check.MemoryLimit, "65 pages")
	two := with()
	two.Tables = append(two.Tables, binary.TableType{Elem: binary.ExternRef, Extent: binary.Extent{Min: 999_999}})
	two.Tables[0].Min = 2
	judge(t, "W15 tables that are too large together", two.Encode(), nil, check.TableLimit, "1000001")
}

// TestDisabledFeatures is case W13: each proposal that is not enabled is refused
// by its name.
func TestDisabledFeatures(t *testing.T) {
	head := "0061736d01000000"
	code := func(body string) []byte { // one function, one memory
		b := fromHex(body + "0b")
		return with(b[:len(b)-1]).Encode()
	}
	tag := with()
	tag.Tags = []uint32{0}
	exn := with()
	exn.Tables[0].Elem = binary.ExnRef
	mems := with()
	mems.Memories = append(mems.Memories, binary.Extent{Min: 1})
	tagged := with()
	tagged.Imports = []binary.Import{{Module: "env", Name: "t", Kind: binary.ExternTag}}
	for _, c := range []struct {
		name    string
		b       []byte
		feature binary.Feature
	}{
		{"a component", fromHex("0061736d0d000100"), binary.FeatureComponents},
		{"a 64-bit memory", fromHex(head + "05 03 01 04 00"), binary.FeatureMemory64},
		{"a shared memory", fromHex(head + "05 04 01 03 01 01"), binary.FeatureThreads},
		{"a page size", fromHex(head + "05 04 01 08 01 00"), binary.FeaturePageSizes},
		{"a shared global", fromHex(head + "06 06 01 7f 02 41 00 0b"), binary.FeatureThreads},
		{"a struct type", fromHex(head + "01 05 01 5f 01 7f 00"), binary.FeatureGC},
		{"a recursive type", fromHex(head + "01 05 01 4e 01 5f 00"), binary.FeatureGC},
		{"a continuation type", fromHex(head + "01 04 01 5d 00 00"), binary.FeatureStackSwitch},
		{"a typed reference as parameter", fromHex(head + "01 06 01 60 01 64 70 00"), binary.FeatureTypedRefs},
		{"a heap type as parameter", fromHex(head + "01 05 01 60 01 6e 00"), binary.FeatureGC},
		{"a null exception type", fromHex(head + "01 05 01 60 01 74 00"), binary.FeatureExceptions},
		{"a table with an initial value", fromHex(head + "04 09 01 40 00 70 00 01 d0 70 0b"), binary.FeatureTypedRefs},
		{"an atomic load", code("41 00 fe 10 02 00 1a"), binary.FeatureThreads},
		{"a relaxed instruction", code("fd 80 02"), binary.FeatureRelaxedSIMD},
		{"128-bit arithmetic", code("fc 13"), binary.FeatureWideMath},
		{"an instruction of garbage collection", code("fb 00 00"), binary.FeatureGC},
		{"call_ref", code("14 00"), binary.FeatureTypedRefs},
		{"a continuation", code("e0 00"), binary.FeatureStackSwitch},
		{"a load from another memory", code("41 00 28 42 01 00 1a"), binary.FeatureMultiMemory},
		{"memory.size of another memory", code("3f 01 1a"), binary.FeatureMultiMemory},
		{"two memories", mems.Encode(), binary.FeatureMultiMemory},
		{"the old try", code("06 40 0b"), binary.FeatureLegacyExcept},
		{"a tag", tag.Encode(), binary.FeatureExceptions},
		{"an imported tag", tagged.Encode(), binary.FeatureExceptions},
		{"a table of exnref", exn.Encode(), binary.FeatureExceptions},
		{"throw", code("08 00"), binary.FeatureExceptions},
		{"throw_ref", code("00 0a"), binary.FeatureExceptions},
		{"try_table", code("1f 40 00 0b"), binary.FeatureExceptions},
		{"a null exnref", code("d0 69 1a"), binary.FeatureExceptions},
		{"a block of exnref", code("02 69 00 0b 1a"), binary.FeatureExceptions},
		{"a tail call", code("12 00"), binary.FeatureTailCall},
		{"a tail call through a table", code("41 00 13 00 00"), binary.FeatureTailCall},
	} {
		judge(t, "W13 "+c.name, c.b, nil, check.FeatureDisabled, string(c.feature))
	}
}

// TestCutModules is case W10: a valid module, cut at every byte, is refused, or
// ends where a section does.
func TestCutModules(t *testing.T) {
	m := with([]byte{0x02, 0x40, 0x41, 0, 0x0d, 0, 0x0b}, []byte{0x41, 0, 0x0e, 2, 0, 0, 0}, []byte{0x44, 1, 2, 3, 4, 5, 6, 7, 8, 0x1a, 0x41, 0, 0x28, 2, 4, 0x1a})
	m.Codes[1].Locals = []binary.LocalGroup{{Count: 300, Type: binary.F64}, {Count: 1, Type: binary.V128}}
	m.Types = append(m.Types, binary.FuncType{Params: []binary.ValType{binary.I32}})
	m.Imports = []binary.Import{{Module: "wasi_snapshot_preview1", Name: "proc_exit", Kind: binary.ExternFunc, Type: 1}}
	m.Globals = []binary.Global{{GlobalType: binary.GlobalType{Type: binary.I32, Mutable: true}, Init: []byte{0x41, 1, 0x41, 2, 0x6a, 0x0b}}}
	m.Exports = []binary.Export{{Name: "memory", Kind: binary.ExternMemory}, {Name: "_start", Kind: binary.ExternFunc, Index: 1}}
	start, two := uint32(1), uint32(2)
	m.Start, m.DataCount = &start, &two
	m.Elems = []binary.Elem{
		{Type: binary.FuncRef, Offset: []byte{0x41, 0, 0x0b}, Funcs: []uint32{1}},
		{Mode: binary.Passive, Type: binary.FuncRef, Exprs: []binary.ConstExpr{{0xd2, 1, 0x0b}, {0xd0, 0x70, 0x0b}}},
	}
	m.Datas = []binary.Data{{Offset: []byte{0x41, 0, 0x0b}, Init: []byte("abc")}, {Mode: binary.Passive, Init: []byte("defg")}}
	m.Customs = []binary.Custom{{Name: "producers", Data: []byte("a compiler")}}
	whole := m.Encode()
	opts := &check.Options{Imports: wasi}
	judge(t, "W10 the whole module", whole, opts, accepted, "")

	ends := map[int]bool{8: true}
	for at := 8; at < len(whole); {
		at += 2 + int(whole[at+1]) // sections of this module are shorter than 128 bytes
		ends[at] = true
	}
	for n := range whole {
		if _, err := check.Module(whole[:n], opts); err == nil {
			if !ends[n] {
				t.Errorf("W10 cut at byte %d: accepted", n)
			}
			continue
		}
		judge(t, fmt.Sprintf("W10 cut at byte %d", n), whole[:n], opts, check.InvalidModule, "")
	}
}

// TestEstimatesHold reaches each cap on what compiling is estimated to take, with the others
// out of reach: one function or all of them, time and memory.
func TestEstimatesHold(t *testing.T) {
	const far, most = 1000 * time.Hour, 1 << 40
	branches := bytes.Repeat([]byte{0x02, 0x40, 0x41, 0, 0x0d, 0, 0x0b}, 1000) // block, i32.const 0, br_if 0, end
	one := with(branches).Encode()
	many := with(slicesOf(50, branches)...).Encode()
	locals := with(nil, nil)
	locals.Codes[0].Locals = []binary.LocalGroup{{Count: 5000, Type: binary.I32}}
	caps := func(function, module time.Duration, memory int64) *check.Options {
		return &check.Options{CompileFunction: function, CompileModule: module, CompileMemory: memory}
	}
	judge(t, "nothing is reached", many, caps(far, far, most), accepted, "")
	judge(t, "time of one function", one, caps(time.Microsecond, far, most), check.ModuleTooComplex, "function 0 alone would take about")
	judge(t, "time of all functions", one, caps(far, time.Microsecond, most), check.ModuleTooComplex, "all functions together")
	judge(t, "time of all functions, not far beyond", one, caps(far, estimated(t, one)*3/4, most), check.ModuleTooComplex, "all functions together would take about")
	judge(t, "memory of one function", one, caps(far, far, 1<<20), check.ModuleTooComplex, "MiB to compile")
	judge(t, "memory of all functions", many, caps(far, far, 9<<20), check.ModuleTooComplex, "it would take about")
	judge(t, "locals", locals.Encode(), caps(far, far, 1<<14), check.ModuleTooComplex, "locals of all functions")
}

func slicesOf(n int, body []byte) (out [][]byte) {
	for range n {
		out = append(out, body)
	}
	return out
}

// estimated finds by halves what compiling a module is estimated to take.
func estimated(t *testing.T, module []byte) time.Duration {
	t.Helper()
	least, most := time.Duration(1), time.Hour
	for most-least > 1000 {
		mid := least + (most-least)/2
		if _, err := check.Module(module, &check.Options{CompileFunction: 1000 * time.Hour, CompileModule: mid, CompileMemory: 1 << 40}); err != nil {
			least = mid
		} else {
			most = mid
		}
	}
	return most
}
