package runtimes

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/binary"
	"openskill/wasm/wasmtest"
)

// The functions of the sample module, in order.
const (
	hostCall = iota
	procExit
	ctors // __wasm_call_ctors
	keptCtor
	first // the cut begins
	cutCtor
	last // the cut ends
	behind
	dead
	register // calls first, unless it is silenced
	runs
	boom
)

var sampleNames = map[uint32]string{
	ctors: constructors, keptCtor: "kept_ctor", first: "first", cutCtor: "cut_ctor", last: "last",
	behind: "behind", dead: "dead", register: "register", runs: "run", boom: "boom",
}

// sample is a module like the real one in small: run gives 10 times what register
// gives, plus 2 if the host answers -1, plus 1 if the constructor ran.
func sample(t testing.TB) []byte {
	t.Helper()
	i32 := binary.I32
	one := []binary.ValType{i32}
	global := []byte{byte(binary.OpI32Const), 0, byte(binary.OpEnd)}
	m := &binary.Module{
		Types: []binary.FuncType{
			{Params: []binary.ValType{i32, i32, i32, i32}, Results: one}, {Params: one}, {}, {Results: one}, {Params: one, Results: one},
		},
		Imports: []binary.Import{
			{Module: "host", Name: "call", Kind: binary.ExternFunc, Type: 0},
			{Module: "wasi_snapshot_preview1", Name: "proc_exit", Kind: binary.ExternFunc, Type: 1},
		},
		Tables:   []binary.TableType{{Elem: binary.FuncRef, Extent: binary.Extent{Min: 3}}},
		Memories: []binary.Extent{{Min: 1}},
		Globals:  []binary.Global{{GlobalType: binary.GlobalType{Type: i32, Mutable: true}, Init: global}},
		Elems:    []binary.Elem{{Offset: binary.ConstExpr{byte(binary.OpI32Const), 1, byte(binary.OpEnd)}, Type: binary.FuncRef, Funcs: []uint32{last, behind}}},
		Exports: []binary.Export{
			{Name: "memory", Kind: binary.ExternMemory},
			{Name: "_initialize", Kind: binary.ExternFunc, Index: ctors},
			{Name: "run", Kind: binary.ExternFunc, Index: runs},
			{Name: "boom", Kind: binary.ExternFunc, Index: boom},
		},
		Customs: []binary.Custom{{Name: "name", Data: nameSection(sampleNames)}, {Name: "producers", Data: []byte{0}}},
	}
	add := func(typ uint32, body string) {
		m.Funcs = append(m.Funcs, typ)
		m.Codes = append(m.Codes, binary.Code{Body: []byte(body + "\x0b")})
	}
	call := func(f int) string { return string([]byte{byte(binary.OpCall), byte(f)}) }
	add(2, call(keptCtor)+call(cutCtor))                                                                                               // ctors
	add(2, "\x41\x01\x24\x00")                                                                                                         // keptCtor: the global becomes 1
	add(3, "\x41\x07")                                                                                                                 // first: 7
	add(2, "\x41\x05\x24\x00")                                                                                                         // cutCtor: the global becomes 5
	add(4, "\x20\x00"+call(first)+"\x6a")                                                                                              // last
	add(3, "\x41\x02\x11\x03\x00")                                                                                                     // behind: itself, through the table
	add(3, call(behind))                                                                                                               // dead
	add(3, call(first))                                                                                                                // register
	add(3, call(register)+"\x41\x0a\x6c"+"\x41\x00\x41\x00\x41\x00\x41\x00"+call(hostCall)+"\x41\x7f\x46\x41\x01\x74\x6a\x23\x00\x6a") // run
	add(3, call(first))                                                                                                                // boom
	return m.Encode()
}

