package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// bounds hold the memory of workers by control groups, where the host may make
// some: of version 2, or of version 1's memory controller. The kernel then ends the
// process that goes beyond.
type bounds struct {
	dir string // of this host; "" if there can be none
	v2  bool
	why string

	mu sync.Mutex
	n  int
}

// bound is the control group of one worker; nil: none.
type bound struct{ dir string }

func newBounds() *bounds {
	b := &bounds{}
	if b.dir, b.v2, b.why = ownGroup(); b.dir == "" {
		return b
	}
	b.sweep()
	dir := filepath.Join(b.dir, fmt.Sprintf("openskill-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // as the others there
		b.dir, b.why = "", "no control group can be made: "+plain(err)
		return b
	}
	b.dir = dir
	if b.v2 {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory"), 0); err != nil {
			_ = os.Remove(dir)
			b.dir, b.why = "", "the memory controller is not handed down to this host: "+plain(err)
		}
	}
	return b
}

// sweep removes the groups of hosts that were killed. One in which somebody is left
// cannot be removed.
func (b *bounds) sweep() {
	left, _ := filepath.Glob(filepath.Join(b.dir, "openskill-*")) // the pattern is a good one
	for _, dir := range left {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "openskill-"))
		if err != nil || unix.Kill(pid, 0) == nil {
			continue
		}
		workers, _ := filepath.Glob(filepath.Join(dir, "[0-9]*"))
		for _, w := range workers {
			_ = os.Remove(w) // what is busy is for the next host
		}
		_ = os.Remove(dir)
	}
}

func plain(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// ownGroup finds the group of this process in the hierarchy that bounds memory.
func ownGroup() (dir string, v2 bool, why string) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", false, "there are no control groups"
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", false, "there are no control groups"
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
		case t[0] == "cgroup" && strings.Contains(","+t[2]+",", ",memory,"):
			return filepath.Join(f[4], group("memory")), false, ""
		case t[0] == "cgroup2":
			at := filepath.Join(f[4], group(""))
			has, err := os.ReadFile(filepath.Join(at, "cgroup.controllers")) //nolint:gosec // a place that the kernel told
			if err == nil && slices.Contains(strings.Fields(string(has)), "memory") {
				return at, true, ""
			}
		}
	}
	return "", false, "no control group here bounds memory"
}

// hold puts a process under a bound on its memory.
func (b *bounds) hold(pid int, memory uint64) (*bound, error) {
	if b.dir == "" {
		return nil, errors.New(b.why)
	}
	b.mu.Lock()
	b.n++
	dir := filepath.Join(b.dir, strconv.Itoa(b.n))
	b.mu.Unlock()
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // as the others there
		return nil, err
	}
	file := "memory.limit_in_bytes"
	if b.v2 {
		file = "memory.max"
	}
	err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatUint(memory, 10)), 0)
	if err == nil {
		swap := "memory.memsw.limit_in_bytes"
		value := strconv.FormatUint(memory, 10)
		if b.v2 {
			swap, value = "memory.swap.max", "0"
		}
		_ = os.WriteFile(filepath.Join(dir, swap), []byte(value), 0) // where there is swap
		err = os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
	}
	if err != nil {
		_ = os.Remove(dir)
		return nil, err
	}
	return &bound{dir}, nil
}

// release removes the group of a process that has ended.
func (b *bound) release() {
	if b != nil {
		_ = os.Remove(b.dir)
	}
}

func (b *bounds) close() {
	if b.dir != "" {
		_ = os.Remove(b.dir)
	}
}

// protection says how the memory of a worker is bounded.
func (b *bounds) protection(memory uint64) Protection {
	p := Protection{Name: "memory", Detail: "control groups are not to be had (" + b.why + "): the engine's own limits hold, and a worker that grew is replaced"}
	if b.dir != "" {
		p.On, p.Detail = true, fmt.Sprintf("a control group: %d MiB for each worker process", memory>>20)
	}
	return p
}
