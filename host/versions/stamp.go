package versions

import (
	"fmt"
	"hash/fnv"
	"io/fs"
	"path/filepath"
	"time"
)

// stamp is a number that changes when a file of a folder was written, replaced,
// added or removed. It costs a look at each file, not its bytes.
func stamp(folder string) (sum uint64, files int, err error) {
	h := fnv.New64a()
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files++
		changed, node := identity(info)
		_, _ = fmt.Fprintln(h, path, info.Mode(), info.Size(), info.ModTime().UnixNano(), changed, node)
		return nil
	})
	return h.Sum64(), files, err
}

// Folders of more than manyFiles files are looked at once in lookAgain, so that a
// call of such a skill does not cost a look at all of them.
const (
	manyFiles = 256
	lookAgain = time.Second
)
