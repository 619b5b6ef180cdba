package guestfs

import (
	"io"
	"io/fs"
	"sync"
)

// MaxUnpacked is how many bytes of files a view by [FromFS] keeps in memory, for
// files that cannot be read at an offset.
const MaxUnpacked = 64 << 20

// view is a read-only view of an io/fs.FS.
type view struct {
	readOnlyFS
	fsys fs.FS

	mu       sync.Mutex
	unpacked map[string][]byte
	used     int64
}

// FromFS makes a read-only view of fsys, such as a zip archive or an embed.FS,
// which must be safe for concurrent use. Files that cannot be read at an offset
// (those of an archive) are unpacked whole at their first read and kept for all
// guests, up to [MaxUnpacked] bytes together; beyond that a read is ENOMEM. So it
// is meant for archives that the host trusts and shares, not for uploads.
//
// Only directories and regular files are seen; fsys must not lead out of itself
// (os.DirFS does: use [OpenDir]).
func FromFS(fsys fs.FS) FS { return &view{fsys: fsys, unpacked: make(map[string][]byte)} }

func (v *view) describe(name string, info fs.FileInfo) (Stat, Errno) {
	st := Stat{Inode: hashInode(name), Links: 1, Mtime: info.ModTime()}
	switch {
	case info.IsDir():
		st.Kind = KindDirectory
	case info.Mode().IsRegular():
		st.Kind, st.Size = KindRegular, info.Size()
	default:
		return Stat{}, EACCES
	}
	return st, ESUCCESS
}

// Open implements [FS].
func (v *view) Open(name string, flags OpenFlag) (File, Errno) {
	if errno := checkRead(name, flags); errno != 0 {
		return nil, errno
	}
	f, err := v.fsys.Open(name)
	if err != nil {
		return nil, errnoOf(err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, errnoOf(err)
	}
	st, errno := v.describe(name, info)
	if errno == 0 && flags&Directory != 0 && st.Kind != KindDirectory {
		errno = ENOTDIR
	}
	if errno != 0 {
		_ = f.Close()
		return nil, errno
	}
	return &viewFile{v: v, name: name, stat: st, f: f}, ESUCCESS
}

// Stat implements [FS].
func (v *view) Stat(name string, _ bool) (Stat, Errno) {
	if !fs.ValidPath(name) {
		return Stat{}, EINVAL
	}
	info, err := fs.Stat(v.fsys, name)
	if err != nil {
		return Stat{}, errnoOf(err)
	}
	return v.describe(name, info)
}

// Readlink implements [FS].
func (v *view) Readlink(name string) (string, Errno) {
	if _, errno := v.Stat(name, false); errno != 0 {
		return "", errno
	}
	return "", EINVAL
}

// unpack reads a whole file, once for all guests.
func (v *view) unpack(name string, f fs.File) ([]byte, Errno) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if data, ok := v.unpacked[name]; ok {
		return data, ESUCCESS
	}
	// The limit is on what comes out, whatever the archive says about the size.
	left := MaxUnpacked - v.used
	data, err := io.ReadAll(io.LimitReader(f, left+1))
	switch {
	case err != nil:
		return nil, EIO
	case int64(len(data)) > left:
		return nil, ENOMEM
	}
	v.unpacked[name] = data
	v.used += int64(len(data))
	return data, ESUCCESS
}

type viewFile struct {
	readOnlyFile
	closeOnce
	v    *view
	name string
	stat Stat
	f    fs.File
	data reader
}

func (f *viewFile) Stat() (Stat, Errno) { return f.stat, ESUCCESS }

func (f *viewFile) ReadAt(p []byte, off int64) (int, Errno) {
	if f.stat.Kind == KindDirectory {
		return 0, EISDIR
	}
	if off >= f.stat.Size { // some readers take that for an error
		return 0, ESUCCESS
	}
	if f.data == nil {
		if r, ok := f.f.(io.ReaderAt); ok {
			f.data = r
		} else {
			data, errno := f.v.unpack(f.name, f.f)
			if errno != 0 {
				return 0, errno
			}
			f.data = Bytes(data).data
		}
	}
	return readAt(f.data, p, off)
}

func (f *viewFile) ReadDir(n int) ([]Dirent, Errno) {
	dir, ok := f.f.(fs.ReadDirFile)
	if f.stat.Kind != KindDirectory || !ok {
		return nil, ENOTDIR
	}
	entries, err := dir.ReadDir(n)
	if len(entries) == 0 {
		return nil, errnoOf(err)
	}
	out := make([]Dirent, len(entries))
	for i, e := range entries {
		inner := e.Name()
		if f.name != "." {
			inner = f.name + "/" + inner
		}
		out[i] = Dirent{Name: e.Name(), Inode: hashInode(inner), Kind: kindOf(e.Type())}
	}
	return out, ESUCCESS
}

// Rewind opens the directory again: fs.ReadDirFile has no way back.
func (f *viewFile) Rewind() Errno {
	if f.stat.Kind != KindDirectory {
		return ENOTDIR
	}
	again, err := f.v.fsys.Open(f.name)
	if err != nil {
		return errnoOf(err)
	}
	_ = f.f.Close()
	f.f = again
	return ESUCCESS
}

func (f *viewFile) Close() error {
	if !f.first() {
		return nil
	}
	return f.f.Close()
}
