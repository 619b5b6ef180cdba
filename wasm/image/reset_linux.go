package image

import (
	"bytes"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Supported reports whether instances can share a content on this platform.
const Supported = true

// fewPages is the number of written pages up to which they are copied back. They
// then stay the space's own, so that the next run writes to them without a fault;
// beyond it they are given back to the kernel. It is four times what pandas writes to
// group a thousand rows.
const fewPages = 8192

// Reset puts the content back into a space that maps it, and reports whether that
// worked, and how many bytes of pages are the space's own afterwards. Behind the
// content nothing may have been written.
//
// Dropping pages makes the kernel tell all processors, and the next run faults on
// each of them again, which copies them too. So where the kernel says which pages were
// written, and they are few, they are copied back instead.
func (m *Memory) Reset(space []byte) (own uint64, ok bool) {
	var regions [512]pageRegion
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(space)))) //nolint:gosec // compared with addresses
	for at := uint64(0); at < m.size; {
		n, end, err := written(space[at:m.size], regions[:])
		if err != nil {
			return 0, m.Drop(space, m.size)
		}
		for _, r := range regions[:n] {
			if own += r.end - r.start; own > fewPages*pageSize {
				return 0, m.Drop(space, m.size)
			}
			m.restore(space, r.start-base, r.end-base)
		}
		at += end
	}
	return own, true
}

// restore copies a part of the content back.
func (m *Memory) restore(space []byte, from, to uint64) {
	for _, r := range m.runs {
		if r.to <= from {
			continue
		}
		if r.from >= to {
			break
		}
		if r.from > from {
			clear(space[from:r.from])
			from = r.from
		}
		end := min(to, r.to)
		copy(space[from:end], m.view[from:end])
		from = end
	}
	clear(space[from:to])
}

// Equal reports whether space begins with the content. It reads all of it, which
// leaves the space with all its pages mapped; Drop undoes that.
func (m *Memory) Equal(space []byte) bool {
	if uint64(len(space)) < m.size {
		return false
	}
	from := uint64(0)
	for _, r := range m.runs {
		if !empty(space[from:r.from]) || !bytes.Equal(space[r.from:r.to], m.view[r.from:r.to]) {
			return false
		}
		from = r.to
	}
	return empty(space[from:m.size])
}

// empty reports whether there are only zeros, in whole pages.
func empty(b []byte) bool {
	for ; len(b) > 0; b = b[pageSize:] {
		if !zeros(b[:pageSize]) {
			return false
		}
	}
	return true
}

// pageRegion and scanArg are struct page_region and struct pm_scan_arg of the
// kernel's include/uapi/linux/fs.h (since Linux 6.7).
type pageRegion struct{ start, end, categories uint64 }

type scanArg struct {
	size, flags, start, end, walkEnd, vec, vecLen, maxPages   uint64
	categoryInverted, categoryMask, categoryAnyof, returnMask uint64
}

const (
	pagemapScan = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)

	pageIsFile    = 1 << 2
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
	pageIsZero    = 1 << 5 // the one page that stands for all that were only read
)

// pagemap is this process's map of pages, -1 if the kernel does not tell of it.
var pagemap = sync.OnceValue(func() int {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return -1
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return -1
	}
	var one [1]pageRegion
	probe, err := unix.Mmap(-1, 0, pageSize, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return -1
	}
	defer unix.Munmap(probe) //nolint:errcheck // a page
	if _, _, err := scan(fd, probe, one[:]); err != nil {
		_ = unix.Close(fd)
		return -1
	}
	return fd
})

// Ready asks the kernel for what Reset uses, which cannot be had any more once a
// process has given up the files of /proc.
func Ready() { pagemap() }

// written lists the pages of a private mapping that are the mapping's own: a page
// of a file that was written is a copy, and no page of the file any more; a page of
// no file is there once it was written. It looks as far as end, which is where there was
// no room for more regions, or where a page more than fewPages was found.
func written(b []byte, regions []pageRegion) (n int, end uint64, err error) {
	fd := pagemap()
	if fd < 0 {
		return 0, 0, unix.ENOSYS
	}
	return scan(fd, b, regions)
}

func scan(fd int, b []byte, regions []pageRegion) (int, uint64, error) {
	from := unsafe.Pointer(unsafe.SliceData(b)) //nolint:gosec // the kernel takes addresses
	arg := scanArg{
		start: uint64(uintptr(from)), end: uint64(uintptr(from)) + uint64(len(b)),
		vec:              uint64(uintptr(unsafe.Pointer(&regions[0]))), //nolint:gosec // as said
		vecLen:           uint64(len(regions)),
		maxPages:         fewPages + 1,
		categoryInverted: pageIsFile | pageIsZero,
		categoryMask:     pageIsFile | pageIsZero,
		categoryAnyof:    pageIsPresent | pageIsSwapped,
	}
	arg.size = uint64(unsafe.Sizeof(arg))
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), pagemapScan, uintptr(unsafe.Pointer(&arg))) //nolint:gosec // as said
	if errno != 0 {
		return 0, 0, errno
	}
	if arg.walkEnd <= arg.start || arg.walkEnd > arg.end {
		return 0, 0, unix.EINVAL
	}
	return int(n), arg.walkEnd - arg.start, nil
}
