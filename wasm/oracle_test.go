package wasm_test

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"
)

// usage is what the process has taken.
type usage struct {
	goroutines, descriptors, threads int
	memory                           int64 // resident bytes, after a collection
	space                            int64 // bytes of address space
}

// measure counts. Where there is no /proc, only goroutines.
func measure() usage {
	runtime.GC()
	debug.FreeOSMemory()
	u := usage{goroutines: runtime.NumGoroutine()}
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		u.descriptors = len(fds)
	}
	if tasks, err := os.ReadDir("/proc/self/task"); err == nil {
		u.threads = len(tasks)
	}
	u.space, u.memory = statm()
	return u
}

// statm reads address space and resident memory, in bytes.
func statm() (space, resident int64) {
	b, err := os.ReadFile(filepath.Join("/proc", "self", "statm"))
	if err != nil {
		return 0, 0
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0, 0
	}
	page := int64(os.Getpagesize())
	number := func(s string) int64 { n, _ := strconv.ParseInt(s, 10, 64); return n * page }
	return number(f[0]), number(f[1])
}

// The oracle's bounds on what may remain five seconds after.
const (
	mayGoroutines  = 10
	mayDescriptors = 4
	mayThreads     = 4
	mayMemory      = 64 << 20
	settle         = 5 * time.Second
)

// back waits until the process is where it was. It looks again and again, since
// nothing tells when the runtime has returned threads and pages; it is bounded.
//
// Under the race detector memory is not compared, since its own grows with all
// that was ever touched.
//
// Threads are the exception: Go keeps those that it has made for blocking calls,
// so their bound grows with what has run at once, which is at most eight here.
func (before usage) back(t testing.TB) {
	t.Helper()
	deadline := time.Now().Add(settle)
	var now usage
	for {
		now = measure()
		ok := now.goroutines <= before.goroutines+mayGoroutines &&
			now.descriptors <= before.descriptors+mayDescriptors &&
			now.threads <= before.threads+mayThreads+8 &&
			(raceDetector || now.memory <= before.memory+mayMemory)
		if ok {
			return
		}
		if time.Now().After(deadline) {
			break
		}
		time.Sleep(50 * time.Millisecond) // polling, as said above
	}
	t.Errorf("not back after %v: before %+v, now %+v", settle, before, now)
}
