package guestfs

import (
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// patience is how long an open waits for a file and its folder to hold still
	// for one tick of the kernel's clock, which is at most 10 ms. A guest's call
	// cannot be ended in that time.
	patience = 100 * time.Millisecond
	pause    = time.Millisecond // between two tries

	// grain is more than the coarsest time stamp, below whole seconds, of a local
	// file system with hard links: 1 µs. Whole seconds are dealt with in quiet.
	grain = time.Millisecond

	maxLinks = 8 // symbolic links followed at the end of a name, as os.Root does on its way
)

// platform is what a [Dir] has on Linux besides its root.
type platform struct {
	top      *os.File // the folder itself, for names directly in it
	patience time.Duration
	clock    func(id int32) (unix.Timespec, error)
}

func (d *Dir) start() (err error) {
	d.patience = patience
	d.clock = func(id int32) (now unix.Timespec, err error) { return now, unix.ClockGettime(id, &now) }
	if d.top, err = d.root.Open("."); err != nil {
		return err
	}
	return beyond(d.top)
}

func (p *platform) stop() error { return p.top.Close() }

// beyond moves to where a folder lists nothing, so that a barrier costs little.
func beyond(folder *os.File) error {
	_, err := folder.Seek(math.MaxInt64, io.SeekStart)
	if errors.Is(err, unix.EINVAL) { // the offsets of this file system are its own
		return nil
	}
	return err
}

var errMoved = errors.New("the name led elsewhere meanwhile")

// openLocal opens a file that has no name but the one it was opened by.
//
// While a name is removed, the kernel lowers the count of links before the name is
// gone, so a count of one does not say that the name which led here is the one.
// But a name can only come or go under the lock of its folder, held exclusively
// until the name is gone and the time of change (ctime) of both the folder and the
// file is set. Listing the folder takes that lock too, so no removal is under way
// then: it is a barrier. The order of steps in [Dir.try] is
//
//	the clock, barrier, look the name up, open it, barrier, look at what was opened
//
// Say that the file had another name all the time, and yet one link where the name
// was looked up. Then the name was just being removed: not since before the first
// barrier, for the name was still found, and not still at the second. So the removal
// set both times of change to a time since the clock was read. Where either is
// another time, there was no such removal, and the name was the only one.
//
// The longer form, with what was measured, is in docs/decisions/0008.
func (d *Dir) openLocal(local string, flags OpenFlag) (*hostFile, Errno) {
	for waited := time.Duration(0); ; waited += pause {
		file, settled, errno := d.try(local, flags)
		if settled || errno != 0 {
			return file, errno
		}
		if waited >= d.patience {
			return nil, EBUSY
		}
		time.Sleep(pause)
	}
}

// try follows symbolic links at the end of the name, one by one, so that the last
// step is made in a folder that is held open.
func (d *Dir) try(local string, flags OpenFlag) (file *hostFile, settled bool, errno Errno) {
	for range maxLinks + 1 {
		slash := strings.LastIndexByte(local, '/') + 1
		folder, name := local[:slash], local[slash:]
		if name == "" || name == "." || name == ".." {
			return d.openFolder(local)
		}
		parent := d.top
		if folder != "" {
			var err error
			if parent, err = d.root.OpenFile(folder, os.O_RDONLY|unix.O_DIRECTORY, 0); err != nil {
				return nil, false, errnoOf(err)
			}
			if err := beyond(parent); err != nil {
				_ = parent.Close()
				return nil, false, errnoOf(err)
			}
		}
		step, err := d.step(parent, name, flags)
		if parent != d.top {
			_ = parent.Close()
		}
		switch {
		case errors.Is(err, errMoved):
			return nil, false, ESUCCESS
		case err != nil:
			return nil, false, errnoOf(err)
		case step.folder:
			return d.openFolder(local)
		case step.target == "":
			return step.file, step.settled, ESUCCESS
		case flags&NoFollow != 0:
			return nil, false, ELOOP
		case step.target[0] == '/':
			return nil, false, EPERM
		}
		// Not cleaned: ".." after a symbolic link leaves the folder that it led to.
		// os.Root keeps what comes out inside.
		local = folder + step.target
	}
	return nil, false, ELOOP
}

// openFolder opens what must be a folder. Folders have no hard links.
func (d *Dir) openFolder(local string) (*hostFile, bool, Errno) {
	f, err := d.root.OpenFile(local, os.O_RDONLY|unix.O_DIRECTORY|openCarefully, 0)
	if err != nil {
		return nil, false, errnoOf(err)
	}
	return &hostFile{f: f, opt: d.opt, dir: true}, true, ESUCCESS
}

