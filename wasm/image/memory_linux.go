package image

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory is a content that does not change, in a sealed file that lives in memory
// only. Spaces map it privately: they share its pages until somebody writes to
// one. It is safe for concurrent use, but for Close.
//
// The zeros at its end are not in the file: reading a hole of such a file makes a
// page, and a heap that was grown ahead is mostly zeros.
type Memory struct {
	fd   int    // -1: no content, or only zeros
	size uint64 // of the content, whole pages
	file uint64 // of the file, whole pages; zeros follow
	held uint64 // bytes of pages that are not all zeros
	view []byte // the file, to read
}

// New keeps a content; pages of zeros take no memory.
func New(content []byte) (*Memory, error) {
	m := &Memory{fd: -1, size: pages(uint64(len(content)))}
	content = content[:lastByte(content)]
	if len(content) == 0 {
		return m, nil
	}
	fd, err := unix.MemfdCreate("openskill-memory", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	m.fd, m.file = fd, pages(uint64(len(content)))
	if err := m.fill(content); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func pages(n uint64) uint64 { return (n + pageSize - 1) &^ (pageSize - 1) }

// lastByte is the length of b without the pages of zeros at its end.
func lastByte(b []byte) int {
	n := len(b)
	for n > 0 {
		from := (n - 1) &^ (pageSize - 1)
		if !zeros(b[from:n]) {
			return n
		}
		n = from
	}
	return 0
}

func (m *Memory) fill(content []byte) error {
	if err := unix.Ftruncate(m.fd, int64(m.file)); err != nil { //nolint:gosec // a length
		return os.NewSyscallError("ftruncate", err)
	}
	for off := 0; off < len(content); {
		page := content[off:min(off+pageSize, len(content))]
		if zeros(page) {
			off += len(page)
			continue
		}
		end := off + len(page) // of a run of pages with something in them
		for end < len(content) && end-off < 1<<20 {
			next := content[end:min(end+pageSize, len(content))]
			if zeros(next) {
				break
			}
			end += len(next)
		}
		m.held += uint64(end-off+pageSize-1) &^ (pageSize - 1) //nolint:gosec // a length
		for off < end {
			n, err := unix.Pwrite(m.fd, content[off:end], int64(off))
			if err != nil {
				return os.NewSyscallError("pwrite", err)
			}
			off += n
		}
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(m.fd), unix.F_ADD_SEALS, seals); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	view, err := unix.Mmap(m.fd, 0, int(m.file), unix.PROT_READ, unix.MAP_SHARED) //nolint:gosec // a length
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	m.view = view
	return nil
}

// Close gives the content up; spaces that map it keep it until they are unmapped.
// It may be called twice.
func (m *Memory) Close() {
	if m.view != nil {
		_ = unix.Munmap(m.view)
		m.view = nil
	}
	if m.fd >= 0 {
		_ = unix.Close(m.fd)
		m.fd = -1
	}
}

// Reserve maps address space without memory behind it, the content at its
// beginning; nil if there is none to be had. [Release] gives it back.
func (m *Memory) Reserve(size uint64) []byte {
	b, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE) //nolint:gosec // at most 4 GiB
	if err != nil {
		return nil
	}
	if m.file <= size && !m.cover(b) {
		Release(b)
		return nil
	}
	return b
}

// Map puts the content over the beginning of a space that Reserve gave, of this
// Memory or of another. What was there is gone. It reports whether that worked; if
// not, the space is of no use any more.
func (m *Memory) Map(space []byte) bool {
	if uint64(len(space)) < m.size {
		return false
	}
	if m.size > m.file {
		const anonymous = unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_FIXED | unix.MAP_NORESERVE
		at := unsafe.Pointer(&space[m.file]) //nolint:gosec // where to map is an address
		p, err := unix.MmapPtr(-1, 0, at, uintptr(m.size-m.file), unix.PROT_READ|unix.PROT_WRITE, anonymous)
		if err != nil || p != at {
			return false
		}
	}
	return m.cover(space)
}

// cover maps the file over the beginning of a space.
func (m *Memory) cover(space []byte) bool {
	if m.fd < 0 {
		return true
	}
	at := unsafe.Pointer(unsafe.SliceData(space)) //nolint:gosec // where to map is an address
	p, err := unix.MmapPtr(m.fd, 0, at, uintptr(m.file), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
	return err == nil && p == at
}

// Drop gives back the pages of the first used bytes that were written, so that
// they read as the content, or as zeros behind it. It reports whether that worked.
func (m *Memory) Drop(space []byte, used uint64) bool {
	return used == 0 || unix.Madvise(space[:used], unix.MADV_DONTNEED) == nil
}

// Release gives back a space.
func Release(space []byte) {
	if space != nil {
		_ = unix.Munmap(space)
	}
}

// Discard gives the memory of b's whole pages back to the kernel; they read as zeros
// from then on. What does not work leaves b as it is.
func Discard(b []byte) {
	page := uintptr(os.Getpagesize())
	from := uintptr(unsafe.Pointer(unsafe.SliceData(b))) //nolint:gosec // a number
	skip := (page - from%page) % page
	if uintptr(len(b)) < skip+page {
		return
	}
	n := (uintptr(len(b)) - skip) / page * page
	_ = unix.Madvise(b[skip:skip+n], unix.MADV_DONTNEED)
}
