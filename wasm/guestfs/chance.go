package guestfs

import "time"

// Chance is an [FS] whose root is one file without an end, of random bytes: what
// guests without a function for that expect as /dev/urandom. Where the bytes come
// from is for who serves the guest to say, so that a run can be repeated; a file of
// it is told by the method Chance.
type Chance struct{ readOnlyFS }

// ChanceFile is a file of [Chance].
type ChanceFile interface {
	File

	Chance()
}

var _ FS = Chance{}

// Open implements [FS].
func (Chance) Open(name string, flags OpenFlag) (File, Errno) {
	if errno := checkRead(name, flags); errno != 0 {
		return nil, errno
	}
	if name != "." || flags&Directory != 0 {
		return nil, ENOTDIR
	}
	return chanceFile{}, ESUCCESS
}

// Stat implements [FS].
func (Chance) Stat(name string, _ bool) (Stat, Errno) {
	if name != "." {
		return Stat{}, ENOTDIR
	}
	return Stat{Inode: 1, Kind: KindCharDevice, Links: 1, Mtime: time.Unix(0, 0)}, ESUCCESS
}

// Readlink implements [FS].
func (Chance) Readlink(name string) (string, Errno) {
	if name != "." {
		return "", ENOTDIR
	}
	return "", EINVAL
}

type chanceFile struct {
	readOnlyFile
	notDir
}

func (chanceFile) Chance()                           {}
func (chanceFile) Stat() (Stat, Errno)               { return Chance{}.Stat(".", true) }
func (chanceFile) Close() error                      { return nil }
func (chanceFile) ReadAt([]byte, int64) (int, Errno) { return 0, EIO } // who serves the guest reads elsewhere
