package guestfs

import (
	"io/fs"
	"time"
)

// Device says what the file of an [Exchange] asks.
type Device uint8

// The devices.
const (
	Network   Device = iota // HTTP requests
	Processes               // other processes of the run
)

// Exchange is an [FS] whose root is one file to ask through: what is written to it
// is a request, and what is read then is the response. Who answers is for who
// serves the guest to say; a file of it is told by the method Device.
type Exchange struct {
	readOnlyFS

	Asks Device
}

// ExchangeFile is a file of [Exchange].
type ExchangeFile interface {
	File

	Device() Device
}

var _ FS = Exchange{}

// Open implements [FS]. The file exists, and cannot be cut: flags that ask for
// either are fine.
func (e Exchange) Open(name string, flags OpenFlag) (File, Errno) {
	switch {
	case !fs.ValidPath(name):
		return nil, EINVAL
	case name != "." || flags&Directory != 0:
		return nil, ENOTDIR
	case flags&Create != 0 && flags&Excl != 0:
		return nil, EEXIST
	}
	return exchangeFile{device: e.Asks}, ESUCCESS
}

// Stat implements [FS].
func (Exchange) Stat(name string, _ bool) (Stat, Errno) {
	if name != "." {
		return Stat{}, ENOTDIR
	}
	return Stat{Inode: 1, Kind: KindRegular, Links: 1, Mtime: time.Unix(0, 0)}, ESUCCESS
}

// Readlink implements [FS].
func (Exchange) Readlink(name string) (string, Errno) {
	if name != "." {
		return "", ENOTDIR
	}
	return "", EINVAL
}

// exchangeFile has no content of its own: who serves the guest reads and writes
// elsewhere, and only in sequence.
type exchangeFile struct {
	readOnlyFile
	notDir

	device Device
}

func (f exchangeFile) Device() Device                   { return f.device }
func (exchangeFile) Stat() (Stat, Errno)                { return Exchange{}.Stat(".", true) }
func (exchangeFile) Close() error                       { return nil }
func (exchangeFile) ReadAt([]byte, int64) (int, Errno)  { return 0, ESPIPE }
func (exchangeFile) WriteAt([]byte, int64) (int, Errno) { return 0, ESPIPE }
