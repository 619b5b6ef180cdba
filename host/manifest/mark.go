package manifest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// MarkFile is the mark of origin: a file in the folder of each pulled skill. A folder that
// was copied, renamed, or lost its lock file is a stranger's by it.
const MarkFile = ".openskill-origin"

// Mark is the content of the mark. It is the same in all folders: the digest of a folder
// leaves out a mark with this content and no other, so that nothing that varies is unsigned.
const Mark = `This skill was pulled: it is a stranger's. openskill.lock says where it came from.
To trust it as it is, run: openskill skills trust NAME
`

// Marked reports whether a folder has a mark, of whatever type or content. Where nobody can
// tell, it has one: also a folder that was moved away after somebody had read it.
func Marked(folder string) bool {
	_, err := os.Lstat(filepath.Join(folder, MarkFile))
	if errors.Is(err, fs.ErrNotExist) {
		_, gone := os.Lstat(folder)
		return gone != nil
	}
	return true
}