// step is what one name of a folder led to: a folder, the target of a symbolic
// link, or an open regular file.
type step struct {
	folder  bool
	target  string
	file    *hostFile
	settled bool // the file has no other name
}

func (d *Dir) step(parent *os.File, name string, flags OpenFlag) (out step, err error) {
	raw, err := parent.SyscallConn()
	if err != nil {
		return step{}, err
	}
	control := raw.Control(func(fd uintptr) { out, err = d.stepAt(int(fd), name, flags) })
	if control != nil {
		return step{}, os.ErrClosed
	}
	return out, err
}

func (d *Dir) stepAt(parent int, name string, flags OpenFlag) (step, error) {
	var named, opened, folder unix.Stat_t
	// The coarse clock is the one that files are stamped with.
	before, err := d.clock(unix.CLOCK_REALTIME_COARSE)
	if err != nil {
		return step{}, err
	}
	barrier(parent)
	err = again(func() error { return unix.Fstatat(parent, name, &named, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return step{}, err
	}
	switch named.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return step{folder: true}, nil
	case unix.S_IFLNK:
		return readlinkat(parent, name)
	case unix.S_IFREG:
	default:
		// Not opened at all: that can have an effect of its own (a tape rewinds, a
		// waiting writer wakes up).
		return step{}, unix.EACCES
	}
	switch {
	case flags&Directory != 0:
		return step{}, unix.ENOTDIR
	case named.Nlink == 0:
		return step{}, errMoved
	case named.Nlink > 1 && !d.opt.HardLinks:
		return step{}, unix.EACCES
	}
	var fd int
	err = again(func() (err error) {
		fd, err = unix.Openat(parent, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|openCarefully, 0)
		return err
	})
	if errors.Is(err, unix.ELOOP) {
		return step{}, errMoved
	}
	if err != nil {
		return step{}, err
	}
	keep := false
	defer func() {
		if !keep {
			_ = unix.Close(fd)
		}
	}()
	barrier(parent)
	if err := again(func() error { return unix.Fstat(fd, &opened) }); err != nil {
		return step{}, err
	}
	if opened.Dev != named.Dev || opened.Ino != named.Ino || opened.Mode&unix.S_IFMT != unix.S_IFREG {
		return step{}, errMoved
	}
	if !d.opt.HardLinks {
		if opened.Nlink != 1 {
			return step{}, errMoved
		}
		if err := again(func() error { return unix.Fstat(parent, &folder) }); err != nil {
			return step{}, err
		}
		after, err := d.clock(unix.CLOCK_REALTIME)
		if err != nil {
			return step{}, err
		}
		if !quiet(opened.Ctim, before, after) && !quiet(folder.Ctim, before, after) {
			return step{}, errMoved
		}
	}
	keep = true
	return step{file: &hostFile{f: os.NewFile(uintptr(fd), name), opt: d.opt}, settled: true}, nil
}

// quiet says that no change between before (of the coarse clock) and after set this
// time of change. The two halves of it are not read at once, so where the second
// differs they may be of two changes; and a file system may keep whole seconds only.
func quiet(change, before, after unix.Timespec) bool {
	switch {
	case change.Sec < before.Sec, change.Sec > after.Sec:
		return true
	case before.Sec != after.Sec, change.Nsec == 0:
		return false
	}
	return int64(change.Nsec)+int64(grain) <= int64(before.Nsec) //nolint:unconvert // narrower on some processors
}

// barrier returns when no name that was being added to or removed from the folder,
// or moved, is still on its way: whatever it answers, getdents64 has had the lock of
// the folder. The offset stays at the end (see beyond), where there is nothing to list.
func barrier(folder int) {
	var buf [256]byte
	_ = again(func() error { _, err := unix.Getdents(folder, buf[:]); return err })
}

func readlinkat(parent int, name string) (step, error) {
	buf := make([]byte, unix.PathMax)
	var n int
	err := again(func() (err error) { n, err = unix.Readlinkat(parent, name, buf); return err })
	switch {
	case errors.Is(err, unix.EINVAL): // no longer a link
		return step{}, errMoved
	case err != nil:
		return step{}, err
	case n == 0:
		return step{}, unix.ENOENT
	}
	return step{target: string(buf[:n])}, nil
}

// again repeats what a signal interrupted.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
