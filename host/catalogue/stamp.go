package catalogue

import (
	"encoding/binary"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// survey lists a folder and everything in it.
func survey(folder string) (paths []string, err error) {
	err = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	return paths, err
}

var stampSeed = maphash.MakeSeed()

// stamp is a number that changes when one of the files was written or replaced, or
// when one was added to one of the folders or removed from it. It costs a look at
// each of them, not their bytes.
func stamp(paths []string) (uint64, error) {
	var h maphash.Hash
	h.SetSeed(stampSeed)
	var b [40]byte
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			return 0, err
		}
		changed, node := identity(info)
		binary.LittleEndian.PutUint64(b[0:], uint64(info.Mode()))
		binary.LittleEndian.PutUint64(b[8:], uint64(info.Size()))
		binary.LittleEndian.PutUint64(b[16:], uint64(info.ModTime().UnixNano()))
		binary.LittleEndian.PutUint64(b[24:], uint64(changed))
		binary.LittleEndian.PutUint64(b[32:], node)
		_, _ = h.Write(b[:])
	}
	return h.Sum64(), nil
}

// Folders of more than manyFiles files are looked at once in lookAgain, so that a
// call of such a skill does not cost a look at all of them.
const (
	manyFiles = 256
	lookAgain = time.Second
)
