package workers

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// Confine takes from this process, for good, all that it is not named in c. It is
// called before the first byte from outside is read, and says what holds from then on.
func Confine(c *Confinement) ([]Protection, error) {
	if err := setLimits(c); err != nil {
		return nil, err
	}
	// Other processes of the same user cannot look into this one.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("worker: close this process to others: %w", err)
	}
	names := Protection{Name: "names", Detail: "no mount namespace for this user; " + namesSeen}
	if c.Apart {
		var err error
		if names, err = hideNames(append(slices.Clone(c.Read), c.Write)); err != nil {
			return nil, err
		}
	}
	capabilities := dropCapabilities()
	files, err := restrict(c.Read, c.Write)
	if err != nil {
		return nil, err
	}
	calls, err := filter(c.Write != "")
	if err != nil {
		return nil, err
	}
	return []Protection{capabilities, names, files, calls}, nil
}

// Narrow gives up all folders but these, of those that are left. It works where
// Narrows says so.
func Narrow(folders []string) error {
	_, err := restrict(folders, "")
	return err
}

const readable = landlock.AccessFSSet(ll.AccessFSReadFile | ll.AccessFSReadDir)

// restrict puts this process under rules of Landlock: these folders can be read, one
// can be written, nothing can be executed, connected to or signalled.
func restrict(read []string, write string) (Protection, error) {
	p := Protection{Name: "landlock"}
	abi, err := ll.LandlockGetABIVersion()
	if err != nil || abi < 1 {
		p.Detail = "Landlock is missing or disabled in this kernel: an escaped process could read the host's files"
		return p, nil
	}
	rules := make([]landlock.Rule, 0, len(read)+1)
	for _, path := range read {
		info, err := os.Stat(path)
		switch {
		case os.IsNotExist(err):
			continue
		case err != nil:
			return p, fmt.Errorf("worker: %w", err)
		case info.IsDir():
			rules = append(rules, landlock.PathAccess(readable, path))
		default:
			rules = append(rules, landlock.PathAccess(ll.AccessFSReadFile, path))
		}
	}
	if write != "" {
		rules = append(rules, landlock.RWDirs(write))
	}
	if err := landlock.V8.BestEffort().Restrict(rules...); err != nil {
		return p, fmt.Errorf("worker: landlock: %w", err)
	}
	p.On, p.Detail = true, fmt.Sprintf("version %d: access only to the files of its skills; no network, no signals", abi)
	if abi < 6 {
		p.Detail = fmt.Sprintf("version %d: access only to the files of its skills", abi)
	}
	return p, nil
}

// dropCapabilities gives up what root may beyond others, but for reading files whose
// owner is somebody else: which ones, Landlock says.
func dropCapabilities() Protection {
	p := Protection{Name: "capabilities", On: true, Detail: "none"}
	var keep uint32
	if os.Geteuid() == 0 {
		keep, p.Detail = 1<<unix.CAP_DAC_READ_SEARCH, "of root's capabilities, only reading files, within Landlock's rules"
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: keep, Permitted: keep}}
	_, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0) //nolint:gosec // the kernel reads them
	if errno != 0 {
		p.On, p.Detail = false, "they could not be dropped: "+errno.Error()
	}
	return p
}

func setLimits(c *Confinement) error {
	set := func(what string, resource int, n uint64) error {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: n, Max: n}); err != nil {
			return fmt.Errorf("worker: limit %s: %w", what, err)
		}
		return nil
	}
	limits := []struct {
		what     string
		resource int
		n        uint64
	}{
		{"core files", unix.RLIMIT_CORE, 0},
		{"locked memory", unix.RLIMIT_MEMLOCK, 0},
		{"open files", unix.RLIMIT_NOFILE, 4096},
		{"message queues", unix.RLIMIT_MSGQUEUE, 0},
		{"memory", unix.RLIMIT_DATA, c.Memory},
		{"files", unix.RLIMIT_FSIZE, cmp.Or(c.Files, c.Memory)}, // what is written was in memory
		{"processor time", unix.RLIMIT_CPU, c.Seconds},
	}
	for _, l := range limits {
		if l.n == 0 && (l.resource == unix.RLIMIT_DATA || l.resource == unix.RLIMIT_FSIZE || l.resource == unix.RLIMIT_CPU) {
			continue
		}
		if l.resource == unix.RLIMIT_NOFILE {
			var now unix.Rlimit
			if unix.Getrlimit(l.resource, &now) == nil && now.Max < l.n {
				continue // it is lower already
			}
		}
		if err := set(l.what, l.resource, l.n); err != nil {
			return err
		}
	}
	if c.Background {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 10) // if not, it is only less polite
	}
	return nil
}

// resident is what a process has in memory, in bytes; 0 if that cannot be told.
func resident(pid int) uint64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var size, pages uint64
	if _, err := fmt.Fscan(strings.NewReader(string(b)), &size, &pages); err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}

// processorTime is what a process has used of processors; 0 if that cannot be told.
func processorTime(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	const user, perSecond = 11, 100 // after the name in brackets; the kernel's USER_HZ
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < user+2 {
		return 0
	}
	ticks := 0
	for _, field := range f[user : user+2] {
		n, _ := strconv.Atoi(field) // the kernel writes numbers
		ticks += n
	}
	return time.Duration(ticks) * time.Second / perSecond
}

// allocated is what a file takes of the disk, in bytes.
func allocated(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Blocks) * 512 // not negative
	}
	return uint64(info.Size()) // not negative
}

// nameless makes a file that has no name.
func nameless() (*os.File, error) {
	fd, err := unix.MemfdCreate("openskill-module", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "module"), nil
}
