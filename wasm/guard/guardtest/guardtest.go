// Package guardtest is support for tests that run modules between guard pages without the
// engine: it makes their memories, each with a sentinel before it, which nobody may touch.
package guardtest

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"openskill/wasm/guard"
)

// Compiler has a compiler make code without checks. ok is false where that cannot be done: on
// other platforms, and in a build without make.
func Compiler(cfg wazero.RuntimeConfig) (guarded wazero.RuntimeConfig, ok bool) {
	guarded, err := guard.Compile(cfg)
	return guarded, err == nil
}

type memories struct{ tb testing.TB }

// New makes an allocator of memories for a test.
func New(tb testing.TB) experimental.MemoryAllocator {
	tb.Helper()
	return &memories{tb}
}

// sentinel is what lies before each memory, where a negative address would lead, and no access of
// the memory before it.
var sentinel = bytes.Repeat([]byte{0x5e}, 32<<10)

func before(space []byte) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(space)), -len(sentinel))), len(sentinel)) //nolint:gosec // the page before it
}

type memory struct {
	tb    testing.TB
	space []byte
	open  uint64
}

// Allocate implements experimental.MemoryAllocator.
func (m *memories) Allocate(_, _ uint64) experimental.LinearMemory {
	b := guard.Reserve()
	if b == nil {
		m.tb.Fatal("there is no address space")
	}
	if s := before(b); guard.Open(s) {
		copy(s, sentinel)
	}
	return &memory{m.tb, b, 0}
}

// GuardPages is what the compiler asks for.
func (m *memory) GuardPages() (base uintptr, ok bool) {
	return uintptr(unsafe.Pointer(unsafe.SliceData(m.space))), true //nolint:gosec // a number
}

// Reallocate implements experimental.LinearMemory.
func (m *memory) Reallocate(size uint64) []byte {
	if size > m.open && !guard.Open(m.space[m.open:size]) {
		return nil
	}
	m.open = size
	return m.space[:size:size]
}

// Free implements experimental.LinearMemory.
func (m *memory) Free() {
	s := before(m.space)
	if !bytes.Equal(s, sentinel) {
		m.tb.Error("what lies before the memory was written to")
	}
	if !guard.Close(s) {
		m.tb.Fatal("the sentinel cannot be closed")
	}
	guard.Release(m.space, m.open)
}
