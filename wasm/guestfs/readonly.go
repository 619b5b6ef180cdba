package guestfs

import (
	"io/fs"
	"sync/atomic"
	"time"
)

// readOnlyFS refuses every change of a file system, whatever the name is and
// whether it exists.
type readOnlyFS struct{}

func (readOnlyFS) Mkdir(string) Errno                                  { return EROFS }
func (readOnlyFS) Rmdir(string) Errno                                  { return EROFS }
func (readOnlyFS) Unlink(string) Errno                                 { return EROFS }
func (readOnlyFS) Rename(_, _ string) Errno                            { return EROFS }
func (readOnlyFS) Link(_, _ string) Errno                              { return EROFS }
func (readOnlyFS) Symlink(_, _ string) Errno                           { return EROFS }
func (readOnlyFS) SetTimes(string, bool, *time.Time, *time.Time) Errno { return EROFS }

// readOnlyFile refuses every change of an open file.
type readOnlyFile struct{}

func (readOnlyFile) WriteAt([]byte, int64) (int, Errno)     { return 0, EROFS }
func (readOnlyFile) Truncate(int64) Errno                   { return EROFS }
func (readOnlyFile) SetTimes(atime, mtime *time.Time) Errno { return EROFS }

// notDir is the directory half of a regular file.
type notDir struct{}

func (notDir) ReadDir(int) ([]Dirent, Errno) { return nil, ENOTDIR }
func (notDir) Rewind() Errno                 { return ENOTDIR }

// notFile is the file half of a directory.
type notFile struct{}

func (notFile) ReadAt([]byte, int64) (int, Errno) { return 0, EISDIR }

// checkRead answers for flags on a read-only file system, before any file is
// looked at.
func checkRead(name string, flags OpenFlag) Errno {
	if flags&changes != 0 {
		return EROFS
	}
	if !fs.ValidPath(name) {
		return EINVAL
	}
	return ESUCCESS
}

// reader is what regular host files and byte slices have in common.
type reader interface {
	ReadAt(p []byte, off int64) (int, error)
}

func readAt(r reader, p []byte, off int64) (int, Errno) {
	if off < 0 {
		return 0, EINVAL
	}
	if len(p) == 0 {
		return 0, ESUCCESS
	}
	n, err := r.ReadAt(p, off)
	if n > 0 {
		return n, ESUCCESS
	}
	return 0, errnoOf(err)
}

// closeOnce is shared by files that own something.
type closeOnce struct{ done atomic.Bool }

func (c *closeOnce) first() bool { return c.done.CompareAndSwap(false, true) }
