package passtest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"openskill/internal/musttest"
	"openskill/wasm/check"
	"openskill/wasm/passtest"
)

// TestMiscompiled holds that modules that wazero v1.12.0 compiles wrongly on amd64, reduced
// from seeds 59117 and 4687 of TestArithmetic, compute rightly amended. wasmtime gives what
// the interpreter gives.
func TestMiscompiled(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "miscompiled", "*.wasm"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%d modules, %v", len(files), err)
	}
	engines := passtest.Engines(api.CoreFeaturesV2)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			wasm := musttest.Get(os.ReadFile(file))(t)
			res := musttest.Get(check.Module(wasm, nil))(t)
			want := passtest.Run(t, engines[0], wasm, res.Module, nil)
			for _, e := range engines[1:] {
				passtest.Same(t, "on the "+e.Name, want, passtest.Run(t, e, passtest.Amended(t, res.Module), res.Module, nil))
			}
		})
	}
}

// TestSeedsThatWereWrong are the programs of TestArithmetic that were compiled wrongly.
func TestSeedsThatWereWrong(t *testing.T) {
	for _, seed := range []uint64{4687, 25059, 59117} {
		compute(t, passtest.Arithmetic(passtest.Bytes(seed, 8)))
	}
}
