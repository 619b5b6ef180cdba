package wasm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"testing/fstest"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/guestfs"
	"openskill/wasm/image"
	"openskill/wasm/wasmtest"
)

// The marks that a guest can leave; its input is the number of one.
const (
	markNone = iota
	markMemory
	markGlobal
	markTable
	markTableGrown
	markTableCopied
	markMemoryGrown
	markOffset
	markOpened
	markClosed
	markRenumbered
	markScratchNew
	markScratchGone
	markScratchWritten
	markLocal
	markDataDropped
	markElemDropped
	markFlags
	marks
)

// Where a guest found that its state is not that of the start-up: its exit code.
const (
	foundMemory = 100 + iota
	foundGlobal
	foundTable
	foundTableSize
	foundMemorySize
	foundOffset
	foundDescriptor
	foundScratchNew
	foundScratchPre
	foundLocal
	foundFlags
	foundInput
)

// tattooed is a command that makes some state of every kind, reads one byte of
// input, exits with one of the codes above where the state is not as it made it,
// and then leaves the mark that its input names, in every reachable kind of state.
// A dropped segment is found by the trap of the instruction that uses it.
func tattooed() []byte {
	type c = wasmtest.Code
	const (
		name, pre, data    = 0, 8, 20 // paths: work/new, work/pre, data/f
		iov, count, number = 64, 72, 76
		input, stat        = 128, 136
	)
	b := wasmtest.New()
	exit, open, read, write := b.Import("proc_exit"), b.Import("path_open"), b.Import("fd_read"), b.Import("fd_write")
	seek, closeFD, renumber, unlink := b.Import("fd_seek"), b.Import("fd_close"), b.Import("fd_renumber"), b.Import("path_unlink_file")
	fdstat, setFlags := b.Import("fd_fdstat_get"), b.Import("fd_fdstat_set_flags")
	b.Memory(2)
	b.Data(name, "work/new")
	b.Data(pre, "work/pre")
	b.Data(data, "data/f")
	global := b.Global(1)
	nothing := b.Void("")
	b.Export("nothing", nothing)
	b.Table(4, nothing)
	segment := b.PassiveData("segment")
	elems := b.PassiveElem(nothing)

	call := func(f uint32, args ...int64) (code c) {
		for _, a := range args {
			code += wasmtest.I32(a)
		}
		return code + wasmtest.Call(f)
	}
	opening := func(path, length, oflags, rights int64) c {
		return wasmtest.I32(3) + wasmtest.I32(0) + wasmtest.I32(path) + wasmtest.I32(length) + wasmtest.I32(oflags) +
			wasmtest.I64(rights) + wasmtest.I64(0) + wasmtest.I32(0) + wasmtest.I32(number) + wasmtest.Call(open)
	}
	seeking := func(fd, by, whence int64) c {
		return wasmtest.I32(fd) + wasmtest.I64(by) + wasmtest.I32(whence) + wasmtest.I32(160) + wasmtest.Call(seek)
	}
	vector := func(at, length int64) c {
		return wasmtest.I32(iov) + wasmtest.I32(at) + wasmtest.Store + wasmtest.I32(iov+4) + wasmtest.I32(length) + wasmtest.Store
	}
	closing := wasmtest.I32(number) + wasmtest.Load + wasmtest.Call(closeFD) + wasmtest.Drop
	found := func(code int64) c { return wasmtest.If(call(exit, code)) }
	load := func(at int64) c { return wasmtest.I32(at) + wasmtest.Load }
	store := func(at, v int64) c { return wasmtest.I32(at) + wasmtest.I32(v) + wasmtest.Store }
	differs := func(value c, want, code int64) c { return value + wasmtest.I32(want) + wasmtest.Ne + found(code) }
	const readWrite, last = 1<<6 | 1<<1 | 1<<2, 2<<16 - 4

	start := store(2000, 77) +
		wasmtest.I32(5) + wasmtest.GlobalSet(global) +
		wasmtest.I32(1) + wasmtest.RefFunc(nothing) + wasmtest.TableSet(0) +
		opening(pre, 8, 1, readWrite) + wasmtest.Drop + vector(2000, 4) + wasmtest.I32(4) +
		call(write, iov, 1, count) + wasmtest.Drop + closing +
		opening(data, 6, 0, 1<<1|1<<2) + wasmtest.Drop + seeking(4, 2, 0) + wasmtest.Drop + // stays open as 4
		wasmtest.I32(9) + wasmtest.Set(3) +
		store(last, 3)

	check := differs(load(2000), 77, foundMemory) + differs(load(3000), 0, foundMemory) + differs(load(last), 3, foundMemory) +
		differs(wasmtest.GlobalGet(global), 5, foundGlobal) +
		differs(wasmtest.I32(1)+wasmtest.TableGet(0)+wasmtest.IsNull, 0, foundTable) +
		differs(wasmtest.I32(2)+wasmtest.TableGet(0)+wasmtest.IsNull, 1, foundTable) +
		differs(wasmtest.I32(3)+wasmtest.TableGet(0)+wasmtest.IsNull, 1, foundTable) +
		differs(wasmtest.TableSize(0), 4, foundTableSize) +
		differs(wasmtest.MemorySize, 2, foundMemorySize) +
		differs(seeking(4, 0, 1), 0, foundOffset) + differs(load(160), 2, foundOffset) +
		differs(call(fdstat, 1, stat), 0, foundFlags) + differs(load(stat)+wasmtest.I32(-65536)+wasmtest.And, 0, foundFlags) +
		opening(name, 8, 0, readWrite) + wasmtest.I32(44) + wasmtest.Ne + found(foundScratchNew) +
		opening(pre, 8, 0, readWrite) + found(foundScratchPre) +
		differs(load(number), 5, foundDescriptor) +
		differs(seeking(5, 0, 2), 0, foundScratchPre) + differs(load(160), 4, foundScratchPre) + closing +
		differs(wasmtest.Get(3), 9, foundLocal) +
		wasmtest.I32(3100) + wasmtest.I32(0) + wasmtest.I32(7) + wasmtest.MemoryInit(segment) +
		// The instruction counts as a change itself, so only where it is needed.
		load8(input) + wasmtest.I32(markElemDropped) + wasmtest.Eq + wasmtest.If(wasmtest.I32(0)+wasmtest.I32(0)+wasmtest.I32(1)+wasmtest.TableInit(elems)) +
		vector(input+1, 1) + differs(call(read, 0, iov, 1, count), 0, foundInput) + differs(load(count), 0, foundInput)

	leave := map[int64]c{
		markMemory: store(2000, 78) + store(3000, 1) + store(last, 4),
		markGlobal: wasmtest.I32(6) + wasmtest.GlobalSet(global),
		markTable:  wasmtest.I32(2) + wasmtest.RefFunc(nothing) + wasmtest.TableSet(0),
		markTableGrown: wasmtest.NullFunc + wasmtest.I32(1) + wasmtest.TableGrow(0) +
			wasmtest.Drop,
		markTableCopied: wasmtest.I32(3) + wasmtest.I32(0) + wasmtest.I32(1) + wasmtest.TableCopy,
		markMemoryGrown: wasmtest.I32(1) + wasmtest.MemoryGrow + wasmtest.Drop,
		markOffset:      seeking(4, 1, 0) + wasmtest.Drop,
		markOpened:      opening(data, 6, 0, 1<<1) + wasmtest.Drop,
		markClosed:      call(closeFD, 4) + wasmtest.Drop,
		markRenumbered:  opening(pre, 8, 0, readWrite) + wasmtest.Drop + call(renumber, 5, 4) + wasmtest.Drop,
		markScratchNew:  opening(name, 8, 1, readWrite) + wasmtest.Drop + closing,
		markScratchGone: call(unlink, 3, pre, 8) + wasmtest.Drop,
		markScratchWritten: opening(pre, 8, 0, readWrite) + wasmtest.Drop + seeking(5, 0, 2) + wasmtest.Drop +
			vector(2000, 4) + call(write, 5, iov, 1, count) + wasmtest.Drop + closing,
		markLocal:       wasmtest.I32(10) + wasmtest.Set(3),
		markDataDropped: wasmtest.DataDrop(segment),
		markElemDropped: wasmtest.ElemDrop(elems),
		markFlags:       call(setFlags, 1, 1) + wasmtest.Drop,
	}
	var mark c
	for k := int64(1); k < marks; k++ {
		mark += load8(input) + wasmtest.I32(k) + wasmtest.Eq + wasmtest.If(leave[k])
	}
	b.Command(start +
		vector(input, 1) + call(read, 0, iov, 1, count) + wasmtest.Drop +
		check + mark +
		// The two ways to end that an instance survives.
		load8(input) + wasmtest.I32(1) + wasmtest.And + wasmtest.If(call(exit, 0)))
	return b.Bytes()
}

