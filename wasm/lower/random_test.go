package lower_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"openskill/internal/musttest"
	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/lower"
	"openskill/wasm/meter"
	"openskill/wasm/passtest"
	"openskill/wasm/spectest"
)

// TestRandomPrograms runs generated modules lowered and metered, on compiler and
// interpreter, beside the same module on wazero's interpreter with its own
// exceptions: results, what was computed on the way, traps and uncaught
// exceptions must agree. Where a tag carries a vector only ours are compared.
func TestRandomPrograms(t *testing.T) {
	seeds := uint64(400) // 3,000 others agreed with wasmtime, too, vectors included
	if testing.Short() {
		seeds = 200
	}
	first, end := passtest.Seeds(t, seeds)
	total, seed := tally{}, first
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	for ; seed < end && !t.Failed(); seed++ {
		total.add(compare(t, generate(bytesOf(seed))))
	}
	t.Logf("%d modules: %+v", end-first, total)
	if total.uncaught == 0 || total.returned == 0 || total.trapped == 0 || total.checked == 0 {
		t.Error("the generated programs do not do everything")
	}
}

func bytesOf(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, 100+r.IntN(1500))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// tally counts what runs did.
type tally struct{ refused, returned, trapped, uncaught, checked, vectors int }

func (a *tally) add(b tally) {
	a.refused += b.refused
	a.returned += b.returned
	a.trapped += b.trapped
	a.uncaught += b.uncaught
	a.checked += b.checked
	a.vectors += b.vectors
}

func compare(t *testing.T, wasm []byte) (n tally) {
	t.Helper()
	in, err := check.Module(wasm, anything)
	if err != nil {
		t.Fatalf("the generated module is refused: %v", err)
	}
	plainModule, metered, st, err := lowered(t, wasm)
	if err != nil {
		n.refused++
		return n
	}
	n.checked += st.Checked
	theirs := runAll(t, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(exceptions), wasm, in.Module, nil)
	ours := runAll(t, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(base), plainModule, in.Module, nil)
	want := theirs
	if carriesVector(in.Module) {
		want = ours
		n.vectors++
	}
	for _, w := range want {
		switch {
		case strings.Contains(w, "exception"):
			n.uncaught++
		case strings.Contains(w, "trap"):
			n.trapped++
		default:
			n.returned++
		}
	}
	for how, got := range map[string][]string{
		"lowered, interpreter": ours,
		"metered, compiler":    runAll(t, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(base), metered, in.Module, &meter.Tank{Budget: 1 << 50, Slice: 200}),
	} {
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s:\n got %s\nwant %s", how, got[i], want[i])
				return n
			}
		}
	}
	return n
}

// carriesVector reports whether a tag carries a v128. wazero's interpreter pops
// one slot of its stack for it where there are two, and loses the stack.
func carriesVector(m *binary.Module) bool {
	return slices.ContainsFunc(m.Tags, func(t uint32) bool { return slices.Contains(m.Types[t].Params, v128) })
}

// runAll calls every exported function three times, in one instance.
func runAll(t *testing.T, cfg wazero.RuntimeConfig, wasm []byte, m *binary.Module, tank *meter.Tank) (out []string) {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, cfg)
	defer func() { _ = rt.Close(ctx) }()
	if tank != nil {
		passtest.Provide(tank)(ctx, rt)
	}
	inst := musttest.Get(rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithStartFunctions()))(t)
	flight, _ := inst.ExportedGlobal(lower.Export).(api.MutableGlobal)
	for round := range 3 {
		for _, e := range m.Exports {
			if e.Kind != binary.ExternFunc {
				continue
			}
			inst.ExportedGlobal("budget").(api.MutableGlobal).Set(200)
			var args []uint64
			for i := range m.Types[m.Funcs[e.Index]].Params {
				args = append(args, uint64(3*i+round))
			}
			res, err := inst.ExportedFunction(e.Name).Call(ctx, args...)
			end := fmt.Sprint(res)
			switch {
			case err != nil:
				end = ending(err)
			case flight != nil && flight.Get() != 0:
				for _, r := range res {
					if r != 0 {
						t.Errorf("%s came back by an exception with %v, want zeros", e.Name, res)
					}
				}
				flight.Set(0)
				end = "exception"
			}
			hash := inst.ExportedGlobal("hash").Get() & 0xffffffff
			out = append(out, fmt.Sprintf("%s(%v): %s, hash %#x", e.Name, args, end, hash))
		}
	}
	return out
}

// ending names how a call ended. A reference that is null traps in both, with
// other words.
func ending(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	switch {
	case strings.Contains(line, "exception") && !strings.Contains(line, "null"):
		return "exception"
	case strings.Contains(line, "null"):
		return "trap: unreachable"
	}
	_, kind, ok := strings.Cut(line, "wasm error: ")
	if !ok {
		return "not by a trap: " + line
	}
	return "trap: " + kind
}

// FuzzPrograms is TestRandomPrograms for bytes of the fuzzer's choice.
func FuzzPrograms(f *testing.F) {
	for seed := range uint64(15) {
		f.Add(bytesOf(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) <= 4096 {
			compare(t, generate(data))
		}
	})
}

// FuzzLower takes any module that the validator accepts: what comes out is valid
// without exceptions and can be metered, or there is a verdict against it.
func FuzzLower(f *testing.F) {
	for _, sc := range spectest.Load(f, spectest.Exceptions) {
		for i := range sc.Commands {
			if c := &sc.Commands[i]; strings.HasSuffix(c.Filename, ".wasm") {
				f.Add(sc.Module(f, c))
			}
		}
	}
	for seed := range uint64(20) {
		f.Add(generate(bytesOf(seed)))
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		if len(wasm) > 1<<16 {
			return
		}
		if _, err := check.Module(wasm, anything); err == nil {
			_, _, _, _ = lowered(t, wasm) // fails by itself
		}
	})
}
