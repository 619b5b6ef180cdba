package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
)

func folder(t *testing.T, path, text string) {
	t.Helper()
	musttest.Do(t, os.Mkdir(path, 0o700))
	musttest.Do(t, os.WriteFile(filepath.Join(path, "f"), []byte(text), 0o600))
}

func acquire(t *testing.T, f *Folders, path string) *Folder {
	t.Helper()
	return musttest.Get(f.Acquire(path, false))(t)
}

// text is what the guest would read in the file f.
func text(t *testing.T, d *Folder) string {
	t.Helper()
	b, _, err := d.Read("f", "", 100)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestFolderIsOpenedOnce(t *testing.T) {
	f := Folders{Fresh: -1}
	defer f.Close()
	path := filepath.Join(t.TempDir(), "a")
	folder(t, path, "one")
	a, b := acquire(t, &f, path), acquire(t, &f, path)
	if a != b {
		t.Error("opened twice")
	}
	a.Release()
	b.Release()
	if c := acquire(t, &f, path); c != a {
		t.Error("not kept between uses")
	} else {
		c.Release()
	}
}

// A new version of a skill is put in the place of the old one by a rename.
func TestFolderThatWasReplaced(t *testing.T) {
	f := Folders{Fresh: -1}
	defer f.Close()
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	folder(t, path, "one")
	before, idle := acquire(t, &f, path), acquire(t, &f, path)
	idle.Release()
	folder(t, filepath.Join(dir, "new"), "two")
	musttest.Do(t, errors.Join(os.Rename(path, filepath.Join(dir, "old")), os.Rename(filepath.Join(dir, "new"), path)))
	after := acquire(t, &f, path)
	defer after.Release()
	if got := text(t, after); got != "two" {
		t.Errorf("a new call sees %q", got)
	}
	if got := text(t, before); got != "one" {
		t.Errorf("a call under way sees %q", got)
	}
	before.Release()
	if got := text(t, before); got == "one" {
		t.Error("the old folder is still open after its last user")
	}
}

func TestFolderThatIsGone(t *testing.T) {
	f := Folders{Fresh: -1}
	defer f.Close()
	path := filepath.Join(t.TempDir(), "a")
	folder(t, path, "one")
	acquire(t, &f, path).Release()
	musttest.Do(t, os.RemoveAll(path))
	if _, err := f.Acquire(path, false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v; want that it does not exist", err)
	}
}

func TestHardLinksAreAnotherFolder(t *testing.T) {
	f := Folders{Fresh: -1}
	defer f.Close()
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	folder(t, path, "one")
	if err := os.Link(filepath.Join(path, "f"), filepath.Join(dir, "other name")); err != nil {
		t.Skip(err)
	}
	strict := acquire(t, &f, path)
	defer strict.Release()
	if _, errno := strict.Open("f", 0); errno != guestfs.EACCES {
		t.Errorf("strict: %v; want EACCES", errno)
	}
	loose := musttest.Get(f.Acquire(path, true))(t)
	defer loose.Release()
	if got := text(t, loose); got != "one" {
		t.Errorf("with links: %q", got)
	}
}

func TestIdleFoldersAreBounded(t *testing.T) {
	f := Folders{Fresh: -1}
	dir := t.TempDir()
	path := func(i int) string { return filepath.Join(dir, fmt.Sprint(i)) }
	for i := range maxIdle + 20 {
		folder(t, path(i), "x")
	}
	busy := make([]*Folder, maxIdle+10)
	for i := range busy {
		busy[i] = acquire(t, &f, path(i))
	}
	if len(f.open) != len(busy) {
		t.Errorf("%d open for %d in use", len(f.open), len(busy))
	}
	for _, d := range busy {
		if got := text(t, d); got != "x" {
			t.Errorf("in use: %q", got)
		}
		d.Release()
	}
	for i := range 20 {
		acquire(t, &f, path(maxIdle+i)).Release()
	}
	if len(f.open) > maxIdle {
		t.Errorf("%d idle folders; the bound is %d", len(f.open), maxIdle)
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Error(err)
	}
	if len(f.open) != 0 {
		t.Errorf("%d open after Close", len(f.open))
	}
	if _, err := f.Acquire(path(0), false); err == nil {
		t.Error("opened after Close")
	}
}

func TestFoldersFromManyCalls(t *testing.T) {
	f := Folders{Fresh: -1}
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	folder(t, path, "x")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				d, err := f.Acquire(path, false)
				if errors.Is(err, fs.ErrNotExist) {
					continue // between the two renames
				}
				if err != nil {
					t.Error(err)
					return
				}
				if got := text(t, d); got != "x" {
					t.Errorf("%q", got)
				}
				d.Release()
			}
		})
	}
	wg.Go(func() {
		for i := range 50 {
			aside := filepath.Join(dir, fmt.Sprint("old", i))
			folder(t, filepath.Join(dir, "new"), "x")
			if err := errors.Join(os.Rename(path, aside), os.Rename(filepath.Join(dir, "new"), path)); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
