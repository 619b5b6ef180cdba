package wasm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Machine code is read by wazero into memory of the process's own. Where many
// processes run the same language runtime that is most of what each of them takes,
// though its pages are the same in all. So who compiles a large module leaves its
// code in a file of whole pages, and who loads it puts these pages in the place of its
// own copy, after it has compared them.

// shareFrom is the size in bytes from which code is shared. Tests lower it.
var shareFrom uintptr = 4 << 20

// codeMaps finds the code of this process.
type codeMaps struct {
	mu   sync.Mutex
	file *os.File // /proc/self/maps, opened before the process may have been closed to itself
}

// span is a range of addresses.
type span struct{ from, to uintptr }

func (m *codeMaps) open() error {
	f, err := os.Open("/proc/self/maps")
	m.file = f
	return err
}

func (m *codeMaps) close() {
	if m.file != nil {
		_ = m.file.Close()
	}
}

// executable lists the ranges that have code of no file, by address.
func (m *codeMaps) executable() ([]span, error) {
	if m.file == nil {
		return nil, errors.New("wasm: the map of memory is not open")
	}
	if _, err := m.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(m.file)
	if err != nil {
		return nil, err
	}
	var all []span
	for line := range bytes.Lines(text) {
		var s span
		var perms string
		var offset, inode uint64
		var device string
		if _, err := fmt.Sscanf(string(line), "%x-%x %s %x %s %d", &s.from, &s.to, &perms, &offset, &device, &inode); err != nil {
			continue
		}
		if perms == "r-xp" && inode == 0 && !bytes.Contains(line, []byte("[")) {
			all = append(all, s)
		}
	}
	return all, nil
}

// news gives what is in after and not in before: mappings side by side are told as one.
func news(before, after []span) []span {
	var out []span
	for _, a := range after {
		rest := []span{a}
		for _, b := range before {
			var left []span
			for _, r := range rest {
				if b.to <= r.from || r.to <= b.from {
					left = append(left, r)
					continue
				}
				if r.from < b.from {
					left = append(left, span{r.from, b.from})
				}
				if b.to < r.to {
					left = append(left, span{b.to, r.to})
				}
			}
			rest = left
		}
		out = append(out, rest...)
	}
	return out
}

// at is where s begins. No object of Go's is there, and none is moved there.
func (s *span) at() unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&s.from)) //nolint:gosec // an address that the kernel told
}

func (s *span) bytes() []byte {
	return unsafe.Slice((*byte)(s.at()), s.to-s.from) //nolint:gosec // memory that the kernel told of
}

// sharedPath is the place of a module's code.
func (e *Engine) sharedPath(prepared string) string {
	return filepath.Join(e.o.CacheDir, "pages", filepath.Base(prepared))
}

// sharing does compile, and then shares the code that it made with other processes:
// leaves it for them, or takes what is there. What does not work costs memory, and is
// no error.
func (e *Engine) sharing(prepared string, compile func() error) error {
	if prepared == "" || !e.o.ShareCode {
		return compile()
	}
	e.maps.mu.Lock() // one at a time, so that what is new is this module's
	defer e.maps.mu.Unlock()
	before, errBefore := e.maps.executable()
	if err := compile(); err != nil || errBefore != nil {
		return err
	}
	after, err := e.maps.executable()
	if err != nil {
		return nil
	}
	for _, s := range news(before, after) {
		if s.to-s.from < shareFrom {
			continue
		}
		if e.o.CompiledOnly {
			takePages(e.sharedPath(prepared), s)
		} else if os.MkdirAll(filepath.Join(e.o.CacheDir, "pages"), 0o700) == nil {
			_ = replace(e.sharedPath(prepared), s.bytes())
		}
		return nil
	}
	return nil
}

// takePages puts the pages of a file over code that is the same.
func takePages(path string, s span) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() <= 0 || info.Size()%int64(os.Getpagesize()) != 0 || info.Size() > 1<<30 {
		return
	}
	fd := int(f.Fd())
	view, err := unix.Mmap(fd, 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return
	}
	defer unix.Munmap(view) //nolint:errcheck // it was only read
	from, at, n := overlap(view, s.bytes())
	if n == 0 {
		return
	}
	// The same bytes at the same address: who is running there does not notice.
	to := span{s.from + uintptr(at), 0}
	_, _ = unix.MmapPtr(fd, int64(from), to.at(), uintptr(n), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_FIXED)
}

// maxShift is how many pages apart code may lie in two processes: wazero maps what
// enters the code by itself, before or after it, and with addresses in it.
const maxShift = 64

// overlap finds the longest run of pages that are the same in file and in code.
func overlap(file, code []byte) (inFile, inCode, n int) {
	page := os.Getpagesize()
	try := func(f, c int) {
		within := min(len(file)-f, len(code)-c)
		for start := 0; start < within; {
			end := start
			for end < within && bytes.Equal(file[f+end:f+end+page], code[c+end:c+end+page]) {
				end += page
			}
			if end-start > n {
				inFile, inCode, n = f+start, c+start, end-start
			}
			start = end + page
		}
	}
	for shift := 0; shift < maxShift && n < len(code)/2; shift++ {
		try(shift*page, 0)
		try(0, shift*page)
	}
	return inFile, inCode, n
}
