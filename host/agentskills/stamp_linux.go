package agentskills

import (
	"io/fs"
	"syscall"
)

// identity gives the time of a file's last change of any kind, its inode, and how
// many names it has.
func identity(info fs.FileInfo) (changed int64, node, names uint64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano(), st.Ino, uint64(st.Nlink) //nolint:unconvert // another width on arm64
	}
	return 0, 0, 1
}

const nonBlocking = syscall.O_NONBLOCK
