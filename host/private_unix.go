//go:build unix

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"openskill/sdk/skill"
)

// ownFolder refuses a state folder that another user owns or may write to: it holds machine
// code, keys and records, which the host believes. A folder that does not exist is made later.
func ownFolder(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("host.Open: look at the state folder: %w", err)
	}
	refused := func(format string, args ...any) error {
		return &skill.Error{Op: "host.Open", Code: skill.InvalidArgument, Subject: "OPENSKILL_STATE_DIR", Message: fmt.Sprintf(format, args...)}
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int64(st.Uid) != int64(os.Geteuid()) {
		return refused("the state folder %s belongs to user %d, and this is user %d: run openskill as its owner, or name another folder", dir, st.Uid, os.Geteuid())
	}
	if info.Mode().Perm()&0o022 != 0 {
		return refused("other users may write to the state folder %s: look whether anybody did, then run chmod go-w on it", dir)
	}
	return nil
}
