package wasi

import (
	"slices"
	"strings"

	"openskill/wasm/guestfs"
)

// window is how many entries of a directory are kept in memory at once.
const window = 1024

// mostListings is how many directories have a window: names are the host's memory, and a guest
// may have many directories open.
const mostListings = 8

// listing is a window on the entries of an open directory. It is a cache: a cookie
// is the number of an entry, "." and ".." being the first two, and any entry can
// be asked for at any time. A folder of at most 1,024 entries is listed by name; a
// larger one in the order of its file system, as long as nobody changes it.
type listing struct {
	base    uint64 // number of the first entry in the window, without the dots
	entries []guestfs.Dirent
	started bool
}

func (w *World) fdReaddir(p []uint64) guestfs.Errno {
	bufLen := uint64(uint32(p[2]))
	if bufLen < direntSize {
		return guestfs.EINVAL // no header fits, so the caller could not go on
	}
	buf, ok := w.result(p[1], bufLen)
	used, ok2 := w.result(p[4], 4)
	if !ok || !ok2 {
		return guestfs.EFAULT
	}
	d, file, errno := w.fdFile(p[0])
	switch {
	case errno != 0:
		return errno
	case d.kind != isDir:
		return guestfs.EBADF // as libc and Rust expect it, not ENOTDIR
	}
	h := d.h
	cookie := p[3]
	if cookie == 0 { // from the start: look again at what is there now
		h.list = listing{}
	}
	n := 0
	for n < len(buf) {
		entry, ok, errno := w.entry(h, file, cookie)
		if errno != 0 {
			return errno
		}
		if !ok {
			break
		}
		cookie++
		w.charge(costEntry)
		n += putDirent(buf[n:], cookie, entry)
	}
	le.PutUint32(used, uint32(n))
	return 0
}

const direntSize = 24

// putDirent writes what fits; a caller sees by a full buffer that there is more.
func putDirent(buf []byte, next uint64, e guestfs.Dirent) int {
	var head [direntSize]byte
	le.PutUint64(head[0:], next)
	le.PutUint64(head[8:], e.Inode)
	le.PutUint32(head[16:], uint32(len(e.Name)))
	head[20] = byte(e.Kind)
	n := copy(buf, head[:])
	return n + copy(buf[n:], e.Name)
}

// entry is the entry with this number, or false at the end.
func (w *World) entry(h *handle, file guestfs.File, number uint64) (guestfs.Dirent, bool, guestfs.Errno) {
	if number < 2 {
		st, errno := file.Stat()
		return guestfs.Dirent{Name: "..."[:number+1], Inode: st.Inode, Kind: guestfs.KindDirectory}, errno == 0, errno
	}
	number -= 2
	l := &h.list
	if !l.started || number < l.base {
		if errno := file.Rewind(); errno != 0 {
			return guestfs.Dirent{}, false, errno
		}
		w.keep(h)
		*l = listing{started: true}
		if errno := w.fill(l, file); errno != 0 {
			return guestfs.Dirent{}, false, errno
		}
	}
	for number-l.base >= uint64(len(l.entries)) {
		if len(l.entries) < window {
			return guestfs.Dirent{}, false, 0 // a short window is the last
		}
		l.base += uint64(len(l.entries))
		if errno := w.fill(l, file); errno != 0 {
			return guestfs.Dirent{}, false, errno
		}
	}
	return l.entries[number-l.base], true, 0
}

// keep makes room for the window of h: the one that was made the longest ago goes.
func (w *World) keep(h *handle) {
	i := slices.Index(w.listings, h)
	switch {
	case i >= 0:
		w.listings = slices.Delete(w.listings, i, i+1)
	case len(w.listings) == mostListings:
		w.listings[0].list = listing{}
		w.listings = slices.Delete(w.listings, 0, 1)
	}
	w.listings = append(w.listings, h)
}

// fill reads the next window.
func (w *World) fill(l *listing, file guestfs.File) guestfs.Errno {
	l.entries = nil
	for len(l.entries) < window {
		more, errno := file.ReadDir(window - len(l.entries))
		if errno != 0 {
			*l = listing{}
			return errno
		}
		if len(more) == 0 {
			break
		}
		l.entries = append(l.entries, more...)
		w.charge(uint64(len(more)) * costEntry)
		w.checkContext()
	}
	if l.base == 0 && len(l.entries) < window {
		slices.SortFunc(l.entries, func(a, b guestfs.Dirent) int { return strings.Compare(a.Name, b.Name) })
	}
	return 0
}
