package share

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// exchangeSlowly is exchange in two steps. What is killed between them leaves none, and
// the next pull puts one there.
func exchangeSlowly(folder, to, aside string) error {
	if err := os.Rename(to, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(folder, to); err != nil {
		return errors.Join(err, os.Rename(aside, to))
	}
	return through(filepath.Dir(to))
}
