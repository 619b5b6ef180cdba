package tune_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"

	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/tune"
)

// writer makes bodies that are mostly what the folder looks for: addresses out of a
// few locals and small constants, locals that are set from each other, and blocks
// that are left early.
type writer struct {
	*rand.Rand
	b    []byte
	fuel int
}

func (w *writer) local() byte { return byte(w.IntN(5)) } //nolint:gosec // five locals

// value pushes an i32.
func (w *writer) value(depth int) {
	w.fuel--
	switch n := w.IntN(10); {
	case depth == 0 || n < 3:
		w.b = append(w.b, get, w.local())
	case n < 7:
		w.value(depth - 1)
		w.b = append(w.b, i32, byte(w.IntN(128)), add) // 64 and more are negative
	case n < 8:
		w.value(depth - 1)
		w.b = append(w.b, tee, w.local())
	case n < 9:
		w.value(depth - 1)
		w.b = append(w.b, load, 0, byte(w.IntN(128)))
	default:
		w.value(depth - 1)
		w.value(depth - 1)
		w.b = append(w.b, add)
	}
}

func (w *writer) statements(depth int) {
	for range 1 + w.IntN(6) {
		if w.fuel <= 0 {
			return
		}
		switch n := w.IntN(10); {
		case n < 5:
			w.value(3)
			w.b = append(w.b, set, w.local())
		case n < 7:
			w.value(2)
			w.value(2)
			w.b = append(w.b, store, 0, byte(w.IntN(128)))
		case depth > 0:
			w.b = append(w.b, block, void)
			w.statements(depth - 1)
			w.b = append(w.b, get, w.local(), brIf, 0)
			w.statements(depth - 1)
			w.b = append(w.b, end)
		}
	}
}

// TestRandomPrograms holds tuned programs to what they were: results, traps, and
// the whole memory. No address comes near 2^32: negative constants are small against
// the locals, of which each begins far from both ends.
func TestRandomPrograms(t *testing.T) {
	ctx := t.Context()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx) //nolint:errcheck // a test
	run := func(m *binary.Module) (got []uint64, failed bool, memory uint64) {
		in, err := r.InstantiateWithConfig(ctx, m.Encode(), wazero.NewModuleConfig().WithName(""))
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close(ctx) //nolint:errcheck // a test
		for i := uint32(0); i < 1<<16; i += 4 {
			in.Memory().WriteUint32Le(i, 4096+i*31%50_000)
		}
		got, err = in.ExportedFunction("f").Call(ctx, 5000, 20_000, 60_000)
		bytes, _ := in.Memory().Read(0, 1<<16)
		for _, x := range bytes {
			memory = memory*1099511628211 + uint64(x)
		}
		return got, err != nil, memory
	}
	changed, returned := 0, 0
	for seed := range uint64(400) {
		w := &writer{Rand: rand.New(rand.NewPCG(seed, 1)), fuel: 120} //nolint:gosec // a test
		w.b = append(w.b, get, 0, set, 3, get, 1, set, 4)
		w.statements(3)
		w.value(3)
		m := module(w.b...)
		m.Codes[0].Locals = []binary.LocalGroup{{Count: 2, Type: binary.I32}}
		if _, err := check.Module(m.Encode(), nil); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		tuned, err := tune.Module(m, &tune.Options{Low: 1024})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := check.Module(tuned.Module.Encode(), nil); err != nil {
			t.Fatalf("seed %d: not valid any more: %v", seed, err)
		}
		changed += tuned.Stats.Direct + tuned.Stats.Shared
		a, aFailed, aMemory := run(m)
		b, bFailed, bMemory := run(tuned.Module)
		if aFailed != bFailed || aMemory != bMemory || cmp.Diff(a, b) != "" {
			t.Errorf("seed %d: %v %t %x, tuned %v %t %x", seed, a, aFailed, aMemory, b, bFailed, bMemory)
		}
		if !aFailed {
			returned++
		}
	}
	t.Logf("%d changes, %d programs that returned", changed, returned)
	if changed < 1000 || returned < 50 {
		t.Errorf("%d changes, %d programs that returned: too few", changed, returned)
	}
}
