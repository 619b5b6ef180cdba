//go:build !linux

package wasm

// template is the first content of a module's memories.
type template struct{ content []byte }

func newTemplate(content []byte) (template, error) { return template{content}, nil }

func (t *template) close() {}

// reserve keeps nothing but the content: there is no address space to be had cheaply.
func (t *template) reserve(uint64) []byte { return append([]byte{}, t.content...) }

// reset cannot give pages back; a space is used once.
func (t *template) reset([]byte, uint64) bool { return false }

// within grows by copying, to the exact size.
func within(m *memory, size uint64) []byte {
	b := make([]byte, size)
	copy(b, m.space)
	m.space = b
	return b
}

func giveBack([]byte) {}
