package guestfs

import (
	"slices"
	"time"
)

// memoryFile is a handle of a [Memory]'s file or directory.
type memoryFile struct {
	closeOnce
	m        *Memory
	epoch    uint64 // of the Memory when it was opened
	n        *node
	writable bool
	below    File   // of what has not been written, once it was read; nil before
	after    string // name of the last entry that ReadDir returned
}

func (n *node) stat() Stat {
	st := Stat{Inode: n.inode, Kind: KindRegular, Links: uint64(n.names), Size: n.size, Mtime: n.mtime, Atime: n.atime} // not negative
	switch {
	case n.dir:
		st.Kind = KindDirectory
	case n.target != "":
		st.Kind, st.Size = KindSymlink, int64(len(n.target))
	}
	return st
}

func (n *node) setTimes(atime, mtime *time.Time) {
	if n.atime.IsZero() {
		n.atime = n.mtime // setting one must not move the other
	}
	if atime != nil {
		n.atime = *atime
	}
	if mtime != nil {
		n.mtime = *mtime
	}
}

func roundUp(size int64) int64 { return (size + pageSize - 1) &^ (pageSize - 1) }

// resize changes the size and accounts for it; new bytes are holes.
func (m *Memory) resize(n *node, size int64) Errno {
	switch {
	case size < 0:
		return EINVAL
	case size > m.lim.Bytes:
		return ENOSPC // also keeps roundUp from overflowing
	case size == 0:
		n.cut()
	}
	if errno := m.unshadow(n); errno != 0 {
		return errno
	}
	m.same = nil
	grow, names := roundUp(size)-roundUp(n.size), int64(max(n.names, 1))
	if grow > 0 && grow > (m.lim.Bytes-m.used)/names || !m.take(grow*names) {
		return ENOSPC
	}
	pages := int(roundUp(size) / pageSize)
	switch {
	case pages < cap(n.pages)/4:
		// The list of pages counts against nothing, so it must not outlive them.
		fewer := make([][]byte, pages)
		copy(fewer, n.pages)
		n.pages = fewer
	case pages < len(n.pages):
		clear(n.pages[pages:])
		n.pages = n.pages[:pages]
	case pages > len(n.pages):
		n.pages = slices.Grow(n.pages, pages-len(n.pages))[:pages]
	}
	if rest := size % pageSize; size < n.size && rest != 0 && n.pages[pages-1] != nil {
		clear(n.pages[pages-1][rest:]) // a later growth must show zeros
	}
	n.size = size
	n.mtime = m.lim.Now()
	return ESUCCESS
}

func (n *node) readAt(p []byte, off int64) int {
	if off >= n.size {
		return 0
	}
	p = p[:min(int64(len(p)), n.size-off)]
	done := 0
	for done < len(p) {
		page, at := n.pages[off/pageSize], off%pageSize
		var c int
		if page == nil {
			c = min(len(p)-done, int(pageSize-at))
			clear(p[done : done+c])
		} else {
			c = copy(p[done:], page[at:])
		}
		done += c
		off += int64(c)
	}
	return done
}

// dead says that the file belongs to before a Reset.
func (f *memoryFile) dead() bool { return f.epoch != f.m.epoch && f.n != f.m.root }

func (f *memoryFile) Stat() (Stat, Errno) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.dead() {
		return Stat{}, EIO
	}
	return f.n.stat(), ESUCCESS
}

func (f *memoryFile) ReadAt(p []byte, off int64) (int, Errno) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	switch {
	case f.dead():
		return 0, EIO
	case f.n.dir:
		return 0, EISDIR
	case off < 0:
		return 0, EINVAL
	case f.n.shadow != nil:
		return f.readShadow(p, off)
	}
	return f.n.readAt(p, off), ESUCCESS
}

func (f *memoryFile) WriteAt(p []byte, off int64) (int, Errno) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if errno := f.change(); errno != 0 {
		return 0, errno
	}
	if off < 0 {
		return 0, EINVAL
	}
	if len(p) == 0 {
		return 0, ESUCCESS
	}
	if off > f.m.lim.Bytes-int64(len(p)) {
		return 0, ENOSPC
	}
	if errno := f.m.unshadow(f.n); errno != 0 {
		return 0, errno
	}
	f.m.same = nil
	if end := off + int64(len(p)); end > f.n.size {
		if errno := f.m.resize(f.n, end); errno != 0 {
			return 0, errno
		}
	} else {
		f.n.mtime = f.m.lim.Now()
	}
	for done := 0; done < len(p); {
		page := &f.n.pages[off/pageSize]
		if *page == nil {
			*page = make([]byte, pageSize)
		}
		c := copy((*page)[off%pageSize:], p[done:])
		done += c
		off += int64(c)
	}
	return len(p), ESUCCESS
}

// change says whether the handle may change its file.
func (f *memoryFile) change() Errno {
	switch {
	case f.dead():
		return EIO
	case f.n.dir:
		return EISDIR
	case !f.writable:
		return EBADF
	}
	return ESUCCESS
}

func (f *memoryFile) Truncate(size int64) Errno {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if errno := f.change(); errno != 0 {
		return errno
	}
	return f.m.resize(f.n, size)
}

func (f *memoryFile) SetTimes(atime, mtime *time.Time) Errno {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.dead() {
		return EIO
	}
	f.m.same = nil
	f.n.setTimes(atime, mtime)
	return ESUCCESS
}

// ReadDir goes on after the last name that it returned, so entries that are
// removed meanwhile do not make it skip others.
func (f *memoryFile) ReadDir(n int) ([]Dirent, Errno) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	switch {
	case f.dead():
		return nil, EIO
	case !f.n.dir:
		return nil, ENOTDIR
	}
	names := make([]string, 0, len(f.n.children))
	for name := range f.n.children {
		if name > f.after {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = names[:min(n, len(names))]
	out := make([]Dirent, len(names))
	for i, name := range names {
		st := f.n.children[name].stat()
		out[i] = Dirent{Name: name, Inode: st.Inode, Kind: st.Kind}
	}
	if len(names) > 0 {
		f.after = names[len(names)-1]
	}
	return out, ESUCCESS
}

func (f *memoryFile) Rewind() Errno {
	if !f.n.dir {
		return ENOTDIR
	}
	f.after = ""
	return ESUCCESS
}

func (f *memoryFile) Close() error {
	if !f.first() {
		return nil
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.below != nil {
		_ = f.below.Close() // it was only read
	}
	f.n.open--
	if !f.dead() && f.n.open == 0 && f.n.names == 0 {
		f.m.release(f.n)
	}
	return nil
}
