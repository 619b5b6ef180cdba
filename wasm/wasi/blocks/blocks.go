// Package blocks is the memory that an Extism plug-in and its host share: blocks of
// bytes, which both sides name by an offset.
//
// The linear memory of the plug-in is no part of it. How much the blocks take of the host
// is counted, with what the host keeps of each: [Memory.Held].
package blocks

import (
	"encoding/binary"
	"slices"
)

const (
	// grain is what sizes are rounded up to: plug-ins read eight bytes at once, up to the
	// end of a block.
	grain = 8
	// overhead is what a block costs beside its bytes.
	overhead = 96
	// first is the first offset; zero is no block.
	first = 16
	// smallest is how much is made at first, and little how much without a space.
	smallest = 1 << 10
	little   = 64 << 10
	// looks is how many freed blocks are looked at for one that fits.
	looks = 32
	// largest is what no block is larger than, so that no sum overflows.
	largest = 1 << 32
)

// Memory is the blocks of one run. The zero value is empty and ready for use. It is not
// safe for concurrent use.
type Memory struct {
	// Space gives zeros of this size, without memory behind them as far as that can be:
	// more than a few blocks are kept there, so that they need not be copied to grow. nil:
	// they are copied. It is set before the first block.
	Space func(size uint64) []byte

	space []byte // that it gave; nil: none yet
	data  []byte // the first of them are no block's
	at    map[uint64]block
	free  []uint64 // offsets of blocks to be used again, the latest last
	held  uint64
	top   uint64 // of what was ever touched
}

type block struct {
	room uint64 // bytes that it may have
	used uint64 // that it has; 0: it is free
}

// Held is the memory that it takes of the host, in bytes: what was touched of a space.
func (m *Memory) Held() uint64 { return m.held }

// Taken gives the space that was taken, nil if none was; no block may be used any more.
func (m *Memory) Taken() []byte { return m.space }

// Alloc makes a block of n bytes and gives its offset, or 0: where n is 0, or where more
// than most bytes would be held. What is in the block is nobody else's, and not said.
func (m *Memory) Alloc(n, most uint64) uint64 {
	if n == 0 || n > largest {
		return 0
	}
	if at, ok := m.again(n); ok {
		return at
	}
	at := max(uint64(len(m.data)), first)
	room := (n + grain - 1) &^ (grain - 1)
	if !m.grow(at+room, most) {
		return 0
	}
	if m.at == nil {
		m.at = map[uint64]block{}
	}
	m.at[at] = block{room, n}
	return at
}

// again gives a freed block that is not much larger than it has to be.
func (m *Memory) again(n uint64) (uint64, bool) {
	for i := len(m.free) - 1; i >= max(0, len(m.free)-looks); i-- {
		at := m.free[i]
		if room := m.at[at].room; room >= n && room <= 2*n+overhead {
			m.free = slices.Delete(m.free, i, i+1)
			m.at[at] = block{room, n}
			return at, true
		}
	}
	return 0, false
}

// grow has data end at end, and counts one block more.
func (m *Memory) grow(end, most uint64) bool {
	more := uint64(overhead)
	if end > m.top { // not after a Reset
		more += end - m.top
	}
	if m.held+more > most {
		return false
	}
	if size := uint64(cap(m.data)); end > size {
		var data []byte
		switch {
		case end <= little || m.Space == nil:
			data = make([]byte, max(2*size, end, smallest))
		case m.space != nil:
			return false
		default:
			m.space = m.Space(min(most, largest))
			if data = m.space; uint64(len(data)) < end {
				return false
			}
		}
		copy(data, m.data)
		m.data = data
	}
	m.data = m.data[:end]
	m.top = max(m.top, end)
	m.held += more
	return true
}

// Free gives a block back. What is no block is left alone.
func (m *Memory) Free(at uint64) {
	if b := m.at[at]; b.used > 0 {
		m.at[at] = block{room: b.room}
		m.free = append(m.free, at)
	}
}

// Reset forgets all blocks. What is held stays so.
func (m *Memory) Reset() {
	m.data, m.free = m.data[:0], nil
	clear(m.at)
}

// Length is that of the block at an offset, in bytes; 0 where there is none.
func (m *Memory) Length(at uint64) uint64 { return m.at[at].used }

// Block gives the bytes of the block at an offset, nil where there is none. They are
// valid until the next Alloc.
func (m *Memory) Block(at uint64) []byte {
	n := m.at[at].used
	if n == 0 {
		return nil
	}
	return m.data[at : at+n : at+n]
}

// Range gives n bytes from an offset on, whichever blocks they are in; false if they are
// not all there.
func (m *Memory) Range(at, n uint64) ([]byte, bool) {
	end := uint64(len(m.data))
	if at < first || at > end || n > end-at {
		return nil, false
	}
	return m.data[at : at+n : at+n], true
}

// Load8 reads a byte.
func (m *Memory) Load8(at uint64) (byte, bool) {
	if at < first || at >= uint64(len(m.data)) {
		return 0, false
	}
	return m.data[at], true
}

// Store8 writes a byte.
func (m *Memory) Store8(at uint64, v byte) bool {
	if at < first || at >= uint64(len(m.data)) {
		return false
	}
	m.data[at] = v
	return true
}

// Load64 reads eight bytes, the least of them first.
func (m *Memory) Load64(at uint64) (uint64, bool) {
	b, ok := m.Range(at, 8)
	if !ok {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

// Store64 writes eight bytes.
func (m *Memory) Store64(at, v uint64) bool {
	b, ok := m.Range(at, 8)
	if ok {
		binary.LittleEndian.PutUint64(b, v)
	}
	return ok
}
