//go:build unix

package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"openskill/host/store"
	"openskill/sdk/skill"
)

// believed are the parts of a state folder that a host believes, beside what they hold: machine code,
// uploads, approvals, keys and records.
var believed = []string{"modules", "cache", "skills", "approved", "approvals", "pyast", "tmp", "recording.key", store.File, store.File + "-wal"}

// ownFolder refuses a state folder that another user owns or may write to, and one with such a
// part. What does not exist is made later.
func ownFolder(dir string) error {
	err := own(dir)
	for _, part := range believed {
		if err == nil {
			err = own(filepath.Join(dir, part))
		}
	}
	return err
}

func own(dir string) error {
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
		return refused("the state folder %s belongs to user %d, but this is user %d: run openskill as its owner, or choose another folder", dir, st.Uid, os.Geteuid())
	}
	if info.Mode().Perm()&0o022 != 0 {
		return refused("other users can write to the state folder %s: check its files, then run chmod go-w on it", dir)
	}
	return nil
}
