package bench

import (
	"unsafe"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"openskill/wasm/guard"
)

// withGuardPages has a bare runtime leave out the checks of addresses as the engine does, where it
// can, so that what is compared is the rest. memories is nil where it cannot.
func withGuardPages(cfg wazero.RuntimeConfig) (memories experimental.MemoryAllocator, _ wazero.RuntimeConfig) {
	guarded, err := guard.Compile(cfg)
	if err != nil {
		return nil, cfg
	}
	return experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory {
		return &guardedMemory{space: guard.Reserve()}
	}), guarded
}

// guardedMemory is a memory of zeros between guard pages.
type guardedMemory struct {
	space []byte
	open  uint64
}

func (m *guardedMemory) GuardPages() (base uintptr, ok bool) {
	return uintptr(unsafe.Pointer(unsafe.SliceData(m.space))), m.space != nil //nolint:gosec // a number
}

func (m *guardedMemory) Reallocate(size uint64) []byte {
	if m.space == nil || size > m.open && !guard.Open(m.space[m.open:size]) {
		return nil
	}
	m.open = size
	return m.space[:size:size]
}

func (m *guardedMemory) Free() {
	guard.Release(m.space, m.open)
	m.space = nil
}
