package selftest

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Tree is a process and those that it started. It is safe for concurrent use.
type Tree struct {
	PID int

	mu       sync.Mutex
	children []int
	looked   time.Time
}

// looking is how long a list of processes is taken to be right.
const looking = 50 * time.Millisecond

// tick is the unit in which the kernel tells processor time.
const tick = 10 * time.Millisecond

// Children are the processes that it started; those start none themselves.
func (t *Tree) Children() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.looked) > looking {
		t.children, t.looked = below(t.PID), now
	}
	return t.children
}

func below(pid int) (all []int) {
	threads, err := os.ReadDir(proc(pid, "task"))
	if err != nil {
		return nil
	}
	for _, thread := range threads {
		b, err := os.ReadFile(proc(pid, "task", thread.Name(), "children"))
		if err != nil {
			continue // it ended meanwhile
		}
		for _, f := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(f); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

func proc(pid int, names ...string) string {
	return filepath.Join(append([]string{"/proc", strconv.Itoa(pid)}, names...)...)
}

// A worker process that starts has as much memory for a moment. It starts while a run is measured, which took the one before from the
// spares, and is not the run's.
const (
	starting     = 3 * time.Second
	startingSize = 80 << 20
)

// Memory is what the processes have in memory: all of the first, and of the others what
// they do not share; of those that start, what is more than they need for that.
func (t *Tree) Memory() int64 {
	sum, _ := resident(t.PID)
	for _, child := range t.Children() {
		all, shared := resident(child)
		own := all - shared
		if own > 0 && young(child) {
			own = max(own-startingSize, 0)
		}
		sum += own
	}
	return sum
}

// young reports whether a process has just been started.
func young(pid int) bool {
	b, err := os.ReadFile(proc(pid, "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	const started = 19 // ticks after the boot
	if len(f) <= started {
		return false
	}
	at, err := strconv.ParseInt(f[started], 10, 64)
	if err != nil {
		return false
	}
	b, err = os.ReadFile("/proc/uptime")
	if err != nil {
		return false
	}
	seconds, _, _ := strings.Cut(string(b), " ")
	up, err := strconv.ParseFloat(seconds, 64)
	return err == nil && time.Duration(up*float64(time.Second))-time.Duration(at)*tick < starting
}

func resident(pid int) (all, shared int64) {
	b, err := os.ReadFile(proc(pid, "statm"))
	f := strings.Fields(string(b))
	if err != nil || len(f) < 3 {
		return 0, 0
	}
	page := int64(os.Getpagesize())
	all, _ = strconv.ParseInt(f[1], 10, 64)
	shared, _ = strconv.ParseInt(f[2], 10, 64)
	return all * page, shared * page
}

// CPU is the processor time that the processes have used, those that ended included,
// in steps of 10 ms.
func (t *Tree) CPU() time.Duration {
	sum := used(t.PID, true)
	for _, child := range t.Children() {
		sum += used(child, true)
	}
	return sum
}

// used reads the times of a process, and of its children that have ended.
func used(pid int, ended bool) (sum time.Duration) {
	b, err := os.ReadFile(proc(pid, "stat"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ") // behind the name, which may hold anything
	f := strings.Fields(rest)
	const first = 11 // utime, stime, cutime, cstime
	last := first + 2
	if ended {
		last += 2
	}
	for i := first; i < last && i < len(f); i++ {
		n, _ := strconv.ParseInt(f[i], 10, 64)
		sum += time.Duration(n) * tick
	}
	return sum
}

// Busy are the processes below that use a fifth of a processor or more.
func (t *Tree) Busy() (busy []int) {
	for pid, did := range t.span(200 * time.Millisecond) {
		if did >= 4*tick {
			busy = append(busy, pid)
		}
	}
	return busy
}

// span measures what each process below uses of processors in a while.
func (t *Tree) span(d time.Duration) map[int]time.Duration {
	all := map[int]time.Duration{}
	for _, child := range t.Children() {
		all[child] = -used(child, false)
	}
	time.Sleep(d) // it is what is measured
	for child := range all {
		all[child] += used(child, false)
	}
	return all
}

// Busiest is the process below that uses processors without pause, of those but a few;
// 0 if none does. It takes most of a second.
func (t *Tree) Busiest(but []int) int {
	const windows = 4
	sum, times := map[int]time.Duration{}, map[int]int{}
	for range windows {
		for child, did := range t.span(200 * time.Millisecond) {
			if did > 0 {
				sum[child] += did
				times[child]++
			}
		}
	}
	busiest, most := 0, 2*tick
	for child, did := range sum {
		if times[child] > windows/2 && did > most && !slices.Contains(but, child) {
			busiest, most = child, did
		}
	}
	return busiest
}

// Usage counts what the first process has taken.
func (t *Tree) Usage() Usage {
	u := Usage{PID: t.PID, Goroutines: -1, Threads: entries(t.PID, "task"), Descriptors: entries(t.PID, "fd"), Processes: len(t.Children())}
	u.Memory, _ = resident(t.PID)
	return u
}

func entries(pid int, name string) int {
	list, err := os.ReadDir(proc(pid, name))
	if err != nil {
		return -1
	}
	return len(list)
}
