package image

import (
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory is a content that does not change, in a sealed file that lives in memory
// only. Spaces map it privately: they share its pages until somebody writes to
// one. It is safe for concurrent use, but for Close.
//
// Longer stretches of zeros are not mapped from the file: reading a hole of such a file
// makes a page, and a heap that was grown ahead is mostly zeros.
type Memory struct {
	fd   int    // -1: no content, or only zeros
	size uint64 // of the content, whole pages
	held uint64 // bytes of runs, which is what the file comes to when all of it was read
	runs []run  // what is mapped of the file, at the same place; zeros lie between
	view []byte // the file, to read

	named
}

// run is a stretch of whole pages, of which the first and the last one are not all zeros.
type run struct{ from, to uint64 }

// maxRuns bounds the mappings of a space, of which the kernel grants a process 65,530.
const maxRuns = 8

// runsOf finds the stretches of a content between which there are the most zeros.
func runsOf(content []byte) []run {
	var all []run
	size := uint64(len(content))
	for off := uint64(0); off < size; off += pageSize {
		end := min(off+pageSize, size)
		if zeros(content[off:end]) {
			continue
		}
		if n := len(all); n > 0 && all[n-1].to == off {
			all[n-1].to += pageSize
		} else {
			all = append(all, run{off, off + pageSize})
		}
	}
	if len(all) <= maxRuns {
		return all
	}
	gaps := make([]uint64, len(all)-1)
	for i := range gaps {
		gaps[i] = all[i+1].from - all[i].to
	}
	slices.Sort(gaps)
	// Gaps as wide as this one stay, as long as there are runs left.
	least, left := gaps[len(gaps)-maxRuns+1], maxRuns-1
	kept := all[:1]
	for _, r := range all[1:] {
		if last := &kept[len(kept)-1]; r.from-last.to >= least && left > 0 {
			left--
			kept = append(kept, r)
		} else {
			last.to = r.to
		}
	}
	return kept
}

// New keeps a content; pages of zeros take no memory.
func New(content []byte) (*Memory, error) {
	m := &Memory{fd: -1, size: pages(uint64(len(content))), runs: runsOf(content)}
	if len(m.runs) == 0 {
		return m, nil
	}
	fd, err := unix.MemfdCreate("openskill-memory", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	m.fd = fd
	if err := m.fill(content); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func pages(n uint64) uint64 { return (n + pageSize - 1) &^ (pageSize - 1) }

func (m *Memory) fill(content []byte) error {
	file := int64(m.runs[len(m.runs)-1].to)
	if err := unix.Ftruncate(m.fd, file); err != nil {
		return os.NewSyscallError("ftruncate", err)
	}
	for _, r := range m.runs {
		m.held += r.to - r.from
		if err := m.write(content[r.from:min(r.to, uint64(len(content)))], int64(r.from)); err != nil {
			return err
		}
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(m.fd), unix.F_ADD_SEALS, seals); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	view, err := unix.Mmap(m.fd, 0, int(file), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	m.view = view
	return nil
}

// write puts a run into the file, but for pages of zeros.
func (m *Memory) write(b []byte, at int64) error {
	for off := 0; off < len(b); {
		end := off
		for end < len(b) && end-off < 1<<20 && !zeros(b[end:min(end+pageSize, len(b))]) {
			end = min(end+pageSize, len(b))
		}
		if end == off {
			off += pageSize
			continue
		}
		for off < end {
			n, err := unix.Pwrite(m.fd, b[off:end], at+int64(off))
			if err != nil {
				return os.NewSyscallError("pwrite", err)
			}
			off += n
		}
	}
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
	b := Zeros(size)
	if b != nil && m.size <= size && !m.cover(b) {
		Release(b)
		return nil
	}
	return b
}

// Zeros maps address space of zeros without memory behind it; nil if there is none to be
// had. [Release] gives it back.
func Zeros(size uint64) []byte {
	b, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE) // at most 4 GiB
	if err != nil {
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
	if m.size > 0 && !mapAt(space, run{0, m.size}, -1, unix.MAP_ANON) {
		return false
	}
	return m.cover(space)
}

// cover maps the runs of the file over a space of zeros.
func (m *Memory) cover(space []byte) bool {
	for _, r := range m.runs {
		if !mapAt(space, r, m.fd, 0) {
			return false
		}
	}
	return true
}

// mapAt maps the part of a file, or of none, over the same part of a space.
func mapAt(space []byte, r run, fd, flags int) bool {
	at := unsafe.Pointer(&space[r.from]) //nolint:gosec // where to map is an address
	offset := int64(r.from)
	if fd < 0 {
		offset = 0
	}
	p, err := unix.MmapPtr(fd, offset, at, uintptr(r.to-r.from), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE|flags)
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
