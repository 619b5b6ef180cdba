package check_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"openskill/wasm/binary"
	"openskill/wasm/check"
)

// TestLongNumbers writes every number in every instruction with as many bytes as a
// number may have, as linkers do that leave room for others. Where that is accepted,
// the compiler must read the same instruction: one that reads less or more bytes
// finds instructions that nobody has checked.
func TestLongNumbers(t *testing.T) {
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2))
	defer rt.Close(ctx)
	tried, refused := 0, 0
	try := func(what string, short, long func(numbers) []byte, results ...binary.ValType) {
		t.Helper()
		a, b := oneBody(short(shortest{}), results), oneBody(long(padded{}), results)
		if _, err := check.Module(a, nil); err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		if _, err := check.Module(b, nil); err != nil {
			refused++
			return
		}
		tried++
		want, got := evaluate(ctx, rt, a), evaluate(ctx, rt, b)
		if want != got {
			t.Errorf("%s: in short it gives %s, at length %s", what, want, got)
		}
	}
	for op := range binary.Op(0x300) {
		sig := op.Signature()
		if sig == "" {
			continue
		}
		var results []binary.ValType
		body := func(n numbers) []byte {
			var b []byte
			i := 0
			for ; sig[i] != ':'; i++ {
				b = append(b, 0x20, localOf[sig[i]])
			}
			results = nil
			if i+1 < len(sig) {
				results = []binary.ValType{typeOf[sig[i+1]]}
			}
			return append(b, plainOp(n, op)...)
		}
		body(shortest{})
		try(op.String(), body, body, results...)
	}
	for what, body := range map[string]func(n numbers) []byte{
		"local.get":  func(n numbers) []byte { return list(0x20, n.u(0)) },
		"local.set":  func(n numbers) []byte { return list(0x20, n.u(1), 0x1a, 0x41, n.s(-5, 5), 0x21, n.u(0), 0x20, n.u(0)) },
		"local.tee":  func(n numbers) []byte { return list(0x41, n.s(77, 5), 0x22, n.u(0)) },
		"globals":    func(n numbers) []byte { return list(0x41, n.s(7, 5), 0x24, n.u(0), 0x23, n.u(0)) },
		"table.get":  func(n numbers) []byte { return list(0x41, 0, 0x25, n.u(0), 0xd1) },
		"table.set":  func(n numbers) []byte { return list(0x41, 0, 0xd0, 0x70, 0x26, n.u(0), 0x41, 3) },
		"table.size": func(n numbers) []byte { return list(0xfc, n.u(16), n.u(0)) },
		"table.grow": func(n numbers) []byte { return list(0xd0, 0x70, 0x41, 1, 0xfc, n.u(15), n.u(0)) },
		"table.fill": func(n numbers) []byte { return list(0x41, 0, 0xd0, 0x70, 0x41, 1, 0xfc, n.u(17), n.u(0), 0x41, 5) },
		"table.copy": func(n numbers) []byte { return list(0x41, 0, 0x41, 0, 0x41, 1, 0xfc, n.u(14), n.u(0), n.u(0), 0x41, 5) },
		"table.init": func(n numbers) []byte { return list(0x41, 0, 0x41, 0, 0x41, 1, 0xfc, n.u(12), n.u(0), n.u(0), 0x41, 5) },
		"elem.drop":  func(n numbers) []byte { return list(0xfc, n.u(13), n.u(0), 0x41, 5) },
		"data.drop":  func(n numbers) []byte { return list(0xfc, n.u(9), n.u(0), 0x41, 5) },
		"memory.init": func(n numbers) []byte {
			return list(0x41, 8, 0x41, 0, 0x41, 2, 0xfc, n.u(8), n.u(0), 0, 0x41, 8, 0x28, n.u(0), n.u(0))
		},
		"memory.copy": func(n numbers) []byte { return list(0x41, 8, 0x41, 0, 0x41, 2, 0xfc, n.u(10), 0, 0, 0x41, 5) },
		"memory.fill": func(n numbers) []byte {
			return list(0x41, 8, 0x41, 3, 0x41, 2, 0xfc, n.u(11), 0, 0x41, 8, 0x28, n.u(0), n.u(0))
		},
		"ref.func":      func(n numbers) []byte { return list(0xd2, n.u(0), 0xd1) },
		"call":          func(n numbers) []byte { return list(0x10, n.u(1)) },
		"call_indirect": func(n numbers) []byte { return list(0x41, 0, 0x11, n.u(1), n.u(0)) },
		"block":         func(n numbers) []byte { return list(0x02, n.s(1, 5), 0x41, 5, 0x0b) },
		"loop":          func(n numbers) []byte { return list(0x03, n.s(1, 5), 0x41, 5, 0x0b) },
		"if":            func(n numbers) []byte { return list(0x41, 1, 0x04, n.s(1, 5), 0x41, 5, 0x05, 0x41, 6, 0x0b) },
		"br":            func(n numbers) []byte { return list(0x02, 0x7f, 0x41, 5, 0x0c, n.u(0), 0x0b) },
		"br_if":         func(n numbers) []byte { return list(0x02, 0x7f, 0x41, 5, 0x41, 1, 0x0d, n.u(0), 0x1a, 0x41, 9, 0x0b) },
		"br_table": func(n numbers) []byte {
			return list(0x02, 0x7f, 0x41, 5, 0x41, 1, 0x0e, n.u(2), n.u(0), n.u(0), n.u(0), 0x0b)
		},
		"select": func(n numbers) []byte { return list(0x41, 4, 0x41, 5, 0x41, 1, 0x1c, n.u(1), 0x7f) },
	} {
		try(what, body, body, binary.I32)
	}
	t.Logf("%d instructions are the same at length, %d are refused then", tried, refused)
	if tried < 190 || refused < 230 {
		t.Errorf("%d are accepted, %d refused: too few to say anything", tried, refused)
	}
}

