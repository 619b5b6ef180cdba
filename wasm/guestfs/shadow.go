package guestfs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// shadow is where the content of a file is that nobody has written to.
type shadow struct {
	fs   FS
	name string // there
	at   string // here, when it was made
}

// Shadow makes a directory that begins as a copy of a file system: a program may
// change, remove and rename all that it finds there, and the original stays as it is.
// Nothing is read ahead but names: a file's content is taken from the original until
// it is written to, and counts against the limits from then on. Names of the original
// count against nothing. The original must not be closed before the Memory is done
// with.
//
// Links that lead to files are files of their own here. It is an error if there are
// more than most names, or if one lies too deep.
func (m *Memory) Shadow(dir string, from FS, most int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := shadowing{m: m, from: from, left: most}
	if err := s.directory(dir, "."); err != nil {
		return fmt.Errorf("guestfs: shadow of a folder: %w", err)
	}
	return nil
}

// Give creates a file whose content is a file of another file system, which is read when the guest reads it. It
// creates missing parent directories and replaces an existing file.
func (m *Memory) Give(name string, from FS, file string) error {
	st, errno := from.Stat(file, true)
	switch {
	case errno != 0:
		return errno
	case st.Kind != KindRegular:
		return EINVAL
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, c := range name {
		if c != '/' {
			continue
		}
		if p, errno := m.walk(name[:i], true); errno != 0 {
			return errno
		} else if p.n == nil {
			if _, errno = m.create(p, true, ""); errno != 0 {
				return errno
			}
		}
	}
	p, errno := m.entry(name)
	switch {
	case errno != 0:
		return errno
	case p.n != nil && p.n.dir:
		return EISDIR
	case p.n != nil:
		m.remove(p.dir, p.base)
		p.n = nil
	}
	n, errno := m.create(p, false, "")
	if errno != 0 {
		return errno
	}
	n.shadow, n.size = &shadow{from, file, name}, st.Size
	return nil
}

type shadowing struct {
	m    *Memory
	from FS
	left int
}

var errCrowded = errors.New("too many files")

// add makes a node that counts against nothing.
func (s *shadowing) add(name string, isDir bool, target string) (*node, error) {
	if s.left--; s.left < 0 {
		return nil, errCrowded
	}
	p, errno := s.m.entry(name)
	switch {
	case errno != 0:
		return nil, errno
	case p.n != nil:
		return nil, EEXIST
	}
	s.m.lim.Files++
	s.m.lim.Bytes += nodeCost + int64(len(target))
	n, errno := s.m.create(p, isDir, target)
	if errno != 0 {
		return nil, errno
	}
	return n, nil
}

// directory makes to, a copy of the directory of.
func (s *shadowing) directory(to, of string) error {
	n, err := s.add(to, true, "")
	if err != nil {
		return err
	}
	st, errno := s.from.Stat(of, true)
	if errno != 0 {
		return errno
	}
	d, errno := s.from.Open(of, Directory)
	if errno != 0 {
		return errno
	}
	defer d.Close()
	for {
		list, errno := d.ReadDir(256)
		if errno != 0 {
			return errno
		}
		if len(list) == 0 {
			break
		}
		for _, e := range list {
			if err := s.entry(to+"/"+e.Name, join1(of, e.Name)); err != nil {
				return err
			}
		}
	}
	n.mtime = st.Mtime
	return nil
}

func join1(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// entry makes to, a copy of whatever of is. What cannot be seen there is not here.
func (s *shadowing) entry(to, of string) error {
	st, errno := s.from.Stat(of, false)
	if errno != 0 {
		return nil
	}
	if st.Kind == KindSymlink {
		target, errno := s.from.Readlink(of)
		end, errno2 := s.from.Stat(of, true)
		switch {
		case errno2 != 0:
			return nil
		case end.Kind == KindRegular:
			st = end
		case errno != 0 || strings.HasPrefix(target, "/"):
			return nil
		default:
			_, err := s.add(to, false, target)
			return err
		}
	}
	switch st.Kind {
	case KindDirectory:
		return s.directory(to, of)
	case KindRegular:
		n, err := s.add(to, false, "")
		if err != nil {
			return err
		}
		n.shadow, n.size, n.mtime = &shadow{s.from, of, to}, st.Size, st.Mtime
	case KindUnknown, KindBlockDevice, KindCharDevice, KindSocket, KindSymlink: // nothing that a program could use
	}
	return nil
}

// read fills b with the content. What is not there, because the file is shorter than
// it was, is zero.
func (s *shadow) read(b []byte) ([]byte, error) {
	f, errno := s.fs.Open(s.name, 0)
	if errno != 0 {
		return nil, errno
	}
	defer f.Close()
	for done := 0; done < len(b); {
		n, errno := f.ReadAt(b[done:], int64(done))
		if errno != 0 {
			return nil, errno
		}
		if n == 0 {
			break
		}
		done += n
	}
	return b, nil
}

// unshadow takes a file's content over, which counts from now on. The caller holds
// the lock.
func (m *Memory) unshadow(n *node) Errno {
	if n.shadow == nil {
		return ESUCCESS
	}
	grow, names := roundUp(n.size), int64(max(n.names, 1))
	if grow > (m.lim.Bytes-m.used)/names || !m.take(grow*names) {
		return ENOSPC
	}
	content := make([]byte, grow)
	if _, err := n.shadow.read(content[:n.size]); err != nil {
		m.take(-grow * names)
		return EIO
	}
	pages := make([][]byte, grow/pageSize)
	for i := range pages {
		pages[i] = content[i*pageSize : (i+1)*pageSize : (i+1)*pageSize]
	}
	n.pages, n.shadow = pages, nil
	m.same = nil
	return ESUCCESS
}

// cut takes the content of a file that is to be empty: it need not be read.
func (n *node) cut() {
	if n.shadow != nil {
		n.shadow, n.size = nil, 0
	}
}

// readShadow is ReadAt of a file that was not written to.
func (f *memoryFile) readShadow(p []byte, off int64) (int, Errno) {
	if off >= f.n.size {
		return 0, ESUCCESS
	}
	if f.below == nil {
		var errno Errno
		if f.below, errno = f.n.shadow.fs.Open(f.n.shadow.name, 0); errno != 0 {
			f.below = nil
			return 0, errno
		}
	}
	return f.below.ReadAt(p[:min(int64(len(p)), f.n.size-off)], off)
}

// Written lists the regular files below a directory that are not as [Memory.Shadow]
// made them, in order of name; names are relative to the directory.
func (m *Memory) Written(dir string) []FileInfo {
	m.mu.Lock()
	defer m.mu.Unlock()
	top, errno := m.find(dir, false)
	if errno != 0 {
		return nil
	}
	var out []FileInfo
	var walk func(n *node, name string)
	walk = func(n *node, name string) {
		for base, c := range n.children {
			at := join1(name, base)
			switch {
			case c.dir:
				walk(c, at)
			case c.target != "", c.shadow != nil && c.shadow.at == dir+"/"+at:
			default:
				out = append(out, FileInfo{at, c.size})
			}
		}
	}
	walk(top, ".")
	slices.SortFunc(out, func(a, b FileInfo) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Sub is one directory of a [Memory] as a file system of its own. A link that leads
// out of it is EPERM.
func (m *Memory) Sub(dir string) Resolver { return sub{m, dir} }

type sub struct {
	*Memory

	dir string
}

func (s sub) in(name string) string {
	switch {
	case name == ".":
		return s.dir
	case !fs.ValidPath(name):
		return ".." // which is no name anywhere
	}
	return s.dir + "/" + name
}

func (s sub) Resolve(name string, follow bool) (string, int, Errno) {
	end, links, errno := s.Memory.Resolve(s.in(name), follow)
	if errno != 0 || links == 0 {
		return name, links, errno
	}
	if !inside(s.dir, end) {
		return "", links, EPERM
	}
	return relative(s.dir, end), links, ESUCCESS
}

func (s sub) Open(name string, flags OpenFlag) (File, Errno) { return s.Memory.Open(s.in(name), flags) }
func (s sub) Stat(name string, follow bool) (Stat, Errno)    { return s.Memory.Stat(s.in(name), follow) }
func (s sub) Readlink(name string) (string, Errno)           { return s.Memory.Readlink(s.in(name)) }
func (s sub) Mkdir(name string) Errno                        { return s.Memory.Mkdir(s.in(name)) }
func (s sub) Unlink(name string) Errno                       { return s.Memory.Unlink(s.in(name)) }
func (s sub) Rename(from, to string) Errno                   { return s.Memory.Rename(s.in(from), s.in(to)) }
func (s sub) Link(from, to string) Errno                     { return s.Memory.Link(s.in(from), s.in(to)) }
func (s sub) Symlink(target, name string) Errno              { return s.Memory.Symlink(target, s.in(name)) }
func (s sub) SetTimes(name string, follow bool, a, m *time.Time) Errno {
	return s.Memory.SetTimes(s.in(name), follow, a, m)
}

// Rmdir never removes the directory itself.
func (s sub) Rmdir(name string) Errno {
	if name == "." {
		return EBUSY
	}
	return s.Memory.Rmdir(s.in(name))
}
