package sandbox

import (
	"encoding/binary"
	"hash/fnv"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"openskill/sdk/skill"
)

// lookAgain is how long a folder is taken to be as it was looked at.
const lookAgain = 500 * time.Millisecond

// maxLooked is how many files of a folder are looked at.
const maxLooked = 2000

// looked is what a folder looked like.
type looked struct {
	mu    sync.Mutex
	at    time.Time
	state uint64

	file  string // the entry that was looked at last
	stamp Stamp
	seen  time.Time
}

// lookedAt gives the stamp of a file that was looked at just now.
func (d *Folder) lookedAt(file string) (Stamp, bool) {
	l := &d.looked
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stamp, l.file == file && d.all.fresh(l.seen)
}

func (l *looked) note(file string, s Stamp, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file, l.stamp, l.seen = file, s, at
}

// state is a number that changes when a file in the folder does, so that an owner
// who edits a skill runs what was written: a start-up may have read any file of its
// folder. It may lag by lookAgain. What was uploaded does not change.
func (d *Folder) state(trust skill.Trust) uint64 {
	if trust < skill.Trusted {
		return 0
	}
	now := time.Now()
	l := &d.looked
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.at.IsZero() && now.Sub(l.at) < lookAgain {
		return l.state
	}
	h := fnv.New64a()
	n := 0
	_ = filepath.WalkDir(d.key.path, func(path string, e fs.DirEntry, err error) error {
		if err != nil || n >= maxLooked {
			return nil
		}
		n++
		info, err := e.Info()
		if err != nil {
			return nil
		}
		var b [16]byte
		binary.LittleEndian.PutUint64(b[:8], uint64(info.Size()))
		binary.LittleEndian.PutUint64(b[8:], uint64(info.ModTime().UnixNano()))
		_, _ = h.Write([]byte(path))
		_, _ = h.Write(b[:])
		return nil
	})
	l.at, l.state = now, h.Sum64()
	return l.state
}
