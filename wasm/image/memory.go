package image

import "bytes"

const pageSize = 4096

var zeroPage [pageSize]byte

func zeros(page []byte) bool { return bytes.Equal(page, zeroPage[:len(page)]) }

// Size is the length of the content in bytes, whole pages.
func (m *Memory) Size() uint64 { return m.size }

// Held is how much memory the content itself takes, in bytes.
func (m *Memory) Held() uint64 { return m.held }
