//go:build unix

package main

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"openskill/host/app/config"
	"openskill/host/store"
)

// ownState refuses that root makes the database in a state folder of another user, as that
// of the package is: the host, which runs as that user, could not read it and not start.
// A database that is there keeps its owner whoever writes to it.
func ownState(s *config.Settings) error {
	if s.DatabaseURL != "" || os.Geteuid() != 0 {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(s.StateDir, store.File)); err == nil {
		return nil
	}
	info, err := os.Stat(s.StateDir)
	if err != nil {
		return nil
	}
	owner := ownerOf(info)
	if owner == 0 {
		return nil
	}
	name := strconv.FormatUint(uint64(owner), 10)
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return usage("the state folder %s is of the user %s, who could not read a database that root makes in it: run this as that user, such as runuser -u %s -- openskill …", s.StateDir, name, name)
}

// ownerOf gives the user of a file; root where that is not known.
func ownerOf(info os.FileInfo) uint32 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Uid
	}
	return 0
}
