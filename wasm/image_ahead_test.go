package wasm_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/wasm"
)

// calm waits until an image starts nothing any more: it gives how many instances were
// ever started. What goes on for ever fails.
func calm(t *testing.T, im *wasm.Image) int {
	t.Helper()
	last, since := im.Starts(), time.Now()
	for time.Since(since) < 300*time.Millisecond {
		if n := im.Starts(); n != last {
			if n > 100 {
				t.Fatalf("%d instances were started", n)
			}
			last, since = n, time.Now()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return last
}

// An image whose instances are taken back, or cannot be started any more, does not
// start others until a run asks for one.
func TestImageStartsNothingUnasked(t *testing.T) {
	once := func(t *testing.T, im *wasm.Image) error {
		t.Helper()
		_, err := im.Run(t.Context(), &wasm.Call{Stdin: strings.NewReader("\x00"), Limits: wasm.Limits{Timeout: time.Minute}})
		return err
	}
	open := func(t *testing.T, o *wasm.Options, open func() (wasm.Files, error)) (*wasm.Engine, *wasm.Image) {
		t.Helper()
		e := musttest.Get(wasm.Open(asWorkers(o)))(t)
		t.Cleanup(func() { _ = e.Close() })
		m := musttest.Get(e.Compile(context.Background(), slow(), nil))(t)
		return e, e.Image(&wasm.Program{Module: m, Limits: wasm.Limits{Timeout: time.Minute}, Open: open}, nil)
	}

	t.Run("its folder is gone", func(t *testing.T) {
		var gone atomic.Bool
		e, im := open(t, &wasm.Options{}, func() (wasm.Files, error) {
			if gone.Load() {
				return wasm.Files{}, errors.New("the folder is gone")
			}
			return wasm.Files{}, nil
		})
		musttest.Do(t, once(t, im))
		gone.Store(true)
		before := calm(t, im)
		e.Sweep(time.Now().Add(wasm.IdleTime + time.Minute)) // all that waits is taken back
		if after := calm(t, im); after != before {
			t.Errorf("%d instances were started unasked", after-before)
		}
		if err := once(t, im); err == nil || !strings.Contains(err.Error(), "gone") {
			t.Errorf("a run without its files: %v", err)
		}
		after := calm(t, im)
		gone.Store(false)
		if err := once(t, im); err != nil {
			t.Errorf("after it is back: %v", err)
		}
		if after > before+2 {
			t.Errorf("%d instances were started for one run", after-before)
		}
	})

	t.Run("there is no room", func(t *testing.T) {
		e, im := open(t, &wasm.Options{ImageBytes: 1}, nil)
		for range 5 {
			before := calm(t, im)
			musttest.Do(t, once(t, im))
			e.Sweep(time.Now())
			if after := calm(t, im); after > before+2 {
				t.Errorf("%d instances were started for one run", after-before)
			}
		}
	})
}
