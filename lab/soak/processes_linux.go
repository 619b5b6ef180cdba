package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// look fills in what the processes of a host hold: pid and all that descend from it.
func look(pid int, s *Sample) error {
	all, err := processes()
	if err != nil {
		return err
	}
	host, ok := all[pid]
	if !ok {
		return fmt.Errorf("there is no process %d", pid)
	}
	s.HostRSS, s.Threads, s.HostFDs = float64(host.rss), float64(host.threads), float64(descriptors(pid))
	s.WorkersRSS, s.Workers, s.WorkerFDs, s.WorkerThr = 0, 0, 0, 0
	for _, p := range all {
		if p.pid == pid || !descends(all, p, pid) {
			continue
		}
		s.WorkersRSS += float64(p.rss)
		s.Workers++
		s.WorkerFDs = max(s.WorkerFDs, float64(descriptors(p.pid)))
		s.WorkerThr = max(s.WorkerThr, float64(p.threads))
	}
	if s.HostFDs < 0 {
		return fmt.Errorf("the descriptors of process %d cannot be read: it is another user's", pid)
	}
	return nil
}

// descends reports whether p has an ancestor.
func descends(all map[int]*process, p *process, ancestor int) bool {
	for range 64 { // a parent may be another one by now, and its number used again
		if p.parent == ancestor {
			return true
		}
		next, ok := all[p.parent]
		if !ok {
			return false
		}
		p = next
	}
	return false
}

// processes are those of /proc/PID/stat; one that ends meanwhile is left out.
func processes() (map[int]*process, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	all := map[int]*process{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		if p, ok := parseStat(string(b)); ok {
			all[p.pid] = p
		}
	}
	return all, nil
}

// parseStat reads a line of proc_pid_stat(5); the name in it may hold anything.
func parseStat(line string) (*process, bool) {
	pid, _, ok := strings.Cut(line, " ")
	end := strings.LastIndexByte(line, ')')
	if !ok || end < 0 {
		return nil, false
	}
	f := strings.Fields(line[end+1:]) // from field 3 on
	if len(f) < 22 || f[0] == "Z" {   // one that has ended holds nothing
		return nil, false
	}
	var p process
	var errs [4]error
	p.pid, errs[0] = strconv.Atoi(pid)
	p.parent, errs[1] = strconv.Atoi(f[1])
	p.threads, errs[2] = strconv.ParseInt(f[17], 10, 64)
	p.rss, errs[3] = strconv.ParseInt(f[21], 10, 64)
	for _, err := range errs {
		if err != nil {
			return nil, false
		}
	}
	p.rss *= int64(os.Getpagesize())
	return &p, true
}

// descriptors counts those of a process, or is -1 where they cannot be seen.
func descriptors(pid int) int {
	d, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		return -1
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return -1
	}
	return len(names)
}
