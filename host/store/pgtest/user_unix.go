//go:build unix

package pgtest

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// asUser is the user that PostgreSQL runs as; the zero value is this process's own.
type asUser struct {
	other    bool
	uid, gid uint32
}

// otherUser gives root another user, since PostgreSQL refuses root.
func otherUser() (asUser, error) {
	if os.Getuid() != 0 {
		return asUser{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil && uid != 0 {
			return asUser{other: true, uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return asUser{}, noneError{"PostgreSQL refuses root, and there is neither a user postgres nor a user nobody, so that this is not tested"}
}

// become makes a program run as the user, in a group of its own, so that ^C reaches the
// tests alone.
func (a asUser) become(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if a.other {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
}

// own gives a file or folder to the user.
func (a asUser) own(path string) error {
	if !a.other {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}
