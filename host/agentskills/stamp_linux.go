package agentskills

import (
	"io/fs"
	"syscall"
)

// stampAt stamps what is at a path, without following a link. A look at many thousand
// files is what a rescan costs, so it makes nothing that is not kept.
func stampAt(path string) (stamp, error) {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return stamp{}, err
	}
	return stampOfStat(path, &st), nil
}

// stampOf makes the same of what is known already.
func stampOf(path string, info fs.FileInfo) stamp {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return stampOfStat(path, st)
	}
	return stamp{path: path}
}

func stampOfStat(path string, st *syscall.Stat_t) stamp {
	return stamp{path: path, mode: st.Mode, size: st.Size, written: st.Mtim.Nano(), changed: st.Ctim.Nano(), node: st.Ino}
}

// nameCount is how many names a file has.
func nameCount(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // another width on arm64
	}
	return 1
}

const nonBlocking = syscall.O_NONBLOCK
