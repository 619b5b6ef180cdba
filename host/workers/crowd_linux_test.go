package workers_test

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"openskill/host/workers"
	"openskill/internal/musttest"
)

// TestCheapWorkersMakeRoom: of tenants with as many workers, the one ends that costs least to start again; an expensive
// one that is not used ends as well, after some others.
func TestCheapWorkersMakeRoom(t *testing.T) {
	p, r := pool(t, func(o *workers.Options) { o.Max, o.Spares = 4, -1 })
	pid := func(tenant, does string) string {
		t.Helper()
		return string(musttest.Get(r.Run(t.Context(), callOf(tenant, does)))(t).Stdout)
	}
	dear := pid("dear", "costly 1000000000000") // more than counts: two seconds
	for i := range 6 {
		pid(fmt.Sprint("cheap-", i), "pid")
	}
	if now := pid("dear", "pid"); now != dear {
		t.Errorf("process %s made room, it has %s now", dear, now)
	}
	for i := range 20 {
		pid(fmt.Sprint("costly-", i), "costly 500000000")
	}
	if now := pid("dear", "pid"); now == dear {
		t.Error("a process that was not used for long did not make room")
	}
	if s := p.Stats(); s.Max != 4 || s.Live > 4 || s.Evicted < 20 || s.Cold != s.Starts || s.Cold-s.Evicted > 4 {
		t.Errorf("%+v", s)
	}
}

// TestCrowdedIsLogged: the log says once a minute that workers make room for each other.
func TestCrowdedIsLogged(t *testing.T) {
	log := &musttest.Buffer{}
	_, r := pool(t, func(o *workers.Options) { o.Max, o.Spares, o.Log = 2, -1, slog.New(slog.NewTextHandler(log, nil)) })
	said := func() int { return strings.Count(log.String(), "end to make room for others") }
	for i := range 30 {
		run(t, r, fmt.Sprint(i), "say x")
		if want := min(i/11, 1); said() != want {
			t.Fatalf("said %d times after %d tenants", said(), i+1)
		}
	}
	if got := log.String(); !strings.Contains(got, "evictions=10") || !strings.Contains(got, "max=2") {
		t.Error(got)
	}
}

// TestWorkersFitTheMachine: without a number, half of the memory is for workers, and as many threads as there may be.
func TestWorkersFitTheMachine(t *testing.T) {
	p, _ := pool(t, func(o *workers.Options) { o.Max = 0 })
	memory, threads := workers.Machine()
	if n := p.Stats().Max; memory < 64<<20 || threads < 16 || n != workers.Fitting(memory, threads) {
		t.Errorf("%d workers with %d bytes of memory and %d threads", n, memory, threads)
	}
	for memory, want := range map[uint64]int{0: 8, 512 << 20: 8, 8 << 30: 102, 24 << 30: 307, 1 << 40: 1024} {
		if n := workers.Fitting(memory, math.MaxUint64); n != want {
			t.Errorf("%d workers with %d bytes, want %d", n, memory, want)
		}
	}
	if n := workers.Fitting(1<<40, 4096); n != 256 {
		t.Errorf("%d workers with 4096 threads", n)
	}
}

// TestLimitsOfGroups: the least limit of a control group and of those above it holds, also that of the root, which is a
// container's own.
func TestLimitsOfGroups(t *testing.T) {
	root := t.TempDir()
	musttest.Do(t, os.MkdirAll(filepath.Join(root, "a/b"), 0o755))
	for _, c := range []struct {
		dir, file, text string
		want            uint64
	}{
		{"", "none", "", 500},
		{"a/b", "memory.max", "max\n", 500},
		{"a", "memory.max", "400\n", 400},
		{"", "memory.max", "300\n", 300},
		{"a/b", "memory.max", "200\n", 200},
	} {
		musttest.Do(t, os.WriteFile(filepath.Join(root, c.dir, c.file), []byte(c.text), 0o600))
		if n := workers.LeastLimit(filepath.Join(root, "a/b"), "memory.max", 500); n != c.want {
			t.Errorf("%+v: %d", c, n)
		}
	}
	if n := workers.LeastLimit(root, "memory.max", 500); n != 300 {
		t.Errorf("of the root: %d", n)
	}
}

// TestIdleWorkersEndWhenMemoryIsShort: a new worker takes the place of one without a call, and others end as well.
func TestIdleWorkersEndWhenMemoryIsShort(t *testing.T) {
	p, r := pool(t, func(o *workers.Options) { o.Max, o.Spares, o.Idle = 20, -1, 400*time.Millisecond })
	var short atomic.Bool
	p.SetShort(short.Load)
	for i := range 4 {
		run(t, r, fmt.Sprint(i), "say x")
	}
	if s := p.Stats(); s.Evicted != 0 {
		t.Errorf("%+v", s)
	}
	short.Store(true)
	run(t, r, "another", "say x")
	for until := time.Now().Add(10 * time.Second); p.Stats().Evicted < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%+v", p.Stats())
		}
	}
}

// TestWorkersInUseMakeNoRoom: a worker whose call still waits for its module does not make room for another one.
func TestWorkersInUseMakeNoRoom(t *testing.T) {
	p, r := pool(t, func(o *workers.Options) { o.Max, o.Spares = 2, -1 })
	w := musttest.Get(p.Acquire(t.Context(), callOf("a", "pid")))(t)
	b := string(run(t, r, "b", "pid").Stdout)
	c := string(run(t, r, "c", "pid").Stdout)
	if a := string(run(t, r, "a", "pid").Stdout); a != w.Pid() || b == c {
		t.Errorf("%s made room for %s and %s; it has %s now", w.Pid(), b, c, a)
	}
	w.Leave()
}
