package tune

import (
	"bytes"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/binary"
)

// told is a module that says how much of a stack it has, as the runtimes do, and has
// functions that look at the limit: one with a frame, one that frees, one of another kind.
func told() *binary.Module {
	const top = 16 << 20
	c := func(v int64) []byte { return binary.AppendS64([]byte{0x41}, v) }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	look := join(c(0), []byte{0x28, 2, 0}, c(limitAt), []byte{0x6a, 0x28, 2, 0}) // the limit, on the stack
	bodies := [][]byte{
		{0x0b},
		join(c(top), c(-toldSize), []byte{0x6a}, c(toldSize), []byte{0x10, 0, 0x0b}),
		join([]byte{0x23, 0}, c(32), []byte{0x6b, 0x22, 1, 0x24, 0}, look, []byte{0x1a, 0x20, 1}, c(32), []byte{0x6a, 0x24, 0, 0x0b}),
		join([]byte{0x23, 0, 0x21, 1}, c(1), c(1<<14), []byte{0x71, 0x1a}, look, []byte{0x1a, 0x20, 1, 0x24, 0, 0x0b}),
		join([]byte{0x23, 0, 0x1a}, look, []byte{0x1a, 0x0b}),
		join([]byte{0x02, 0x40, 0x23, 0, 0x1a}, look, []byte{0x1a, 0x0b, 0x0b}), // as package lower leaves one that may throw
	}
	m := &binary.Module{
		Types:    []binary.FuncType{{Params: []binary.ValType{binary.I32, binary.I32}}, {}, {Params: []binary.ValType{binary.I32}}},
		Funcs:    []uint32{0, 1, 2, 2, 2, 2},
		Memories: []binary.Extent{{Min: 1}},
	}
	m.Globals = append(m.Globals, binary.Global{GlobalType: binary.GlobalType{Type: binary.I32, Mutable: true}, Init: append(c(top), 0x0b)})
	for i, b := range bodies {
		code := binary.Code{Body: b}
		if i == 2 || i == 3 {
			code.Locals = []binary.LocalGroup{{Count: 1, Type: binary.I32}}
		}
		m.Codes = append(m.Codes, code)
	}
	return m
}

// TestStackIsTold: what is told is the size that is asked for, each function that looks at
// the limit takes a frame and gives it back, and the module stays what it was.
func TestStackIsTold(t *testing.T) {
	m := told()
	before := m.Encode()
	tuned, err := Module(m, &Options{Low: 1024, Stack: 4 << 20})
	if err != nil || !tuned.Stats.Stack {
		t.Fatalf("%+v, %v", tuned, err)
	}
	if !bytes.Equal(before, m.Encode()) {
		t.Error("the module was changed")
	}
	if len(tuned.Module.Codes) != len(m.Codes)+2 {
		t.Errorf("%d functions: two are wrapped", len(tuned.Module.Codes))
	}
	if _, err := binary.Decode(tuned.Module.Encode(), nil); err != nil {
		t.Error(err)
	}
	has := func(code int, v int64, times int) {
		t.Helper()
		ins := musttest.Get(instructions(&tuned.Module.Codes[code]))(t)
		n := 0
		for i := range ins {
			if ins[i].Op == binary.OpI32Const && ins[i].Const == v {
				n++
			}
		}
		if n != times {
			t.Errorf("function %d has the number %d %d times, not %d", code, v, n, times)
		}
	}
	has(1, 12<<20, 1)
	has(1, 4<<20, 1)
	has(2, 32+frame, 2)
	has(3, frame, 1)
	has(4, frame, 2)
	has(5, frame, 2)
}

// TestStackOfOthers: a module that says nothing of a stack, or says it twice, is left alone.
func TestStackOfOthers(t *testing.T) {
	twice := told()
	twice.Funcs = append(twice.Funcs, 1)
	twice.Codes = append(twice.Codes, twice.Codes[1])
	other := told()
	other.Codes[1].Body = []byte{0x0b}
	for name, m := range map[string]*binary.Module{"twice": twice, "never": other, "not asked": told()} {
		o := &Options{Low: 1024, Stack: 4 << 20}
		if name == "not asked" {
			o.Stack = 0
		}
		tuned, err := Module(m, o)
		if err != nil || tuned.Stats.Stack || len(tuned.Module.Codes) != len(m.Codes) {
			t.Errorf("%s: %+v, %v", name, tuned, err)
		}
	}
}
