package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"openskill/wasm/guestfs"
)

// maxIdle is how many folders stay open while no run uses them; each holds one
// descriptor.
const maxIdle = 128

// fresh reports whether what was seen then still holds.
func (f *Folders) fresh(seen time.Time) bool {
	limit := f.Fresh
	if limit == 0 {
		limit = 2 * time.Millisecond
	}
	return time.Since(seen) < limit
}

// Folders opens folders of the host for guests and keeps them open between
// calls. The zero value is ready for use, by many calls at once.
//
// A kept folder is compared with what its path names now, unless that was done
// just now. A folder that was replaced by a rename is opened anew, and calls that
// began before go on with the old one.
type Folders struct {
	// Fresh is how long a folder or a file is taken to be what it was when it was
	// looked at, so that hundreds of calls in a row ask once; 0 means 2 ms, negative
	// that every call looks.
	Fresh time.Duration

	mu     sync.Mutex
	open   map[folderKey]*Folder
	clock  uint64 // of uses
	closed bool
}

type folderKey struct {
	path  string
	links bool
}

// Folder is an open folder. Whoever acquired it releases it.
type Folder struct {
	*guestfs.Dir
	all  *Folders
	key  folderKey
	info fs.FileInfo // of what was opened

	looked looked

	// Guarded by Folders.mu.
	users int
	used  uint64 // when, by Folders.clock
	seen  time.Time
	stale bool // no longer in Folders.open
}

var errFoldersClosed = errors.New("sandbox: the folders are closed")

// Acquire opens the folder at an absolute path, or takes the one that is open.
// With links, files of several names are shown; see guestfs.DirOptions.
func (f *Folders) Acquire(path string, links bool) (*Folder, error) {
	key := folderKey{path, links}
	now := time.Now()
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil, errFoldersClosed
	}
	if d := f.open[key]; d != nil && f.fresh(d.seen) {
		f.use(d)
		f.mu.Unlock()
		return d, nil
	}
	f.mu.Unlock()
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil, errFoldersClosed
	}
	if d := f.open[key]; d != nil && os.SameFile(d.info, info) {
		d.seen = now
		f.use(d)
		f.mu.Unlock()
		return d, nil
	}
	f.mu.Unlock()

	d := &Folder{all: f, key: key, seen: now}
	if d.Dir, d.info, err = openSame(path, info, guestfs.DirOptions{HardLinks: links}); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		d.close()
		return nil, errFoldersClosed
	}
	if o := f.open[key]; o != nil {
		if os.SameFile(o.info, d.info) { // another call was faster
			d.close()
			f.use(o)
			return o, nil
		}
		f.drop(o)
	}
	if f.open == nil {
		f.open = map[folderKey]*Folder{}
	}
	f.open[key] = d
	f.use(d)
	f.trim()
	return d, nil
}

// openSame opens path and makes sure that info describes what was opened, though
// the folder may be replaced meanwhile.
func openSame(path string, info fs.FileInfo, o guestfs.DirOptions) (*guestfs.Dir, fs.FileInfo, error) {
	for range 8 {
		dir, err := guestfs.OpenDirWith(path, o)
		if err != nil {
			return nil, nil, err
		}
		now, err := os.Stat(path)
		if err == nil && os.SameFile(info, now) {
			return dir, info, nil
		}
		_ = dir.Close() // it was only read
		if err != nil {
			return nil, nil, err
		}
		info = now
	}
	return nil, nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("the folder is replaced all the time")}
}

// Release gives a folder back.
func (d *Folder) Release() {
	d.all.mu.Lock()
	defer d.all.mu.Unlock()
	d.users--
	switch {
	case d.users > 0:
	case d.stale:
		d.close()
	default:
		d.all.trim()
	}
}

// Close closes every folder, those in use when they are released. It may be
// called twice.
func (f *Folders) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, d := range f.open {
		f.drop(d)
	}
	return nil
}

func (f *Folders) use(d *Folder) {
	f.clock++
	d.users++
	d.used = f.clock
}

// drop forgets a folder, which is closed now or by its last user.
func (f *Folders) drop(d *Folder) {
	delete(f.open, d.key)
	d.stale = true
	if d.users == 0 {
		d.close()
	}
}

func (d *Folder) close() { _ = d.Dir.Close() } // it was only read

// trim closes the folder that was idle the longest if there are too many.
func (f *Folders) trim() {
	if len(f.open) <= maxIdle {
		return
	}
	var oldest *Folder
	for _, d := range f.open {
		if d.users == 0 && (oldest == nil || d.used < oldest.used) {
			oldest = d
		}
	}
	if oldest != nil {
		f.drop(oldest)
	}
}
