package catalogue

import (
	"io/fs"
	"syscall"
)

// identity gives the time of a file's last change of any kind, which its owner
// cannot set, and its inode.
func identity(info fs.FileInfo) (changed int64, node uint64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano(), st.Ino
	}
	return 0, 0
}
