package wasm

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"unsafe"

	"github.com/tetratelabs/wazero"
	"golang.org/x/sys/unix"
)

// Machine code is read by wazero into memory of the process's own. Where many
// processes run the same language runtime that is most of what each of them takes,
// though its pages are the same in all. So who compiles a large module leaves its
// code in a file of whole pages, and who loads it puts these pages in the place of its
// own copy, after it has compared them.

// shareFrom is the size in bytes from which code is shared. Tests lower it.
var shareFrom = 4 << 20

// sharedPath is the place of a module's code.
func (e *Engine) sharedPath(prepared string) string {
	return filepath.Join(e.o.CacheDir, "pages", filepath.Base(prepared))
}

// share shares the code of a module with other processes: leaves it for them, or takes
// what is there. What does not work costs memory, and is no error.
func (e *Engine) share(prepared string, c wazero.CompiledModule) {
	if prepared == "" || !e.o.ShareCode {
		return
	}
	code := machineCode(c)
	if len(code) < shareFrom || len(code) == 0 {
		return
	}
	if e.o.CompiledOnly {
		takePages(e.sharedPath(prepared), code)
	} else if os.MkdirAll(filepath.Join(e.o.CacheDir, "pages"), 0o700) == nil {
		_ = replace(e.sharedPath(prepared), code)
	}
	runtime.KeepAlive(c) // its finalizer unmaps the code
}

// machineCode returns the memory that wazero mapped for the code of a module, in whole
// pages; nil if this version of wazero keeps it elsewhere. wazero does not export it. To look
// for new mappings in /proc/self/maps is not enough: the finalizer of another module can unmap
// its code meanwhile, and the new code may lie in its place, or beside it.
func machineCode(c wazero.CompiledModule) []byte {
	v := reflect.ValueOf(c)
	field := func(name string) {
		for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v.Kind() == reflect.Struct {
			v = v.FieldByName(name)
		} else {
			v = reflect.Value{}
		}
	}
	field("module")
	field("ID")
	id := v
	v = reflect.ValueOf(c)
	field("compiledEngine")
	engine := v
	field("mux")
	if !id.IsValid() || !v.IsValid() || v.Type() != reflect.TypeFor[sync.RWMutex]() || !v.CanAddr() {
		return nil
	}
	mu := (*sync.RWMutex)(unsafe.Pointer(v.UnsafeAddr())) //nolint:gosec // checked to be one
	mu.RLock()
	defer mu.RUnlock()
	v = engine
	field("compiledModules")
	if v.Kind() != reflect.Map || v.Type().Key() != id.Type() {
		return nil
	}
	v = v.MapIndex(id)
	field("executable")
	if !v.IsValid() || v.Type() != reflect.TypeFor[[]byte]() {
		return nil
	}
	code := v.Bytes()
	// The mapping is of whole pages; behind the code it is zero.
	page := os.Getpagesize()
	return unsafe.Slice(unsafe.SliceData(code), (len(code)+page-1)/page*page) //nolint:gosec // as mmap rounds up
}

// takePages puts the pages of a file over code that is the same.
func takePages(path string, code []byte) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() != int64(len(code)) {
		return
	}
	fd := int(f.Fd())
	view, err := unix.Mmap(fd, 0, len(code), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return
	}
	defer unix.Munmap(view) //nolint:errcheck // it was only read
	if bytes.Equal(view, code) {
		// The same bytes at the same address: a guest that runs there does not notice.
		at := unsafe.Pointer(unsafe.SliceData(code)) //nolint:gosec // memory that the caller keeps
		_, _ = unix.MmapPtr(fd, 0, at, uintptr(len(code)), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_FIXED)
	}
}
