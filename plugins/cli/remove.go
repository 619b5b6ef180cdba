package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
)

// errLeft is a run's folder that is still there.
var errLeft = errors.New("cannot remove the folder of the run")

var errSwapped = errors.New("it was replaced by another folder")

// removeAtOnce is how many names of a folder are read at a time.
const removeAtOnce = 512

// remove deletes a run's folder, also when the script took away its own permissions
// on folders in it. It follows no links, and has a few descriptors open however deep
// the folders are: os.RemoveAll has one for each level, and a script can make
// thousands of them before it is ended. The error wraps errLeft, and holds no names: a
// script gave them.
func remove(dir string) error {
	if err := removeTree(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errLeft, nameless(err))
	}
	return nil
}

func removeTree(dir string) error {
	before, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !before.IsDir() {
		return os.Remove(dir)
	}
	if before.Mode().Perm() != 0o700 {
		_ = os.Chmod(dir, 0o700)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if opened, err := root.Stat("."); err != nil || !os.SameFile(before, opened) {
		return first(err, errSwapped)
	}
	names, err := list(root, -1)
	for _, name := range names {
		err = first(err, removeIn(root, name))
	}
	return first(err, root.Close(), os.Remove(dir))
}

// removeIn deletes what has this name in root. Folders below it are moved to root
// before theirs is removed, and wait there for their turn.
func removeIn(root *os.Root, name string) error {
	var failed error
	for folders := []string{name}; len(folders) > 0; {
		last := len(folders) - 1
		at := folders[last]
		folders = folders[:last]
		if gone(root.Remove(at)) {
			continue
		}
		moved, err := clearOut(root, at)
		folders = append(folders, moved...)
		if err = first(err, root.Remove(at)); !gone(err) {
			failed = first(failed, err)
		}
	}
	return failed
}

// clearOut empties the folder of root with this name. It gives the names that those
// in it have in root now.
func clearOut(root *os.Root, at string) (moved []string, err error) {
	_ = root.Chmod(at, 0o700) // as above
	folder, err := root.OpenRoot(at)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	for {
		names, err := list(folder, removeAtOnce)
		for _, name := range names {
			if gone(folder.Remove(name)) {
				continue
			}
			_ = folder.Chmod(name, 0o700)                     // or it cannot be moved
			to := "." + strconv.FormatUint(rand.Uint64(), 36) //nolint:gosec // any name that is not there
			if e := root.Rename(at+"/"+name, to); e != nil {
				err = first(err, e)
				continue
			}
			moved = append(moved, to)
		}
		if err != nil || len(names) < removeAtOnce {
			return moved, err
		}
	}
}

// list gives the names in a folder, n at most; negative: all.
func list(folder *os.Root, n int) ([]string, error) {
	f, err := folder.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(n)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

// gone says of the error of removing that there is nothing any more.
func gone(err error) bool { return err == nil || errors.Is(err, fs.ErrNotExist) }

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// nameless is an error of the system without the names that it is about.
func nameless(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return fmt.Errorf("%s: %w", e.Op, e.Err)
	}
	if e := (*os.LinkError)(nil); errors.As(err, &e) {
		return fmt.Errorf("%s: %w", e.Op, e.Err)
	}
	return err
}
