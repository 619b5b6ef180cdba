package workers

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// bounds hold the memory and the threads of workers and compilers by control groups, where the host
// may make some: of version 2, or of version 1's controllers. The kernel then ends the
// process that takes more memory, and refuses it more threads: all processes of the
// machine share their numbers.
type bounds struct {
	dir   string // of this host; "" if there can be none
	v2    bool
	why   string
	tasks string // where its threads are bounded: dir itself in version 2; "": nowhere

	mu sync.Mutex
	n  int
}

// bound are the control groups of one process; nil: none.
type bound struct{ dirs []string }

// maxThreads bounds the threads of one worker: Go makes one for each processor, and for
// each call that waits for a file.
const maxThreads = 512

func newBounds() *bounds {
	b := &bounds{}
	if b.dir, b.v2, b.why = ownGroup("memory"); b.dir == "" {
		return b
	}
	own, err := groupOfHost(b.dir)
	if err != nil {
		b.dir, b.why = "", "cannot create a control group: "+plain(err)
		return b
	}
	b.dir = own
	if !b.v2 {
		if dir, v2, _ := ownGroup("pids"); dir != "" && !v2 {
			b.tasks, _ = groupOfHost(dir) // if not, threads cost memory, which is bounded
		}
		return b
	}
	control := filepath.Join(own, "cgroup.subtree_control")
	if err := os.WriteFile(control, []byte("+memory"), 0); err != nil {
		_ = os.Remove(own)
		b.dir, b.why = "", "the memory controller is not delegated to this host: "+plain(err)
	} else if os.WriteFile(control, []byte("+pids"), 0) == nil {
		b.tasks = own
	}
	return b
}

// groupOfHost makes a group below which those of this host's processes are. A host has two,
// one of workers and one of compilers, and a program may have many hosts.
func groupOfHost(above string) (string, error) {
	sweep(above)
	return os.MkdirTemp(above, fmt.Sprintf("openskill-%d-", os.Getpid()))
}

// sweep removes the groups of hosts that were killed. One in which somebody is left
// cannot be removed.
func sweep(above string) {
	groups := os.DirFS(above)
	left, _ := fs.Glob(groups, "openskill-*") // the pattern is a good one
	for _, name := range left {
		number, _, _ := strings.Cut(strings.TrimPrefix(name, "openskill-"), "-")
		pid, err := strconv.Atoi(number)
		if err != nil || unix.Kill(pid, 0) == nil {
			continue
		}
		workers, _ := fs.Glob(groups, name+"/[0-9]*")
		for _, w := range workers {
			_ = os.Remove(filepath.Join(above, w)) // what is busy is for the next host
		}
		_ = os.Remove(filepath.Join(above, name))
	}
}

func plain(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// ownGroup finds the group of this process in the hierarchy of a controller.
func ownGroup(controller string) (dir string, v2 bool, why string) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", false, "control groups are not mounted"
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", false, "control groups are not mounted"
	}
	group := func(controller string) string {
		for line := range strings.Lines(string(own)) {
			if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 && (controller == "" && f[0] == "0" || controller != "" && strings.Contains(","+f[1]+",", ","+controller+",")) {
				return f[2]
			}
		}
		return ""
	}
	for line := range strings.Lines(string(mounts)) {
		left, right, ok := strings.Cut(line, " - ")
		f, t := strings.Fields(left), strings.Fields(right)
		if !ok || len(f) < 5 || len(t) < 3 {
			continue
		}
		switch {
		case t[0] == "cgroup" && strings.Contains(","+t[2]+",", ","+controller+","):
			return filepath.Join(f[4], group(controller)), false, ""
		case t[0] == "cgroup2":
			at := filepath.Join(f[4], group(""))
			has, err := os.ReadFile(filepath.Join(at, "cgroup.controllers"))
			if err == nil && slices.Contains(strings.Fields(string(has)), controller) {
				return at, true, ""
			}
		}
	}
	return "", false, "no control group limits " + controller
}

// machine returns the bytes of memory, and the number of threads, that this process and its children may have together:
// those of the machine, or of a control group, as containers have.
func machine() (memory, threads uint64) {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		memory = uint64(info.Totalram) * uint64(info.Unit) //nolint:unconvert // on 32 bits it is another type
	}
	dir, v2, _ := ownGroup("memory")
	file := "memory.limit_in_bytes"
	if v2 {
		file = "memory.max"
	}
	memory = leastLimit(dir, file, memory)
	dir, _, _ = ownGroup("pids")
	return memory, leastLimit(dir, "pids.max", math.MaxUint64)
}

