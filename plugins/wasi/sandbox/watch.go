package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"sync"

	"openskill/sdk/skill"
	"openskill/wasm/guestfs"
)

// What is kept of what one run looks at, and the bytes that are read for it: a guest has
// no fuel to pay for that, and must not hold up the end of its run.
const (
	maxSeen      = 2000
	maxSeenNames = 512 << 10
	maxDigested  = 32 << 20
	maxListed    = 20_000
)

// watched notes what a guest looks at in a folder, and shows it. An instance has one of
// its own: what its start-up saw is what all its runs have seen.
type watched struct {
	guestfs.FS

	mu      sync.Mutex
	now     seen
	startup *seen // nil: it is not over
}

// seen is what was looked at.
type seen struct {
	at     map[string]skill.Seen
	names  int   // bytes of them
	read   int64 // bytes of files, for their digests
	more   bool
	listed int // entries of folders
}

// begun is called when the start-up is over.
func (w *watched) begun() {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := w.now
	kept.at = maps.Clone(kept.at)
	w.startup = &kept
}

// take gives what a run and its start-up have seen, when the run has ended, and begins
// the next one.
func (w *watched) take() *skill.Recording {
	w.mu.Lock()
	defer w.mu.Unlock()
	saw := &skill.Recording{More: w.now.more}
	for _, path := range slices.Sorted(maps.Keys(w.now.at)) {
		saw.Seen = append(saw.Seen, w.now.at[path])
	}
	if w.startup != nil {
		w.now = *w.startup
		w.now.at = maps.Clone(w.startup.at)
	}
	return saw
}

// Open implements [guestfs.FS].
func (w *watched) Open(name string, flags guestfs.OpenFlag) (guestfs.File, guestfs.Errno) {
	f, errno := w.FS.Open(name, flags)
	if errno != 0 {
		w.missing(name, errno)
		return nil, errno
	}
	st, errno := f.Stat()
	switch {
	case errno != 0:
	case st.Kind == guestfs.KindDirectory:
		w.note(skill.Seen{Path: name, Kind: skill.SeenFolder})
		return &watchedDir{File: f, w: w, name: name}, 0
	case st.Kind == guestfs.KindRegular:
		w.content(name, f, st.Size)
	}
	return f, 0
}

// Stat implements [guestfs.FS].
func (w *watched) Stat(name string, follow bool) (guestfs.Stat, guestfs.Errno) {
	st, errno := w.FS.Stat(name, follow)
	switch {
	case errno != 0:
		w.missing(name, errno)
	case st.Kind == guestfs.KindDirectory:
		w.note(skill.Seen{Path: name, Kind: skill.SeenFolder})
	case st.Kind == guestfs.KindRegular:
		w.note(skill.Seen{Path: name, Kind: skill.SeenFile, Size: st.Size})
	}
	return st, errno
}

func (w *watched) missing(name string, errno guestfs.Errno) {
	if errno == guestfs.ENOENT || errno == guestfs.ENOTDIR {
		w.note(skill.Seen{Path: name, Kind: skill.SeenMissing})
	}
}

// note keeps s. What has a digest says more than what has none; beyond that the first
// look counts, as the run went on from there.
func (w *watched) note(s skill.Seen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now.note(s)
}

func (n *seen) note(s skill.Seen) {
	before, known := n.at[s.Path]
	if known && (before.SHA256 != "" || s.SHA256 == "" || before.Kind != s.Kind) {
		return
	}
	if !known {
		if len(n.at) >= maxSeen || n.names+len(s.Path) > maxSeenNames {
			n.more = true
			return
		}
		n.names += len(s.Path)
	}
	if n.at == nil {
		n.at = map[string]skill.Seen{}
	}
	n.at[s.Path] = s
}

// content notes a file with the digest of what is in it.
func (w *watched) content(name string, f guestfs.File, size int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := skill.Seen{Path: name, Kind: skill.SeenFile, Size: size}
	if known := w.now.at[name]; known.SHA256 == "" {
		if size > maxDigested-w.now.read {
			w.now.more = true
		} else {
			sum, n, ok := sumOf(f, size)
			w.now.read += n
			if ok {
				s.SHA256, s.Size = sum, n
			}
		}
	}
	w.now.note(s)
}

// sumOf reads most bytes of a file at most; a longer one has grown meanwhile.
func sumOf(f guestfs.File, most int64) (sum string, n int64, ok bool) {
	h := sha256.New()
	buf := make([]byte, 64<<10)
	for n <= most {
		got, errno := f.ReadAt(buf, n)
		if errno != 0 {
			return "", n, false
		}
		if got == 0 {
			return hex.EncodeToString(h.Sum(nil)), n, true
		}
		h.Write(buf[:got])
		n += int64(got)
	}
	return "", n, false
}

// watchedDir is an open folder; that it was listed is known when it is.
type watchedDir struct {
	guestfs.File

	w    *watched
	name string
	done bool
}

// ReadDir implements [guestfs.File].
func (d *watchedDir) ReadDir(n int) ([]guestfs.Dirent, guestfs.Errno) {
	if !d.done {
		d.done = true
		d.w.listing(d.name)
	}
	return d.File.ReadDir(n)
}

// listing notes a folder with the digest of all that it lists.
func (w *watched) listing(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now.at[name].SHA256 != "" {
		return
	}
	dir, errno := w.FS.Open(name, guestfs.Directory)
	if errno != 0 {
		return
	}
	defer dir.Close()
	var names []string
	for {
		list, errno := dir.ReadDir(1000)
		if errno != 0 {
			return
		}
		if len(list) == 0 {
			break
		}
		if w.now.listed += len(list); w.now.listed > maxListed {
			w.now.more = true
			return
		}
		for _, e := range list {
			if e.Kind == guestfs.KindDirectory {
				e.Name += "/"
			}
			names = append(names, e.Name)
		}
	}
	w.now.note(skill.Seen{Path: name, Kind: skill.SeenFolder, SHA256: skill.ListingDigest(names)})
}
