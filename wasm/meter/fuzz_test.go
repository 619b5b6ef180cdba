package meter_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/meter"
)

// FuzzMeter makes a module, and runs it as it is, metered with slices of three
// sizes, and with an instruction counter, on compiler and interpreter. All must
// do the same; all metered ones use the same fuel, and at least one unit an
// instruction.
func FuzzMeter(f *testing.F) {
	for seed := range 150 {
		r := rand.New(rand.NewPCG(uint64(seed), 1)) //nolint:gosec // a count
		b := make([]byte, 30*(seed%9)+1)
		for i := range len(b) - 1 {
			b[i] = byte(r.Uint32()) //nolint:gosec // chance
		}
		b[len(b)-1] = byte(seed)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		compareRuns(t, generate(data))
	})
}

func compareRuns(t *testing.T, wasm []byte) {
	t.Helper()
	res, err := check.Module(wasm, nil)
	if err != nil {
		t.Fatalf("the generated module is refused: %v", err)
	}
	rw, err := meter.Rewrite(res.Module, res.MaxStack, &meter.Options{Trace: true, TableCap: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := meter.Verify(res.Module, rw); err != nil {
		t.Fatal(err)
	}
	metered, counted := rw.Module.Encode(), counting(res.Module)
	again, err := check.Module(metered, anything)
	if err != nil {
		t.Fatalf("the metered module is not valid: %v", err)
	}
	_ = again
	var fuel []uint64
	for _, cfg := range []wazero.RuntimeConfig{
		wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features), wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features),
	} {
		want := runAll(t, cfg, wasm, res.Module, nil, "")
		exact := runAll(t, cfg, counted, res.Module, nil, exactName)
		same(t, "with a counter", want, exact)
		for _, slice := range []uint64{100, 1_000, 100_000} {
			tank := &meter.Tank{Budget: 1 << 50, Slice: slice}
			got := runAll(t, cfg, metered, res.Module, tank, meter.ExportFuel)
			same(t, fmt.Sprintf("metered, in slices of %d", slice), want, got)
			fuel = append(fuel, got.fuel)
			if got.fuel != fuel[0] {
				t.Fatalf("fuel differs between engines or slices: %v", fuel)
			}
			if got.fuel < exact.fuel {
				t.Fatalf("%d units for %d instructions", got.fuel, exact.fuel)
			}
		}
	}
}

// record is all that can be seen of a run.
type record struct {
	calls  []string // results or traps
	state  string   // memory and globals
	fuel   uint64
	broken string
}

func same(t *testing.T, how string, want, got record) {
	t.Helper()
	if want.broken != got.broken || want.state != got.state || strings.Join(want.calls, "\n") != strings.Join(got.calls, "\n") {
		t.Fatalf("%s it differs:\nwant %+v\n got %+v", how, want, got)
	}
}

// runAll calls every exported function twice. With a tank it meters; counter
// names the global that holds fuel or a number of instructions.
func runAll(t *testing.T, cfg wazero.RuntimeConfig, wasm []byte, m *binary.Module, tank *meter.Tank, counter string) (r record) {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, cfg)
	defer func() { _ = rt.Close(ctx) }()
	if tank != nil {
		provide(tank)(ctx, rt)
	}
	inst, err := rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		return record{broken: trap(err)}
	}
	for round := range 2 {
		for _, e := range m.Exports {
			if e.Kind != binary.ExternFunc {
				continue
			}
			if g, ok := inst.ExportedGlobal("g0").(api.MutableGlobal); ok {
				g.Set(300)
			}
			var args []uint64
			for i := range m.Types[m.Funcs[e.Index]].Params {
				args = append(args, uint64(3*i+round)) //nolint:gosec // small
			}
			res, err := inst.ExportedFunction(e.Name).Call(ctx, args...)
			switch {
			case errors.Is(err, meter.ErrTable):
				// Where the specification answers -1; the tables of generated modules stay below.
				t.Fatal(err)
			case err != nil:
				r.calls = append(r.calls, e.Name+": "+trap(err))
			default:
				r.calls = append(r.calls, fmt.Sprint(e.Name, res))
			}
		}
	}
	mem, _ := inst.Memory().Read(0, inst.Memory().Size())
	r.state = fmt.Sprintf("%x", sha256.Sum256(mem))
	for i := range 4 {
		r.state += fmt.Sprint(" ", inst.ExportedGlobal(fmt.Sprintf("g%d", i)).Get())
	}
	if counter != "" {
		r.fuel = inst.ExportedGlobal(counter).Get()
	}
	if tank != nil {
		r.fuel = tank.Used(int64(r.fuel)) //nolint:gosec // the counter's bits
	}
	return r
}

const exactName = "exactly"

// counting puts a counter before every instruction that is not structural.
func counting(in *binary.Module) []byte {
	m := *in
	at := m.Imported(binary.ExternGlobal) + uint32(len(m.Globals)) //nolint:gosec // few
	m.Globals = append(append([]binary.Global(nil), m.Globals...), binary.Global{
		GlobalType: binary.GlobalType{Type: binary.I64, Mutable: true}, Init: binary.ConstExpr{0x42, 0, 0x0b},
	})
	m.Exports = append(append([]binary.Export(nil), m.Exports...), binary.Export{Name: exactName, Kind: binary.ExternGlobal, Index: at})
	m.Codes = append([]binary.Code(nil), m.Codes...)
	for i := range m.Codes {
		var out []byte
		r := binary.NewReader(m.Codes[i].Body, 0)
		for x := (binary.Instr{}); r.Next(&x); {
			switch x.Op {
			case binary.OpNop, binary.OpBlock, binary.OpLoop, binary.OpElse, binary.OpEnd:
			default:
				out = binary.AppendU32(append(out, 0x23), at)
				out = append(out, 0x42, 1, 0x7c)
				out = binary.AppendU32(append(out, 0x24), at)
			}
			out = append(out, m.Codes[i].Body[x.Pos:x.End]...)
		}
		m.Codes[i].Body = out
	}
	return m.Encode()
}
