package wasi_test

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"openskill/wasm/guestfs"
	"openskill/wasm/wasi"
)

type subscription struct {
	user    uint64
	kind    byte
	fd      uint32 // or the clock
	timeout uint64
	flags   uint16
}

// subscribe writes subscriptions at atIovs.
func (g *guest) subscribe(subs ...subscription) {
	for i, s := range subs {
		b := make([]byte, 48)
		binary.LittleEndian.PutUint64(b, s.user)
		b[8] = s.kind
		binary.LittleEndian.PutUint32(b[16:], s.fd)
		binary.LittleEndian.PutUint64(b[24:], s.timeout)
		binary.LittleEndian.PutUint16(b[40:], s.flags)
		g.mem.Write(atIovs+uint32(i)*48, b)
	}
}

type event struct {
	user  uint64
	errno guestfs.Errno
	kind  byte
	bytes uint64
}

func (g *guest) poll(subs ...subscription) (events []event) {
	g.t.Helper()
	g.subscribe(subs...)
	g.want(0, "poll_oneoff", atIovs, atData, uint64(len(subs)), atResult)
	for i := range g.u32(atResult) {
		b := []byte(g.text(atData+i*32, 32))
		events = append(events, event{
			binary.LittleEndian.Uint64(b), guestfs.Errno(binary.LittleEndian.Uint16(b[8:])), b[10],
			binary.LittleEndian.Uint64(b[16:]),
		})
	}
	return events
}

func TestPoll(t *testing.T) {
	root, _ := worldRoot(t, dataFolder(t))
	cfg := wasi.Config{Root: root, Stdin: strings.NewReader("four"), Wall: func() time.Time { return time.Unix(1000, 0) }, Mono: func() int64 { return 0 }}
	const ms, hour = uint64(time.Millisecond), uint64(time.Hour)
	for _, tc := range []struct {
		name string
		subs []subscription
		want []event
	}{
		{"a short sleep", []subscription{{user: 7, timeout: ms, fd: 1}}, []event{{user: 7}}},
		{"no time at all", []subscription{{user: 7}}, []event{{user: 7}}},
		{"the shorter of two", []subscription{{user: 1, timeout: hour}, {user: 2, timeout: ms}}, []event{{user: 2}}},
		{"an absolute time that is past", []subscription{{user: 1, timeout: 999e9, flags: 1}}, []event{{user: 1}}},
		{"an absolute time to come", []subscription{{user: 1, timeout: 1000e9 + ms, flags: 1}}, []event{{user: 1}}},
		{"an absolute monotonic time", []subscription{{user: 1, fd: 1, timeout: 1e9 + ms, flags: 1}}, []event{{user: 1}}},
		{"input is there", []subscription{{user: 1, timeout: hour}, {user: 2, kind: 1, fd: 0}}, []event{{user: 2, kind: 1, bytes: 4}}},
		{"output is ready", []subscription{{user: 1, kind: 2, fd: 1}, {user: 2, kind: 2, fd: 2}}, []event{{user: 1, kind: 2, bytes: 65536}, {user: 2, kind: 2, bytes: 65536}}},
		{"a file is ready", []subscription{{user: 1, kind: 1, fd: 4}}, []event{{user: 1, kind: 1, bytes: 5}}},
		{"a closed descriptor", []subscription{{user: 1, kind: 1, fd: 99}, {timeout: hour}}, []event{{user: 1, kind: 1, errno: guestfs.EBADF}}},
		{"the wrong direction", []subscription{{user: 1, kind: 1, fd: 1}, {user: 2, kind: 2, fd: 0}}, []event{{user: 1, kind: 1, errno: guestfs.EBADF}, {user: 2, kind: 2, errno: guestfs.EBADF}}},
		{"a folder", []subscription{{user: 1, kind: 1, fd: 3}}, []event{{user: 1, kind: 1, errno: guestfs.EBADF}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGuest(t, cfg)
			g.mustOpen("data/a.txt", 0, rightRead)
			got := g.poll(tc.subs...)
			if len(got) != len(tc.want) {
				t.Fatalf("events %v, want %v", got, tc.want)
			}
			for i := range got {
				if got[i] != tc.want[i] {
					t.Errorf("event %d is %+v, want %+v", i, got[i], tc.want[i])
				}
			}
		})
	}
	for name, sub := range map[string]subscription{
		"kind": {kind: 3}, "clock": {fd: 4}, "flags": {flags: 2},
	} {
		g := newGuest(t, cfg)
		g.subscribe(sub)
		if got := g.call("poll_oneoff", atIovs, atData, 1, atResult); got != guestfs.EINVAL {
			t.Errorf("a bad %s is %v, want EINVAL", name, got)
		}
	}
	t.Run("as many as there may be", func(t *testing.T) {
		g := newGuest(t, cfg)
		subs := make([]subscription, 1024)
		g.subscribe(subs...)
		g.want(0, "poll_oneoff", atIovs, atData+0x8000, 1024, atResult)
		if n := g.u32(atResult); n != 1024 {
			t.Errorf("%d events", n)
		}
	})
	t.Run("in and out are the same place", func(t *testing.T) {
		g := newGuest(t, cfg)
		g.subscribe(subscription{user: 1}, subscription{user: 2}, subscription{user: 3})
		g.want(0, "poll_oneoff", atIovs, atIovs, 3, atResult)
		if a, b, c := g.u64(atIovs), g.u64(atIovs+32), g.u64(atIovs+64); a != 1 || b != 2 || c != 3 {
			t.Errorf("events of %d, %d, %d", a, b, c)
		}
	})
}

func TestPollWaitsForInput(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	g := newGuest(t, wasi.Config{Stdin: r})
	// Nothing comes: the clock wins.
	if got := g.poll(subscription{user: 1, kind: 1}, subscription{user: 2, timeout: uint64(5 * time.Millisecond)}); len(got) != 1 || got[0].user != 2 {
		t.Fatalf("events %v, want the clock's", got)
	}
	time.AfterFunc(5*time.Millisecond, func() { w.Write([]byte("late")) })
	if got := g.poll(subscription{user: 1, kind: 1}, subscription{user: 2, timeout: uint64(time.Hour)}); len(got) != 1 || got[0] != (event{1, 0, 1, 4}) {
		t.Fatalf("events %v, want the input's", got)
	}
	if got := g.read(0, 10); got != "late" {
		t.Errorf("read %q", got)
	}
}

// E12: a sleep of four days, or for good, on any clock, ends with the context.
func TestE12SleepEndsWithTheContext(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	for name, subs := range map[string][]subscription{
		"four days":       {{timeout: uint64(96 * time.Hour)}},
		"monotonic":       {{fd: 1, timeout: math.MaxInt64}},
		"for good":        {{timeout: math.MaxUint64}},
		"until year 2262": {{timeout: math.MaxInt64, flags: 1}},
		"or input":        {{timeout: math.MaxUint64}, {kind: 1}},
		"only input":      {{kind: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			defer cancel()
			g := newGuestContext(ctx, t, wasi.Config{Stdin: r}, memoryPages)
			g.subscribe(subs...)
			began := time.Now()
			g.wantStop(wasi.ReasonDeadline, "poll_oneoff", atIovs, atData, uint64(len(subs)), atResult)
			if took := time.Since(began); took > 250*time.Millisecond {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestEveryCallSeesTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, f := range wasi.Functions() {
		if leanFunctions[exported(f)] {
			continue
		}
		g := newGuestContext(ctx, t, wasi.Config{}, memoryPages)
		g.wantStop(wasi.ReasonCancelled, exported(f), make([]uint64, len(f.Params))...)
	}
}
