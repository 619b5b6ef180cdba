package packages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// Store is the packages below one state folder. It is safe for concurrent use, by several
// processes too.
type Store struct {
	dir string // STATE/packages

	mu    sync.Mutex
	whole map[string]bool // sets whose files were compared with their digest

	reading sync.Mutex
	read    map[string]locked // by folder: what uploads have
}

// New gives the packages of a state folder. Nothing is read or made yet.
func New(state string) *Store {
	return &Store{dir: Dir(state), whole: map[string]bool{}, read: map[string]locked{}}
}

// Dir is where the packages of a state folder are.
func Dir(state string) string { return filepath.Join(state, "packages") }

// Sets is where the sets of a state folder are, which is all of it that guests see.
func Sets(state string) string { return filepath.Join(Dir(state), "sets") }

// Use gives the folder of the set that the scripts of a skill's folder see, and the packages
// of runtimes that they need; "" where there is none. The files of a set are compared with
// its digest before it is first used. The error is a *skill.Error.
func (s *Store) Use(folder string) (set string, requires []string, err error) {
	l, err := s.Of(folder)
	switch {
	case err != nil:
		return "", nil, damaged(err)
	case l == nil:
		return "", nil, nil
	case l.Set == "":
		return "", l.Runtimes(), nil
	}
	if err := s.verify(l.Set); err != nil {
		return "", nil, damaged(err)
	}
	return s.set(l.Set), l.Runtimes(), nil
}

func damaged(err error) error {
	return &skill.Error{
		Op: "packages.Use", Code: skill.ToolInvocationError, Subject: "packages", Err: err,
		Message: "the packages of this skill are damaged or missing; the operator must run: openskill packages lock FOLDER",
	}
}

// set is the folder of a set.
func (s *Store) set(digest string) string {
	return filepath.Join(s.dir, "sets", strings.TrimPrefix(digest, "sha256:"))
}

func (s *Store) archive(digest string) string {
	return filepath.Join(s.dir, "archives", strings.TrimPrefix(digest, "sha256:"))
}

// verify compares the files of a set with its digest, once in a process.
func (s *Store) verify(digest string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole[digest] {
		if _, err := os.Stat(s.set(digest)); err == nil {
			return nil
		}
		delete(s.whole, digest)
	}
	is, err := manifest.Digest(s.set(digest))
	if err != nil {
		return err
	}
	if is != digest {
		return fmt.Errorf("the set has the digest %s, want %s", is, digest)
	}
	s.whole[digest] = true
	return nil
}

// lock has one process at a time change the store; the kernel frees it when that dies.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, broken(err)
	}
	l := flock.New(filepath.Join(s.dir, ".lock"))
	if _, err := l.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, broken(err)
	}
	return func() { _ = l.Close() }, nil
}

const workPrefix = ".work-"

// work makes a folder for what is not done yet, and removes those that a killed process
// left: the lock says that nobody uses them.
func (s *Store) work() (string, error) {
	left, err := fs.Glob(os.DirFS(s.dir), workPrefix+"*")
	if err != nil {
		return "", broken(err)
	}
	for _, dir := range left {
		_ = os.RemoveAll(filepath.Join(s.dir, dir)) // it is tried again the next time
	}
	dir, err := os.MkdirTemp(s.dir, workPrefix)
	if err != nil {
		return "", broken(err)
	}
	return dir, nil
}

// keepUnused is how long a set stays that no lock names any more: calls may be using it.
const keepUnused = time.Hour

// sweep removes sets and archives that no lock names, and what a killed process left.
// While a lock cannot be read it removes nothing: nobody knows what that one names.
func (s *Store) sweep() error {
	locks, err := s.List()
	if err != nil {
		return nil //nolint:nilerr // the change is made; whose lock it is hears of it
	}
	left, err := fs.Glob(os.DirFS(s.dir), "locks/.new-*")
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
			return err
		}
	}
	cut, err := fs.Glob(os.DirFS(s.dir), unpackPrefix+"*")
	if err != nil {
		return err
	}
	for _, name := range cut {
		path := filepath.Join(s.dir, name)
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > keepUnused {
			_ = os.RemoveAll(path) // the next sweep tries again
		}
	}
	used := map[string]bool{}
	for _, l := range locks {
		used[s.set(l.Set)] = true
		for i := range l.Packages {
			used[s.archive(l.Packages[i].Digest)] = true
		}
	}
	for _, kind := range []string{"sets", "archives"} {
		entries, err := os.ReadDir(filepath.Join(s.dir, kind))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			path := filepath.Join(s.dir, kind, e.Name())
			if info, err := e.Info(); err != nil || used[path] || kind == "sets" && time.Since(info.ModTime()) < keepUnused {
				continue
			}
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return nil
}

func broken(err error) error {
	return &skill.Error{Op: "packages", Code: skill.Internal, Message: "cannot write the packages in the state folder: " + skill.CleanText(err.Error(), 200), Err: err}
}
