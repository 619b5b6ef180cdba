package guard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"

	"openskill/internal/musttest"
	"openskill/wasm/guard"
	"openskill/wasm/guard/guardtest"
)

const roleEnv = "GUARD_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		if err := roles[role](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// elsewhere is a memory that says it lies between guard pages, and does not lie in what the
// handler knows.
type elsewhere struct{ space []byte }

func (e *elsewhere) Allocate(_, _ uint64) experimental.LinearMemory {
	e.space, _ = unix.Mmap(-1, 0, 1<<33, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	return e
}
func (e *elsewhere) Reallocate(size uint64) []byte { return e.space[:size] }
func (e *elsewhere) Free()                         {}
func (e *elsewhere) GuardPages() (uintptr, bool) {
	return uintptr(unsafe.Pointer(unsafe.SliceData(e.space))), true
}

// load runs a guest that loads from an address.
func load(cfg wazero.RuntimeConfig, memory experimental.MemoryAllocator, at uint64) error {
	ctx := experimental.WithMemoryAllocator(context.Background(), memory)
	m, err := wazero.NewRuntimeWithConfig(ctx, cfg).Instantiate(ctx, accesses(1))
	if err != nil {
		return err
	}
	_, err = m.ExportedFunction("load").Call(ctx, at)
	return err
}

func compiler() (wazero.RuntimeConfig, error) {
	return guard.Compile(wazero.NewRuntimeConfigCompiler())
}

// roles are what a process does that may end by it.
var roles = map[string]func() error{
	"elsewhere": func() error {
		cfg, err := compiler()
		if err != nil {
			return err
		}
		return load(cfg, &elsewhere{}, 1<<20)
	},
	// No function of the code is said to have a landing, or only one before it.
	"no landing":         func() error { return withLandings(nil) },
	"landing of another": func() error { return withLandings([]uint32{0, 1}) },
	"sent": func() error {
		if _, err := compiler(); err != nil {
			return err
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGSEGV); err != nil {
			return err
		}
		select {}
	},
	// Faults of Go's own are panics, as ever, and not those of guests, wherever they are.
	"go": func() error {
		if _, err := compiler(); err != nil {
			return err
		}
		debug.SetPanicOnFault(true)
		b := guard.Reserve()
		for _, fault := range []func(){
			func() { _ = *(*byte)(nil) },
			func() { b[1<<20]++ },
		} {
			err := errors.New("a fault of Go's was no panic")
			func() {
				defer func() {
					if recover() != nil {
						err = nil
					}
				}()
				fault()
			}()
			if err != nil {
				return err
			}
		}
		if guard.Faults() != 0 {
			return errors.New("the handler took a fault of Go's")
		}
		return nil
	},
}

// withLandings runs a guest that faults, whose landings are told wrongly.
func withLandings(wrong []uint32) error {
	if err := guard.Install(); err != nil {
		return err
	}
	cfg := wazero.NewRuntimeConfigCompiler().(interface {
		WithGuardPages(guard func(code []byte, landings []uint32) (forget func(), err error)) wazero.RuntimeConfig
	}).WithGuardPages(func(code []byte, _ []uint32) (func(), error) { return guard.Code(code, wrong) })
	return load(cfg, guardtest.New(&testing.B{}), 1<<20)
}

// TestOtherFaults holds what becomes of faults that are no guest's trap: where a guest's code is
// not where it should be the process ends, and does not unwind the guest's stack.
func TestOtherFaults(t *testing.T) {
	instances(t, accesses(1)) // or there are no guard pages
	for _, c := range []struct{ role, says string }{
		{"elsewhere", "SIGSEGV"},
		{"no landing", "SIGSEGV"},
		{"landing of another", "SIGSEGV"},
		{"sent", "SIGSEGV"},
		{"go", ""},
	} {
		t.Run(c.role, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), roleEnv+"="+c.role)
			out, err := cmd.CombinedOutput()
			if (err != nil) != (c.says != "") || !strings.Contains(string(out), c.says) || strings.Contains(string(out), "unexpected return pc") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestStress has guests fault on many threads, with deep stacks, while memory is collected all the
// time, threads are preempted and profiled, and code and memories come and go.
func TestStress(t *testing.T) {
	instances(t, accesses(1)) // or there are no guard pages
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	if err := pprof.StartCPUProfile(io.Discard); err == nil {
		defer pprof.StopCPUProfile()
	}
	ctx, stop := context.WithCancel(t.Context())
	var noise sync.WaitGroup
	defer noise.Wait()
	defer stop()
	noise.Go(func() {
		for ctx.Err() == nil {
			threads, _ := os.ReadDir("/proc/self/task")
			for _, e := range threads {
				var tid int
				if _, err := fmt.Sscan(e.Name(), &tid); err == nil {
					_ = syscall.Tgkill(os.Getpid(), tid, syscall.SIGURG)
				}
			}
			runtime.GC()
		}
	})
	var traps atomic.Int64
	before := guard.Faults()
	t.Run("guests", func(t *testing.T) {
		for range 8 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for range 4 {
					traps.Add(int64(faultOften(t)))
				}
			})
		}
	})
	if n := guard.Faults() - before; n != uint64(traps.Load()) || n == 0 {
		t.Errorf("%d faults, and %d traps", n, traps.Load())
	}
}

