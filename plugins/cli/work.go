package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"openskill/sdk/skill"
)

// maxFiles is how many files and folders a run may leave below ./work.
const maxFiles = 4096

// maxDepth is how many folders of a run may be in each other below ./work. The host
// looks at them by their paths, which have an end (4,096 bytes on Linux): a script
// that goes down folder by folder gets beyond it, and what is there would not count.
const maxDepth = 128

var errScratch = errors.New("the files below ./work exceed the scratch limit")

// filled adds up the files below work and fails with errScratch once there is
// more than limit bytes, maxFiles entries or maxDepth folders in each other, and
// where it cannot look. What vanishes while it looks does not count, nor what stays
// closed to it. Bytes are counted as counted says: neither a sparse file nor many
// small ones get round it.
func filled(work string, limit uint64) error {
	type folder struct {
		path  string
		depth int
	}
	var total uint64
	entries := 0
	for todo := []folder{{path: work}}; len(todo) > 0; {
		last := len(todo) - 1
		at := todo[last]
		todo = todo[:last]
		found, err := look(at.path, maxFiles-entries+1)
		if errors.Is(err, fs.ErrPermission) {
			unclose(work, at.path)
			found, err = look(at.path, maxFiles-entries+1)
		}
		if err != nil && !passable(err) {
			return errScratch
		}
		if entries += len(found); entries > maxFiles {
			return errScratch
		}
		for _, e := range found {
			switch {
			case e.IsDir() && at.depth == maxDepth:
				return errScratch
			case e.IsDir():
				todo = append(todo, folder{filepath.Join(at.path, e.Name()), at.depth + 1})
			case e.Type().IsRegular():
				info, err := e.Info()
				if errors.Is(err, fs.ErrPermission) {
					unclose(work, at.path)
					info, err = e.Info()
				}
				if err == nil {
					total += taken(info)
				}
				if err != nil && !passable(err) || total > limit {
					return errScratch
				}
			}
		}
	}
	return nil
}

// look lists a folder, n entries of it at most. It does not wait for what else may
// have its name by now.
func look(path string, n int) ([]fs.DirEntry, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|folderFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found, err := f.ReadDir(n)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return found, err
}

// unclose gives work and the folders on the way to path the mode bits that the host needs
// to look into them: a script of the host's own user could close them, and write below
// them all the same.
func unclose(work, path string) {
	root, err := os.OpenRoot(filepath.Dir(work))
	if err != nil {
		return
	}
	defer root.Close()
	name := filepath.Base(work)
	_ = root.Chmod(name, 0o700) // of those that are another's it fails, and they stay closed
	rest, _ := filepath.Rel(work, path)
	for part := range strings.SplitSeq(rest, string(filepath.Separator)) {
		name = filepath.Join(name, part)
		_ = root.Chmod(name, 0o700)
	}
}

// passable says of an error of looking that there is nothing more to look at: gone or
// another thing meanwhile, or closed to us.
func passable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// ahead is how long a file is at least for which a file system may set blocks aside
// that nothing is in yet, and aheadTimes how many times the file's length they and
// its own may be together: XFS does so while a file grows, by about the file's length
// again and twice that of the piece before.
const (
	ahead      = 64 << 10
	aheadTimes = 4
)

// counted is what a file takes of the scratch limit: its length or its blocks, the
// larger one. Blocks of a long file count where they are too many to be those that a
// file system set aside by itself.
func counted(length, blocks uint64) uint64 {
	if length >= ahead && blocks/aheadTimes <= length {
		return length
	}
	return max(length, blocks)
}

// collect reads the regular files in the top folder of work, in order of name.
// Links, folders, pipes and devices are left out, and so are files with a second
// name, which could be any file that the script did not make.
func collect(work string, limit uint64) ([]skill.Artifact, error) {
	root, err := os.OpenRoot(work)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	top, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer top.Close()
	entries, err := top.ReadDir(maxFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > maxFiles {
		return nil, errScratch
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var all []skill.Artifact
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		b, err := read(root, e.Name(), limit)
		if errors.Is(err, errScratch) {
			return nil, err
		}
		if err != nil {
			continue
		}
		limit -= uint64(len(b))
		all = append(all, skill.Artifact{Name: e.Name(), Data: b, Size: int64(len(b))})
	}
	return all, nil
}

var errNotOwn = errors.New("not a regular file with one name")

func read(root *os.Root, name string, limit uint64) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || links(info) > 1 {
		return nil, errNotOwn
	}
	b, err := io.ReadAll(io.LimitReader(f, int64(min(limit, 1<<62))+1))
	if err != nil {
		return nil, err
	}
	if uint64(len(b)) > limit {
		return nil, errScratch
	}
	return b, nil
}