func nameSection(names map[uint32]string) []byte {
	var keys []uint32
	for f := range names {
		keys = append(keys, f)
	}
	slices.Sort(keys)
	list := binary.AppendU32(nil, uint32(len(keys)))
	for _, f := range keys {
		list = binary.AppendName(binary.AppendU32(list, f), names[f])
	}
	module := binary.AppendName(nil, "sample")
	b := append(binary.AppendU32([]byte{0}, uint32(len(module))), module...)
	return append(binary.AppendU32(append(b, 1), uint32(len(list))), list...)
}

var sampleCut = deriving{
	exports: []string{"memory", "_initialize", "run", "boom"}, answers: map[string]int32{"host.call": -1},
	cut: [][2]string{{"kept_ctor", "behind"}}, silenced: []string{"register"},
}

// exitOf runs a module's entry and gives what it returned, or how it ended.
func exitOf(t *testing.T, module []byte, entry string) (uint32, wasm.Ended) {
	t.Helper()
	e := musttest.Get(wasm.Open(nil))(t)
	defer e.Close()
	m := musttest.Get(e.Compile(t.Context(), module, &wasm.CompileOptions{Trusted: true}))(t)
	out := musttest.Get(m.Run(t.Context(), &wasm.Run{Entry: entry}))(t)
	return out.ExitCode, out.Ended
}

func TestDerive(t *testing.T) {
	in := sample(t)
	before := bytes.Clone(in)
	out := musttest.Get(derive(in, &sampleCut))(t)
	if !bytes.Equal(in, before) {
		t.Error("the input was changed")
	}
	again, err := derive(in, &sampleCut)
	if err != nil || !bytes.Equal(out, again) {
		t.Errorf("twice the same gives two modules, or %v", err)
	}
	m := musttest.Get(binary.Decode(out, nil))(t)
	var imports []string
	for _, i := range m.Imports {
		imports = append(imports, i.Module+"."+i.Name)
	}
	if diff := cmp.Diff([]string{"wasi_snapshot_preview1.proc_exit"}, imports); diff != "" {
		t.Errorf("imports: %s", diff)
	}
	// ctors, kept_ctor, behind, register, run, boom, the host's answer, and a trap for
	// each of the two types that are still named.
	if len(m.Codes) != 9 || len(m.Customs) != 0 {
		t.Errorf("%d functions, %d custom sections", len(m.Codes), len(m.Customs))
	}
	if got, ended := exitOf(t, out, ""); got != 3 {
		t.Errorf("run gives %d (%v), want 3: nothing of register, the host's -1, the kept constructor", got, ended)
	}
	if _, ended := exitOf(t, out, "boom"); ended != wasm.Trapped {
		t.Errorf("what calls a function that was cut ended as %v", ended)
	}
}

// Nothing is cut, and what is there goes on as before.
func TestDeriveWhole(t *testing.T) {
	out := musttest.Get(derive(sample(t), &deriving{exports: []string{"_initialize", "run"}, answers: sampleCut.answers}))(t)
	m := musttest.Get(binary.Decode(out, nil))(t)
	if got, _ := exitOf(t, out, ""); got != 77 || len(m.Exports) != 2 {
		t.Errorf("run gives %d, want 77; %d exports", got, len(m.Exports))
	}
	if len(m.Codes) != 9 { // dead and boom went, the answer came
		t.Errorf("%d functions", len(m.Codes))
	}
}

func TestDeriveRefuses(t *testing.T) {
	in := sample(t)
	for name, c := range map[string]struct {
		d    deriving
		want string
	}{
		"no such function": {deriving{cut: [][2]string{{"first", "nobody"}}}, `"nobody"`},
		"the wrong order":  {deriving{cut: [][2]string{{"last", "first"}}}, "does not come before"},
		"nothing to empty": {deriving{silenced: []string{"nobody"}}, `"nobody"`},
	} {
		if _, err := derive(in, &c.d); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := derive(wasmtest.New().Bytes(), &sampleCut); err == nil {
		t.Error("a module without names was derived")
	}
	for i := range in { // cut off anywhere: an error or a module, never a panic
		_, _ = derive(in[:i], &sampleCut)
	}
}
