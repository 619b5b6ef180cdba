package image

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"unsafe"
)

// Changed lists the pages of the first used bytes of a space that differ from the content, or from
// zeros behind it, in order. Where sure, every byte is compared; otherwise those of the pages that
// the kernel names.
func (m *Memory) Changed(space []byte, used uint64, sure bool) []uint32 {
	var pages []uint32
	look := func(from, to uint64) {
		for at := from; at < to; at += pageSize {
			if !m.same(space, at) {
				pages = append(pages, uint32(at/pageSize)) // of at most 4 GiB
			}
		}
	}
	var regions [512]pageRegion
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(space)))) //nolint:gosec // compared with addresses
	for at := uint64(0); at < used; {
		n, end, err := 0, used-at, error(nil)
		if !sure {
			n, end, err = written(space[at:used], regions[:])
		}
		if sure || err != nil {
			look(at, used)
			break
		}
		for _, r := range regions[:n] {
			look(r.start-base, r.end-base)
		}
		at += end
	}
	return pages
}

// same reports whether a page is that of the content.
func (m *Memory) same(space []byte, at uint64) bool {
	page := space[at : at+pageSize]
	for _, r := range m.runs {
		if r.from <= at && at < r.to {
			return bytes.Equal(page, m.view[at:at+pageSize])
		}
	}
	return zeros(page)
}

// sum computes the digest. It reads all of the content.
func (m *Memory) sum() [sha256.Size]byte {
	h := sha256.New()
	number := func(n uint64) { _, _ = h.Write(binary.LittleEndian.AppendUint64(nil, n)) }
	number(m.size)
	for _, r := range m.runs {
		number(r.from)
		number(r.to)
		_, _ = h.Write(m.view[r.from:r.to])
	}
	return [sha256.Size]byte(h.Sum(nil))
}
