//go:build !linux

package agentskills

import (
	"io/fs"
	"os"
)

// stampAt stamps what is at a path, without following a link.
func stampAt(path string) (stamp, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return stamp{}, err
	}
	return stampOf(path, info), nil
}

// stampOf knows nothing beyond mode, size and time of modification.
func stampOf(path string, info fs.FileInfo) stamp {
	return stamp{path: path, mode: uint32(info.Mode()), size: info.Size(), written: info.ModTime().UnixNano()}
}

// nameCount does not know how many names a file has.
func nameCount(fs.FileInfo) uint64 { return 1 }

const nonBlocking = 0
