package guestfs

import (
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits are the caps of a [Memory]. A zero field has the default given; none is
// ever unlimited.
type Limits struct {
	// Bytes is the cap on contents and names together: sizes rounded up to pages
	// of 4 KiB, holes counted like data, and 512 for every file and directory. A
	// file counts as often as it has names, so that all files together, read by name,
	// are never more. 0: 16 MiB. Beyond it writes, truncations and creations fail
	// with ENOSPC.
	Bytes int64
	// Files is the cap on names of files and directories together, and on those that
	// are unlinked but open. 0: 1024. Beyond it creation fails with ENOSPC.
	Files int
	// Depth is the cap on components of a path. 0: 64. Beyond it creation fails
	// with ENAMETOOLONG.
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
// an [FS]. A file may have several names, all of them in it; there are no symbolic
// links (ENOTSUP), so nothing that a guest writes here can stand for a file elsewhere.
type Memory struct {
	mu    sync.Mutex
	lim   Limits
	used  int64
	files int
	inode uint64
	epoch uint64 // counts Resets
	root  *node  // the same for good, so that a handle on it survives a Reset
}

var _ FS = (*Memory)(nil)

// node is a file or a directory; exactly one of pages and children is in use.
type node struct {
	inode    uint64
	dir      bool
	children map[string]*node // nil until the first child
	pages    [][]byte         // nil for a hole
	size     int64
	mtime    time.Time
	atime    time.Time // as it was set; zero: mtime
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
			return time.Now().Truncate(time.Millisecond) //nolint:forbidigo // the default of Limits.Now
		}
	}
	return &Memory{lim: lim, inode: 1, root: &node{inode: 1, dir: true, names: 1, mtime: lim.Now()}}
}

// Reset drops everything but the empty root. Other handles that are still open
// are dead: what they do fails with EIO, so nothing of before can be seen or
// grow.
func (m *Memory) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used, m.files, m.inode = 0, 0, 1
	m.epoch++
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

