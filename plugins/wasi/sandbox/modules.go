package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"openskill/internal/digest"
	"openskill/sdk/skill"
)

// Modules finds the modules of skills that bring their own: the file of each is hashed once,
// until it changes. The fields are set before the first call. It is safe for concurrent use.
type Modules struct {
	Hint string // what to do about a module that is not there
	// Split takes an entry apart into the file and what of it is called; nil: it is the file.
	Split func(entry string) (file, function string)
	// Now is the clock against which a file's age is held; nil: the real one.
	Now func() time.Time

	mu    sync.Mutex
	known map[moduleKey]known
}

// moduleKey names the entry of a skill as it was admitted.
type moduleKey struct{ folder, entry, digest string }

// known is what was found in an entry's file.
type known struct {
	stamp   Stamp
	settled bool // the stamp alone shows that the file is the same
	file    string
}

const (
	// maxKnown bounds the memory of what is known; beyond it all is forgotten and
	// read again.
	maxKnown = 10_000
	// maxModule is the size in bytes up to which a stranger's module is read, and one more,
	// for the cap of the engine to see.
	maxModule = 64<<20 + 1
)

// Of gives the module of a target, as its file is now. The error is a *skill.Error.
func (s *Modules) Of(d *Folder, spec *skill.Spec) (skill.Module, error) {
	file, function := spec.Entry, ""
	if s.Split != nil {
		file, function = s.Split(spec.Entry)
	}
	stamp, err := d.Entry(file, s.Hint)
	if err != nil {
		return skill.Module{}, err
	}
	m := skill.Module{File: spec.Module, Function: function, Open: func() (io.ReadCloser, error) { return open(spec.Folder, file) }}
	if m.File == "" {
		if m.File, err = s.hashed(spec, file, stamp); err != nil {
			return skill.Module{}, err
		}
	}
	if m.Digest = m.File; function != "" {
		m.Digest = digest.Of([]byte("openskill plug-in " + m.File + " " + function))
	}
	return m, nil
}

// hashed is the digest of a file with a stamp. One that was admitted does not change.
func (s *Modules) hashed(spec *skill.Spec, file string, stamp Stamp) (string, error) {
	key := moduleKey{spec.Folder, file, spec.Digest}
	s.mu.Lock()
	k, seen := s.known[key]
	s.mu.Unlock()
	if seen && k.settled && k.stamp == stamp {
		return k.file, nil
	}
	f, err := open(spec.Folder, file)
	if err != nil {
		return "", &skill.Error{Op: "sandbox.Entry", Code: skill.InvalidManifest, Subject: skill.CleanText(file, 80), Err: err, Message: "the module cannot be read"}
	}
	defer f.Close()
	sum, _, err := digest.Read(f)
	if err != nil {
		return "", &skill.Error{Op: "sandbox.Entry", Code: skill.InvalidManifest, Subject: skill.CleanText(file, 80), Err: err, Message: "the module cannot be read"}
	}
	now := known{stamp: stamp, settled: stamp.Settled(s.now()), file: digest.Text(sum)}
	if seen && k.file != now.file && spec.Trust < skill.Trusted {
		return "", &skill.Error{
			Op: "sandbox.Entry", Code: skill.Conflict, Subject: string(spec.SkillID),
			Message: "the module differs from the admitted one; upload it as a new version",
		}
	}
	s.note(key, now)
	return now.file, nil
}

// open opens a file below a folder, as far as a module may reach.
func open(folder, file string) (io.ReadCloser, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.Open(filepath.FromSlash(file))
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(f, maxModule), f}, nil
}

func (s *Modules) note(key moduleKey, k known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxKnown {
		s.known = map[moduleKey]known{}
	}
	s.known[key] = k
}

func (s *Modules) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}
