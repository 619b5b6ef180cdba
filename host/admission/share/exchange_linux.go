package share

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// exchange puts a folder in the place of another one, which goes to aside: in one step, so
// that nobody finds neither.
func exchange(folder, to, aside string) error {
	if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
		return errors.Join(os.Rename(folder, to), through(filepath.Dir(to)))
	}
	err := unix.Renameat2(unix.AT_FDCWD, folder, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	if err != nil { // a file system that cannot
		return exchangeSlowly(folder, to, aside)
	}
	return through(filepath.Dir(to))
}
