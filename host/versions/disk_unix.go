//go:build !windows

package versions

import (
	"errors"
	"os"
)

// syncDir writes the names in a folder through to the disk.
func syncDir(path string) error {
	d, err := os.Open(path) //nolint:gosec // a folder of our own
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
