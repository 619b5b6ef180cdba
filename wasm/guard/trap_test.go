package guard_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"openskill/internal/musttest"
	"openskill/wasm/binary"
	"openskill/wasm/guard"
	"openskill/wasm/guard/guardtest"
	w "openskill/wasm/wasmtest"
)

var i32, i64 = binary.I32, binary.I64

// accesses is a module with a function for each kind of access.
func accesses(pages uint32) []byte {
	b := w.New()
	b.Memory(pages)
	one := []binary.ValType{i32}
	add := func(name string, params []binary.ValType, body w.Code) {
		b.Export(name, b.Func(params, one, nil, body))
	}
	at := func(op string, offset uint32) w.Code { return w.Code(binary.AppendU32([]byte(op+"\x00"), offset)) }
	load, load8s, load8u := at("\x28", 0), at("\x2c", 0), at("\x2d", 0)
	add("load", one, w.Get(0)+load)
	add("byte", one, w.Get(0)+load8u)
	add("far", one, w.Get(0)+at("\x28", 0xffffffff))
	add("half", one, w.Get(0)+at("\x28", 0x80000000))
	add("dropped", one, w.Get(0)+load+w.Drop+w.I32(1))
	add("store", one, w.Get(0)+w.I32(7)+at("\x36", 0)+w.I32(1))
	add("wide", one, w.Get(0)+w.I64(-1)+at("\x37", 0)+w.I32(1))
	add("vector", one, w.Get(0)+w.Get(0)+"\xfd\x00\x00\x00"+"\xfd\x0b\x00\x00"+w.I32(1))
	// What a load of a byte with its sign leaves in a register has ones beyond its 32 bits.
	add("signed", one, w.Get(0)+load8s+load8u)
	add("constant", one, w.I32(-1<<31)+load)
	add("constant and offset", one, w.I32(-1<<31)+at("\x28", 1<<31))
	add("wrapped", []binary.ValType{i64}, w.Get(0)+"\xa7"+load)
	add("grow", one, w.Get(0)+w.MemoryGrow)
	deep := b.Next()
	add("deep", []binary.ValType{i32, i32}, w.Get(0)+"\x45\x04\x7f"+w.Get(1)+load+"\x05"+w.Get(0)+w.I32(1)+"\x6b"+w.Get(1)+w.Call(deep)+"\x0b")
	return b.Bytes()
}

// instances gives a module instantiated between guard pages, with another memory on each side of
// its own, and one on the interpreter.
func instances(t *testing.T, module []byte) (guarded, right api.Module) {
	t.Helper()
	compiler, ok := guardtest.Compiler(wazero.NewRuntimeConfigCompiler())
	if !ok {
		t.Skip("there are no guard pages here")
	}
	instantiate := func(ctx context.Context, cfg wazero.RuntimeConfig, n int) (m []api.Module) {
		r := wazero.NewRuntimeWithConfig(ctx, cfg)
		t.Cleanup(func() { _ = r.Close(ctx) })
		c, err := r.CompileModule(ctx, module)
		for range n {
			var one api.Module
			if err == nil {
				one, err = r.InstantiateModule(ctx, c, wazero.NewModuleConfig().WithName(""))
			}
			m = append(m, one)
		}
		musttest.Do(t, err)
		return m
	}
	ctx := context.Background()
	return instantiate(experimental.WithMemoryAllocator(ctx, guardtest.New(t)), compiler, 3)[1], instantiate(ctx, wazero.NewRuntimeConfigInterpreter(), 1)[0]
}

// TestTraps holds that all accesses, at the edges of a memory and of what 32 bits reach, do as on
// the interpreter, also after it has grown.
func TestTraps(t *testing.T) {
	for _, pages := range []uint32{0, 1, 2} {
		t.Run(fmt.Sprint(pages), func(t *testing.T) {
			guarded, right := instances(t, accesses(pages))
			call := func(name string, args ...uint64) {
				t.Helper()
				want, wantErr := right.ExportedFunction(name).Call(t.Context(), args...)
				got, err := guarded.ExportedFunction(name).Call(t.Context(), args...)
				// All give an i32, which has no bits beyond 32.
				if kind(err) != kind(wantErr) || err == nil && uint32(got[0]) != uint32(want[0]) {
					t.Errorf("%s %#x: %v %v, want %v %v", name, args, got, err, want, wantErr)
				}
			}
			before := guard.Faults()
			for range 3 {
				size := uint64(right.Memory().Size())
				for _, name := range []string{"load", "byte", "far", "half", "dropped", "store", "wide", "vector", "signed", "constant", "constant and offset", "wrapped"} {
					for _, a := range []uint64{0, 1, 8, size - 17, size - 16, size - 8, size - 4, size - 3, size - 1, size, size + 1, 1<<31 - 4, 1 << 31, 1<<32 - 65536, 1<<32 - 1} {
						call(name, a&(1<<32-1))
					}
				}
				call("wrapped", 0xdeadbeef_00000000)
				call("wrapped", 0xdeadbeef_80000000)
				for _, depth := range []uint64{0, 1, 100, 1500} { // its stack grows
					call("deep", depth, 0)
					call("deep", depth, size-4)
					call("deep", depth, size)
				}
				// Bytes with their sign as addresses: nothing of a store in two pages is done by halves.
				call("store", size-2)
				call("byte", size-1)
				call("grow", 1)
				call("grow", 1<<31)
			}
			if guard.Faults() == before {
				t.Error("nothing faulted")
			}
		})
	}
}

func kind(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// TestOtherMemory holds that code without checks is not run on a memory that has no guard pages.
func TestOtherMemory(t *testing.T) {
	compiler, ok := guardtest.Compiler(wazero.NewRuntimeConfigCompiler())
	if !ok {
		t.Skip("there are no guard pages here")
	}
	r := wazero.NewRuntimeWithConfig(t.Context(), compiler)
	defer r.Close(t.Context())
	if _, err := r.Instantiate(t.Context(), accesses(1)); err == nil {
		t.Error("it was")
	}
}
