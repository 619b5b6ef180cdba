package wasi

import (
	"openskill/wasm/guestfs"
)

const followLinks = 1 // of lookupflags

// never is for calls about a name itself, be it a link or not.
func never(bool) bool { return false }

// follows is for calls about what a name stands for. A name with a slash behind it
// stands for a directory, so a link is followed whatever the flags say.
func follows(flags uint32) func(trailing bool) bool {
	return func(trailing bool) bool { return flags&followLinks != 0 || trailing }
}

// path reads a path and resolves it against a directory's descriptor. What it gives
// has no links on its way, and none at its end if follow is true for the path.
func (w *World) path(fd, ptr, n uint64, follow func(trailing bool) bool) (name string, trailing bool, errno guestfs.Errno) {
	n = uint64(uint32(n))
	d := w.fd(fd)
	switch {
	case d == nil:
		return "", false, guestfs.EBADF
	case d.kind != isDir:
		return "", false, guestfs.ENOTDIR
	}
	// The pointer is checked before the length, so that a wrong pointer is always
	// EFAULT; no more than the cap is ever copied.
	b, ok := w.bytes(uint64(uint32(ptr)), n)
	switch {
	case !ok:
		return "", false, guestfs.EFAULT
	case n > guestfs.MaxPath:
		return "", false, guestfs.ENAMETOOLONG
	}
	w.charge(costPath)
	p, errno := guestfs.Lookup(w.cfg.Root, d.path, string(b), follow)
	w.charge(costPath * uint64(p.Work))
	return p.Name, p.Trailing, errno
}

// plain is for calls that take a path and nothing else.
func (w *World) plain(p []uint64, call func(fs guestfs.FS, name string) guestfs.Errno) guestfs.Errno {
	name, _, errno := w.path(p[0], p[1], p[2], never)
	if errno != 0 {
		return errno
	}
	return call(w.cfg.Root, name)
}

func (w *World) pathCreateDirectory(p []uint64) guestfs.Errno {
	return w.plain(p, guestfs.FS.Mkdir)
}

func (w *World) pathRemoveDirectory(p []uint64) guestfs.Errno {
	return w.plain(p, guestfs.FS.Rmdir)
}

func (w *World) pathUnlinkFile(p []uint64) guestfs.Errno {
	name, trailing, errno := w.path(p[0], p[1], p[2], never)
	if errno != 0 {
		return errno
	}
	if trailing {
		if errno := w.mustBeDir(name); errno != 0 {
			return errno
		}
	}
	return w.cfg.Root.Unlink(name)
}

// mustBeDir refuses a file or link whose path ended in a slash. What does not exist
// is left for the call itself to tell.
func (w *World) mustBeDir(name string) guestfs.Errno {
	if st, errno := w.cfg.Root.Stat(name, false); errno == 0 && st.Kind != guestfs.KindDirectory {
		return guestfs.ENOTDIR
	}
	return 0
}

func (w *World) pathFilestatGet(p []uint64) guestfs.Errno {
	name, trailing, errno := w.path(p[0], p[2], p[3], follows(uint32(p[1])))
	if errno != 0 {
		return errno
	}
	out, ok := w.result(p[4], 64)
	if !ok {
		return guestfs.EFAULT
	}
	if uint32(p[1])&^followLinks != 0 {
		return guestfs.EINVAL
	}
	st, errno := w.cfg.Root.Stat(name, uint32(p[1])&followLinks != 0 || trailing)
	switch {
	case errno != 0:
		return errno
	case trailing && st.Kind != guestfs.KindDirectory:
		return guestfs.ENOTDIR
	}
	putFilestat(out, st)
	return 0
}

func (w *World) pathFilestatSetTimes(p []uint64) guestfs.Errno {
	name, trailing, errno := w.path(p[0], p[2], p[3], follows(uint32(p[1])))
	if errno != 0 {
		return errno
	}
	atime, mtime, errno := w.times(p[4], p[5], uint32(p[6]))
	switch {
	case errno != 0:
		return errno
	case uint32(p[1])&^followLinks != 0:
		return guestfs.EINVAL
	}
	if trailing {
		if errno := w.mustBeDir(name); errno != 0 {
			return errno
		}
	}
	return w.cfg.Root.SetTimes(name, uint32(p[1])&followLinks != 0 || trailing, atime, mtime)
}

func (w *World) pathLink(p []uint64) guestfs.Errno {
	from, fromDir, errno := w.path(p[0], p[2], p[3], follows(uint32(p[1])))
	if errno != 0 {
		return errno
	}
	to, toDir, errno := w.path(p[4], p[5], p[6], never)
	switch {
	case errno != 0:
		return errno
	case uint32(p[1])&^followLinks != 0:
		return guestfs.EINVAL
	}
	if fromDir {
		if errno := w.mustBeDir(from); errno != 0 {
			return errno
		}
	}
	if toDir {
		if errno := w.mustBeNew(to); errno != 0 {
			return errno
		}
	}
	return w.cfg.Root.Link(from, to)
}

