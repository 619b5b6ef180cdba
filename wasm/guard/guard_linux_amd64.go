package guard

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// code is a guest's code. The handler reads it without a lock; version is odd while another field
// changes.
type code struct {
	version  uint64
	from, to uintptr
	table    uintptr // of pairs of uint32: offsets of a function and of its landing
	count    uintptr
}

// arena is address space that memories are taken from.
type arena struct{ from, to uintptr }

const (
	maxCodes  = 1 << 16
	maxArenas = 128

	front     = 2 << 30        // bytes before each memory
	behind    = 4<<30 + 64<<10 // bytes behind the 4 GiB of each memory, which an offset can reach
	stride    = Size + behind  // what is behind one memory is before the next
	perArena  = 64             // memories
	arenaSize = front + perArena*stride
)

// Read by the handler.
var (
	codes      [maxCodes]code
	codeCount  uint64 // entries that were ever used
	arenas     [maxArenas]arena
	arenaCount uint64
	goHandler  uintptr //nolint:unused // the handler jumps there
	faults     uint64  // accepted
)

var (
	mu        sync.Mutex
	installed bool
	free      []int          // entries of codes
	idle      [][]byte       // memories that came back
	newest    unsafe.Pointer // arena, of which taken are given out
	taken     int
)

func handlerAddress() uintptr

// Faults returns the number of faults that became traps.
func Faults() uint64 { return atomic.LoadUint64(&faults) }

// action is struct sigaction of the kernel.
type action struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

func sigaction(set, old *action) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGSEGV), uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), 8, 0, 0) //nolint:gosec // the kernel takes addresses
	if errno != 0 {
		return fmt.Errorf("guard: rt_sigaction: %w", errno)
	}
	return nil
}

// Install puts the handler before Go's, for the life of the process. Go's signal mask and stack stay.
// A process must call it before it gives up system calls.
func Install() error {
	mu.Lock()
	defer mu.Unlock()
	if installed {
		return nil
	}
	const onStack, info, unmasked = 0x08000000, 4, 1<<(unix.SIGKILL-1) | 1<<(unix.SIGSTOP-1)
	var a action
	if err := sigaction(nil, &a); err != nil {
		return err
	}
	if a.handler <= 1 || a.flags&onStack == 0 || a.flags&info == 0 || ^a.mask != unmasked {
		return errors.New("guard: the SIGSEGV handler is not the known one of Go's runtime")
	}
	goHandler = a.handler
	if !grow() {
		return errors.New("guard: there is no address space to reserve")
	}
	a.handler = handlerAddress()
	if err := sigaction(&a, nil); err != nil {
		return err
	}
	installed = true
	return nil
}

// Code registers a guest's code, before it runs. landings are pairs of offsets in rising order: of a
// function with unchecked accesses, and of its landing, which ends the function. Code and landings
// must stay mapped until forget is called. At most 65,536 modules can be registered.
func Code(b []byte, landings []uint32) (forget func(), err error) {
	mu.Lock()
	defer mu.Unlock()
	i := int(codeCount)
	switch n := len(free); {
	case n > 0:
		i, free = free[n-1], free[:n-1]
	case i == maxCodes:
		return nil, fmt.Errorf("guard: there are %d modules already", maxCodes)
	}
	c := &codes[i]
	from := uintptr(unsafe.Pointer(unsafe.SliceData(b)))                                                             //nolint:gosec // compared with addresses
	c.set(from, from+uintptr(len(b)), uintptr(unsafe.Pointer(unsafe.SliceData(landings))), uintptr(len(landings)/2)) //nolint:gosec // as said
	if uint64(i) == codeCount {
		atomic.StoreUint64(&codeCount, codeCount+1)
	}
	return func() {
		mu.Lock()
		defer mu.Unlock()
		c.set(0, 0, 0, 0)
		free = append(free, i)
	}, nil
}

func (c *code) set(from, to, table, count uintptr) {
	atomic.AddUint64(&c.version, 1)
	atomic.StoreUintptr(&c.from, from)
	atomic.StoreUintptr(&c.to, to)
	atomic.StoreUintptr(&c.table, table)
	atomic.StoreUintptr(&c.count, count)
	atomic.AddUint64(&c.version, 1)
}

// grow makes one more arena. The mutex is held.
func grow() bool {
	if arenaCount == maxArenas {
		return false
	}
	p, err := unix.MmapPtr(-1, 0, nil, arenaSize, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return false
	}
	newest, taken = p, 0
	arenas[arenaCount] = arena{uintptr(p), uintptr(p) + arenaSize}
	atomic.StoreUint64(&arenaCount, arenaCount+1)
	return true
}

// Reserve returns [Size] bytes of address space between guard pages; nil if there are none left. None
// is accessible before [Open].
func Reserve() []byte {
	mu.Lock()
	defer mu.Unlock()
	if n := len(idle); n > 0 {
		b := idle[n-1]
		idle = idle[:n-1]
		return b
	}
	if taken == perArena && !grow() {
		return nil
	}
	b := unsafe.Slice((*byte)(unsafe.Add(newest, front+taken*stride)), Size) //nolint:gosec // memory of the kernel's, not of Go's
	taken++
	return b
}

// Open makes whole pages of what Reserve returned accessible; they read as zeros. It reports whether
// that worked.
func Open(b []byte) bool {
	return len(b) == 0 || unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE) == nil
}

// Close drops the content of pages and makes them guard pages. It reports whether that worked.
func Close(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	at := unsafe.Pointer(unsafe.SliceData(b)) //nolint:gosec // where to map is an address
	p, err := unix.MmapPtr(-1, 0, at, uintptr(len(b)), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE|unix.MAP_FIXED)
	return err == nil && p == at
}

// Release gives back what Reserve returned; nil: nothing. The first opened bytes are accessible. What
// cannot be closed is not reused.
func Release(b []byte, opened uint64) {
	if b == nil {
		return
	}
	b = unsafe.Slice(unsafe.SliceData(b), Size) //nolint:gosec // it may have been cut
	if Close(b[:opened]) {
		mu.Lock()
		idle = append(idle, b)
		mu.Unlock()
	}
}
