package wasm

import (
	"github.com/tetratelabs/wazero/experimental"

	"openskill/wasm/image"
)

// memory is the linear memory of one run. Address space is reserved up to the
// limit and given back when the instance is closed; pages cost something only
// once they are touched. wazero's own memory grows by copying, and peaks at
// three times the limit.
type memory struct {
	limit   uint64
	peak    uint64
	refused bool
	spaces  *spaces
	space   []byte
	frozen  bool // an image is mapped over the space, so it cannot begin another instance
}

// Allocate implements experimental.MemoryAllocator. An instance has one memory.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate implements experimental.LinearMemory. nil makes memory.grow answer -1.
func (m *memory) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.refused = true
		return nil
	}
	if m.space == nil {
		m.space = m.spaces.take(m.limit)
	}
	b := within(m, size)
	if b == nil {
		m.refused = true
		return nil
	}
	m.peak = max(m.peak, size)
	return b
}

// Free implements experimental.LinearMemory.
func (m *memory) Free() {
	switch {
	case m.space == nil:
	case m.frozen:
		image.Release(m.space)
	default:
		m.spaces.put(m.space, m.peak)
	}
	m.space = nil
}
