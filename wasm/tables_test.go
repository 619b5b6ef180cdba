package wasm_test

import (
	"context"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/image"
	"openskill/wasm/wasmtest"
)

// TestTablesCountAsMemory holds that what large tables and element segments take in each
// instance counts towards the memory of its run, and among what idle instances hold.
func TestTablesCountAsMemory(t *testing.T) {
	const segments, entries = 10, 99_000
	b := wasmtest.New()
	f := b.Void("")
	funcs := make([]uint32, entries)
	for i := range funcs {
		funcs[i] = f
	}
	b.Table(entries)
	for range segments {
		b.Elem(0, wasmtest.I32(0), funcs...)
	}
	b.Memory(1)
	b.Command("")
	e := open(t, nil)
	m := compile(t, e, b.Bytes())
	const takes = 40*segments*entries + 8*entries
	for _, c := range []struct {
		memory uint64
		want   wasm.Ended
	}{{16 << 20, wasm.OutOfMemory}, {256 << 20, wasm.Returned}} {
		var out *wasm.Outcome
		var err error
		got := peak(t, func() {
			out, err = m.Run(context.Background(), &wasm.Run{Limits: wasm.Limits{Memory: c.memory}})
		})
		if err != nil || out.Ended != c.want {
			t.Errorf("with %d MiB: %+v, %v", c.memory>>20, out, err)
		}
		if most := int64(c.memory) + mayExceed; got > most && !raceDetector {
			t.Errorf("with %d MiB: %d MiB more", c.memory>>20, got>>20)
		}
		if c.want == wasm.Returned && out.MemoryPeak < takes-(8<<20) {
			t.Errorf("a peak of %d bytes, the tables take %d", out.MemoryPeak, takes)
		}
	}
	if !image.Supported {
		return
	}
	waits := wasmtest.New()
	in := waits.Import("fd_read")
	g := waits.Void("")
	for i := range funcs {
		funcs[i] = g
	}
	waits.Table(entries)
	for range segments {
		waits.Elem(0, wasmtest.I32(0), funcs...)
	}
	waits.Memory(1)
	waits.Command(i32(0, 8, 1, 16) + wasmtest.Call(in) + wasmtest.Drop)
	im := e.Image(&wasm.Program{Module: compile(t, e, waits.Bytes())}, &wasm.ImageOptions{Spare: -1})
	defer im.Close()
	musttest.Do(t, im.Warm(context.Background(), 1))
	if held := im.Held(); held < takes {
		t.Errorf("%d bytes are held, the tables of the instance take %d", held, takes)
	}
}
