package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// approved are copies of Agent Skills, by their digests: where people approve what
// scripts may run, what runs is what they approved, whatever becomes of the folder
// between the look at it and the run. All are of the operator's skills, which are the
// only Agent Skills of a host ([AgentRoots]): workers of any tenant may read them.
type approved struct {
	dir string

	mu   sync.Mutex
	made map[string]time.Time // when a copy was last used, by digest
}

// What is kept: more copies than these are only those of the last hour.
const (
	maxApproved  = 64
	approvedTime = time.Hour
	leftTime     = 24 * approvedTime // without a use by any host
)

func approvedDir(stateDir string) string { return filepath.Join(stateDir, "approved") }

// of gives the copy of a folder that has a digest.
func (a *approved) of(folder, digest string) (string, error) {
	name := strings.TrimPrefix(digest, "sha256:")
	if !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) {
		return "", fmt.Errorf("host.approved: the digest %q", digest)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	path := filepath.Join(a.dir, name)
	if missing(path) { // it may have been removed by another host since
		if err := a.copy(folder, digest, path); err != nil {
			return "", err
		}
	}
	if a.made == nil {
		a.made = map[string]time.Time{}
	}
	a.made[name] = now
	// A worker may have this folder alone, and a host that starts takes it for left over when
	// it is old: the kernel's rule does not hold for one that is made again.
	if info, err := os.Stat(path); err == nil && now.Sub(info.ModTime()) > leftTime/2 {
		_ = os.Chtimes(path, now, now) // it is tried again at the next use
	}
	a.sweep(now)
	return path, nil
}

// sweepOld removes what hosts have left that are gone.
func (a *approved) sweepOld() {
	entries, _ := os.ReadDir(a.dir) // there may be none
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > leftTime {
			_ = os.RemoveAll(filepath.Join(a.dir, e.Name())) // it is tried again at the next start
		}
	}
}

// copy makes the copy of a folder, whole or not at all.
func (a *approved) copy(folder, digest, path string) (err error) {
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return err
	}
	half, err := os.MkdirTemp(a.dir, ".new-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(half)) }() // nothing is there after the rename
	from, err := os.OpenRoot(folder)
	if err != nil {
		return changed(err)
	}
	defer from.Close()
	to, err := os.OpenRoot(half)
	if err != nil {
		return err
	}
	defer to.Close()
	err = fs.WalkDir(from.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return changed(err)
		case name == ".":
			return nil
		case d.IsDir():
			return to.Mkdir(name, 0o700)
		case !d.Type().IsRegular():
			return &skill.Error{
				Op: "host.approved", Code: skill.Conflict,
				Message: "the skill's folder has links or devices and cannot be approved; the operator must remove them",
			}
		}
		return copyFile(from, to, name)
	})
	if err != nil {
		return err
	}
	if got, err := manifest.Digest(half); err != nil || got != digest {
		return changed(err)
	}
	if err := os.Rename(half, path); err != nil && missing(path) { // another host may have been faster
		return err
	}
	return nil
}

func copyFile(from, to *os.Root, name string) error {
	in, err := from.Open(name)
	if err != nil {
		return changed(err)
	}
	defer in.Close()
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, manifest.MaxFolderBytes+1))
	return errors.Join(err, out.Close())
}

// changed says that a folder is not what it was a moment ago.
func changed(cause error) error {
	return &skill.Error{
		Op: "host.approved", Code: skill.Conflict, Err: cause,
		Message: "the skill's folder changed during the check; retry",
	}
}

// sweep removes copies that were not used for long, where there are many. a.mu is held.
func (a *approved) sweep(now time.Time) {
	if len(a.made) <= maxApproved {
		return
	}
	for name, used := range a.made {
		if now.Sub(used) > approvedTime {
			delete(a.made, name)
			_ = os.RemoveAll(filepath.Join(a.dir, name)) // it is removed when it is next too many
		}
	}
}