// leastLimit returns n, or the least limit that a control group and those above it have. In a container, the group of
// the container is the root of the file system.
func leastLimit(dir, file string, n uint64) uint64 {
	for ; len(dir) > 1; dir = filepath.Dir(dir) {
		if limit, ok := numberIn(filepath.Join(dir, file)); ok {
			n = min(n, limit)
		}
	}
	return n
}

func numberIn(path string) (n uint64, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false // folders above the file system have no such file, nor has the first group
	}
	n, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil // "max" means no limit
}

// memoryShort reports whether less than a tenth of the memory that processes may have is available.
func memoryShort() bool {
	memory, available := fieldOf("/proc/meminfo", "MemTotal:")<<10, fieldOf("/proc/meminfo", "MemAvailable:")<<10
	if available > 0 && available < memory/10 {
		return true
	}
	dir, v2, _ := ownGroup("memory")
	most, now, total := "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"
	if v2 {
		most, now, total = "memory.max", "memory.current", ""
	}
	for ; len(dir) > 1; dir = filepath.Dir(dir) {
		limit, limited := numberIn(filepath.Join(dir, most))
		used, ok := numberIn(filepath.Join(dir, now))
		if limited && ok {
			stat := filepath.Join(dir, "memory.stat") // files in memory are given up first
			used -= min(used, fieldOf(stat, total+"inactive_file")+fieldOf(stat, total+"active_file"))
			if used > limit/10*9 {
				return true
			}
		}
	}
	return false
}

// fieldOf returns the number after a name in a file like /proc/meminfo, or 0.
func fieldOf(path, name string) uint64 {
	text, _ := os.ReadFile(path) // a missing file has no numbers
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			n, _ := strconv.ParseUint(f[1], 10, 64)
			return n
		}
	}
	return 0
}

// hold puts a process under its bounds.
func (b *bounds) hold(pid int, memory uint64) (*bound, error) {
	if b.dir == "" {
		return nil, errors.New(b.why)
	}
	b.mu.Lock()
	b.n++
	name := strconv.Itoa(b.n)
	b.mu.Unlock()
	of := &bound{}
	err := of.join(filepath.Join(b.dir, name), pid, b.files(memory))
	if err != nil {
		of.release()
		return nil, err
	}
	if b.tasks != "" && b.tasks != b.dir {
		_ = of.join(filepath.Join(b.tasks, name), pid, []setting{{"pids.max", strconv.Itoa(maxThreads), true}}) // if not, they cost memory
	}
	return of, nil
}

// setting is a file of a control group, and what is written to it.
type setting struct {
	file, value string
	must        bool
}

// files are the settings of a process's group.
func (b *bounds) files(memory uint64) []setting {
	most := strconv.FormatUint(memory, 10)
	if !b.v2 { // the second is only there with swap
		return []setting{{"memory.limit_in_bytes", most, true}, {"memory.memsw.limit_in_bytes", most, false}}
	}
	return []setting{{"memory.max", most, true}, {"memory.swap.max", "0", false}, {"pids.max", strconv.Itoa(maxThreads), false}}
}

// join makes a group with settings, and puts a process into it.
func (b *bound) join(dir string, pid int, settings []setting) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	b.dirs = append(b.dirs, dir)
	for _, s := range settings {
		if err := os.WriteFile(filepath.Join(dir, s.file), []byte(s.value), 0); err != nil && s.must {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

// release removes the groups of a process that has ended.
func (b *bound) release() {
	if b == nil {
		return
	}
	for _, dir := range b.dirs {
		_ = os.Remove(dir)
	}
}

// held reports whether workers are held.
func (b *bounds) held() bool { return b.dir != "" }

func (b *bounds) close() {
	for _, dir := range []string{b.dir, b.tasks} {
		if dir != "" {
			_ = os.Remove(dir)
		}
	}
}

// protection says how a worker is bounded.
func (b *bounds) protection(memory uint64) Protection {
	p := Protection{Name: "memory", Detail: "control groups are unavailable (" + b.why + "): the engine's limits apply, and a worker that exceeds them is killed; files in memory made by an escaped process are not counted"}
	if b.dir != "" {
		p.On, p.Detail = true, fmt.Sprintf("a control group: %d MiB for each worker process", memory>>20)
	}
	if b.tasks != "" {
		p.Detail += fmt.Sprintf(", and %d threads", maxThreads)
	}
	return p
}
