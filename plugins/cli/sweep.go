//go:build unix

package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A host that is killed leaves the folders of its runs and tries behind. Each folder is
// locked for as long as that lasts, and the lock goes with the host: what is
// not locked belongs to nobody.

// hold locks the folder of a run until release is called. A file system without
// locks leaves it unlocked, where sweep does not remove it either.
func hold(dir string) (release func()) {
	f, err := os.Open(dir)
	if err != nil {
		return func() {}
	}
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return func() { _ = f.Close() }
}

// tryPrefix begins the names of the folders in which a host tries what holds here.
const tryPrefix = "openskill-try-"

// sweepAfter spares folders whose run may not have locked them yet.
const sweepAfter = time.Minute

// sweep removes the folders in temp that killed hosts left behind.
func sweep(temp string, now time.Time) {
	runs, _ := fs.Glob(os.DirFS(temp), runPrefix+"*") // the patterns are good ones
	tries, _ := fs.Glob(os.DirFS(temp), tryPrefix+"*")
	for _, name := range append(runs, tries...) {
		dir := filepath.Join(temp, name)
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || !own(info) || now.Sub(info.ModTime()) < sweepAfter {
			continue
		}
		f, err := os.Open(dir)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = remove(dir)
		}
		_ = f.Close()
	}
}

func own(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
