package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock by three system calls and not by a library: libraries restrict all
// threads of the process at once, and here it must be one.

// landlockVersion is the version of the kernel's Landlock, 0 where there is none.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

const (
	mayReadFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	mayRead     = mayReadFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	mayUseFile  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	// Not in ./work: device files, and running what was written there.
	mayWork = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR |
		unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK
)

// handled are the rights that version knows, all of which are refused unless a
// rule allows them.
func handled(version int) unix.LandlockRulesetAttr {
	a := unix.LandlockRulesetAttr{Handled_access_fs: mayRead | mayWork | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK}
	if version < 2 {
		a.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version < 3 {
		a.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 4 {
		a.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if version >= 5 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		a.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return a
}

// systemReadable is what programs need of a system: libraries and data, no
// accounts' secrets, no /proc (it shows the environment of other processes), no
// home folders.
var systemReadable = []string{
	"/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/nix/store",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives",
	"/etc/localtime", "/etc/timezone", "/etc/locale.alias", "/etc/mime.types", "/etc/magic",
	"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/os-release", "/etc/fonts", "/etc/python3",
	"/etc/ssl/certs", "/etc/ca-certificates", "/etc/pki/tls/certs", "/etc/pki/ca-trust",
	"/sys/devices/system/cpu", "/proc/cpuinfo", "/proc/meminfo", "/proc/filesystems",
}

var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// ruleset makes the rules of a job.
func (j *job) ruleset(version int) (_ *os.File, err error) {
	attr := handled(version)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0) //nolint:gosec // the kernel reads it
	if errno != 0 {
		return nil, fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	rules := os.NewFile(fd, "landlock")
	defer func() {
		if err != nil {
			_ = rules.Close()
		}
	}()
	allow := func(path string, access uint64) error {
		if path == "" {
			return nil
		}
		at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			return nil // not every system has every path
		}
		if err != nil {
			return err
		}
		defer unix.Close(at)
		var st unix.Stat_t
		if err := unix.Fstat(at, &st); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			access &= mayReadFile | mayUseFile // the others are rights on folders
		}
		rule := unix.LandlockPathBeneathAttr{Allowed_access: access & attr.Handled_access_fs, Parent_fd: int32(at)}
		if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 { //nolint:gosec // the kernel reads it
			return fmt.Errorf("landlock_add_rule: %w", errno)
		}
		return nil
	}
	readable := slices.Concat(systemReadable, j.python.Folders, []string{j.folder, j.dir, j.data})
	for _, path := range readable {
		if err := allow(path, mayRead); err != nil {
			return nil, err
		}
	}
	for _, path := range devices {
		if err := allow(path, mayUseFile); err != nil {
			return nil, err
		}
	}
	return rules, allow(j.work, mayWork)
}

// restrictThread puts the calling thread under the rules, for good.
func restrictThread(rules *os.File) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules.Fd(), 0, 0); errno != 0 {
		return fmt.Errorf("landlock_restrict_self: %w", errno)
	}
	return nil
}
