package guestfs

import "strings"

// Resolver is an [FS] in which guests can make symbolic links.
type Resolver interface {
	FS

	// Resolve gives the name that a name comes to when the links on its way are
	// followed, and one at its end if follow says so; what is at the end need not be
	// there. Links is how many were followed, told with an error as well. Without any
	// the name comes back as it is, be it there or not.
	Resolve(name string, follow bool) (end string, links int, errno Errno)
}

// Path is a guest's path after [Lookup].
type Path struct {
	Name     string // valid in the sense of FS
	Trailing bool   // the path ended in a slash, and so names a directory
	// Work is how many lookups it took beyond the one of a path without links and "..":
	// a measure for who counts a guest's work.
	Work int
}

// Lookup makes a name of a guest's path as [Clean] does, and resolves the links that
// guests have made in root, if that is a [Resolver]: those on the way, and one at the
// end if follow, given Path.Trailing, says so. Behind a link ".." is the folder above
// what it leads to; elsewhere it is resolved by text. A link that leads out of base is
// EPERM, as ".." is. Work is told with an error as well.
func Lookup(root FS, base, path string, follow func(trailing bool) bool) (Path, Errno) {
	p := Path{}
	r, ok := root.(Resolver)
	links := 0
	resolve := func(name string, follow bool) (string, Errno) {
		end, n, errno := r.Resolve(name, follow)
		links += n
		p.Work += n
		switch {
		case n == 0:
			return "", ESUCCESS
		case errno == 0 && links > MaxLinks:
			errno = ELOOP
		case errno == 0 && !inside(base, end):
			errno = EPERM
		}
		return end, errno
	}
	for from := 0; ok; {
		at := strings.Index(path[from:], "/..")
		if at < 0 {
			break
		}
		at += from
		if from = at + len("/.."); from < len(path) && path[from] != '/' {
			continue
		}
		before, _, errno := Clean(base, path[:at])
		if errno != 0 {
			break // and so is the whole
		}
		p.Work++
		end, errno := resolve(before, true)
		if errno != 0 {
			return p, errno
		}
		if end != "" { // the text of a link is not where it leads
			end = relative(base, end)
			path, from = end+path[at:], len(end)+len("/..")
		}
	}
	var errno Errno
	if p.Name, p.Trailing, errno = Clean(base, path); errno != 0 || !ok {
		return p, errno
	}
	end, errno := resolve(p.Name, follow(p.Trailing))
	if end != "" {
		p.Name = end
	}
	return p, errno
}

// inside reports whether a name is base or below it.
func inside(base, name string) bool {
	if base == "." || base == "" || name == base {
		return true
	}
	return len(name) > len(base) && name[len(base)] == '/' && name[:len(base)] == base
}

// relative gives a name inside of base as seen from there.
func relative(base, name string) string {
	switch {
	case base == "." || base == "":
		return name
	case name == base:
		return "."
	}
	return name[len(base)+1:]
}
