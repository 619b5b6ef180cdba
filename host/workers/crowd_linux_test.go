package workers_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"

	"openskill/host/workers"
	"openskill/internal/musttest"
)

// lockedBuffer is a log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

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
	log := &lockedBuffer{}
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
