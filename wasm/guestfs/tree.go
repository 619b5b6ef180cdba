package guestfs

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// Mount says where a file system is seen in a [Tree].
type Mount struct {
	Path string // absolute and clean, such as "/data"; never "/" itself
	FS   FS     // its root may be a regular file, as with [Bytes]
	// Unlisted says that the folder that it is in does not list it: it is there for who
	// asks for it by name.
	Unlisted bool
}

// Tree is a read-only root directory with mounts: the whole of a guest's files.
// It is an [FS]. Directories that are only there to hold a mount exist, are
// listed, and cannot be changed. The deepest mount whose path a name begins with
// has the name, so a mount may lie inside another one, and even below a file.
//
// A Tree does not own its mounts: whoever opened them closes them.
type Tree struct {
	mounts []treeMount // deepest path first
}

type treeMount struct {
	path string // without the leading slash
	fs   FS
	dev  uint64

	unlisted bool
}

var _ Resolver = (*Tree)(nil)

// NewTree makes a root of these mounts. It fails if a path is not absolute and
// clean, is taken twice, or has no file system.
func NewTree(mounts ...Mount) (*Tree, error) {
	t := &Tree{}
	for i, m := range mounts {
		name, ok := strings.CutPrefix(m.Path, "/")
		if !ok || name == "." || !fs.ValidPath(name) || len(name) > MaxPath || strings.Count(name, "/") >= MaxComponents {
			return nil, fmt.Errorf("guestfs: mount path %q: want a clean absolute path below /", m.Path)
		}
		if m.FS == nil {
			return nil, fmt.Errorf("guestfs: mount path %q: no file system", m.Path)
		}
		if slices.ContainsFunc(t.mounts, func(o treeMount) bool { return o.path == name }) {
			return nil, fmt.Errorf("guestfs: mount path %q is taken twice", m.Path)
		}
		t.mounts = append(t.mounts, treeMount{path: name, fs: m.FS, dev: uint64(i) + 2, unlisted: m.Unlisted})
	}
	slices.SortStableFunc(t.mounts, func(a, b treeMount) int { return len(b.path) - len(a.path) })
	return t, nil
}

// lookup finds the mount that has name, and the name inside of it.
func (t *Tree) lookup(name string) (m *treeMount, inner string) {
	for i := range t.mounts {
		m := &t.mounts[i]
		if rest, ok := strings.CutPrefix(name, m.path); ok {
			if rest == "" {
				return m, "."
			}
			if rest[0] == '/' {
				return m, rest[1:]
			}
		}
	}
	return nil, ""
}

// holds reports whether a mount lies below name, so that name is a directory even
// if nothing else says so.
func (t *Tree) holds(name string) bool {
	if name == "." {
		return true
	}
	for i := range t.mounts {
		if rest, ok := strings.CutPrefix(t.mounts[i].path, name); ok && rest != "" && rest[0] == '/' {
			return true
		}
	}
	return false
}

// virtual reports whether name is a directory only because a mount lies below it,
// given what the file system that has the name said: not there, or below a file.
func (t *Tree) virtual(name string, errno Errno) bool {
	if errno != ENOENT && errno != ENOTDIR || !t.holds(name) {
		return false
	}
	if m, inner := t.lookup(name); m != nil {
		_, errno := m.fs.Stat(inner, true)
		return errno != 0 // ENOTDIR of a file that is there is the file's own
	}
	return true
}

