//go:build !windows

package catalogue

import (
	"errors"
	"os"
)

// writeThrough writes a file, or the names in a folder, to the disk for good.
func writeThrough(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
