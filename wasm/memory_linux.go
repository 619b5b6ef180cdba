package wasm

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// template is the first content of a module's memories, in a sealed file that
// lives in memory only. Spaces map it privately: they share its pages until an
// instance writes to one, and dropping what was written brings the content back.
type template struct {
	fd   int // -1: no content
	size uint64
}

func newTemplate(content []byte) (t template, err error) {
	t.fd = -1
	if len(content) == 0 {
		return t, nil
	}
	fd, err := unix.MemfdCreate("openskill-memory", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return t, os.NewSyscallError("memfd_create", err)
	}
	page := uint64(os.Getpagesize()) //nolint:gosec // positive
	t.fd, t.size = fd, (uint64(len(content))+page-1)&^(page-1)
	for off := 0; off < len(content); {
		n, err := unix.Pwrite(fd, content[off:], int64(off))
		if err != nil {
			t.close()
			return t, os.NewSyscallError("pwrite", err)
		}
		off += n
	}
	if err := unix.Ftruncate(fd, int64(t.size)); err != nil { //nolint:gosec // at most maxInitial
		t.close()
		return t, os.NewSyscallError("ftruncate", err)
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		t.close()
		return t, os.NewSyscallError("fcntl", err)
	}
	return t, nil
}

func (t *template) close() {
	if t.fd >= 0 {
		_ = unix.Close(t.fd)
		t.fd = -1
	}
}

// reserve maps address space without memory behind it, the content at its
// beginning; nil if there is none to be had.
func (t *template) reserve(size uint64) []byte {
	b, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE) //nolint:gosec // at most 4 GiB
	if err != nil {
		return nil
	}
	if t.fd < 0 || t.size > size {
		return b
	}
	at := unsafe.Pointer(unsafe.SliceData(b)) //nolint:gosec // where to map is an address
	p, err := unix.MmapPtr(t.fd, 0, at, uintptr(t.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
	if err != nil || p != at {
		giveBack(b)
		return nil
	}
	return b
}

// reset drops the pages of the first used bytes, so that they read as the content
// or as zeros again.
func (t *template) reset(b []byte, used uint64) bool {
	if used == 0 {
		return true
	}
	return unix.Madvise(b[:used], unix.MADV_DONTNEED) == nil
}

func within(m *memory, size uint64) []byte {
	if uint64(len(m.space)) < size {
		return nil
	}
	return m.space[:size:size]
}

func giveBack(b []byte) { _ = unix.Munmap(b) }
