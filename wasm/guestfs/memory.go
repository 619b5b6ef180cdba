package guestfs

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits are the caps of a [Memory]. A zero field has the default given; none is
// ever unlimited.
type Limits struct {
	// Bytes is the cap on contents and names together: sizes rounded up to pages
	// of 4 KiB, holes counted like data, and 512 for every file, directory and link,
	// with the text of a link. A file counts as often as it has names, so that all
	// files together, read by name, are never more. 0: 16 MiB. Beyond it writes,
	// truncations and creations fail with ENOSPC.
	Bytes int64
	// Files is the cap on names of files, directories and links together, and on those
	// that are unlinked but open. 0: 1024. Beyond it creation fails with ENOSPC.
	Files int
	// Depth is the cap on components of a path, without links. 0: 64. Beyond it
	// creation fails with ENAMETOOLONG.
	Depth int
	// Now is the clock of modification times; nil: time.Now, to the millisecond. A
	// run that is to be repeated exactly gets here the clock that it sees elsewhere.
	Now func() time.Time
}

const (
	pageSize = 4096
	nodeCost = 512
)

// Memory is a writable file system in memory: the scratch space of one run. It is
// an [FS]. A file may have several names, and symbolic links may lead to any of
// them; names and links alike stay in it, so nothing that a guest writes here can
// stand for a file elsewhere. See [Memory.Symlink].
type Memory struct {
	mu    sync.Mutex
	lim   Limits
	used  int64
	files int
	links int // of files, those that are symbolic links
	inode uint64
	epoch uint64                // counts Resets
	same  *MemorySaved          // what all of it is the same as; nil: something was changed since
	hold  func(used int64) bool // nil: nobody is asked; see SetHold
	root  *node                 // the same for good, so that a handle on it survives a Reset
}

var _ Resolver = (*Memory)(nil)

// node is a file, a directory or a symbolic link; at most one of pages, children and
// target is in use.
type node struct {
	inode    uint64
	dir      bool
	target   string           // of a link, never empty; "" of all else
	children map[string]*node // nil until the first child
	pages    [][]byte         // nil for a hole
	size     int64
	mtime    time.Time
	atime    time.Time // as it was set; zero: mtime
	shadow   *shadow   // of what has not been written: where its content is; see Shadow
	open     int       // handles
	names    int       // of a directory one, as long as it is there
}

// NewMemory makes an empty file system.
func NewMemory(lim Limits) *Memory {
	if lim.Bytes <= 0 {
		lim.Bytes = 16 << 20
	}
	if lim.Files <= 0 {
		lim.Files = 1024
	}
	if lim.Depth <= 0 {
		lim.Depth = 64
	}
	lim.Depth = min(lim.Depth, MaxComponents)
	if lim.Now == nil {
		lim.Now = func() time.Time {
			return time.Now().Truncate(time.Millisecond)
		}
	}
	return &Memory{lim: lim, inode: 1, root: &node{inode: 1, dir: true, names: 1, mtime: lim.Now()}}
}

// SetHold has hold told what counts against Limits.Bytes, before it grows and when it
// shrank; where it reports false to a growth there is ENOSPC, as beyond the cap. So a run
// can have one limit for its files and its memory. It is called with the lock of the
// Memory held, and not by Reset and Restore. nil: nobody is asked.
func (m *Memory) SetHold(hold func(used int64) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hold = hold
}

// take counts n bytes, which may be negative, and reports whether there is room.
func (m *Memory) take(n int64) bool {
	if n > m.lim.Bytes-m.used || m.hold != nil && !m.hold(m.used+n) && n > 0 {
		return false
	}
	m.used += n
	return true
}

// SetClock puts a clock in the place of Limits.Now, and gives the one that was there.
func (m *Memory) SetClock(now func() time.Time) (before func() time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, m.lim.Now = m.lim.Now, now
	return before
}

// Reset drops everything but the empty root. Other handles that are still open
// are dead: what they do fails with EIO, so nothing of before can be seen or
// grow.
func (m *Memory) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used, m.files, m.links, m.inode = 0, 0, 0, 1
	m.epoch++
	m.same = nil
	m.root.children, m.root.mtime, m.root.atime = nil, m.lim.Now(), time.Time{}
}