func load8(at int64) wasmtest.Code { return wasmtest.I32(at) + wasmtest.Load8 }

func tattooFiles() (wasm.Files, error) {
	scratch := guestfs.NewMemory(guestfs.Limits{})
	root, err := guestfs.NewTree(
		guestfs.Mount{Path: "/data", FS: guestfs.FromFS(fstest.MapFS{"f": {Data: []byte("content")}})},
		guestfs.Mount{Path: "/work", FS: scratch})
	return wasm.Files{Root: root, Scratch: scratch}, err
}

func tattooImage(t *testing.T, e *wasm.Engine, o *wasm.ImageOptions) *wasm.Image {
	t.Helper()
	m := musttest.Get(e.Compile(context.Background(), tattooed(), nil))(t)
	im := e.Image(&wasm.Program{Module: m, Open: tattooFiles}, o)
	t.Cleanup(func() { im.Close() })
	return im
}

// tattoo runs with a mark and tells what the guest found.
func tattoo(im *wasm.Image, mark int) (string, error) {
	out, err := im.Run(context.Background(), &wasm.Call{Stdin: bytes.NewReader([]byte{byte(mark)})})
	switch {
	case err != nil:
		return "", err
	case out.Ended == wasm.Exited && out.ExitCode == 0, out.Ended == wasm.Returned:
		return "", nil
	default:
		return fmt.Sprintf("%v, exit code %d, %s", out.Ended, out.ExitCode, out.Trap), nil
	}
}

