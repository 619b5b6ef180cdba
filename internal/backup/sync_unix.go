//go:build !windows

package backup

import (
	"errors"
	"os"
)

// syncDir waits until the disk has the names in a folder.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