func faultOften(t *testing.T) (traps int) {
	t.Helper()
	cfg := musttest.Get(compiler())(t)
	ctx := experimental.WithMemoryAllocator(t.Context(), guardtest.New(t))
	r := wazero.NewRuntimeWithConfig(ctx, cfg)
	defer r.Close(ctx)
	m := musttest.Get(r.Instantiate(ctx, accesses(1)))(t)
	size := uint64(1 << 16)
	for i := range uint64(400) {
		at := i * i * 7919 % (size + 4096)
		f, args := "load", []uint64{at}
		if i%10 == 0 {
			f, args = "deep", []uint64{i * 8, at}
		}
		_, err := m.ExportedFunction(f).Call(ctx, args...)
		if beyond := at+4 > size; (err != nil) != beyond {
			t.Fatalf("%s %v of %d: %v", f, args, size, err)
		} else if beyond {
			traps++
		}
		if i%100 == 99 {
			if got, err := m.ExportedFunction("grow").Call(ctx, 1); err != nil || got[0] != size>>16 {
				t.Fatal(got, err)
			}
			size += 1 << 16
		}
	}
	return traps
}

// TestSpacesAreClosed holds that a space that comes back is given out again, empty, and that
// nothing of it can be accessed meanwhile.
func TestSpacesAreClosed(t *testing.T) {
	musttest.Do(t, guard.Install())
	const n = 3 << 16
	b := guard.Reserve()
	if b == nil || !guard.Open(b[:n]) {
		t.Fatal("there is no address space")
	}
	for i := range b[:n] {
		b[i] = 1
	}
	guard.Release(b[:n:n], n)
	if err := unix.Madvise(b[:n], unix.MADV_POPULATE_READ); err == nil {
		t.Error("a space that was given back can be read")
	}
	again := guard.Reserve()
	if unsafe.SliceData(again) != unsafe.SliceData(b) || uint64(len(again)) != guard.Size {
		t.Fatal("another one was given out")
	}
	defer guard.Release(again, n)
	if !guard.Open(again[:n]) {
		t.Fatal("it cannot be opened")
	}
	for i, x := range again[:n] {
		if x != 0 {
			t.Fatalf("byte %d is %d", i, x)
		}
	}
}

// TestLimits reaches the bounds: of memories, where the next is refused, and of modules.
func TestLimits(t *testing.T) {
	musttest.Do(t, guard.Install())
	var spaces [][]byte
	for len(spaces) < 1<<14 {
		b := guard.Reserve()
		if b == nil {
			break
		}
		spaces = append(spaces, b)
	}
	if n := len(spaces); n < 4096 || n == 1<<14 {
		t.Errorf("%d memories", n)
	}
	for _, b := range spaces {
		guard.Release(b, 0)
	}
	var all []func()
	var err error
	for err == nil && len(all) <= 1<<16 {
		var forget func()
		if forget, err = guard.Code([]byte{0}, []uint32{0, 1}); err == nil {
			all = append(all, forget)
		}
	}
	if err == nil {
		t.Error("there is no bound of modules")
	}
	for _, forget := range all {
		forget()
	}
	if forget, err := guard.Code([]byte{0}, []uint32{0, 1}); err != nil {
		t.Error("what was forgotten takes room:", err)
	} else {
		forget()
	}
}
