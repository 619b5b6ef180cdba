package guestfs

import (
	"bytes"
	"time"
)

// Single is an [FS] whose root "." is one read-only regular file, of bytes in memory. A
// [Tree] mounts it where a guest expects that file.
type Single struct {
	readOnlyFS
	data *bytes.Reader
	stat Stat
}

var _ FS = (*Single)(nil)

// Bytes is a file with these bytes, which must not change afterwards.
func Bytes(data []byte) *Single {
	st := Stat{Inode: 1, Kind: KindRegular, Links: 1, Size: int64(len(data)), Mtime: time.Unix(0, 0)}
	return &Single{data: bytes.NewReader(data), stat: st}
}

// Close implements [FS]. There is nothing to release.
func (s *Single) Close() error { return nil }

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
	return s.stat, ESUCCESS
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

func (f singleFile) Stat() (Stat, Errno)                     { return f.s.stat, ESUCCESS }
func (f singleFile) ReadAt(p []byte, off int64) (int, Errno) { return readAt(f.s.data, p, off) }
func (f singleFile) Close() error                            { return nil }