func (w *World) pathRename(p []uint64) guestfs.Errno {
	from, fromDir, errno := w.path(p[0], p[1], p[2], never)
	if errno != 0 {
		return errno
	}
	to, toDir, errno := w.path(p[3], p[4], p[5], never)
	if errno != 0 {
		return errno
	}
	if fromDir || toDir {
		if errno := w.mustBeDir(from); errno != 0 {
			return errno
		}
	}
	return w.cfg.Root.Rename(from, to)
}

func (w *World) pathSymlink(p []uint64) guestfs.Errno {
	n := uint64(uint32(p[1]))
	target, ok := w.bytes(uint64(uint32(p[0])), n)
	switch {
	case !ok:
		return guestfs.EFAULT
	case n > guestfs.MaxPath:
		return guestfs.ENAMETOOLONG
	}
	name, trailing, errno := w.path(p[2], p[3], p[4], never)
	switch {
	case errno != 0:
		return errno
	case n == 0:
		return guestfs.ENOENT
	}
	if trailing {
		if errno := w.mustBeNew(name); errno != 0 {
			return errno
		}
	}
	w.copied(int(n))
	return w.cfg.Root.Symlink(string(target), name)
}

// mustBeNew refuses to make anything but a directory at a path that ended in a slash.
// Where nothing can be made at all is left for the call itself to tell.
func (w *World) mustBeNew(name string) guestfs.Errno {
	switch st, errno := w.cfg.Root.Stat(name, false); {
	case errno == guestfs.ENOENT:
		return guestfs.ENOENT
	case errno == 0 && st.Kind != guestfs.KindDirectory:
		return guestfs.ENOTDIR
	}
	return 0
}

// pathReadlink gives as much of the target as there is room for, and does not tell
// whether that is all: a caller with a full buffer asks again with a larger one.
func (w *World) pathReadlink(p []uint64) guestfs.Errno {
	name, trailing, errno := w.path(p[0], p[1], p[2], follows(0))
	if errno != 0 {
		return errno
	}
	buf, ok := w.result(p[3], uint64(uint32(p[4])))
	used, ok2 := w.result(p[5], 4)
	switch {
	case !ok || !ok2:
		return guestfs.EFAULT
	case len(buf) == 0:
		return guestfs.EINVAL
	}
	if trailing {
		if errno := w.mustBeDir(name); errno != 0 {
			return errno
		}
	}
	target, errno := w.cfg.Root.Readlink(name)
	if errno != 0 {
		return errno
	}
	copied := copy(buf, target)
	w.copied(copied)
	le.PutUint32(used, uint32(copied))
	return 0
}

// Flags of path_open.
const (
	openCreate    = 1 << 0
	openDirectory = 1 << 1
	openExcl      = 1 << 2
	openTrunc     = 1 << 3
)

func (w *World) pathOpen(p []uint64) guestfs.Errno {
	lookup, oflags, rights, fdflags := uint32(p[1]), uint32(p[4]), p[5], uint32(p[7])
	creates := oflags&(openCreate|openDirectory) == openCreate
	name, trailing, errno := w.path(p[0], p[2], p[3], func(trailing bool) bool {
		isNew := creates && oflags&openExcl != 0 // a link is there, wherever it leads
		return !isNew && follows(lookup)(trailing)
	})
	if errno != 0 {
		return errno
	}
	out, ok := w.result(p[8], 4)
	switch {
	case !ok:
		return guestfs.EFAULT
	case lookup&^followLinks != 0 || oflags > 15 || fdflags > 31:
		return guestfs.EINVAL
	}

	d := descriptor{kind: isFile, flags: uint16(fdflags)}
	if rights&rightRead != 0 {
		d.rights |= canRead
	}
	if rights&rightWrite != 0 {
		d.rights |= canWrite
	}
	if d.rights == 0 { // some callers ask for no right and mean all that make sense
		d.rights = canRead
		if oflags&(openCreate|openTrunc) != 0 || fdflags&flagAppend != 0 {
			d.rights |= canWrite
		}
	}
	var flags guestfs.OpenFlag
	set := func(on bool, flag guestfs.OpenFlag) {
		if on {
			flags |= flag
		}
	}
	set(lookup&followLinks == 0 && !trailing, guestfs.NoFollow)
	set(oflags&openDirectory != 0 || trailing, guestfs.Directory)
	set(oflags&openCreate != 0, guestfs.Create)
	set(oflags&openExcl != 0, guestfs.Excl)
	set(oflags&openTrunc != 0, guestfs.Trunc)
	set(d.rights&canWrite != 0 || fdflags&flagAppend != 0, guestfs.Write)

	number, ok := w.freeFD()
	if !ok {
		return guestfs.EMFILE
	}
	file, errno := w.cfg.Root.Open(name, flags)
	if errno == guestfs.EINVAL && creates && trailing {
		return guestfs.EISDIR // what is to be created is named like a folder
	}
	if errno != 0 {
		return errno
	}
	st, errno := file.Stat()
	if errno != 0 {
		_ = file.Close()
		return errno
	}
	if st.Kind == guestfs.KindDirectory {
		d.kind, d.path, d.rights = isDir, name, 0
	}
	d.h = open(file)
	w.setFD(number, d)
	le.PutUint32(out, uint32(number))
	return 0
}
