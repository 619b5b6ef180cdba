//go:build !windows

package approval

import (
	"errors"
	"os"
)

// syncDir returns when the names in a folder are on the disk.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
