package wasm_test

import (
	"context"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/guestfs"
	"openskill/wasm/image"
	"openskill/wasm/wasmtest"
)

// filer is a guest that reads a byte, makes a file, and then does something with its size
// and with memory, in the order of do; allocate leaves an errno, grow 1 if it was refused.
// What do leaves is the exit code.
func filer(do func(allocate func(size int64) wasmtest.Code, grow func(pages int64) wasmtest.Code, remove wasmtest.Code) wasmtest.Code) []byte {
	const path, number, iov, count = 0, 72, 64, 76
	b := wasmtest.New()
	create, allocate, read, closeFD := b.Import("path_open"), b.Import("fd_allocate"), b.Import("fd_read"), b.Import("fd_close")
	unlink, exit := b.Import("path_unlink_file"), b.Import("proc_exit")
	b.Memory(1)
	b.Data(path, "work/f")
	fd := wasmtest.I32(number) + wasmtest.Load
	b.Command(i32(iov, 128) + wasmtest.Store + i32(iov+4, 1) + wasmtest.Store + i32(0, iov, 1, count) + wasmtest.Call(read) + wasmtest.Drop +
		i32(3, 0, path, 6, 1) + wasmtest.I64(1<<6|1<<8) + wasmtest.I64(0) + i32(0, number) + wasmtest.Call(create) + wasmtest.Drop +
		do(func(size int64) wasmtest.Code {
			return fd + wasmtest.I64(0) + wasmtest.I64(size) + wasmtest.Call(allocate)
		}, func(pages int64) wasmtest.Code {
			return wasmtest.I32(pages) + wasmtest.MemoryGrow + wasmtest.I32(-1) + wasmtest.Eq
		}, fd+wasmtest.Call(closeFD)+wasmtest.Drop+i32(3, path, 6)+wasmtest.Call(unlink)+wasmtest.Drop) +
		wasmtest.Call(exit))
	return b.Bytes()
}

// TestFilesCountAsMemory holds that what a guest writes to scratch space, and its linear
// memory, have one limit: together they are what a run costs the host.
func TestFilesCountAsMemory(t *testing.T) {
	const mib = 1 << 20
	e := open(t, nil)
	for _, c := range []struct {
		name  string
		do    func(allocate func(int64) wasmtest.Code, grow func(int64) wasmtest.Code, remove wasmtest.Code) wasmtest.Code
		ended wasm.Ended
		least uint64 // of the peak
	}{
		{"files, then memory", func(allocate func(int64) wasmtest.Code, grow func(int64) wasmtest.Code, _ wasmtest.Code) wasmtest.Code {
			return allocate(3*mib) + wasmtest.Drop + grow(32) // exit code 1: it was refused
		}, wasm.OutOfMemory, 3 * mib},
		{"memory, then files", func(allocate func(int64) wasmtest.Code, grow func(int64) wasmtest.Code, _ wasmtest.Code) wasmtest.Code {
			return grow(48) + wasmtest.Drop + allocate(2*mib) // ENOSPC
		}, wasm.OutOfMemory, 3 * mib},
		{"files that are gone count no more", func(allocate func(int64) wasmtest.Code, grow func(int64) wasmtest.Code, remove wasmtest.Code) wasmtest.Code {
			return allocate(3*mib) + wasmtest.Drop + remove + grow(48)
		}, wasm.Exited, 3 * mib},
		{"both within it", func(allocate func(int64) wasmtest.Code, grow func(int64) wasmtest.Code, _ wasmtest.Code) wasmtest.Code {
			return allocate(2*mib) + wasmtest.Drop + grow(16)
		}, wasm.Exited, 3 * mib},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := compile(t, e, filer(c.do))
			limits := wasm.Limits{Memory: 4 * mib}
			check := func(how string, out *wasm.Outcome, err error) {
				t.Helper()
				musttest.Do(t, err)
				if out.Ended != c.ended || c.ended == wasm.Exited && out.ExitCode != 0 || out.MemoryPeak < c.least || out.MemoryPeak > limits.Memory {
					t.Errorf("%s: %v, exit code %d, a peak of %d bytes", how, out.Ended, out.ExitCode, out.MemoryPeak)
				}
			}
			files := musttest.Get(tattooFiles())(t)
			out, err := m.Run(context.Background(), &wasm.Run{Files: files.Root, Scratch: files.Scratch, Limits: limits})
			check("by itself", out, err)
			if !image.Supported {
				return
			}
			im := e.Image(&wasm.Program{Module: m, Open: tattooFiles}, &wasm.ImageOptions{Spare: -1})
			defer im.Close()
			for range 3 { // what one call wrote does not count in the next
				out, err := im.Run(context.Background(), &wasm.Call{Limits: limits})
				check("on an image", out, err)
			}
		})
	}
}

// TestMemoryOfFiles holds that a run which fills its scratch space, of whatever size,
// costs the host no more than its memory limit and 64 MiB.
func TestMemoryOfFiles(t *testing.T) {
	const limit = 128 << 20
	e := open(t, nil)
	m := compile(t, e, filler())
	scratch := guestfs.NewMemory(guestfs.Limits{Bytes: 1 << 30})
	root, err := guestfs.NewTree(guestfs.Mount{Path: "/work", FS: scratch})
	musttest.Do(t, err)
	var out *wasm.Outcome
	got := peak(t, func() {
		out, err = m.Run(context.Background(), &wasm.Run{Files: root, Scratch: scratch, Limits: wasm.Limits{Memory: limit}})
	})
	if err != nil || out.Ended != wasm.OutOfMemory {
		t.Fatalf("%+v, %v", out, err)
	}
	if got > limit+mayExceed && !raceDetector {
		t.Errorf("%d MiB more, limit %d MiB", got>>20, limit>>20)
	}
	if scratch.Used() < limit*3/4 {
		t.Errorf("only %d MiB were written", scratch.Used()>>20)
	}
}

// filler writes 64 KiB to a file again and again, until it is refused, and exits with that
// errno.
func filler() []byte {
	const path, number, iov, count = 0, 72, 64, 76
	b := wasmtest.New()
	create, write, exit := b.Import("path_open"), b.Import("fd_write"), b.Import("proc_exit")
	b.Memory(2)
	b.Data(path, "work/f")
	b.Command(i32(iov, 65536) + wasmtest.Store + i32(iov+4, 65536) + wasmtest.Store +
		i32(3, 0, path, 6, 1) + wasmtest.I64(1<<6) + wasmtest.I64(0) + i32(0, number) + wasmtest.Call(create) + wasmtest.Drop +
		wasmtest.Loop(i32(number)+wasmtest.Load+i32(iov, 1, count)+wasmtest.Call(write)+wasmtest.Tee(0)+wasmtest.Eqz+wasmtest.BrIf(0)) +
		wasmtest.Get(0) + wasmtest.Call(exit))
	return b.Bytes()
}
