package lower_test

import (
	"os"
	"testing"

	"openskill/wasm/binary"
	"openskill/wasm/lower"
)

// BenchmarkLower lowers the module that OPENSKILL_LOWER_MODULE names, which is
// taken to be valid.
func BenchmarkLower(b *testing.B) {
	path := os.Getenv("OPENSKILL_LOWER_MODULE")
	if path == "" {
		b.Skip("OPENSKILL_LOWER_MODULE names no module")
	}
	wasm, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	m, err := binary.Decode(wasm, runtimeLimits.Limits)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(wasm)))
	for b.Loop() {
		if _, err := lower.Exceptions(m, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
