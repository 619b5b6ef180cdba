package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// landlockVersion is the version of the kernel's Landlock, 0 where there is none.
func landlockVersion() int {
	v, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
}

const (
	mayReadFile = ll.AccessFSExecute | ll.AccessFSReadFile
	mayRead     = mayReadFile | ll.AccessFSReadDir
	mayUseFile  = ll.AccessFSReadFile | ll.AccessFSWriteFile
	// Not in ./work: device files, and running what was written there.
	mayWork = mayUseFile | ll.AccessFSReadDir | ll.AccessFSTruncate | ll.AccessFSRefer |
		ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir | ll.AccessFSMakeReg |
		ll.AccessFSMakeSym | ll.AccessFSMakeFifo | ll.AccessFSMakeSock
)

// handled are the rights that version knows, all of which are refused unless a
// rule allows them.
func handled(version int) ll.RulesetAttr {
	a := ll.RulesetAttr{HandledAccessFS: mayRead | mayWork | ll.AccessFSMakeChar | ll.AccessFSMakeBlock}
	if version < 2 {
		a.HandledAccessFS &^= ll.AccessFSRefer
	}
	if version < 3 {
		a.HandledAccessFS &^= ll.AccessFSTruncate
	}
	if version >= 4 {
		a.HandledAccessNet = ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	}
	if version >= 5 {
		a.HandledAccessFS |= ll.AccessFSIoctlDev
	}
	if version >= 6 {
		a.Scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
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
	fd, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return nil, fmt.Errorf("landlock_create_ruleset: %w", err)
	}
	rules := os.NewFile(uintptr(fd), "landlock")
	defer func() {
		if err != nil {
			_ = rules.Close()
		}
	}()
	allow := func(access uint64, paths ...string) error {
		for _, path := range paths {
			if err := allowBelow(fd, path, access&attr.HandledAccessFS); err != nil {
				return err
			}
		}
		return nil
	}
	readable := slices.Concat(systemReadable, j.python.Folders, []string{j.folder, j.dir, j.data})
	return rules, errors.Join(allow(mayRead, readable...), allow(mayUseFile, devices...), allow(mayWork, j.work))
}

// allowBelow allows something on a file, or on all below a folder; "" and what is not
// there is passed over, since not every system has every path.
func allowBelow(rules int, path string, access uint64) error {
	if path == "" {
		return nil
	}
	at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
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
	if err := ll.LandlockAddPathBeneathRule(rules, &ll.PathBeneathAttr{AllowedAccess: access, ParentFd: at}, 0); err != nil {
		return fmt.Errorf("landlock_add_rule: %w", err)
	}
	return nil
}

// restrictThread puts the calling thread under the rules, for good: the library's own way
// restricts all threads of the process at once.
func restrictThread(rules *os.File) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if err := ll.LandlockRestrictSelf(int(rules.Fd()), 0); err != nil {
		return fmt.Errorf("landlock_restrict_self: %w", err)
	}
	return nil
}
