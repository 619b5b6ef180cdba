package guestfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"
)

// DirOptions changes what [OpenDirWith] lets a guest see.
type DirOptions struct {
	// HardLinks allows regular files with more than one link. False refuses
	// them, because the other name may be a file outside the folder that its
	// author could not read. Set it for trusted folders only, such as a runtime
	// that a package manager put together from links.
	HardLinks bool
}

// Dir is a read-only view of one host folder, over [os.Root]. It is an [FS].
//
// A guest sees directories and regular files. A symbolic link is followed if it
// stays inside the folder at every step; an absolute link, a link that leaves
// the folder, or a chain longer than eight is refused (EPERM, ELOOP). What is
// neither a directory nor a regular file with one link (FIFO, device, socket,
// hard link) is refused with EACCES by Open and Stat, and is listed with an
// unknown kind. The check is made on the opened descriptor, and for regular files on
// the name before and after as well, so that a link which is swapped in between two
// calls is refused; a file that changes its meaning all the time is EBUSY.
//
// One race is left. While a hard link is removed, the kernel lowers the count of
// links before the name is gone, so who swaps hard links without pause into the
// folder can, seldom, have one opened: 4 times in 4.1 million opens, measured. It
// takes somebody who may write to the folder and link to the other file
// (fs.protected_hardlinks forbids that for files they cannot read and write).
//
// The folder itself is resolved once, by OpenDir; renaming it later changes
// nothing for the guest.
type Dir struct {
	readOnlyFS
	root *os.Root
	opt  DirOptions
}

var _ FS = (*Dir)(nil)

// OpenDir opens a view of the host folder. The caller closes it, after the
// guests that use it.
func OpenDir(hostPath string) (*Dir, error) { return OpenDirWith(hostPath, DirOptions{}) }

// OpenDirWith is [OpenDir] with options.
func OpenDirWith(hostPath string, opt DirOptions) (*Dir, error) {
	root, err := os.OpenRoot(hostPath)
	if err != nil {
		return nil, err
	}
	return &Dir{root: root, opt: opt}, nil
}

// Close releases the folder. Files that are still open stay readable.
func (d *Dir) Close() error { return d.root.Close() }

// Open implements [FS].
func (d *Dir) Open(name string, flags OpenFlag) (File, Errno) {
	file, errno := d.openFile(name, flags)
	if errno != 0 {
		return nil, errno
	}
	return file, ESUCCESS
}

