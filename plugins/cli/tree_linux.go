package cli

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// parents gives the parent of every process that /proc shows.
func parents() map[int]int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	all := make(map[int]int, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if parent, ok := parentOf(pid); ok {
				all[pid] = parent
			}
		}
	}
	return all
}

// parentOf reads the parent; a process that has ended and waits to be reaped
// has none any more.
func parentOf(pid int) (int, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	// "pid (name) state parent …", where the name may hold anything.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 2 || bytes.Equal(fields[0], []byte("Z")) {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}

// below lists the descendants of pid, nearest first.
func below(pid int) []int {
	children := map[int][]int{}
	for child, parent := range parents() {
		children[parent] = append(children[parent], child)
	}
	list := append([]int(nil), children[pid]...)
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i]]...)
	}
	return list
}

// killBelow kills the descendants of pid. A number may have passed to a stranger
// since it was listed: it is pinned by a descriptor before its descent is
// checked again.
func killBelow(pid int) {
	list := below(pid)
	ours := map[int]bool{pid: true}
	for _, p := range list {
		ours[p] = true
	}
	for _, p := range list {
		fd, err := unix.PidfdOpen(p, 0)
		if err != nil {
			continue
		}
		if parent, ok := parentOf(p); ok && ours[parent] {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
		_ = unix.Close(fd)
	}
}

// peakBelow is the largest peak of resident memory among the descendants of
// pid, in bytes.
func peakBelow(pid int) (peak uint64) {
	for _, p := range below(pid) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(p) + "/status")
		if err != nil {
			continue
		}
		const field = "\nVmHWM:"
		if i := bytes.Index(b, []byte(field)); i >= 0 {
			if f := bytes.Fields(b[i+len(field):]); len(f) > 0 {
				kib, _ := strconv.ParseUint(string(f[0]), 10, 64)
				peak = max(peak, kib<<10)
			}
		}
	}
	return peak
}
