package wasm

import "openskill/wasm/guard"

// within gives the first size bytes of the space, whose pages come when they are
// touched; nil if it is smaller, or they cannot be had.
func within(m *memory, size uint64) []byte {
	if uint64(len(m.space)) < size {
		return nil
	}
	if m.spaces.guarded && size > m.open {
		if !guard.Open(m.space[m.open:size]) {
			guard.Close(m.space[m.open:size]) // the kernel may have opened a part
			return nil
		}
		m.open = size
	}
	return m.space[:size:size]
}
