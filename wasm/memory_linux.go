package wasm

import (
	"golang.org/x/sys/unix"
)

// reserve maps address space without memory behind it; nil if there is none.
func reserve(size uint64) []byte {
	b, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE) //nolint:gosec // at most 4 GiB
	if err != nil {
		return nil
	}
	return b
}

func within(m *memory, size uint64) []byte {
	if uint64(len(m.space)) < size {
		return nil
	}
	return m.space[:size:size]
}

func giveBack(b []byte) { _ = unix.Munmap(b) }
