package passtest

import (
	"runtime"
	"testing"

	"openskill/wasm/amend"
	"openskill/wasm/binary"
)

// Amended encodes a module for this machine's compiler, as the engine does it last.
func Amended(t *testing.T, m *binary.Module) []byte {
	t.Helper()
	out, err := amend.Module(m, runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	return out.Encode()
}
