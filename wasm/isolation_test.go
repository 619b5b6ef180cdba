package wasm_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"openskill/wasm"
	"openskill/wasm/guestfs"
	"openskill/wasm/wasmtest"
)

// marker is a tenant's module. It first looks for a mark in all that a guest can
// keep: memory (also what it grows), a global, the table, scratch files and
// descriptors. It exits with 100 and the place if one is there; otherwise it
// leaves its own mark everywhere and exits with that.
func marker(mark int64) []byte {
	type c = wasmtest.Code
	b := wasmtest.New()
	exit := b.Import("proc_exit")
	open := b.Import("path_open")
	write := b.Import("fd_write")
	b.Memory(2)
	b.Data(0, "mark")                              // the name of the file
	b.Data(16, "\x20\x00\x00\x00\x04\x00\x00\x00") // a vector of four bytes at 32
	global := b.Global(0)
	nothing := b.Void("")
	b.Table(4)
	fail := func(place int64) c { return wasmtest.If(wasmtest.I32(100+place) + wasmtest.Call(exit)) }
	// path_open(3, 0, "mark", oflags, rights, 0, 0, 64)
	openMark := func(oflags int64) c {
		return wasmtest.I32(3) + wasmtest.I32(0) + wasmtest.I32(0) + wasmtest.I32(4) + wasmtest.I32(oflags) +
			wasmtest.I64(1<<6|1<<1) + wasmtest.I64(0) + wasmtest.I32(0) + wasmtest.I32(64) + wasmtest.Call(open)
	}
	b.Command(
		// The rest of the memory that there is, then a page more.
		wasmtest.Times((2<<16-128)/8, 0, wasmtest.Get(0)+wasmtest.I32(8)+wasmtest.Mul+wasmtest.I32(120)+wasmtest.Add+wasmtest.Load+fail(0)) +
			wasmtest.GlobalGet(global) + fail(1) +
			wasmtest.I32(2) + wasmtest.TableGet(0) + wasmtest.IsNull + wasmtest.Eqz + fail(2) +
			wasmtest.I32(1) + wasmtest.MemoryGrow + wasmtest.I32(2) + wasmtest.Ne + fail(3) +
			wasmtest.I32(3<<16-4) + wasmtest.Load + fail(4) +
			openMark(0) + wasmtest.I32(44) + wasmtest.Ne + fail(5) + // ENOENT

			// The marks.
			wasmtest.I32(128) + wasmtest.I32(mark) + wasmtest.I32(3<<16-128) + wasmtest.MemoryFill +
			wasmtest.I32(mark) + wasmtest.GlobalSet(global) +
			wasmtest.I32(2) + wasmtest.RefFunc(nothing) + wasmtest.TableSet(0) +
			wasmtest.NullFunc + wasmtest.I32(100) + wasmtest.TableGrow(0) + wasmtest.I32(4) + wasmtest.Ne + fail(6) +
			wasmtest.I32(32) + wasmtest.I32(mark) + wasmtest.Store +
			openMark(1) + fail(7) +
			wasmtest.I32(64) + wasmtest.Load + wasmtest.I32(4) + wasmtest.Ne + fail(8) + // the first free descriptor
			wasmtest.I32(4) + wasmtest.I32(16) + wasmtest.I32(1) + wasmtest.I32(72) + wasmtest.Call(write) + fail(9) +

			// Nobody else wrote over them meanwhile.
			wasmtest.I32(200) + wasmtest.Load8 + wasmtest.I32(mark) + wasmtest.Ne + fail(10) +
			wasmtest.GlobalGet(global) + wasmtest.Call(exit))
	b.Export("nothing", nothing) // declares it for ref.func
	return b.Bytes()
}

// TestTenantsDoNotMeet interleaves two tenants' runs, a thousand each, of modules
// of their own and of one that they share (X03).
func TestTenantsDoNotMeet(t *testing.T) {
	for name, o := range map[string]*wasm.Options{"compiler": nil, "interpreter": {Interpreter: true}} {
		t.Run(name, func(t *testing.T) {
			e := open(t, o)
			runs := 1000
			switch {
			case o != nil && testing.Short(): // the interpreter under the race detector
				runs = 20
			case o != nil || testing.Short():
				runs = 100
			}
			tenants := []int64{11, 22}
			var wg sync.WaitGroup
			for _, mark := range tenants {
				for _, shared := range []bool{false, true} {
					wg.Go(func() {
						module := marker(mark)
						want := uint32(mark)
						if shared {
							module, want = marker(33), 33
						}
						for i := range runs / 2 {
							m, err := e.Compile(context.Background(), module, nil)
							if err != nil {
								t.Error(err)
								return
							}
							out, err := m.Run(context.Background(), &wasm.Run{Files: guestfs.NewMemory(guestfs.Limits{})})
							if err != nil || out.Ended != wasm.Exited || out.ExitCode != want {
								t.Errorf("tenant %d, run %d: %+v, %v", mark, i, out, err)
								return
							}
						}
					})
				}
			}
			wg.Wait()
		})
	}
}

// TestNamesAreNobodys instantiates modules that give themselves names, while
// others want to import from these names.
func TestNamesAreNobodys(t *testing.T) {
	e := open(t, nil)
	for _, name := range []string{"X02 take the name env", "X02 take the name of the host's module"} {
		m := compile(t, e, find(t, name).Module)
		g := newGate()
		slow := compile(t, e, reader())
		ended := make(chan error, 1)
		go func() { // so that an instance lives while the others are made
			_, err := slow.Run(context.Background(), &wasm.Run{Stdin: g})
			ended <- err
		}()
		<-g.asked
		for range 2 { // a name that was taken would be refused the second time
			if out, err := m.Run(context.Background(), &wasm.Run{}); err != nil || out.Ended != wasm.Returned {
				t.Errorf("%s: %+v, %v", name, out, err)
			}
			hold(t, e, find(t, "X02 import the memory of env"))
		}
		close(g.open)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		canary(t, e)
	}
}

// TestManyAtOnce runs cases of all kinds at once, each beside the others.
func TestManyAtOnce(t *testing.T) {
	e := open(t, nil)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, c := range wasmtest.Hostile() {
		if c.Name == "E20 256 MiB of randomness" || testing.Short() && c.Name == "E05 straight line of memory.copy" {
			continue // takes long; the second two minutes, copied under the race detector
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if c.Limits.Fuel == wasmtest.Fuel {
				c.Limits.Fuel /= 10
			}
			hold(t, e, &c)
			if t.Failed() {
				t.Log(fmt.Sprint("one of them: ", c.Name))
			}
		})
	}
	wg.Wait()
	canary(t, e)
}
