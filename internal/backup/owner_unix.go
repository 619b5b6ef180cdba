//go:build !windows

package backup

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// keepOwner gives all in staging to the user and group of the empty folder that it takes
// the place of, where root restores what a host of another user has to read. staging is
// closed to that user meanwhile, so that no name in it can be made to lead elsewhere.
func keepOwner(dir, staging string) error {
	info, err := os.Stat(dir)
	if err != nil || os.Geteuid() != 0 {
		return nil
	}
	was, ok := info.Sys().(*syscall.Stat_t)
	if !ok || was.Uid == 0 {
		return nil
	}
	var all []string
	err = filepath.WalkDir(staging, func(name string, _ fs.DirEntry, err error) error {
		all = append(all, name)
		return err
	})
	for i := len(all) - 1; i >= 0 && err == nil; i-- { // the folder itself last: it is what closes the others
		err = os.Lchown(all[i], int(was.Uid), int(was.Gid))
	}
	return err
}
