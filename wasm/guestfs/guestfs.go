// Package guestfs is the files that a guest may see: a small file system
// interface with WASI error numbers, and the few implementations that a run is
// put together from.
//
//   - [OpenDir]: a read-only view of one host folder;
//   - [Bytes]: one read-only file;
//   - [FromFS]: a read-only view of an io/fs.FS, such as a zip archive;
//   - [NewMemory]: writable scratch space in memory, with caps, and links of its own;
//   - [Null] and [Chance]: files that keep nothing;
//   - [NewTree]: a read-only root that mounts the others.
//
// Nothing here follows the guest out of what was mounted, and nothing but a
// [Memory] can be written to: every operation that could change a read-only
// file system answers EROFS before it looks at any file.
package guestfs

import (
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"
)

// Caps that hold for every path of a guest.
const (
	MaxPath       = 4096 // bytes of a path
	MaxName       = 255  // bytes of one component
	MaxComponents = 256  // components of a path
)

// OpenFlag says how a file is opened. The zero value opens what exists for
// reading, following links.
type OpenFlag uint8

// The flags of [FS.Open]. Each of Write, Create, Excl and Trunc asks for a
// change, so a read-only file system refuses it.
const (
	Write     OpenFlag = 1 << iota // open for writing too
	Create                         // create a regular file if there is none
	Excl                           // with Create: fail with EEXIST if there is one
	Trunc                          // cut the file to no bytes
	Directory                      // fail with ENOTDIR unless it is a directory
	NoFollow                       // fail with ELOOP if the last component is a link
)

const changes = Write | Create | Excl | Trunc

// FS is a file system as a guest sees it. A name is valid in the sense of
// [fs.ValidPath]: relative to the root ".", slash-separated, without "..";
// anything else is EINVAL. [Clean] makes names of a guest's paths.
//
// An FS is safe for concurrent use; a [File] is not.
type FS interface {
	// Open opens a regular file or a directory.
	Open(name string, flags OpenFlag) (File, Errno)
	// Stat describes a file. If follow is false and name is a link, the link itself.
	Stat(name string, follow bool) (Stat, Errno)
	// Readlink is the target of a link; EINVAL if name is none.
	Readlink(name string) (string, Errno)

	Mkdir(name string) Errno
	Rmdir(name string) Errno
	Unlink(name string) Errno
	Rename(from, to string) Errno
	Link(from, to string) Errno
	Symlink(target, name string) Errno
	// SetTimes sets times; nil leaves one as it is.
	SetTimes(name string, follow bool, atime, mtime *time.Time) Errno
}

// File is an open file or directory. It has no position of its own: offsets are
// the caller's, so that a saved offset is all it takes to go back. The one
// exception is the position in a directory, which Rewind resets.
type File interface {
	Stat() (Stat, Errno)
	// ReadAt reads into p and returns how much; 0 and ESUCCESS is the end. It may
	// read less than asked for before the end. EISDIR on a directory.
	ReadAt(p []byte, off int64) (int, Errno)
	// WriteAt writes p, extending the file. It may write less than p together
	// with an error.
	WriteAt(p []byte, off int64) (int, Errno)
	Truncate(size int64) Errno
	SetTimes(atime, mtime *time.Time) Errno

	// ReadDir returns up to n > 0 entries from the current position, none at the
	// end; without "." and "..". ENOTDIR on a file.
	ReadDir(n int) ([]Dirent, Errno)
	// Rewind goes back to the first entry.
	Rewind() Errno
	// Close releases the file. It may be called twice.
	Close() error
}

// Kind is the file type, with the numbers of WASI preview1.
type Kind uint8

// The kinds that appear in a guest's world.
const (
	KindUnknown     Kind = 0
	KindBlockDevice Kind = 1 // standard streams, too
	KindCharDevice  Kind = 2
	KindDirectory   Kind = 3
	KindRegular     Kind = 4
	KindSocket      Kind = 6 // a pipe, too: preview1 has no number for it
	KindSymlink     Kind = 7
)

// Stat describes a file. A host file's times of access and change are not part of
// it: a guest sees the modification time for them, so that it cannot watch who
// reads its files.
type Stat struct {
	Dev   uint64 // the mount; 0 outside a [Tree]
	Inode uint64
	Kind  Kind
	Links uint64
	Size  int64     // bytes; 0 for a directory
	Mtime time.Time // zero: unknown
	Atime time.Time // zero: the same as Mtime
}

// Dirent is one entry of a directory. Kind is never KindUnknown: Go's os.ReadDir would
// ask for the entry, and give up the whole directory where that is refused.
type Dirent struct {
	Name  string
	Inode uint64
	Kind  Kind
}

// Clean makes a valid name of a guest's path relative to base, which is valid
// itself. It resolves "." and ".." by text alone, before any file is looked at.
// A path that is absolute or leads out of base is EPERM: a directory's
// descriptor is a capability for what is below it and nothing else. Trailing
// says that the path ended in a slash and so names a directory.
func Clean(base, path string) (name string, trailing bool, errno Errno) {
	switch {
	case path == "":
		return "", false, ENOENT
	case len(path) > MaxPath:
		return "", false, ENAMETOOLONG
	case path[0] == '/':
		return "", false, EPERM
	case strings.IndexByte(path, 0) >= 0:
		return "", false, EINVAL
	case !utf8.ValidString(path):
		return "", false, EILSEQ
	}
	trailing = path[len(path)-1] == '/' || path == "." || path == ".." ||
		strings.HasSuffix(path, "/.") || strings.HasSuffix(path, "/..")
	if fs.ValidPath(path) && path != "." {
		// The common case: nothing to resolve.
		if strings.Count(path, "/") >= MaxComponents {
			return "", false, ENAMETOOLONG
		}
		if longName(path) {
			return "", false, ENAMETOOLONG
		}
		return join(base, path)
	}
	var stack [16]string
	parts := stack[:0]
	for path != "" {
		part, rest, _ := strings.Cut(path, "/")
		path = rest
		switch {
		case part == "" || part == ".":
		case part == "..":
			if len(parts) == 0 {
				return "", false, EPERM
			}
			parts = parts[:len(parts)-1]
		case len(part) > MaxName || len(parts) == MaxComponents:
			return "", false, ENAMETOOLONG
		default:
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return base, true, ESUCCESS
	}
	name, _, errno = join(base, strings.Join(parts, "/"))
	return name, trailing, errno
}

func join(base, rel string) (string, bool, Errno) {
	if base == "." || base == "" {
		return rel, false, ESUCCESS
	}
	if len(base)+1+len(rel) > MaxPath {
		return "", false, ENAMETOOLONG
	}
	return base + "/" + rel, false, ESUCCESS
}

func longName(path string) bool {
	if len(path) <= MaxName {
		return false
	}
	run := 0
	for i := range len(path) {
		if path[i] == '/' {
			run = 0
		} else if run++; run > MaxName {
			return true
		}
	}
	return false
}

// hashInode makes a stable inode number of a name, for file systems without any.
func hashInode(name string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * prime
	}
	if h == 0 { // an inode of zero makes libc ask again
		return 1
	}
	return h
}
