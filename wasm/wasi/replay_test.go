package wasi_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
	"openskill/wasm/tape"
	"openskill/wasm/wasi"
)

// forbidden is a world that must not be looked at.
func forbidden(t *testing.T, cfg *wasi.Config) {
	t.Helper()
	cfg.Wall = func() time.Time { t.Error("the time of day was looked at"); return time.Time{} }
	cfg.Mono = func() int64 { t.Error("the time that passes was looked at"); return 0 }
	cfg.Random = forbiddenChance{t}
	cfg.Fetch = func(context.Context, []byte) []byte { t.Error("the network was asked"); return nil }
}

type forbiddenChance struct{ t *testing.T }

func (f forbiddenChance) Read(b []byte) (int, error) {
	f.t.Error("chance was asked")
	return len(b), nil
}

// drawn are calls of a guest that look at all clocks, all chance, the network and the
// times of files, in an order that comes of seed; it gives what the guest's memory was
// after each.
func drawn(g *guest, seed uint64, calls int) (memories [][]byte, err error) {
	g.t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	g.put(atPath, "work/file")
	files := 0
	for range calls {
		clock := uint64(r.IntN(4))
		switch r.IntN(9) {
		case 0, 1:
			_, err = g.try("clock_time_get", clock, 1, atResult)
		case 2:
			_, err = g.try("random_get", atData, r.Uint64N(200))
		case 3:
			g.subscribe(subscription{1, 0, uint32(clock), r.Uint64N(2_000_000), 0}, subscription{2, 0, 1, math.MaxInt64, 0}, subscription{3, 1, 0, 0, 0})
			_, err = g.try("poll_oneoff", atIovs, atData, 1+r.Uint64N(3), atResult)
		case 4:
			g.subscribe(subscription{1, 0, 0, r.Uint64(), 1}, subscription{2, 0, 1, 1000, 0}) // until a time of day
			_, err = g.try("poll_oneoff", atIovs, atData, 2, atResult)
		case 5:
			g.put(atData, "request")
			if _, err = g.try("http_request", atData, 1+r.Uint64N(7), atResult); err == nil {
				_, err = g.try("http_read", atData, 100, atResult)
			}
		case 6:
			if _, err = g.try("path_open", 3, 0, atPath, 9, 1, rightRead|rightWrite, 0, 0, atResult); err == nil && files < 100 {
				files++
				fd := uint64(g.u32(atResult))
				_, err = g.try("fd_filestat_get", fd, atData)
				_, _ = g.try("fd_close", fd)
			}
		case 7:
			_, err = g.try("path_filestat_set_times", 3, 0, atPath, 9, 0, 0, 2|8)
		case 8:
			_, err = g.try("path_filestat_get", 3, 0, atPath, 9, atData)
		}
		if err != nil {
			return memories, err
		}
		memories = append(memories, []byte(g.text(atResult, 8)+g.text(atData, 256)))
	}
	return memories, nil
}

// taped is a world with scratch space whose files are dated by it.
func taped(t *testing.T, cfg wasi.Config) *guest {
	t.Helper()
	work := guestfs.NewMemory(guestfs.Limits{Now: func() time.Time { return time.Unix(1000, 0) }})
	root := musttest.Get(guestfs.NewTree(guestfs.Mount{Path: "/work", FS: work}))(t)
	cfg.Root, cfg.Stdin = root, bytes.NewReader([]byte("input"))
	g := newGuest(t, cfg)
	work.SetClock(g.w.Now)
	return g
}

// TestReplaySeesTheSame holds that a guest sees in a replay what it saw, call by call, and
// that nothing of the real world is looked at; and that one that goes on ends there.
func TestReplaySeesTheSame(t *testing.T) {
	for seed := range uint64(20) {
		rec := tape.NewRecorder(1 << 20)
		then := musttest.Get(drawn(taped(t, wasi.Config{Record: rec, Fetch: echo()}), seed, 60))(t)
		b, ok := rec.Tape(tape.Start{Made: time.Unix(0, 0)})
		if !ok {
			t.Fatal("it did not fit")
		}
		p := musttest.Get(tape.Open(b))(t)
		cfg := wasi.Config{Replay: p}
		forbidden(t, &cfg)
		g := taped(t, cfg)
		now, err := drawn(g, seed, 60)
		if err != nil || p.Over() != nil {
			t.Fatalf("seed %d: %v after %d calls, %v", seed, err, len(now), p.Over())
		}
		if other, err := drawn(taped(t, wasi.Config{Fetch: echo()}), seed, 60); err != nil || slices.EqualFunc(then, other, bytes.Equal) {
			t.Fatalf("two runs are alike, so this shows nothing: %v", err)
		}
		for i := range then {
			if !bytes.Equal(then[i], now[i]) {
				t.Fatalf("seed %d: the guest sees something else after call %d", seed, i)
			}
		}
		var stop *wasi.Stop
		if _, err := g.try("random_get", atData, 1); !errors.As(err, &stop) || stop.Reason != wasi.ReasonReplay || p.Err() == nil {
			t.Errorf("more than was recorded: %v, %v", err, p.Err())
		}
		if _, err := g.try("sched_yield"); !errors.As(err, &stop) || stop.Reason != wasi.ReasonReplay {
			t.Errorf("after its end: %v", err)
		}
	}
}

// TestReplayEndsInFiles holds that a run which ends while a file is dated leaves its file
// system in a state in which it can be put back.
func TestReplayEndsInFiles(t *testing.T) {
	b, _ := tape.NewRecorder(1000).Tape(tape.Start{Made: time.Unix(0, 0)})
	p := musttest.Get(tape.Open(b))(t)
	work := guestfs.NewMemory(guestfs.Limits{})
	saved, _ := work.Save()
	g := newGuest(t, wasi.Config{Replay: p, Root: work})
	before := work.SetClock(g.w.Now)
	g.put(atPath, "file")
	var stop *wasi.Stop
	if _, err := g.try("path_open", 3, 0, atPath, 4, 1, rightRead|rightWrite, 0, 0, atResult); !errors.As(err, &stop) || stop.Reason != wasi.ReasonReplay {
		t.Fatal(err)
	}
	work.SetClock(before)
	work.Restore(saved)
	if !work.Empty() {
		t.Errorf("%v", work.Files())
	}
}

// TestSleepOfReplay holds that time is not waited for twice, however long it was.
func TestSleepOfReplay(t *testing.T) {
	rec := tape.NewRecorder(1000)
	rec.Mono(0)
	rec.Mono(int64(time.Hour))
	b, _ := rec.Tape(tape.Start{Made: time.Unix(0, 0)})
	p := musttest.Get(tape.Open(b))(t)
	g := newGuest(t, wasi.Config{Replay: p})
	if got := g.poll(subscription{7, 0, 1, uint64(4 * 24 * time.Hour), 0}); len(got) != 1 || got[0].user != 7 {
		t.Errorf("%+v", got)
	}
	g.want(0, "clock_time_get", 1, 1, atResult)
}
