package workers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Landlock says what is opened, and not what is looked up: a process under it may ask whether any
// file exists, how large it is and when it changed (stat). So processes get a mount namespace of
// their own where the kernel lets this user make one, and in it a root with nothing but their
// folders.

// apartFlag tells a process that it is in such a namespace; another one would change
// the mounts of the host.
const apartFlag = "--apart"

// ofItsOwn is what a process has for itself. Tests ask for what no kernel gives.
var ofItsOwn uintptr = unix.CLONE_NEWNS

// apart starts a process in a mount namespace of its own; or without, from the first time that
// the kernel refuses one.
func (s *spawner) apart(cmd *exec.Cmd) error {
	if s.together {
		return cmd.Start()
	}
	without := *cmd
	a := *cmd.SysProcAttr
	a.Cloneflags = ofItsOwn
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // in that namespace, until it is confined
	}
	cmd.SysProcAttr, cmd.Args = &a, append(slices.Clone(cmd.Args), apartFlag)
	err := cmd.Start()
	for _, refusal := range []error{unix.EPERM, unix.EACCES, unix.EINVAL, unix.ENOSPC, unix.EUSERS, unix.ENOSYS} {
		if errors.Is(err, refusal) {
			*cmd, s.together = without, true
			return cmd.Start()
		}
	}
	return err
}

// hideNames leaves this process, which has a mount namespace of its own, a root with these
// folders and files alone, at the paths that they have.
func hideNames(paths []string) (Protection, error) {
	p := Protection{Name: "names"}
	// The new root is mounted where no folder of a host is. C's threads are found by what is under
	// it, so that stays the folder where the process is.
	const root = "/proc"
	threads := fmt.Sprintf("/proc/%d/task", os.Getpid())
	if !Narrows {
		if err := os.Chdir(threads); err != nil {
			return p, fmt.Errorf("worker: %w", err)
		}
	}
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") // what is mounted here is not to reach the host
	if err == nil {
		err = unix.Mount("tmpfs", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=1m,mode=0755")
	}
	if err != nil {
		p.Detail = "mounting is not permitted for this user: " + err.Error() + "; " + namesSeen
		return p, nil
	}
	for _, path := range spellings(paths) {
		if err := bring(path, root+path); err != nil {
			return p, fmt.Errorf("worker: mount %s: %w", path, err)
		}
	}
	if !Narrows {
		if err := bring(".", root+threads); err != nil {
			return p, fmt.Errorf("worker: mount %s: %w", threads, err)
		}
	}
	if err := errors.Join(os.Chdir(root), unix.PivotRoot(".", "."), unix.Unmount(".", unix.MNT_DETACH), os.Chdir("/")); err != nil {
		return p, fmt.Errorf("worker: change the root: %w", err)
	}
	p.On, p.Detail = true, "no file outside its folders is visible"
	return p, nil
}

const namesSeen = "an escaped process could read names and sizes of files"

// bring mounts a folder or file with what is mounted in it.
func bring(from, to string) error {
	info, err := os.Stat(from)
	switch {
	case os.IsNotExist(err):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		err = os.MkdirAll(to, 0o755)
	default:
		if err = os.MkdirAll(filepath.Dir(to), 0o755); err == nil {
			err = os.WriteFile(to, nil, 0o600)
		}
	}
	if err != nil {
		return err
	}
	return unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, "")
}

// spellings are the paths as they were given, and as they are without links, outer ones
// first; what is inside of another one comes with it.
func spellings(paths []string) []string {
	var all []string
	for _, path := range paths {
		if path == "" {
			continue
		}
		all = append(all, filepath.Clean(path))
		if target, err := filepath.EvalSymlinks(path); err == nil {
			all = append(all, target)
		}
	}
	slices.Sort(all)
	var outer []string
	for _, path := range all {
		if !slices.ContainsFunc(outer, func(o string) bool { return path == o || strings.HasPrefix(path, o+"/") }) {
			outer = append(outer, path)
		}
	}
	return outer
}
