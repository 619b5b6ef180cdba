//go:build unix

package guestfs

import (
	"io/fs"
	"os"
	"syscall"
)

// openCarefully keeps an open from waiting (FIFO) and from taking a terminal.
const openCarefully = syscall.O_NONBLOCK | syscall.O_NOCTTY

// identity is the inode and the number of links. What has neither counts as
// hard-linked, so that it is refused.
func identity(_ *os.File, info fs.FileInfo) (inode, links uint64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino), uint64(st.Nlink) //nolint:unconvert // narrower on some systems
	}
	return 0, 0
}