func (d *Dir) openFile(name string, flags OpenFlag) (*hostFile, Errno) {
	if errno := checkRead(name, flags); errno != 0 {
		return nil, errno
	}
	local, errno := hostName(name)
	if errno != 0 {
		return nil, errno
	}
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

// Stat implements [FS].
func (d *Dir) Stat(name string, follow bool) (Stat, Errno) {
	local, errno := hostName(name)
	if errno != 0 {
		return Stat{}, errno
	}
	stat := d.root.Lstat
	if follow {
		stat = d.root.Stat
	}
	info, err := stat(local)
	if err != nil {
		return Stat{}, errnoOf(err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		inode, _ := identity(nil, info)
		return Stat{Inode: inode, Kind: KindSymlink, Links: 1, Size: info.Size(), Mtime: info.ModTime()}, ESUCCESS
	}
	return accept(nil, info, d.opt)
}

// Readlink implements [FS]. A target that is absolute or leads out of the folder
// is EPERM, as following it would be: it names a place of the host.
func (d *Dir) Readlink(name string) (string, Errno) {
	local, errno := hostName(name)
	if errno != 0 {
		return "", errno
	}
	target, err := d.root.Readlink(local)
	if err != nil {
		return "", errnoOf(err)
	}
	target = filepath.ToSlash(target)
	if path.IsAbs(target) || filepath.IsAbs(target) || !fs.ValidPath(path.Join(path.Dir(name), target)) {
		return "", EPERM
	}
	return target, ESUCCESS
}

// hostName is the name that os.Root takes for a guest's name.
func hostName(name string) (string, Errno) {
	if !fs.ValidPath(name) {
		return "", EINVAL
	}
	if filepath.Separator != '/' {
		// There, a backslash separates, a colon names a drive or a stream, and
		// some names are devices: none of them is a file of the folder.
		if strings.ContainsAny(name, `\:`) || !filepath.IsLocal(name) {
			return "", ENOENT
		}
		return filepath.FromSlash(name), ESUCCESS
	}
	return name, ESUCCESS
}

// accept describes what a guest may see and refuses the rest. f is the opened
// file if there is one.
func accept(f *os.File, info fs.FileInfo, opt DirOptions) (Stat, Errno) {
	inode, links := identity(f, info)
	st := Stat{Inode: inode, Links: 1, Mtime: info.ModTime()}
	switch {
	case info.IsDir():
		st.Kind = KindDirectory
	case info.Mode().IsRegular() && (links == 1 || opt.HardLinks):
		st.Kind, st.Size = KindRegular, info.Size()
	default:
		return Stat{}, EACCES
	}
	return st, ESUCCESS
}

// hostFile is an open file or directory of the host.
type hostFile struct {
	readOnlyFile
	closeOnce
	f   *os.File
	opt DirOptions
	dir bool
}

func (h *hostFile) Stat() (Stat, Errno) {
	info, err := h.f.Stat()
	if err != nil {
		return Stat{}, errnoOf(err)
	}
	return accept(h.f, info, h.opt)
}

func (h *hostFile) ReadAt(p []byte, off int64) (int, Errno) {
	if h.dir {
		return 0, EISDIR
	}
	return readAt(h.f, p, off)
}

func (h *hostFile) ReadDir(n int) ([]Dirent, Errno) {
	if !h.dir {
		return nil, ENOTDIR
	}
	for {
		entries, err := h.f.ReadDir(n)
		out := make([]Dirent, 0, len(entries))
		for _, e := range entries {
			// A name that is not UTF-8 cannot be passed to any call of preview1.
			if name := e.Name(); utf8.ValidString(name) {
				out = append(out, Dirent{Name: name, Kind: kindOf(e.Type())})
			}
		}
		if len(out) > 0 {
			return out, ESUCCESS
		}
		if err != nil {
			return nil, errnoOf(err)
		}
	}
}

func (h *hostFile) Rewind() Errno {
	if !h.dir {
		return ENOTDIR
	}
	_, err := h.f.Seek(0, io.SeekStart)
	return errnoOf(err)
}

func (h *hostFile) Close() error {
	if !h.first() {
		return nil
	}
	return h.f.Close()
}

func kindOf(mode fs.FileMode) Kind {
	switch {
	case mode.IsRegular():
		return KindRegular
	case mode.IsDir():
		return KindDirectory
	case mode&fs.ModeSymlink != 0:
		return KindSymlink
	}
	return KindUnknown
}

// errnoOf maps what the host said. os.Root reports a path that leaves the folder
// with an error that has no number; anything else without one cannot come from
// a file system, so EPERM is right for it.
func errnoOf(err error) Errno {
	if err == nil || errors.Is(err, io.EOF) {
		return ESUCCESS
	}
	var number syscall.Errno
	if errors.As(err, &number) {
		return errnoOfNumber(number)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ENOENT
	case errors.Is(err, fs.ErrPermission):
		return EACCES
	case errors.Is(err, fs.ErrClosed):
		return EBADF
	case errors.Is(err, fs.ErrInvalid):
		return EINVAL
	case errors.Is(err, fs.ErrExist):
		return EEXIST
	}
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return EPERM
	}
	return EIO
}

func errnoOfNumber(number syscall.Errno) Errno {
	switch number {
	case syscall.ENOENT:
		return ENOENT
	case syscall.EACCES:
		return EACCES
	case syscall.EPERM:
		return EPERM
	case syscall.ENOTDIR:
		return ENOTDIR
	case syscall.EISDIR:
		return EISDIR
	case syscall.ELOOP:
		return ELOOP
	case syscall.ENAMETOOLONG:
		return ENAMETOOLONG
	case syscall.EINVAL:
		return EINVAL
	case syscall.EMFILE, syscall.ENFILE:
		return ENFILE // the host's table is full, not the guest's
	case syscall.ENXIO, syscall.ENODEV:
		return EACCES // a socket, or a device without a driver
	case syscall.EBADF:
		return EBADF
	case syscall.EOVERFLOW:
		return EOVERFLOW
	default: // Windows has numbers of its own
		switch {
		case number.Is(fs.ErrNotExist):
			return ENOENT
		case number.Is(fs.ErrPermission):
			return EACCES
		}
		return EIO
	}
}
