package meter_test

import (
	"fmt"
	"strconv"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/meter"
	"openskill/wasm/meter/metertest"
	"openskill/wasm/passtest"
)

// FuzzMeter makes a module, and runs it as it is, metered with slices of three
// sizes, and with an instruction counter, on compiler and interpreter. All must
// do the same; all metered ones use the same fuel, and at least one unit an
// instruction.
func FuzzMeter(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(passtest.Bytes(seed, int(30*(seed%9))))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		compareRuns(t, passtest.Program(data))
	})
}

// TestPrograms is FuzzMeter for one seed after the other.
func TestPrograms(t *testing.T) {
	first, end := passtest.Seeds(t, 63)
	for seed := first; seed < end; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			compareRuns(t, passtest.Program(passtest.Bytes(seed, int(8+30*(seed%9)))))
		})
	}
}

func compareRuns(t *testing.T, wasm []byte) {
	t.Helper()
	res, err := check.Module(wasm, nil)
	if err != nil {
		t.Fatalf("the generated module is refused: %v", err)
	}
	rw := musttest.Get(meter.Rewrite(res.Module, res.MaxStack, &meter.Options{Trace: true, TableCap: 1 << 20}))(t)
	musttest.Do(t, metertest.Verify(res.Module, rw))
	metered, counted := rw.Module.Encode(), counting(res.Module)
	if _, err := check.Module(metered, anything); err != nil {
		t.Fatalf("the metered module is not valid: %v", err)
	}
	var fuel []uint64
	var first passtest.Record
	for i, engine := range passtest.Engines(features) {
		want := passtest.Run(t, engine, wasm, res.Module, nil)
		if i == 0 {
			first = want
		}
		passtest.Same(t, "on the other engine", first, want)
		exact := passtest.Run(t, engine, counted, res.Module, &passtest.Counted{Counter: exactName})
		passtest.Same(t, "with a counter", want, exact)
		for _, slice := range []uint64{100, 1_000, 100_000} {
			tank := &meter.Tank{Budget: 1 << 50, Slice: slice}
			got := passtest.Run(t, engine, metered, res.Module, &passtest.Counted{Tank: tank, Counter: meter.ExportFuel})
			passtest.Same(t, fmt.Sprintf("metered, in slices of %d", slice), want, got)
			fuel = append(fuel, got.Fuel)
			if got.Fuel != fuel[0] {
				t.Fatalf("fuel differs between engines or slices: %v", fuel)
			}
			if got.Fuel < exact.Fuel {
				t.Fatalf("%d units for %d instructions", got.Fuel, exact.Fuel)
			}
		}
	}
}

const exactName = "exactly"

// counting puts a counter before every instruction that is not structural.
func counting(in *binary.Module) []byte {
	m := *in
	at := m.Imported(binary.ExternGlobal) + uint32(len(m.Globals))
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