// below lists the names that mounts add to a directory.
func (t *Tree) below(name string) []Dirent {
	prefix := name + "/"
	if name == "." {
		prefix = ""
	}
	var out []Dirent
	for i := range t.mounts {
		m := &t.mounts[i]
		rest, ok := strings.CutPrefix(m.path, prefix)
		if !ok || rest == "" || m.unlisted {
			continue
		}
		first, more, _ := strings.Cut(rest, "/")
		entry := Dirent{Name: first, Inode: hashInode(prefix + first), Kind: KindDirectory}
		if more == "" {
			if st, errno := m.fs.Stat(".", true); errno == 0 {
				entry.Kind, entry.Inode = st.Kind, st.Inode
			}
		}
		if at := slices.IndexFunc(out, func(d Dirent) bool { return d.Name == first }); at < 0 {
			out = append(out, entry)
		} else if more == "" { // the mount itself knows best
			out[at] = entry
		}
	}
	slices.SortFunc(out, func(a, b Dirent) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func placeholder(name string) Stat {
	return Stat{Dev: 1, Inode: hashInode(name), Kind: KindDirectory, Links: 1, Mtime: time.Unix(0, 0)}
}

// Open implements [FS].
func (t *Tree) Open(name string, flags OpenFlag) (File, Errno) {
	if !fs.ValidPath(name) {
		return nil, EINVAL
	}
	errno := ENOENT
	if m, inner := t.lookup(name); m != nil {
		var f File
		if f, errno = m.fs.Open(inner, flags); errno == 0 {
			switch f.(type) {
			case ChanceFile, ExchangeFile:
				return f, ESUCCESS // known by its type
			}
			return &treeFile{File: f, dev: m.dev, extra: t.below(name)}, ESUCCESS
		}
	}
	switch {
	case t.virtual(name, errno):
		if flags&changes != 0 {
			return nil, EROFS
		}
		return &treeFile{File: emptyDir{name: name}, dev: 1, extra: t.below(name)}, ESUCCESS
	case errno == ENOENT && flags&changes != 0:
		if m, _ := t.lookup(name); m == nil {
			return nil, EROFS
		}
	}
	return nil, errno
}

// Stat implements [FS].
func (t *Tree) Stat(name string, follow bool) (Stat, Errno) {
	if !fs.ValidPath(name) {
		return Stat{}, EINVAL
	}
	errno := ENOENT
	if m, inner := t.lookup(name); m != nil {
		var st Stat
		if st, errno = m.fs.Stat(inner, follow); errno == 0 {
			st.Dev = m.dev
			return st, ESUCCESS
		}
	}
	if (errno == ENOENT || errno == ENOTDIR) && t.holds(name) {
		return placeholder(name), ESUCCESS
	}
	return Stat{}, errno
}

// Resolve implements [Resolver]. A link of a mount leads to what is in the mount, and
// nowhere else.
func (t *Tree) Resolve(name string, follow bool) (end string, links int, errno Errno) {
	m, inner := t.lookup(name)
	if m == nil {
		return name, 0, ESUCCESS
	}
	r, ok := m.fs.(Resolver)
	if !ok {
		return name, 0, ESUCCESS
	}
	end, links, errno = r.Resolve(inner, follow)
	switch {
	case links == 0:
		return name, 0, ESUCCESS
	case errno != 0:
		return "", links, errno
	case end == ".":
		return m.path, links, ESUCCESS
	}
	return m.path + "/" + end, links, ESUCCESS
}

// Readlink implements [FS].
func (t *Tree) Readlink(name string) (string, Errno) {
	target, errno := "", ENOENT
	if m, inner := t.lookup(name); m != nil {
		target, errno = m.fs.Readlink(inner)
	}
	if t.virtual(name, errno) {
		return "", EINVAL
	}
	return target, errno
}

// change finds the file system that a change goes to. Mount points and what is
// outside of any mount stay as they are.
func (t *Tree) change(name string) (*treeMount, string, Errno) {
	if !fs.ValidPath(name) {
		return nil, "", EINVAL
	}
	m, inner := t.lookup(name)
	if m == nil {
		return nil, "", EROFS
	}
	return m, inner, ESUCCESS
}

// Mkdir implements [FS].
func (t *Tree) Mkdir(name string) Errno {
	m, inner, errno := t.change(name)
	if errno != 0 {
		return errno
	}
	return m.fs.Mkdir(inner)
}

// Rmdir implements [FS]. A mount point is EBUSY.
func (t *Tree) Rmdir(name string) Errno {
	m, inner, errno := t.change(name)
	if errno != 0 {
		return errno
	}
	if t.holds(name) {
		return EBUSY
	}
	return m.fs.Rmdir(inner)
}

// Unlink implements [FS].
func (t *Tree) Unlink(name string) Errno {
	m, inner, errno := t.change(name)
	if errno != 0 {
		return errno
	}
	return m.fs.Unlink(inner)
}

// Rename implements [FS]. Between mounts it is EXDEV, of what holds a mount EBUSY.
func (t *Tree) Rename(from, to string) Errno {
	source, innerFrom, errno := t.change(from)
	if errno != 0 {
		return errno
	}
	target, innerTo, errno := t.change(to)
	switch {
	case errno != 0:
		return errno
	case source != target:
		return EXDEV
	case t.holds(from) || t.holds(to):
		return EBUSY
	}
	return source.fs.Rename(innerFrom, innerTo)
}

// Link implements [FS].
func (t *Tree) Link(from, to string) Errno {
	source, innerFrom, errno := t.change(from)
	if errno != 0 {
		return errno
	}
	target, innerTo, errno := t.change(to)
	switch {
	case errno != 0:
		return errno
	case source != target:
		return EXDEV
	}
	return source.fs.Link(innerFrom, innerTo)
}

// Symlink implements [FS].
func (t *Tree) Symlink(target, name string) Errno {
	m, inner, errno := t.change(name)
	if errno != 0 {
		return errno
	}
	return m.fs.Symlink(target, inner)
}

// SetTimes implements [FS].
func (t *Tree) SetTimes(name string, follow bool, atime, mtime *time.Time) Errno {
	m, inner, errno := t.change(name)
	if errno != 0 {
		return errno
	}
	return m.fs.SetTimes(inner, follow, atime, mtime)
}

// treeFile is a file of a mount, with the mount's number and, in a directory, the
// mounts below it.
type treeFile struct {
	File
	dev   uint64
	extra []Dirent
	next  int // of extra
}

func (f *treeFile) Stat() (Stat, Errno) {
	st, errno := f.File.Stat()
	st.Dev = f.dev
	return st, errno
}

func (f *treeFile) ReadDir(n int) ([]Dirent, Errno) {
	if len(f.extra) == 0 {
		return f.File.ReadDir(n)
	}
	if f.next == 0 {
		if _, errno := f.ReadAt(nil, 0); errno != EISDIR {
			return nil, ENOTDIR // a file with a mount below it
		}
	}
	if f.next < len(f.extra) {
		out := f.extra[f.next:min(f.next+n, len(f.extra))]
		f.next += len(out)
		return slices.Clone(out), ESUCCESS
	}
	for {
		entries, errno := f.File.ReadDir(n)
		if errno != 0 || len(entries) == 0 {
			return nil, errno
		}
		entries = slices.DeleteFunc(entries, func(d Dirent) bool {
			return slices.ContainsFunc(f.extra, func(e Dirent) bool { return e.Name == d.Name })
		})
		if len(entries) > 0 {
			return entries, ESUCCESS
		}
	}
}

func (f *treeFile) Rewind() Errno {
	f.next = 0
	return f.File.Rewind()
}

// emptyDir is a directory that only holds mounts.
type emptyDir struct {
	readOnlyFile
	notFile
	name string
}

func (d emptyDir) Stat() (Stat, Errno)         { return placeholder(d.name), ESUCCESS }
func (emptyDir) ReadDir(int) ([]Dirent, Errno) { return nil, ESUCCESS }
func (emptyDir) Rewind() Errno                 { return ESUCCESS }
func (emptyDir) Close() error                  { return nil }