// TestImageForgets lets every run look for all marks, and leave one.
func TestImageForgets(t *testing.T) {
	for name, o := range map[string]*wasm.Options{"compiler": nil, "interpreter": {Interpreter: true}} {
		t.Run(name, func(t *testing.T) {
			im := tattooImage(t, open(t, o), nil)
			for mark := range marks {
				for range 3 {
					if found, err := tattoo(im, mark); err != nil || found != "" {
						t.Fatalf("before mark %d: %s, %v", mark, found, err)
					}
				}
			}
			if found, err := tattoo(im, markNone); err != nil || found != "" {
				t.Errorf("after all: %s, %v", found, err)
			}
			// Six marks spoil an instance; the others are put back.
			if n, spoilt := im.Starts(), 6*3; o == nil && image.Supported && (n < spoilt || n > spoilt+4) {
				t.Errorf("%d instances were started; %d runs spoil theirs", n, spoilt)
			}
		})
	}
}

// TestImageTenants has two tenants interleave a thousand runs each, with marks at
// random, on one image and on few instances.
func TestImageTenants(t *testing.T) {
	im := tattooImage(t, open(t, nil), nil)
	runs := 1000
	if testing.Short() {
		runs = 200
	}
	var wg sync.WaitGroup
	for tenant := range 2 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(tenant), 7))
			for range runs {
				if found, err := tattoo(im, rng.IntN(marks)); err != nil || found != "" {
					t.Errorf("%s, %v", found, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// inChild is set where TestImageTestsNotice runs in a process of its own.
const inChild = "OPENSKILL_TEST_IMAGE_CHILD"

// TestImageTestsNotice leaves out one step of putting instances back at a time: a
// run after a mark of that kind must find it.
func TestImageTestsNotice(t *testing.T) {
	if !image.Supported {
		t.Skip("instances are used once on this platform")
	}
	e := open(t, nil)
	for _, c := range []struct {
		name  string
		left  wasm.Left
		marks []int
	}{
		{"memory", wasm.LeaveMemory, []int{markMemory}},
		{"globals", wasm.LeaveGlobals, []int{markGlobal}},
		{"tables and segments", wasm.LeaveTouched, []int{markTable, markTableGrown, markTableCopied, markDataDropped, markElemDropped}},
		{"grown memory", wasm.LeaveGrown, []int{markMemoryGrown}},
		{"stack", wasm.LeaveStack, []int{markLocal}},
		{"descriptors", wasm.LeaveDescriptors, []int{markOffset, markOpened, markClosed, markRenumbered, markFlags}},
		{"scratch", wasm.LeaveScratch, []int{markScratchNew, markScratchGone, markScratchWritten}},
	} {
		for _, mark := range c.marks {
			t.Run(fmt.Sprintf("%s, mark %d", c.name, mark), func(t *testing.T) {
				if c.left == wasm.LeaveStack && os.Getenv(inChild) == "" {
					// A guest that goes on with another's addresses can do anything.
					cmd := exec.Command(os.Args[0], "-test.run=^TestImageTestsNotice$/^stack")
					cmd.Env = append(os.Environ(), inChild+"=1")
					out, err := cmd.CombinedOutput()
					if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() == 1) {
						t.Errorf("%v\n%s", err, out)
					}
					return
				}
				im := tattooImage(t, e, &wasm.ImageOptions{Spare: -1})
				im.Leave(c.left)
				noticed := false
				for range 5 {
					found := musttest.Get(tattoo(im, mark))(t)
					noticed = noticed || found != ""
				}
				if !noticed {
					t.Error("without this step nothing is found: the tests prove nothing of it")
				}
			})
		}
	}
}
