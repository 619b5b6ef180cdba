package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"openskill/sdk/skill"
)

// maxFiles is how many files and folders a run may leave below ./work.
const maxFiles = 4096

var errScratch = errors.New("more below ./work than the scratch limit")

// filled adds up the files below work and fails with errScratch once there is
// more than limit bytes or maxFiles entries. What vanishes while it looks does
// not count. Bytes are counted as counted says: neither a sparse file nor many
// small ones get round it.
func filled(work string, limit uint64) error {
	var total uint64
	entries := 0
	err := filepath.WalkDir(work, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // gone meanwhile, or closed to us by the script's own mode bits
		}
		if entries++; entries > maxFiles+1 { // one for work itself
			return errScratch
		}
		if !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			total += taken(info)
		}
		if total > limit {
			return errScratch
		}
		return nil
	})
	return err
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
	defer root.Close() //nolint:errcheck // read only
	top, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer top.Close() //nolint:errcheck // read only
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
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || links(info) > 1 {
		return nil, errNotOwn
	}
	//nolint:gosec // limits are far below 2^63
	b, err := io.ReadAll(io.LimitReader(f, int64(min(limit, 1<<62))+1))
	if err != nil {
		return nil, err
	}
	if uint64(len(b)) > limit {
		return nil, errScratch
	}
	return b, nil
}
