package wasm

import (
	"unsafe"

	"github.com/tetratelabs/wazero/experimental"

	"openskill/wasm/guestfs"
)

// memory is the memory of one run: its linear memory, and what the host keeps for it
// beside that, under one limit. Address space is reserved up to the
// limit and given back when the instance is closed; pages cost something only
// once they are touched. wazero's own memory grows by copying, and peaks at
// three times the limit.
type memory struct {
	limit   uint64
	peak    uint64 // of the linear memory, which never shrinks
	held    uint64 // bytes of blocks of a plug-in
	files   uint64 // bytes of files in scratch space
	tables  uint64 // bytes of tables and element segments, as far as they count
	most    uint64 // that all of it was at once
	refused bool
	spaces  *spaces
	space   []byte
	open    uint64      // bytes of the space that can be accessed, where it lies between guard pages
	pool    *memoryPool // of the run's processes; nil: it has one
	noted   uint64      // there
	frozen  bool        // an image is mapped over the space, so it cannot begin another instance
}

// room is how much there may be of a part beside all others, which take so much.
func (m *memory) room(others uint64) uint64 {
	limit := m.limit
	if m.pool != nil {
		limit = min(limit, m.pool.room(m.noted))
	}
	return limit - min(others, limit)
}

// count notes that a part grew or shrank.
func (m *memory) count() {
	now := m.peak + m.held + m.files + m.tables
	m.most = max(m.most, now)
	if m.pool != nil {
		m.pool.note(&m.noted, now)
	}
}

// begin is the memory of a run, which may have files from a start-up before it.
func (m *memory) begin(limit uint64, scratch *guestfs.Memory) {
	m.limit, m.held, m.files, m.most, m.refused = limit, 0, 0, 0, false
	if scratch != nil {
		m.files = uint64(scratch.Used()) // never negative
	}
	m.count()
}

// share has files in scratch space count towards the limit, until the function that it
// gives is called. nil: there is none.
func (m *memory) share(scratch *guestfs.Memory) (end func()) {
	m.begin(m.limit, scratch)
	if scratch == nil {
		return func() {}
	}
	scratch.SetHold(m.holdFiles)
	return func() { scratch.SetHold(nil) }
}

// hold counts the blocks of a plug-in; it is wasi.Config.Hold.
func (m *memory) hold(bytes uint64) (most uint64) {
	most = m.room(m.peak + m.files + m.tables)
	if bytes > most {
		m.refused = true
		return most
	}
	m.held = bytes
	m.count()
	return most
}

// holdFiles counts the files in scratch space, and reports whether there is room for them;
// see [guestfs.Memory.SetHold].
func (m *memory) holdFiles(used int64) bool {
	bytes := uint64(used) // never negative
	if bytes > m.files && bytes > m.room(m.peak+m.held+m.tables) {
		m.refused = true
		return false
	}
	m.files = bytes
	m.count()
	return true
}

// Allocate implements experimental.MemoryAllocator. An instance has one memory.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate implements experimental.LinearMemory. nil makes memory.grow answer -1.
func (m *memory) Reallocate(size uint64) []byte {
	if size > m.room(m.held+m.files+m.tables) {
		m.refused = true
		return nil
	}
	if m.space == nil {
		m.space, m.open = m.spaces.take(m.limit), m.spaces.begins()
	}
	b := within(m, size)
	if b == nil {
		m.refused = true
		return nil
	}
	m.peak = max(m.peak, size)
	m.count()
	return b
}

// Free implements experimental.LinearMemory.
func (m *memory) Free() {
	switch {
	case m.space == nil:
	case m.frozen:
		m.spaces.release(m.space, m.open)
	default:
		m.spaces.put(m.space, m.peak, m.open)
	}
	m.space = nil
}

// GuardPages tells code without checks where the memory begins; ok says that it lies between guard pages.
func (m *memory) GuardPages() (base uintptr, ok bool) {
	return uintptr(unsafe.Pointer(unsafe.SliceData(m.space))), m.spaces.guarded && m.space != nil //nolint:gosec // a number
}
