package wasm

import (
	"testing"
	"unsafe"
)

// LowerShareFrom has code of any size shared, for the time of a test.
func LowerShareFrom(t *testing.T, n int) {
	t.Helper()
	before := shareFrom
	shareFrom = n
	t.Cleanup(func() { shareFrom = before })
}

// CodeAt is where the machine code of a module begins.
func (m *Module) CodeAt() uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData(machineCode(m.compiled))))
}
