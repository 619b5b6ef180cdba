package wasm

// within gives the first size bytes of the space, whose pages come when they are
// touched; nil if it is smaller.
func within(m *memory, size uint64) []byte {
	if uint64(len(m.space)) < size {
		return nil
	}
	return m.space[:size:size]
}
