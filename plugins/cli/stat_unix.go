//go:build unix

package cli

import (
	"io/fs"
	"syscall"
)

// links is how many names a file has.
func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // its type differs by system
	}
	return 1
}

// taken is what a file takes of the scratch limit.
func taken(info fs.FileInfo) uint64 {
	length, blocks := uint64(info.Size()), uint64(0) // never negative
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		blocks = uint64(st.Blocks) * 512 // never negative; in this unit whatever the file system's
	}
	return counted(length, blocks)
}
