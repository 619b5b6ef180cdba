package records

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// thisProcess is the process that asks.
func thisProcess() (process, bool) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return process{}, false
	}
	space, err := os.Readlink("/proc/self/ns/pid") // pid:[4026531836]
	if err != nil {
		return process{}, false
	}
	p := process{boot: strings.TrimSpace(string(boot)), pid: os.Getpid()}
	if _, err := fmt.Sscanf(space, "pid:[%d]", &p.space); err != nil {
		return process{}, false
	}
	_, start, err := stat(p.pid)
	p.start = start
	return p, err == nil && !strings.Contains(p.boot, "/")
}

// gone reports whether p has ended, or is a zombie. Where that cannot be seen (the files
// of other users' processes may be hidden) it is taken to run.
func gone(p process) bool {
	if errors.Is(syscall.Kill(p.pid, 0), syscall.ESRCH) {
		return true
	}
	state, start, err := stat(p.pid)
	return err == nil && (start != p.start || state == "Z" || state == "X")
}

// stat reads state and start of a process. The name of its program stands in brackets
// before them, and may have brackets and spaces in it.
func stat(pid int) (state string, start uint64, err error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", 0, err
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	const startField = 22 - 3 // fields are counted from 1, and the state is the third
	if len(f) <= startField {
		return "", 0, errors.New("not a line of /proc/PID/stat")
	}
	start, err = strconv.ParseUint(f[startField], 10, 64)
	return f[0], start, err
}