// Empty reports whether there is no file and no directory but the root, and
// nothing unlinked is still open.
func (m *Memory) Empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files == 0
}

// Used is what counts against Limits.Bytes now.
func (m *Memory) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// FileInfo is one regular file in the top folder of a [Memory].
type FileInfo struct {
	Name string
	Size int64 // bytes
}

// Files lists the regular files of the top folder, by name, without unchanged ones of [Memory.Give].
func (m *Memory) Files() []FileInfo {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []FileInfo
	for name, n := range m.root.children {
		if !n.dir && n.target == "" && (n.shadow == nil || n.shadow.at != name) {
			out = append(out, FileInfo{name, n.size})
		}
	}
	slices.SortFunc(out, func(a, b FileInfo) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// ReadFile is a copy of a file's content. Its size is at most Limits.Bytes.
func (m *Memory) ReadFile(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, errno := m.find(name, true)
	if errno != 0 {
		return nil, errno
	}
	if n.dir {
		return nil, EISDIR
	}
	out := make([]byte, n.size)
	if n.shadow != nil {
		return n.shadow.read(out)
	}
	n.readAt(out, 0)
	return out, nil
}

// WriteFile puts a file there before the guest starts, within the limits. The
// directory must exist.
func (m *Memory) WriteFile(name string, data []byte) error {
	f, errno := m.Open(name, Write|Create|Trunc)
	if errno != 0 {
		return errno
	}
	defer f.Close()
	if _, errno := f.WriteAt(data, 0); errno != 0 {
		return errno
	}
	return nil
}

// find looks up what a name stands for. The caller holds the lock, as with all below.
func (m *Memory) find(name string, follow bool) (*node, Errno) {
	p, errno := m.walk(name, follow)
	if errno == 0 && p.n == nil {
		errno = ENOENT
	}
	return p.n, errno
}

// entry looks up a name that is to be made, moved or taken away: itself, and not what
// it may be a link to. The root is no such name: EBUSY.
func (m *Memory) entry(name string) (place, Errno) {
	if name == "." {
		return place{}, EBUSY
	}
	return m.walk(name, false)
}

// create makes a node in a free place.
func (m *Memory) create(p place, isDir bool, target string) (*node, Errno) {
	n := &node{inode: m.inode + 1, dir: isDir, target: target, mtime: m.lim.Now()}
	if errno := m.name(n, p); errno != 0 {
		return nil, errno
	}
	m.inode++
	return n, ESUCCESS
}

// name gives a node one more name, in a free place.
func (m *Memory) name(n *node, p place) Errno {
	if len(p.base) > MaxName || p.depth > m.lim.Depth {
		return ENAMETOOLONG
	}
	if m.files >= m.lim.Files || !m.take(n.cost()) {
		return ENOSPC
	}
	m.same = nil
	m.files++
	if n.target != "" {
		m.links++
	}
	n.names++
	p.dir.add(p.base, n)
	p.dir.mtime = m.lim.Now()
	return ESUCCESS
}

func (n *node) add(base string, child *node) {
	if n.children == nil {
		n.children = make(map[string]*node)
	}
	n.children[strings.Clone(base)] = child
}

// cost is what one name of a node counts against Limits.Bytes.
func (n *node) cost() int64 {
	if n.shadow != nil {
		return nodeCost
	}
	return nodeCost + int64(len(n.target)) + roundUp(n.size)
}

// remove takes a name away, and frees the node with the last one unless a handle is open.
func (m *Memory) remove(dir *node, base string) {
	n := dir.children[base]
	delete(dir.children, base)
	dir.mtime = m.lim.Now()
	m.same = nil
	n.names--
	if n.names > 0 || n.open == 0 {
		m.release(n)
	}
}

// release takes back what one name of a node counts, and its content if it has none.
func (m *Memory) release(n *node) {
	m.take(-n.cost())
	m.files--
	if n.target != "" {
		m.links--
	}
	if n.names == 0 {
		n.pages, n.size, n.shadow = nil, 0, nil
	}
}

// Open implements [FS].
func (m *Memory) Open(name string, flags OpenFlag) (File, Errno) {
	m.mu.Lock()
	defer m.mu.Unlock()
	isNew := flags&(Create|Excl) == Create|Excl
	p, errno := m.walk(name, flags&NoFollow == 0 && !isNew)
	n := p.n
	switch {
	case errno != 0:
		return nil, errno
	case n == nil && flags&Create == 0:
		return nil, ENOENT
	case n == nil && flags&Directory != 0:
		return nil, EINVAL
	case n == nil:
		if n, errno = m.create(p, false, ""); errno != 0 {
			return nil, errno
		}
	case isNew:
		return nil, EEXIST
	case n.target != "":
		return nil, ELOOP
	case n.dir && flags&changes != 0:
		return nil, EISDIR
	case !n.dir && flags&Directory != 0:
		return nil, ENOTDIR
	case flags&Trunc != 0:
		if errno := m.resize(n, 0); errno != 0 {
			return nil, errno
		}
	}
	n.open++
	return &memoryFile{m: m, epoch: m.epoch, n: n, writable: flags&(Write|Trunc|Create) != 0}, ESUCCESS
}

// Stat implements [FS].
func (m *Memory) Stat(name string, follow bool) (Stat, Errno) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, errno := m.find(name, follow)
	if errno != 0 {
		return Stat{}, errno
	}
	return n.stat(), ESUCCESS
}

// Mkdir implements [FS].
func (m *Memory) Mkdir(name string) Errno {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == "." {
		return EEXIST
	}
	p, errno := m.entry(name)
	switch {
	case errno != 0:
		return errno
	case p.n != nil:
		return EEXIST
	}
	_, errno = m.create(p, true, "")
	return errno
}

// Rmdir implements [FS].
func (m *Memory) Rmdir(name string) Errno {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, errno := m.entry(name)
	switch {
	case errno != 0:
		return errno
	case p.n == nil:
		return ENOENT
	case !p.n.dir:
		return ENOTDIR
	case len(p.n.children) > 0:
		return ENOTEMPTY
	}
	m.remove(p.dir, p.base)
	return ESUCCESS
}

// Unlink implements [FS].
func (m *Memory) Unlink(name string) Errno {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, errno := m.entry(name)
	switch {
	case errno != 0:
		return errno
	case p.n == nil:
		return ENOENT
	case p.n.dir:
		return EISDIR
	}
	m.remove(p.dir, p.base)
	return ESUCCESS
}

// Rename implements [FS]. It replaces what is no directory by what is none, and an
// empty directory by a directory, as POSIX has it.
func (m *Memory) Rename(from, to string) Errno {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, errno := m.entry(from)
	if errno != 0 {
		return errno
	}
	p, errno := m.entry(to)
	switch {
	case errno != 0:
		return errno
	case old.n == nil:
		return ENOENT
	case len(p.base) > MaxName:
		return ENAMETOOLONG
	case old.name == p.name:
		return ESUCCESS
	case old.n.dir && strings.HasPrefix(p.name, old.name+"/"):
		return EINVAL
	case p.depth-1+old.n.height() > m.lim.Depth:
		return ENAMETOOLONG
	case p.n == nil:
	case p.n == old.n: // two names of one file both stay, as POSIX has it
		return ESUCCESS
	case strings.HasPrefix(old.name, p.name+"/"):
		return ENOTEMPTY
	case p.n.dir && !old.n.dir:
		return EISDIR
	case !p.n.dir && old.n.dir:
		return ENOTDIR
	case len(p.n.children) > 0:
		return ENOTEMPTY
	default:
		m.remove(p.dir, p.base)
	}
	m.same = nil
	delete(old.dir.children, old.base)
	p.dir.add(p.base, old.n)
	old.dir.mtime = m.lim.Now()
	p.dir.mtime = old.dir.mtime
	return ESUCCESS
}

// height is the number of components that a node and what is below it add to a
// path. The depth cap bounds the recursion.
func (n *node) height() int {
	deepest := 0
	for _, child := range n.children {
		deepest = max(deepest, child.height())
	}
	return deepest + 1
}

// SetTimes implements [FS].
func (m *Memory) SetTimes(name string, follow bool, atime, mtime *time.Time) Errno {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, errno := m.find(name, follow)
	if errno == 0 {
		m.same = nil
		n.setTimes(atime, mtime)
	}
	return errno
}
