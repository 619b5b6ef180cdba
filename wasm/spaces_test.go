package wasm_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/wasmtest"
)

// TestSpacesComeBackEmpty runs a guest that traps unless its memory begins as the
// module says, and then writes all over it: where its data stands, beside it, at
// the end, and in a page that it grows by. Ways to end change, so that spaces come
// back from each; runs overlap, so that several are in use.
func TestSpacesComeBackEmpty(t *testing.T) {
	e := musttest.Get(wasm.Open(asWorkers(nil)))(t)
	defer e.Close()

	const data, beside, last, grown = 70_000, 74_000, 3<<16 - 4, 3<<16 + 8
	load := func(at int64) wasmtest.Code { return wasmtest.I32(at) + wasmtest.Load }
	store := func(at int64) wasmtest.Code { return wasmtest.I32(at) + wasmtest.I32(-1) + wasmtest.Store }
	expect := func(at, want int64) wasmtest.Code {
		return load(at) + wasmtest.I32(want) + wasmtest.Ne + wasmtest.If(wasmtest.Unreachable)
	}
	guest := func(end wasmtest.Code) []byte {
		b := wasmtest.New()
		exit := b.Import("proc_exit")
		b.Memory(3)
		b.Data(data, "\x01\x02\x03\x04")
		b.Command(expect(data, 0x04030201) + expect(beside, 0) + expect(last, 0) +
			store(data) + store(beside) + store(last) +
			wasmtest.I32(1) + wasmtest.MemoryGrow + wasmtest.Drop + expect(grown, 0) + store(grown) +
			withExit(end, wasmtest.Call(exit)))
		return b.Bytes()
	}
	ends := map[string]struct {
		module []byte
		want   wasm.Ended
	}{
		"return": {guest(""), wasm.Returned},
		"exit":   {guest(wasmtest.I32(0) + "exit"), wasm.Exited},
		"trap":   {guest(wasmtest.I32(0) + wasmtest.I32(0) + "\x6d" + wasmtest.Drop), wasm.Trapped}, // i32.div_s by zero
		"fuel":   {guest(wasmtest.Loop(wasmtest.Br(0))), wasm.OutOfFuel},
	}
	for name, c := range ends {
		t.Run(name, func(t *testing.T) {
			m := musttest.Get(e.Compile(context.Background(), c.module, nil))(t)
			var wg sync.WaitGroup
			for range 4 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for range 50 {
						out, err := m.Run(context.Background(), &wasm.Run{Limits: wasm.Limits{Fuel: 200_000}})
						if err != nil {
							t.Error(err)
							return
						}
						if out.Ended != c.want || c.want == wasm.Trapped && !strings.Contains(out.Trap, "divide by zero") {
							t.Errorf("ended as %v (%s), want %v: the memory did not begin as it should", out.Ended, out.Trap, c.want)
							return
						}
					}
				}()
			}
			wg.Wait()
		})
	}
}

// withExit puts the call of proc_exit where the code says "exit".
func withExit(c, exit wasmtest.Code) wasmtest.Code {
	return wasmtest.Code(strings.Replace(string(c), "exit", string(exit), 1))
}

// TestGrownSpacesAreClosed holds that what one run's memory grew by is beyond the memory of the
// next, which may get the same space.
func TestGrownSpacesAreClosed(t *testing.T) {
	e := open(t, nil)
	b := wasmtest.New()
	read := b.Import("environ_sizes_get")
	b.Memory(1)
	// With a variable in its environment it grows, else it reads there.
	b.Command(wasmtest.I32(0) + wasmtest.I32(4) + wasmtest.Call(read) + wasmtest.Drop +
		wasmtest.I32(0) + wasmtest.Load + wasmtest.If(wasmtest.I32(2)+wasmtest.MemoryGrow+wasmtest.Drop+wasmtest.I32(2<<16)+wasmtest.I32(1)+wasmtest.Store+wasmtest.Return) +
		wasmtest.I32(2<<16) + wasmtest.Load + wasmtest.Drop)
	m := compile(t, e, b.Bytes())
	for i := range 4 {
		r, want := &wasm.Run{Env: []string{"A=b"}}, wasm.Returned
		if i%2 == 1 {
			r, want = &wasm.Run{}, wasm.Trapped
		}
		if out, err := m.Run(t.Context(), r); err != nil || out.Ended != want {
			t.Errorf("run %d: %v, %v, want %v", i, out, err, want)
		}
	}
}