// numbers writes numbers in one way or another.
type numbers interface {
	u(v uint32) []byte       // unsigned, of 32 bits
	s(v int64, n int) []byte // signed, of n bytes at most
}

type shortest struct{}

func (shortest) u(v uint32) []byte       { return binary.AppendU32(nil, v) }
func (shortest) s(v int64, _ int) []byte { return binary.AppendS64(nil, v) }

type padded struct{}

func (padded) u(v uint32) []byte {
	return []byte{byte(v) | 0x80, byte(v>>7) | 0x80, byte(v>>14) | 0x80, byte(v>>21) | 0x80, byte(v >> 28)}
}

func (padded) s(v int64, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(v) | 0x80
		v >>= 7
	}
	b[n-1] &= 0x7f
	return b
}

func list(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = append(b, byte(p))
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

// plainOp writes an instruction whose types are its own.
func plainOp(n numbers, op binary.Op) []byte {
	var b []byte
	switch {
	case op < 0x100:
		b = []byte{byte(op)}
	case op < 0x200:
		b = append([]byte{0xfc}, n.u(uint32(op-0x100))...)
	default:
		b = append([]byte{0xfd}, n.u(uint32(op-0x200))...)
	}
	switch op.Imm() {
	case binary.ImmMem:
		return append(append(b, n.u(0)...), n.u(40)...)
	case binary.ImmMemLane:
		return append(append(append(b, n.u(0)...), n.u(40)...), 1%byte(op.Lanes())) // at most 16
	case binary.ImmLane, binary.ImmZero:
		return append(b, 0)
	case binary.ImmZero2:
		return append(b, 0, 0)
	case binary.ImmIndexZero:
		return append(append(b, n.u(0)...), 0)
	case binary.ImmIndex:
		return append(b, n.u(0)...)
	case binary.ImmIndex2:
		return append(append(b, n.u(0)...), n.u(0)...)
	case binary.ImmI32:
		return append(b, n.s(-3, 5)...)
	case binary.ImmI64:
		return append(b, n.s(1<<40, 10)...)
	case binary.ImmF32:
		return append(b, 0, 0, 0x80, 0x3f)
	case binary.ImmF64:
		return append(b, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f)
	case binary.ImmV128, binary.ImmShuffle:
		return append(b, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
	}
	return b
}

var (
	localOf = map[byte]byte{'i': 0, 'l': 1, 'f': 2, 'd': 3, 'v': 4}
	typeOf  = map[byte]binary.ValType{'i': binary.I32, 'l': binary.I64, 'f': binary.F32, 'd': binary.F64, 'v': binary.V128}
)

// oneBody is a module whose function f begins with a value in a local of each type.
// The memory and the table have what the instructions above name.
func oneBody(body []byte, results []binary.ValType) []byte {
	setup := list(0x41, 3, 0x21, 0, 0x42, 9, 0x21, 1, 0x43, 0, 0, 0x60, 0x40, 0x21, 2, 0x44, 0, 0, 0, 0, 0, 0, 0x0c, 0x40, 0x21, 3,
		0xfd, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0x21, 4)
	one := uint32(1)
	m := &binary.Module{
		Types:     []binary.FuncType{{Results: results}, {Results: []binary.ValType{binary.I32}}},
		Funcs:     []uint32{0, 1},
		Tables:    []binary.TableType{{Elem: binary.FuncRef, Extent: binary.Extent{Min: 3}}},
		Memories:  []binary.Extent{{Min: 1}},
		Globals:   []binary.Global{{GlobalType: binary.GlobalType{Type: binary.I32, Mutable: true}, Init: []byte{0x41, 0, 0x0b}}},
		Exports:   []binary.Export{{Name: "f", Kind: binary.ExternFunc}},
		Elems:     []binary.Elem{{Offset: []byte{0x41, 0, 0x0b}, Type: binary.FuncRef, Funcs: []uint32{1}}},
		DataCount: &one,
		Datas:     []binary.Data{{Mode: binary.Passive, Init: []byte("bytes")}},
		Codes: []binary.Code{
			{
				Locals: []binary.LocalGroup{{Count: 1, Type: binary.I32}, {Count: 1, Type: binary.I64}, {Count: 1, Type: binary.F32}, {Count: 1, Type: binary.F64}, {Count: 1, Type: binary.V128}},
				Body:   slices.Concat(setup, body, []byte{0x0b}),
			},
			{Body: []byte{0x41, 42, 0x0b}},
		},
	}
	return m.Encode()
}

// evaluate calls f, and says what came of it.
func evaluate(ctx context.Context, rt wazero.Runtime, module []byte) string {
	m, err := rt.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		return err.Error()
	}
	defer m.Close(ctx)
	res, err := m.ExportedFunction("f").Call(ctx)
	if err != nil {
		return err.Error()
	}
	mem, _ := m.Memory().Read(0, 256)
	return fmt.Sprintf("%x, memory %x", res, mem)
}
