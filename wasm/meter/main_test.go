package meter_test

import (
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/meter"
	"openskill/wasm/meter/metertest"
)

// commandBytes is a module with a start function, a function () -> () and a
// function () -> i32 that are exported.
func commandBytes() []byte {
	zero := uint32(0)
	m := &binary.Module{
		Types: []binary.FuncType{{}, {Results: []binary.ValType{binary.I32}}},
		Funcs: []uint32{0, 0, 1},
		Start: &zero,
		Exports: []binary.Export{
			{Name: "_initialize", Kind: binary.ExternFunc, Index: 1},
			{Name: "run", Kind: binary.ExternFunc, Index: 2},
		},
		Codes: []binary.Code{{Body: []byte{0x0b}}, {Body: []byte{0x0b}}, {Body: []byte{0x41, 7, 0x0b}}},
	}
	return m.Encode()
}

func TestMainFunction(t *testing.T) {
	res := musttest.Get(check.Module(commandBytes(), nil))(t)
	rewrite := func() *meter.Rewritten {
		return musttest.Get(meter.Rewrite(res.Module, res.MaxStack, &meter.Options{Main: []uint32{0, 1, 2}, Trace: true}))(t)
	}
	rw := rewrite()
	if err := metertest.Verify(res.Module, rw); err != nil {
		t.Error(err)
	}
	out := rw.Module.Encode()
	if _, err := check.Module(out, &check.Options{Imports: func(module, name string) (binary.FuncType, bool) {
		i64 := binary.I64
		return binary.FuncType{Params: []binary.ValType{i64, i64}, Results: []binary.ValType{i64}}, module == meter.ImportModule
	}}); err != nil {
		t.Errorf("the metered module: %v", err)
	}
	damages := map[string]func(rw *meter.Rewritten){
		"another order":   func(rw *meter.Rewritten) { rw.Proof.Main[0], rw.Proof.Main[1] = 1, 0 },
		"no such":         func(rw *meter.Rewritten) { rw.Proof.Main[0] = 9 },
		"not claimed":     func(rw *meter.Rewritten) { rw.Proof.Main = nil },
		"another body":    func(rw *meter.Rewritten) { last := &rw.Module.Codes[len(rw.Module.Codes)-1]; last.Body[0] = 0 },
		"another locals":  func(rw *meter.Rewritten) { rw.Module.Codes[len(rw.Module.Codes)-1].Locals = nil },
		"another export":  func(rw *meter.Rewritten) { rw.Module.Exports[len(rw.Module.Exports)-1].Index = 0 },
		"one call unsaid": func(rw *meter.Rewritten) { rw.Proof.Main = rw.Proof.Main[1:] },
	}
	for name, damage := range damages {
		rw := rewrite()
		rw.Proof.Main = clone(rw.Proof.Main)
		damage(rw)
		if metertest.Verify(res.Module, rw) == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

func clone(x []uint32) []uint32 { return append([]uint32(nil), x...) }

func TestVisitOf(t *testing.T) {
	for _, c := range []struct {
		need int64
		want meter.Visit
		code uint32
	}{
		{0, meter.NeedsFuel, 0},
		{-1, meter.NeedsFuel, 0},
		{1 << 40, meter.NeedsFuel, 0},
		{-1 << 63, meter.NeedsFuel, 0},
		{-1<<63 + 1, meter.NeedsFuel, 0},
		{-1<<63 + 1<<40, meter.Return, 0},
		{-1<<63 + 2<<40, meter.End, 0},
		{-1<<63 + 2<<40 + 0xffffffff, meter.End, 0xffffffff},
		{-1<<63 + 2<<40 + 1<<32, meter.NeedsFuel, 0},
	} {
		if v, code := meter.VisitOf(c.need); v != c.want || code != c.code {
			t.Errorf("VisitOf(%d) = %d, %d; want %d, %d", c.need, v, code, c.want, c.code)
		}
	}
}