// Files lists the regular files of the top folder, by name.
func (m *Memory) Files() []FileInfo {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []FileInfo
	for name, n := range m.root.children {
		if !n.dir {
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
	n, errno := m.find(name)
	if errno != 0 {
		return nil, errno
	}
	if n.dir {
		return nil, EISDIR
	}
	out := make([]byte, n.size)
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
	defer f.Close() //nolint:errcheck // memory
	if _, errno := f.WriteAt(data, 0); errno != 0 {
		return errno
	}
	return nil
}

// find looks a name up. The caller holds the lock.
func (m *Memory) find(name string) (*node, Errno) {
	if !fs.ValidPath(name) {
		return nil, EINVAL
	}
	n := m.root
	if name == "." {
		return n, ESUCCESS
	}
	for name != "" {
		part, rest, _ := strings.Cut(name, "/")
		name = rest
		if !n.dir {
			return nil, ENOTDIR
		}
		child, ok := n.children[part]
		if !ok {
			return nil, ENOENT
		}
		n = child
	}
	return n, ESUCCESS
}

// parent looks up the directory that holds name. The root has none: EBUSY.
func (m *Memory) parent(name string) (dir *node, base string, errno Errno) {
	if !fs.ValidPath(name) {
		return nil, "", EINVAL
	}
	if name == "." {
		return nil, "", EBUSY
	}
	above, base := ".", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		above, base = name[:i], name[i+1:]
	}
	dir, errno = m.find(above)
	if errno != 0 {
		return nil, "", errno
	}
	if !dir.dir {
		return nil, "", ENOTDIR
	}
	return dir, base, ESUCCESS
}

// create adds a node under dir. The caller has seen that base is free.
func (m *Memory) create(dir *node, name, base string, isDir bool) (*node, Errno) {
	n := &node{inode: m.inode + 1, dir: isDir, mtime: m.lim.Now()}
	if errno := m.name(n, dir, name, base); errno != 0 {
		return nil, errno
	}
	m.inode++
	return n, ESUCCESS
}

// name gives a node one more name, which the caller has seen to be free.
func (m *Memory) name(n, dir *node, name, base string) Errno {
	if len(base) > MaxName || strings.Count(name, "/")+1 > m.lim.Depth {
		return ENAMETOOLONG
	}
	cost := nodeCost + roundUp(n.size)
	if m.files >= m.lim.Files || m.used+cost > m.lim.Bytes {
		return ENOSPC
	}
	m.files++
	m.used += cost
	n.names++
	if dir.children == nil {
		dir.children = make(map[string]*node)
	}
	dir.children[strings.Clone(base)] = n
	dir.mtime = m.lim.Now()
	return ESUCCESS
}

// remove takes a name away, and frees the node with the last one unless a handle is open.
func (m *Memory) remove(dir *node, base string) {
	n := dir.children[base]
	delete(dir.children, base)
	dir.mtime = m.lim.Now()
	n.names--
	if n.names > 0 || n.open == 0 {
		m.release(n)
	}
}

// release takes back what one name of a node counts, and its content if it has none.
func (m *Memory) release(n *node) {
	m.used -= nodeCost + roundUp(n.size)
	m.files--
	if n.names == 0 {
		n.pages, n.size = nil, 0
	}
}

// Open implements [FS].
func (m *Memory) Open(name string, flags OpenFlag) (File, Errno) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, errno := m.find(name)
	switch {
	case errno == ENOENT && flags&Create != 0:
		if flags&Directory != 0 {
			return nil, EINVAL
		}
		dir, base, e := m.parent(name)
		if e != 0 {
			return nil, e
		}
		if n, errno = m.create(dir, name, base, false); errno != 0 {
			return nil, errno
		}
	case errno != 0:
		return nil, errno
	case flags&(Create|Excl) == Create|Excl:
		return nil, EEXIST
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
func (m *Memory) Stat(name string, _ bool) (Stat, Errno) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, errno := m.find(name)
	if errno != 0 {
		return Stat{}, errno
	}
	return n.stat(), ESUCCESS
}

// Readlink implements [FS].
func (m *Memory) Readlink(name string) (string, Errno) {
	if _, errno := m.Stat(name, false); errno != 0 {
		return "", errno
	}
	return "", EINVAL
}

// Mkdir implements [FS].
func (m *Memory) Mkdir(name string) Errno {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == "." {
		return EEXIST
	}
	dir, base, errno := m.parent(name)
	if errno != 0 {
		return errno
	}
	if _, ok := dir.children[base]; ok {
		return EEXIST
	}
	_, errno = m.create(dir, name, base, true)
	return errno
}

// Rmdir implements [FS].
func (m *Memory) Rmdir(name string) Errno {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, errno := m.parent(name)
	if errno != 0 {
		return errno
	}
	n, ok := dir.children[base]
	switch {
	case !ok:
		return ENOENT
	case !n.dir:
		return ENOTDIR
	case len(n.children) > 0:
		return ENOTEMPTY
	}
	m.remove(dir, base)
	return ESUCCESS
}

// Unlink implements [FS].
func (m *Memory) Unlink(name string) Errno {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, errno := m.parent(name)
	if errno != 0 {
		return errno
	}
	n, ok := dir.children[base]
	switch {
	case !ok:
		return ENOENT
	case n.dir:
		return EISDIR
	}
	m.remove(dir, base)
	return ESUCCESS
}

// Rename implements [FS]. It replaces a file by a file and an empty directory by
// a directory, as POSIX has it.
func (m *Memory) Rename(from, to string) Errno {
	m.mu.Lock()
	defer m.mu.Unlock()
	fromDir, fromBase, errno := m.parent(from)
	if errno != 0 {
		return errno
	}
	n, ok := fromDir.children[fromBase]
	if !ok {
		return ENOENT
	}
	toDir, toBase, errno := m.parent(to)
	if errno != 0 {
		return errno
	}
	if len(toBase) > MaxName {
		return ENAMETOOLONG
	}
	if from == to {
		return ESUCCESS
	}
	if n.dir && strings.HasPrefix(to, from+"/") {
		return EINVAL
	}
	if strings.Count(to, "/")+n.height() > m.lim.Depth {
		return ENAMETOOLONG
	}
	if old, ok := toDir.children[toBase]; ok {
		switch {
		case old == n: // two names of one file both stay, as POSIX has it
			return ESUCCESS
		case old.dir && !n.dir:
			return EISDIR
		case !old.dir && n.dir:
			return ENOTDIR
		case len(old.children) > 0:
			return ENOTEMPTY
		}
		m.remove(toDir, toBase)
	}
	delete(fromDir.children, fromBase)
	if toDir.children == nil {
		toDir.children = make(map[string]*node)
	}
	toDir.children[strings.Clone(toBase)] = n
	fromDir.mtime = m.lim.Now()
	toDir.mtime = fromDir.mtime
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

// Link implements [FS].
func (m *Memory) Link(from, to string) Errno {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, errno := m.find(from)
	if errno != 0 {
		return errno
	}
	if n.dir {
		return EPERM
	}
	dir, base, errno := m.parent(to)
	if errno != 0 {
		return errno
	}
	if _, ok := dir.children[base]; ok {
		return EEXIST
	}
	return m.name(n, dir, to, base)
}

// Symlink implements [FS].
func (m *Memory) Symlink(_, _ string) Errno { return ENOTSUP }

// SetTimes implements [FS].
func (m *Memory) SetTimes(name string, _ bool, atime, mtime *time.Time) Errno {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, errno := m.find(name)
	if errno == 0 {
		n.setTimes(atime, mtime)
	}
	return errno
}
