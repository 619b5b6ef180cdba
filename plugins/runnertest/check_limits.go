package runnertest

import (
	"context"
	"time"

	"openskill/sdk/skill"
)

// soon checks that a run that was to end after d did so, neither early nor
// never.
func (b *bench) soon(began time.Time, d time.Duration) {
	b.t.Helper()
	if took := time.Since(began); took < d*9/10 || took > d+slack {
		b.t.Errorf("it took %v; want about %v", took, d)
	}
}

func timeoutSpin(b *bench) {
	c := b.call(Program{Do: Spin}, timeout(b.start()))
	began := time.Now()
	r := b.do(context.Background(), c)
	b.stopped(r, skill.Timeout)
	b.soon(began, b.start())
	b.healthy()
}

func timeoutSleep(b *bench) {
	c := b.call(Program{Do: Sleep, N: 600_000}, timeout(b.start()))
	began := time.Now()
	r := b.do(context.Background(), c)
	b.stopped(r, skill.Timeout)
	b.soon(began, b.start())
	b.healthy()
}

func fuel(b *bench) {
	used := b.run(Program{Do: Echo}, stdin([]byte("x"))).Usage.Fuel
	if used == 0 {
		b.t.Fatal("a metered runner reports no fuel")
	}
	enough := limit(func(l *skill.Limits) { l.Fuel = used * 10 })
	r := b.run(Program{Do: Spin}, enough)
	b.stopped(r, skill.FuelExhausted)
	if r.Usage.Fuel > used*10 {
		b.t.Errorf("fuel used: %d; want at most the limit, %d", r.Usage.Fuel, used*10)
	}
	b.healthy()
	r = b.run(Program{Do: Echo}, stdin([]byte("x")), limit(func(l *skill.Limits) { l.Fuel = used / 2 }))
	b.stopped(r, skill.FuelExhausted)
	b.healthy()
}

func memory(b *bench) {
	r := b.run(Program{Do: Allocate})
	b.stopped(r, skill.MemoryLimit)
	if r.Usage.MemoryPeak == 0 {
		b.t.Error("no peak of memory is reported")
	}
	b.healthy()
}

// Recursion without an end meets a limit of the runner's or of the guest's own
// language (which then fails with an exit code). Either way it ends.
func recursion(b *bench) {
	r := b.run(Program{Do: Recurse})
	if r.Code == "" {
		if r.ExitCode == 0 {
			b.t.Errorf("recursion without an end ended well: %.200q", r.Stdout)
		}
	} else {
		b.stopped(r, skill.StackLimit, skill.MemoryLimit, skill.Trap)
	}
	b.healthy()
}

func cancel(b *bench) {
	c := b.call(Program{Do: Sleep, N: 600_000}) // before the clock runs: a guest may take long to write
	began := time.Now()
	ctx, stop := context.WithTimeout(context.Background(), b.start())
	defer stop()
	r := b.do(ctx, c)
	b.stopped(r, skill.Cancelled)
	b.soon(began, b.start())
	b.healthy()
}

func cancelBefore(b *bench) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	began := time.Now()
	r := b.do(ctx, b.call(Program{Do: Sleep, N: 600_000}))
	b.stopped(r, skill.Cancelled)
	b.soon(began, 0)
	b.healthy()
}
