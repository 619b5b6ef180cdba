package image

import (
	"bytes"
	"crypto/sha256"
	"sync"
)

const pageSize = 4096

var zeroPage [pageSize]byte

func zeros(page []byte) bool { return bytes.Equal(page, zeroPage[:len(page)]) }

// named keeps the digest of a content.
type named struct {
	once   sync.Once
	digest [sha256.Size]byte
}

// Digest is the SHA-256 of the content and of where it stands. It is computed once.
func (m *Memory) Digest() [sha256.Size]byte {
	m.once.Do(func() { m.digest = m.sum() })
	return m.digest
}

// Size is the length of the content in bytes, whole pages.
func (m *Memory) Size() uint64 { return m.size }

// Held is how much memory the content itself takes, in bytes.
func (m *Memory) Held() uint64 { return m.held }
