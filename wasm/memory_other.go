//go:build !linux

package wasm

// within grows by copying, to the exact size.
func within(m *memory, size uint64) []byte {
	b := make([]byte, size)
	copy(b, m.space)
	m.space = b
	return b
}
