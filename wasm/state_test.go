package wasm_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/internal/state"
	"openskill/wasm"
	"openskill/wasm/image"
	"openskill/wasm/wasmtest"
)

// What a guest that counts does beside, by its input.
const (
	doGrow       = 200 + iota // its memory
	doOpen                    // a file, and leaves it open
	doGlobal                  // sets a global
	doTable                   // changes a table
	doSpin                    // does not end
	doReadDeeper              // reads its input in a function
)

// counting is a command that reads bytes in a loop. It adds each to a number, which it prints.
func counting() []byte {
	type c = wasmtest.Code
	const path, iov, count, number, input, sum = 20, 64, 72, 76, 128, 4096
	b := wasmtest.New()
	exit, open, read, write := b.Import("proc_exit"), b.Import("path_open"), b.Import("fd_read"), b.Import("fd_write")
	b.Memory(2)
	b.Data(path, "data/f")
	global := b.Global(1)
	vector := func(at, length int64) c {
		return wasmtest.I32(iov) + wasmtest.I32(at) + wasmtest.Store + wasmtest.I32(iov+4) + wasmtest.I32(length) + wasmtest.Store
	}
	transfer := func(f uint32, fd int64) c {
		return wasmtest.I32(fd) + wasmtest.I32(iov) + wasmtest.I32(1) + wasmtest.I32(count) + wasmtest.Call(f) + wasmtest.Drop
	}
	deeper := b.Void(vector(input, 1) + transfer(read, 0))
	b.Table(4, deeper)
	opening := wasmtest.I32(3) + wasmtest.I32(0) + wasmtest.I32(path) + wasmtest.I32(6) + wasmtest.I32(0) +
		wasmtest.I64(1<<1|1<<2) + wasmtest.I64(0) + wasmtest.I32(0) + wasmtest.I32(number) + wasmtest.Call(open) + wasmtest.Drop
	when := func(n int64, do c) c {
		return load8(input) + wasmtest.I32(n) + wasmtest.Eq + wasmtest.If(do)
	}
	b.Command(wasmtest.Loop(
		vector(input, 1), transfer(read, 0),
		wasmtest.I32(count)+wasmtest.Load+wasmtest.I32(0)+wasmtest.Eq+wasmtest.If(wasmtest.I32(9)+wasmtest.Call(exit)),
		wasmtest.I32(sum)+wasmtest.I32(sum)+wasmtest.Load+load8(input)+wasmtest.Add+wasmtest.Store,
		when(doGrow, wasmtest.I32(1)+wasmtest.MemoryGrow+wasmtest.Drop+wasmtest.I32(2<<16)+wasmtest.I32(7)+wasmtest.Store),
		when(doOpen, opening),
		when(doGlobal, wasmtest.I32(6)+wasmtest.GlobalSet(global)),
		when(doTable, wasmtest.I32(2)+wasmtest.RefFunc(deeper)+wasmtest.TableSet(0)),
		when(doSpin, wasmtest.Loop(wasmtest.Br(0))),
		when(doReadDeeper, wasmtest.Call(deeper)),
		vector(sum, 4), transfer(write, 1),
		wasmtest.Br(0),
	))
	return b.Bytes()
}

// counter runs counting, one byte after the other.
type counter struct {
	im    *wasm.Image
	state []byte
}

func newCounter(t *testing.T, e *wasm.Engine) *counter {
	t.Helper()
	im := e.Image(&wasm.Program{Module: musttest.Get(e.Compile(t.Context(), counting(), nil))(t), Open: tattooFiles}, nil)
	t.Cleanup(func() { im.Close() })
	return &counter{im: im}
}

// add gives the sum after a run, or -1 where the run left no state, which the next one goes on without.
func (c *counter) add(t *testing.T, n byte) int {
	t.Helper()
	out := musttest.Get(c.im.Run(t.Context(), &wasm.Call{
		Stdin: bytes.NewReader([]byte{n}), KeepState: true, State: c.state, Limits: wasm.Limits{Fuel: 1e7},
	}))(t)
	if out.State == nil {
		return -1
	}
	c.state = out.State
	return int(binary.LittleEndian.Uint32(out.Stdout[len(out.Stdout)-4:]))
}

