package passtest_test

import (
	"strconv"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"openskill/internal/musttest"
	"openskill/wasm/amend"
	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/meter"
	"openskill/wasm/passtest"
)

// FuzzArithmetic holds what the compiler makes of a module, amended, metered and not,
// against the interpreter: the compiler is what all calls run on, and nothing of ours
// would notice if it computed wrongly.
func FuzzArithmetic(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(passtest.Bytes(seed, int(seed*7%400)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) <= 4096 {
			compute(t, passtest.Arithmetic(data))
		}
	})
}

// TestArithmetic is FuzzArithmetic for one seed after the other.
func TestArithmetic(t *testing.T) {
	first, end := passtest.Seeds(t, 50)
	for seed := first; seed < end; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { compute(t, passtest.Arithmetic(passtest.Bytes(seed, 8))) })
	}
}

// TestPressure is TestArithmetic for functions that hold more than fits into registers.
func TestPressure(t *testing.T) {
	first, end := passtest.Seeds(t, 30)
	for seed := first; seed < end; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { compute(t, passtest.Pressure(passtest.Bytes(seed, 8))) })
	}
}

// TestCalls is TestArithmetic for functions whose values are passed on the stack.
func TestCalls(t *testing.T) {
	first, end := passtest.Seeds(t, 30)
	for seed := first; seed < end; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { compute(t, passtest.Calls(passtest.Bytes(seed, 8))) })
	}
}

func compute(t *testing.T, wasm []byte) {
	t.Helper()
	res, err := check.Module(wasm, nil)
	if err != nil {
		t.Fatalf("the generated module is refused: %v", err)
	}
	m := musttest.Get(amend.References(res.Module))(t)
	engines := passtest.Engines(api.CoreFeaturesV2)
	want := passtest.Run(t, engines[0], wasm, m, nil)
	rw := musttest.Get(meter.Rewrite(m, res.MaxStack, nil))(t)
	for _, e := range engines[1:] {
		passtest.Same(t, "on the "+e.Name, want, passtest.Run(t, e, passtest.Amended(t, m), m, nil))
		tank := &meter.Tank{Budget: 1 << 50, Slice: 1} // each test asks, with all that is in registers
		passtest.Same(t, "metered, on the "+e.Name, want,
			passtest.Run(t, e, passtest.Amended(t, rw.Module), m, &passtest.Counted{Tank: tank, Counter: meter.ExportFuel}))
	}
}

// TestGenerated holds that generated modules are valid, use every instruction, and
// mostly return.
func TestGenerated(t *testing.T) {
	used := map[binary.Op]bool{}
	returned := 0
	const seeds = 200
	for seed := range uint64(seeds) {
		wasm := passtest.Arithmetic(passtest.Bytes(seed, 8))
		res, err := check.Module(wasm, nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i := range res.Module.Codes {
			r := binary.NewReader(res.Module.Codes[i].Body, 0)
			for in := (binary.Instr{}); r.Next(&in); {
				used[in.Op] = true
			}
		}
		if seed%10 == 0 {
			rec := passtest.Run(t, passtest.Engines(api.CoreFeaturesV2)[0], wasm, res.Module, nil)
			if len(rec.Calls) == 2 && rec.Calls[0] == "f[]" {
				returned++
			}
		}
		for name, other := range map[string][]byte{"program": passtest.Program(passtest.Bytes(seed, 9)), "addresses": passtest.Addresses(passtest.Bytes(seed, 9))} {
			if _, err := check.Module(other, nil); err != nil {
				t.Fatalf("%s of seed %d: %v", name, seed, err)
			}
		}
	}
	for op := range binary.Op(0x300) {
		if sig := op.Signature(); sig != "" && !used[op] && (op < 0x108 || op >= 0x200) && op.Imm() != binary.ImmZero {
			t.Errorf("%v is never generated", op)
		}
	}
	if returned < seeds/10/2 {
		t.Errorf("%d of %d programs returned", returned, seeds/10)
	}
}
