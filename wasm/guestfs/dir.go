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
// hard link) is refused with EACCES by Open. Stat tells no more of a FIFO, device or
// socket than its kind, and refuses hard links.
//
// Names that are swapped while a file is being opened change nothing of that: what
// is opened had, at some moment of the call, no name but one inside the folder. On
// Linux this holds for symbolic and hard links on file systems of the machine
// itself (dir_linux.go has the argument); network file systems and FUSE tell times
// and links as their server does. Elsewhere it holds for symbolic links; a hard
// link that is swapped in without pause can, seldom, be opened.
//
// On Linux a file that was changed a moment ago in a folder that was changed a
// moment ago, within one tick of the kernel's clock, is waited for, up to 100 ms.
// If both keep changing it is EBUSY: a log that is appended to without pause opens,
// unless files come and go in its folder without pause as well. Where a file system
// keeps whole seconds (ext4 with small inodes), a second counts as the tick.
//
// The folder itself is resolved once, by OpenDir; renaming it later changes
// nothing for the guest.
type Dir struct {
	readOnlyFS
	closeOnce
	platform
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
	d := &Dir{root: root, opt: opt}
	if err := d.start(); err != nil {
		_ = root.Close()
		return nil, err
	}
	return d, nil
}

// Close releases the folder. Files that are still open stay readable.
func (d *Dir) Close() error {
	if !d.first() {
		return nil
	}
	return errors.Join(d.root.Close(), d.stop())
}

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
	return d.openLocal(local, flags)
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
	switch kind := kindOf(info.Mode()); kind {
	case KindDirectory, KindRegular:
		return accept(nil, info, d.opt)
	case KindSymlink:
		inode, _ := identity(nil, info)
		return Stat{Inode: inode, Kind: kind, Links: 1, Size: info.Size(), Mtime: info.ModTime()}, ESUCCESS
	default:
		// Not its time: that of a pipe says when somebody wrote into it.
		inode, _ := identity(nil, info)
		return Stat{Inode: inode, Kind: kind, Links: 1}, ESUCCESS
	}
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
	case mode&fs.ModeCharDevice != 0:
		return KindCharDevice
	case mode&fs.ModeDevice != 0:
		return KindBlockDevice
	}
	return KindSocket // or a pipe, or something of Windows that no program can open either
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
