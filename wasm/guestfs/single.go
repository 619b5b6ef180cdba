package guestfs

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Single is an [FS] whose root "." is one read-only regular file. A [Tree] mounts
// it where a guest expects that file.
type Single struct {
	readOnlyFS
	closeOnce
	data reader
	stat func() (Stat, Errno)
	file *os.File // nil for bytes in memory
}

var _ FS = (*Single)(nil)

// OpenFile opens one regular file of the host. The descriptor is opened once,
// checked, and shared by all guests. Links in the path are the host's own and
// are followed, but for the last component. DirOptions hold as for a folder.
func OpenFile(hostPath string, opt DirOptions) (*Single, error) {
	d, err := OpenDirWith(filepath.Dir(hostPath), opt)
	if err != nil {
		return nil, err
	}
	defer d.Close() //nolint:errcheck // a folder that was only read
	h, errno := d.openFile(filepath.Base(hostPath), NoFollow)
	if errno != 0 {
		return nil, &fs.PathError{Op: "open", Path: hostPath, Err: errno}
	}
	if h.dir {
		_ = h.Close()
		return nil, &fs.PathError{Op: "open", Path: hostPath, Err: EISDIR}
	}
	return &Single{data: h.f, stat: h.Stat, file: h.f}, nil
}

// Bytes is a file with these bytes, which must not change afterwards.
func Bytes(data []byte) *Single {
	st := Stat{Inode: 1, Kind: KindRegular, Links: 1, Size: int64(len(data)), Mtime: time.Unix(0, 0)}
	return &Single{data: bytes.NewReader(data), stat: func() (Stat, Errno) { return st, ESUCCESS }}
}

// Close releases the host's file, after the guests that use it.
func (s *Single) Close() error {
	if s.file == nil || !s.first() {
		return nil
	}
	return s.file.Close()
}

// Open implements [FS].
func (s *Single) Open(name string, flags OpenFlag) (File, Errno) {
	if errno := checkRead(name, flags); errno != 0 {
		return nil, errno
	}
	if name != "." || flags&Directory != 0 {
		return nil, ENOTDIR
	}
	return singleFile{s: s}, ESUCCESS
}

// Stat implements [FS].
func (s *Single) Stat(name string, _ bool) (Stat, Errno) {
	if name != "." {
		return Stat{}, ENOTDIR
	}
	return s.stat()
}

// Readlink implements [FS].
func (s *Single) Readlink(name string) (string, Errno) {
	if name != "." {
		return "", ENOTDIR
	}
	return "", EINVAL
}

type singleFile struct {
	readOnlyFile
	notDir
	s *Single
}

func (f singleFile) Stat() (Stat, Errno)                     { return f.s.stat() }
func (f singleFile) ReadAt(p []byte, off int64) (int, Errno) { return readAt(f.s.data, p, off) }
func (f singleFile) Close() error                            { return nil }
