package lower_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/lower"
	"openskill/wasm/meter"
	"openskill/wasm/meter/metertest"
)

// runtimeLimits are those of a language runtime of the host's own.
var runtimeLimits = &check.Options{
	AnyImport: true, Exceptions: true, Branches: 20_000_000,
	CompileFunction: time.Hour, CompileModule: time.Hour, CompileMemory: 1 << 40,
	Limits: &binary.Limits{
		Size: 256 << 20, Functions: 1_000_000, Datas: 1_000_000, BodySize: 8 << 20, Exports: 10_000, Globals: 100_000,
		LocalGroups: 10_000_000, Imports: 10_000,
	},
}

// TestRealModule lowers the module that OPENSKILL_LOWER_MODULE names, such as
// CPython with its C++ extensions, and prints time, memory and growth. It is not
// part of every run because such modules are 100 MB.
func TestRealModule(t *testing.T) {
	path := os.Getenv("OPENSKILL_LOWER_MODULE")
	if path == "" {
		t.Skip("OPENSKILL_LOWER_MODULE names no module")
	}
	wasm := musttest.Get(os.ReadFile(path))(t)
	began := time.Now()
	in := musttest.Get(check.Module(wasm, runtimeLimits))(t)
	t.Logf("%d bytes, checked in %v: features %v", len(wasm), time.Since(began), in.Report.Features)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began = time.Now()
	low, err := lower.Exceptions(in.Module, in.MaxStack, nil)
	took := time.Since(began)
	musttest.Do(t, err)
	runtime.ReadMemStats(&after)
	s := low.Stats
	t.Logf("lowered in %v, %d MB allocated: %+v, growth %.2f %%", took, (after.TotalAlloc-before.TotalAlloc)>>20, s, 100*float64(s.After-s.Before)/float64(s.Before))
	out := musttest.Get(check.Module(low.Module.Encode(), runtimeLimits))(t)
	if len(out.Report.Features) > 0 {
		t.Errorf("the lowered module uses %v", out.Report.Features)
	}
	for i, got := range out.MaxStack {
		if got > low.MaxStack[i] {
			t.Errorf("function %d holds %d operands, and %d were announced", i, got, low.MaxStack[i])
		}
	}
	began = time.Now()
	rw := musttest.Get(meter.Rewrite(low.Module, low.MaxStack, &meter.Options{Trace: true}))(t)
	t.Logf("metered in %v", time.Since(began))
	if err := metertest.Verify(low.Module, rw); err != nil {
		t.Error(err)
	}
}
