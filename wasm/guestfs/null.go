package guestfs

import (
	"io/fs"
	"time"
)

// Null is a file that is empty whenever it is read and takes whatever is written to it,
// for mounting at /dev/null. Nothing of it is kept.
type Null struct{ readOnlyFS }

var _ FS = Null{}

// Open implements [FS].
func (Null) Open(name string, flags OpenFlag) (File, Errno) {
	switch {
	case !fs.ValidPath(name):
		return nil, EINVAL
	case name != "." || flags&Directory != 0:
		return nil, ENOTDIR
	case flags&(Create|Excl) == Create|Excl:
		return nil, EEXIST
	}
	return nullFile{writable: flags&(Write|Trunc|Create) != 0}, ESUCCESS
}

// Stat implements [FS].
func (Null) Stat(name string, _ bool) (Stat, Errno) {
	if name != "." {
		return Stat{}, ENOTDIR
	}
	return Stat{Inode: 1, Kind: KindCharDevice, Links: 1, Mtime: time.Unix(0, 0)}, ESUCCESS
}

// Readlink implements [FS].
func (Null) Readlink(name string) (string, Errno) {
	if name != "." {
		return "", ENOTDIR
	}
	return "", EINVAL
}

// SetTimes implements [FS], and does nothing.
func (Null) SetTimes(name string, _ bool, _, _ *time.Time) Errno {
	if name != "." {
		return ENOTDIR
	}
	return ESUCCESS
}

type nullFile struct {
	notDir

	writable bool
}

func (nullFile) Stat() (Stat, Errno)               { return Null{}.Stat(".", true) }
func (nullFile) ReadAt([]byte, int64) (int, Errno) { return 0, ESUCCESS }
func (nullFile) SetTimes(_, _ *time.Time) Errno    { return ESUCCESS }
func (nullFile) Close() error                      { return nil }
func (f nullFile) Truncate(int64) Errno            { return f.change() }
func (f nullFile) WriteAt(p []byte, _ int64) (int, Errno) {
	if errno := f.change(); errno != 0 {
		return 0, errno
	}
	return len(p), ESUCCESS
}

func (f nullFile) change() Errno {
	if !f.writable {
		return EBADF
	}
	return ESUCCESS
}
