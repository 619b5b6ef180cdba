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
	limit    uint64
	peak     uint64
	refused  bool
	spaces   *spaces
	space    []byte
	held     uint64 // bytes beside the linear memory, and the most that they were
	heldPeak uint64
	frozen   bool // an image is mapped over the space, so it cannot begin another instance
}

// hold counts what the host keeps for the guest beside its linear memory, under the same
// limit; it is wasi.Config.Hold.
func (m *memory) hold(bytes uint64) (most uint64) {
	most = m.limit - min(m.peak, m.limit)
	if bytes > most {
		m.refused = true
		return most
	}
	m.held = bytes
	m.heldPeak = max(m.heldPeak, bytes)
	return most
}

// most is the memory that the run took, in bytes.
func (m *memory) most() uint64 { return m.peak + m.heldPeak }

// Allocate implements experimental.MemoryAllocator. An instance has one memory.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate implements experimental.LinearMemory. nil makes memory.grow answer -1.
func (m *memory) Reallocate(size uint64) []byte {
	if size > m.limit-min(m.held, m.limit) {
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
