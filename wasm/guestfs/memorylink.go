package guestfs

import (
	"io/fs"
	"strings"
	"unicode/utf8"
)

// MaxLinks is how many symbolic links are followed for one name; one more is ELOOP.
// It is what Linux and wasmtime have.
const MaxLinks = 40

// place is where a name leads in a [Memory].
type place struct {
	n     *node  // nil if there is nothing
	dir   *node  // that has it, or would; nil of the root
	base  string // its name in dir
	name  string // the whole name, without links on the way
	depth int    // components of name
	links int    // how many were followed
}

// walk looks a name up. Links on the way are followed, and one at its end if follow
// says so. The caller holds the lock.
func (m *Memory) walk(name string, follow bool) (place, Errno) {
	if !fs.ValidPath(name) {
		return place{}, EINVAL
	}
	if name == "." {
		return place{n: m.root, name: "."}, ESUCCESS
	}
	dir, rest := m.root, name
	for depth := 1; ; depth++ {
		part, after, more := strings.Cut(rest, "/")
		if !dir.dir {
			return place{}, ENOTDIR
		}
		n := dir.children[part]
		switch {
		case n != nil && n.target != "" && (more || follow):
			return m.walkLinks(name, follow)
		case !more:
			return place{n: n, dir: dir, base: part, name: name, depth: depth}, ESUCCESS
		case n == nil:
			return place{}, ENOENT
		}
		dir, rest = n, after
	}
}

// stage is a node on the way to another, and its name.
type stage struct {
	n    *node
	base string
}

// walkLinks is walk for names with links on their way. A target is relative to the
// folder of its link, ".." is the folder above in the end and not in the text, and
// above the root there is nothing: EPERM.
func (m *Memory) walkLinks(name string, follow bool) (place, Errno) {
	way := append(make([]stage, 0, 16), stage{n: m.root})
	ahead := append(make([]string, 0, 4), name) // the next text last
	links := 0
	for len(ahead) > 0 {
		top := len(ahead) - 1
		part, rest, more := strings.Cut(ahead[top], "/")
		if ahead[top] = rest; !more {
			ahead = ahead[:top]
		}
		here := way[len(way)-1].n
		switch {
		case !here.dir:
			return place{links: links}, ENOTDIR
		case part == "" || part == ".": // "" is what follows the last slash
			continue
		case part == "..":
			if len(way) == 1 {
				return place{links: links}, EPERM
			}
			way = way[:len(way)-1]
			continue
		}
		n, last := here.children[part], len(ahead) == 0
		switch {
		case n != nil && n.target != "" && (!last || follow):
			if links++; links > MaxLinks {
				return place{links: links}, ELOOP
			}
			ahead = append(ahead, n.target)
		case n != nil:
			way = append(way, stage{n, part})
		case last:
			return place{dir: here, base: part, name: nameOf(way, part), depth: len(way), links: links}, ESUCCESS
		default:
			return place{links: links}, ENOENT
		}
	}
	end := way[len(way)-1]
	if len(way) == 1 {
		return place{n: m.root, name: ".", links: links}, ESUCCESS
	}
	above := way[:len(way)-1]
	return place{
		n: end.n, dir: above[len(above)-1].n, base: end.base,
		name: nameOf(above, end.base), depth: len(above), links: links,
	}, ESUCCESS
}

// nameOf is the name of base in the last folder of the way.
func nameOf(way []stage, base string) string {
	var b strings.Builder
	for _, s := range way[1:] {
		b.WriteString(s.base)
		b.WriteByte('/')
	}
	b.WriteString(base)
	return b.String()
}

// Resolve implements [Resolver].
func (m *Memory) Resolve(name string, follow bool) (end string, links int, errno Errno) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.links == 0 {
		return name, 0, ESUCCESS
	}
	p, errno := m.walk(name, follow)
	switch {
	case p.links == 0:
		return name, 0, ESUCCESS
	case errno != 0:
		return "", p.links, errno
	case len(p.name) > MaxPath:
		return "", p.links, ENAMETOOLONG
	}
	return p.name, p.links, ESUCCESS
}

// Symlink implements [FS]. The target is kept as it is, whether it is there or not,
// and is looked up inside of this file system when the link is followed: one that
// leads out of it is EPERM then. An absolute one, which could only name a place
// outside, is EPERM here. Both are what wasmtime says.
func (m *Memory) Symlink(target, name string) Errno {
	switch {
	case target == "":
		return ENOENT
	case len(target) > MaxPath || strings.Count(target, "/") >= MaxComponents:
		return ENAMETOOLONG
	case strings.IndexByte(target, 0) >= 0:
		return EINVAL
	case !utf8.ValidString(target):
		return EILSEQ
	case target[0] == '/':
		return EPERM
	}
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
	_, errno = m.create(p, false, strings.Clone(target))
	return errno
}

// Readlink implements [FS].
func (m *Memory) Readlink(name string) (string, Errno) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, errno := m.find(name, false)
	switch {
	case errno != 0:
		return "", errno
	case n.target == "":
		return "", EINVAL
	}
	return n.target, ESUCCESS
}

// Link implements [FS]. A link to a symbolic link is one more name of that.
func (m *Memory) Link(from, to string) Errno {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, errno := m.find(from, false)
	if errno != 0 {
		return errno
	}
	p, errno := m.entry(to)
	switch {
	case errno != 0:
		return errno
	case p.n != nil:
		return EEXIST
	case n.dir:
		return EPERM
	}
	return m.name(n, p)
}
