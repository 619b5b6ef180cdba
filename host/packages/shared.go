package packages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"openskill/host/admission"
	"openskill/host/manifest"
	"openskill/internal/digest"
	"openskill/sdk/skill"
)

// Uploaded skills have their locks and sets in the database of the hosts. A host keeps copies of
// them where those of the operator's folders are, by the folder of a version's files.

// Portable is the lock as other hosts read it: without the folder, which each has elsewhere. Its
// digest names it.
func (l *Lock) Portable() ([]byte, error) {
	c := *l
	c.Folder, c.Digest = "", ""
	return json.Marshal(&c)
}

// ReadPortable reads what [Lock.Portable] gave.
func ReadPortable(b []byte) (*Lock, error) { return parsePortable(b) }

// setLimits are those of a set as a whole.
func setLimits() admission.Limits { return admission.Limits{Bytes: maxSetBytes, Files: maxSetFiles} }

// Pack writes the files that a lock names as an archive for [Store.Install], and gives their
// folder. They are compared with the lock.
func (s *Store) Pack(w io.Writer, l *Lock) (folder string, err error) {
	if err := s.verify(l.Set); err != nil {
		return "", damaged(err)
	}
	if err := admission.PackFolder(w, s.set(l.Set), setLimits()); err != nil {
		return "", broken(err)
	}
	return s.set(l.Set), nil
}

// unpackPrefix begins the names of folders in which sets of other hosts are unpacked. While packages
// are downloaded, which takes minutes, others are unpacked.
const unpackPrefix = ".unpack-"

// Install gives a folder the packages of a lock, from the archive of their files; nil where the
// lock names none. A *skill.Error other than INTERNAL says that they are not what the lock names.
func (s *Store) Install(ctx context.Context, folder string, lock []byte, set *os.File) error {
	l, err := parsePortable(lock)
	if err != nil {
		return invalid("the lock is damaged, or of a newer version of openskill: "+err.Error(), err)
	}
	path, file, err := s.locked(folder)
	if err != nil {
		return broken(err)
	}
	if l.Set != "" && s.verify(l.Set) != nil {
		if err := s.unpack(ctx, l.Set, set); err != nil {
			return err
		}
	}
	l.Folder, l.Digest = path, digest.Of(lock)
	if err := l.write(file); err != nil {
		return broken(err)
	}
	s.forget(folder)
	return nil
}

// unpack makes a set of its archive.
func (s *Store) unpack(ctx context.Context, name string, set *os.File) error {
	if set == nil {
		return invalid("the archive of their files is missing", nil)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return broken(err)
	}
	dir, err := os.MkdirTemp(s.dir, unpackPrefix)
	if err != nil {
		return broken(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // as those of sets that are made here
		return broken(err)
	}
	if _, err := admission.UnpackFolder(ctx, set, dir, setLimits()); err != nil {
		return err
	}
	is, err := manifest.Digest(dir)
	if err != nil {
		return broken(err)
	}
	if is != name {
		return invalid(fmt.Sprintf("their files have the digest %s, not %s", is, name), nil)
	}
	if err := s.place(dir, name); err != nil && s.verify(name) != nil { // another upload may have brought it
		return broken(err)
	}
	return nil
}

// place moves the files of a set to where its digest names them, in the place of damaged ones.
func (s *Store) place(dir, name string) error {
	to := s.set(name)
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.Rename(dir, to)
}

func invalid(why string, err error) error {
	return &skill.Error{Op: "packages.Install", Code: skill.ArchiveRejected, Message: skill.CleanText(why, skill.MaxMessage), Err: err}
}

// locked is what a lock names, as calls need it.
type locked struct {
	digest   string
	set      string // of the files; "": all packages are those of a runtime
	requires []string
}

// of reads what a folder has, if it is the lock with this digest. The files are not compared.
func (s *Store) of(folder, lock string) (locked, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	is, known := s.read[folder]
	if !known || is.digest != lock {
		l, err := s.Of(folder)
		switch {
		case err != nil:
			return locked{}, err
		case l == nil:
			return locked{}, fs.ErrNotExist
		case l.Digest != lock:
			return locked{}, errors.New("the folder has another lock of packages")
		}
		is = locked{l.Digest, l.Set, l.Runtimes()}
		s.read[folder] = is
	}
	if is.set != "" {
		if _, err := os.Stat(s.set(is.set)); err != nil {
			return locked{}, err
		}
	}
	return is, nil
}

// Has reports whether a folder has the packages of the lock with this digest. Their files are
// not compared.
func (s *Store) Has(folder, lock string) bool {
	_, err := s.of(folder, lock)
	return err == nil
}

// UseLocked is [Store.Use] for a folder that must have the lock with this digest. A lock that was
// read is not read again.
func (s *Store) UseLocked(folder, lock string) (set string, requires []string, err error) {
	l, err := s.of(folder, lock)
	if err == nil && l.set != "" {
		set, err = s.set(l.set), s.verify(l.set)
	}
	if err != nil {
		return "", nil, damaged(err)
	}
	return set, l.requires, nil
}

// Forget removes the lock of a folder, which may be gone. Its files stay while another lock
// names them, and for some time.
func (s *Store) Forget(folder string) {
	s.forget(folder)
	_, file, err := s.locked(folder)
	if err != nil {
		return
	}
	if l, err := readLock(file); err == nil && l.Set != "" {
		now := time.Now()
		_ = os.Chtimes(s.set(l.Set), now, now) // from now on it may be unused, but for calls under way
	}
	_ = os.Remove(file) // where it stays, its digest says that it is not the one on record
}

func (s *Store) forget(folder string) {
	s.reading.Lock()
	defer s.reading.Unlock()
	delete(s.read, folder)
}
