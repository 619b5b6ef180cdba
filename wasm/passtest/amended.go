package passtest

import (
	"runtime"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/amend"
	"openskill/wasm/binary"
)

// Amended encodes a module for this machine's compiler, as the engine does it last.
func Amended(t *testing.T, m *binary.Module) []byte {
	t.Helper()
	out := musttest.Get(amend.Module(m, runtime.GOARCH))(t)
	return out.Encode()
}
