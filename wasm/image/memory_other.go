//go:build !linux

package image

// Memory is a content that does not change.
type Memory struct {
	content    []byte
	size, held uint64

	named
}

// New keeps a content.
func New(content []byte) (*Memory, error) {
	n := uint64(len(content))
	return &Memory{content: content, size: n, held: n}, nil
}

// Close gives the content up. It may be called twice.
func (m *Memory) Close() {}

// Reserve gives nothing but a copy of the content: there is no address space to be
// had cheaply.
func (m *Memory) Reserve(uint64) []byte { return append([]byte{}, m.content...) }

// Zeros gives zeros.
func Zeros(size uint64) []byte { return make([]byte, size) }

// Map cannot share the content here.
func (m *Memory) Map([]byte) bool { return false }

// Drop cannot give pages back here; a space is used once.
func (m *Memory) Drop([]byte, uint64) bool { return false }

// Reset cannot put pages back here.
func (m *Memory) Reset([]byte) (own uint64, ok bool) { return 0, false }

// Changed has nothing to compare with here.
func (m *Memory) Changed([]byte, uint64, bool) []uint32 { return nil }

// sum is of no use where nothing can be shared.
func (m *Memory) sum() (digest [32]byte) { return digest }

// Equal is of no use where nothing can be shared.
func (m *Memory) Equal([]byte) bool { return false }

// Release gives back a space.
func Release([]byte) {}

// Discard cannot give memory back here.
func Discard([]byte) {}

// Supported reports whether instances can share a content on this platform.
const Supported = false

// Ready does nothing here.
func Ready() {}
