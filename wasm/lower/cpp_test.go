package lower_test

import (
	"os"
	"path/filepath"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/spectest"
)

// TestCpp runs the C++ program that comes with wazero's source: throw, catch by
// type and by base class, rethrow.
func TestCpp(t *testing.T) {
	wasm := musttest.Get(os.ReadFile(filepath.Join(spectest.WazeroDir(t), "experimental", "testdata", "cpp_exceptions.wasm")))(t)
	_, _, st, err := lowered(t, wasm)
	musttest.Do(t, err)
	t.Logf("%+v, growth %d %%", st, 100*(st.After-st.Before)/st.Before)
	for name, want := range map[string]int32{
		"test_no_throw": 42, "test_catch_specific": -1, "test_catch_base": 1, "test_rethrow": -42,
	} {
		if got, err := call(t, wasm, name); err != nil || int32(uint32(got[0])) != want {
			t.Errorf("%s: %v, %v, want %d", name, got, err, want)
		}
	}
}
