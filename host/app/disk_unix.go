//go:build linux || darwin

package app

import "golang.org/x/sys/unix"

// disk gives the free bytes and the size of the disk that a folder is on.
func disk(folder string) (free, size uint64, ok bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, 0, false
	}
	block := uint64(s.Bsize)
	return s.Bavail * block, s.Blocks * block, true
}