// TestState: a run goes on with the memory of an earlier one, on any instance of any engine, and nothing of it is seen
// by others.
func TestState(t *testing.T) {
	if !image.Supported {
		t.Skip("instances share no content on this platform")
	}
	e := open(t, nil)
	c := newCounter(t, e)
	for i, want := range []int{3, 6, 9} {
		if got := c.add(t, 3); got != want {
			t.Errorf("run %d: %d, want %d", i, got, want)
		}
	}
	other := &counter{im: c.im}
	if got := other.add(t, 1); got != 1 {
		t.Errorf("a run without a state: %d", got)
	}
	before := c.state
	for range 2 { // a state stays what it is
		c.state = before
		if got := c.add(t, 5); got != 14 {
			t.Errorf("a fork: %d", got)
		}
	}
	far := newCounter(t, open(t, nil))
	far.state = before
	if got := far.add(t, 1); got != 10 {
		t.Errorf("on another engine: %d", got)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			c := &counter{im: c.im, state: before}
			for k := range 50 {
				if got, want := c.add(t, byte(i)), 9+i*(k+1); got != want {
					t.Errorf("%d at once: %d, want %d", i, got, want)
				}
			}
		})
	}
	all.Wait()
}

// TestStateKinds: memory that grew and open files go on with a run; other changes that a state does not hold end it.
func TestStateKinds(t *testing.T) {
	if !image.Supported {
		t.Skip("instances share no content on this platform")
	}
	e := open(t, nil)
	for name, c := range map[string]struct {
		input byte
		lost  bool
	}{
		"memory that grew": {input: doGrow}, "an open file": {input: doOpen},
		"a global": {doGlobal, true}, "a table": {doTable, true}, "an endless loop": {doSpin, true},
		"a read elsewhere, which finds the end": {input: doReadDeeper},
	} {
		t.Run(name, func(t *testing.T) {
			n := newCounter(t, e)
			if got := n.add(t, 7); got != 7 {
				t.Fatal(got)
			}
			before := n.state
			got := n.add(t, c.input)
			if (got == -1) != c.lost {
				t.Errorf("%d, lost %t", got, c.lost)
			}
			want := 7
			if !c.lost {
				want += int(c.input)
			}
			for range 3 {
				if want++; n.add(t, 1) != want {
					t.Errorf("afterwards the sum is not %d", want)
				}
			}
			if s := musttest.Get(state.Read(n.state))(t); (len(s.Opened) > 0) != (c.input == doOpen) || (s.Size > 2<<16) != (c.input == doGrow) {
				t.Errorf("%d bytes, opened %v", s.Size, s.Opened)
			}
			if n.state = before; n.add(t, 1) != 8 {
				t.Error("the state before has changed")
			}
		})
	}
}

// TestStateHostile: a state of another program, or one that was changed, is refused, or is memory that the guest could
// have written itself.
func TestStateHostile(t *testing.T) {
	if !image.Supported {
		t.Skip("instances share no content on this platform")
	}
	e := open(t, nil)
	n := newCounter(t, e)
	n.add(t, 1)
	run := func(im *wasm.Image, b []byte, l wasm.Limits) (*wasm.Outcome, error) {
		return im.Run(t.Context(), &wasm.Call{Stdin: bytes.NewReader([]byte{1}), KeepState: true, State: b, Limits: l})
	}
	if _, err := run(tattooImage(t, e, nil), n.state, wasm.Limits{}); !errors.Is(err, wasm.ErrState) {
		t.Errorf("of another program: %v", err)
	}
	if _, err := run(newCounter(t, open(t, &wasm.Options{Interpreter: true})).im, n.state, wasm.Limits{}); err == nil {
		t.Error("an interpreter takes a state")
	}
	for i := range n.state[:len(n.state)-state.PageSize] {
		b := bytes.Clone(n.state)
		b[i] ^= 1 << (i % 8)
		out, err := run(n.im, b, wasm.Limits{Timeout: 10 * time.Second})
		if err != nil && !errors.Is(err, wasm.ErrState) || err == nil && out.Ended == wasm.Trapped {
			t.Fatalf("byte %d changed: %v %+v", i, err, out)
		}
	}
	huge := musttest.Get(state.Read(n.state))(t)
	huge.Size = 1 << 30
	out, err := run(n.im, huge.Append(nil), wasm.Limits{Memory: 1 << 20})
	if err != nil || out.Ended != wasm.OutOfMemory {
		t.Errorf("a memory beyond the limit: %v %+v", err, out)
	}
	many := musttest.Get(state.Read(n.state))(t)
	many.Opened = []uint32{5000}
	if _, err := run(n.im, many.Append(nil), wasm.Limits{}); !errors.Is(err, wasm.ErrState) {
		t.Errorf("a descriptor beyond the limit: %v", err)
	}
	if got := n.add(t, 1); got != 2 {
		t.Errorf("afterwards: %d", got)
	}
}
