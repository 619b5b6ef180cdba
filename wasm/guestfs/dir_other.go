//go:build !linux

package guestfs

import (
	"io/fs"
	"os"
)

// platform is what a [Dir] has besides its root: nothing.
type platform struct{}

func (d *Dir) start() error { return nil }

func (platform) stop() error { return nil }

func (d *Dir) openLocal(local string, flags OpenFlag) (*hostFile, Errno) {
	// Somebody may just be replacing the file, which is fine; EBUSY is left for
	// who does nothing else.
	for range 4 {
		file, same, errno := d.open(local, flags)
		if errno != 0 || same {
			return file, errno
		}
		_ = file.Close()
	}
	return nil, EBUSY
}

// open opens the file and says whether the name led to it before and after, with
// no other name. The descriptor alone cannot tell: a hard link that is removed
// between opening and looking leaves a file with one link, the one outside.
func (d *Dir) open(local string, flags OpenFlag) (file *hostFile, same bool, errno Errno) {
	// Opening a device or a FIFO can have an effect of its own (a tape rewinds, a
	// waiting writer wakes up), so what is visibly neither file nor directory is
	// not opened at all.
	before, err := d.root.Lstat(local)
	if err == nil && before.Mode()&fs.ModeSymlink != 0 {
		if flags&NoFollow != 0 {
			return nil, false, ELOOP
		}
		before, err = d.root.Stat(local)
	}
	if err != nil {
		return nil, false, errnoOf(err)
	}
	if _, errno := accept(nil, before, d.opt); errno != 0 {
		return nil, false, errno
	}
	if flags&Directory != 0 && !before.IsDir() {
		return nil, false, ENOTDIR
	}
	f, err := d.root.OpenFile(local, os.O_RDONLY|openCarefully, 0)
	if err != nil {
		return nil, false, errnoOf(err)
	}
	opened, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, false, errnoOf(err)
	}
	file = &hostFile{f: f, opt: d.opt, dir: opened.IsDir()}
	if _, errno = accept(f, opened, d.opt); errno == 0 && flags&Directory != 0 && !file.dir {
		errno = ENOTDIR
	}
	if errno != 0 {
		_ = file.Close()
		return nil, false, errno
	}
	if d.opt.HardLinks || file.dir {
		return file, true, ESUCCESS
	}
	after, err := d.root.Stat(local)
	if err != nil || !os.SameFile(before, opened) || !os.SameFile(after, opened) {
		return file, false, ESUCCESS
	}
	_, errno = accept(nil, after, d.opt)
	return file, errno == 0, ESUCCESS
}
