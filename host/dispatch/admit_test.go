package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/runner/fakerunner"
	"openskill/sdk/skill"
)

// TestTwoThousandCallsAtOnce is case A08: the bounds hold, the rest is refused at
// once with a time to come back, and nothing waits without an end.
func TestTwoThousandCallsAtOnce(t *testing.T) {
	const global, perSkill, queue, calls = 8, 5, 4, 2000
	h := open(t, func(o *Options) {
		o.Global, o.PerSkill, o.Queue, o.MaxWait = global, perSkill, queue, time.Minute
	})
	var mu sync.Mutex
	running, most := map[skill.ID]int{}, map[skill.ID]int{}
	total, mostTotal := 0, 0
	release := make(chan struct{})
	h.wasm.Answer = func(_ context.Context, c *skill.Call) (*skill.Reply, error) {
		mu.Lock()
		running[c.SkillID]++
		total++
		most[c.SkillID] = max(most[c.SkillID], running[c.SkillID])
		mostTotal = max(mostTotal, total)
		mu.Unlock()
		<-release
		mu.Lock()
		running[c.SkillID]--
		total--
		mu.Unlock()
		return fakerunner.Prints("{}"), nil
	}
	var succeeded, refused, other atomic.Int64
	var all sync.WaitGroup
	var once sync.Once
	for i := range calls {
		id := skill.ID("stats")
		if i%2 == 1 {
			id = "plain"
		}
		all.Go(func() {
			r := h.Invoke(context.Background(), skill.Local(), ask(id, "{}"))
			switch {
			case r.Success:
				succeeded.Add(1)
			case r.Error.Code == skill.RateLimited && r.Error.Details["retry_after_ms"].(int64) > 0:
				if refused.Add(1) == calls-global-queue { // all but those who run and wait
					once.Do(func() { close(release) })
				}
			default:
				other.Add(1)
			}
		})
	}
	all.Wait()
	if succeeded.Load() != global+queue || refused.Load() != calls-global-queue || other.Load() != 0 {
		t.Errorf("%d succeeded, %d refused, %d other", succeeded.Load(), refused.Load(), other.Load())
	}
	if mostTotal > global || most["stats"] > perSkill || most["plain"] > perSkill {
		t.Errorf("at once: %d in all, %v", mostTotal, most)
	}
	if h.gate.running != 0 || h.gate.line.Len() != 0 {
		t.Errorf("left behind: %d running, %d waiting", h.gate.running, h.gate.line.Len())
	}
}

func TestGate(t *testing.T) {
	in := func(t *testing.T, f func(t *testing.T, g *gate)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			f(t, newGate(2, 1, 1, 250*time.Millisecond, time.Now))
		})
	}
	enter := func(t *testing.T, g *gate, id skill.ID) func() {
		t.Helper()
		leave, err := g.enter(context.Background(), place{id: id}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return leave
	}

	t.Run("has 250 ms where nothing else is said", func(t *testing.T) {
		h := open(t, nil)
		for what, g := range map[string]*gate{"calls": h.gate, "large inputs": h.checks} {
			if g.maxWait != 250*time.Millisecond || g.queue != 32 {
				t.Errorf("%s: %d wait %v", what, g.queue, g.maxWait)
			}
		}
	})
	t.Run("grows and shrinks", func(t *testing.T) {
		in(t, func(t *testing.T, g *gate) {
			leave := []func(){enter(t, g, "a"), enter(t, g, "b")}
			in := make(chan func(), 1)
			go func() { in <- enter(t, g, "c") }()
			synctest.Wait() // it stands in line
			g.resize(3, 1)
			leave = append(leave, <-in)
			g.resize(1, 1)
			for _, l := range leave {
				if _, err := g.enter(context.Background(), place{id: "d"}, 0); skill.CodeOf(err) != skill.RateLimited {
					t.Errorf("let in beside those that run: %v", err)
				}
				l()
			}
			enter(t, g, "d")()
		})
	})
	t.Run("waits as long as it may", func(t *testing.T) {
		in(t, func(t *testing.T, g *gate) {
			leave := enter(t, g, "a")
			begun := time.Now()
			_, err := g.enter(context.Background(), place{id: "a"}, 0)
			if skill.CodeOf(err) != skill.RateLimited || time.Since(begun) != 250*time.Millisecond {
				t.Errorf("%v after %v", err, time.Since(begun))
			}
			leave()
			enter(t, g, "a")()
		})
	})
	t.Run("takes a place that is given back", func(t *testing.T) {
		in(t, func(t *testing.T, g *gate) {
			leave := enter(t, g, "a")
			time.AfterFunc(100*time.Millisecond, leave)
			begun := time.Now()
			enter(t, g, "a")()
			if time.Since(begun) != 100*time.Millisecond {
				t.Errorf("after %v", time.Since(begun))
			}
		})
	})
	t.Run("refuses at once when the line is full", func(t *testing.T) {
		in(t, func(t *testing.T, g *gate) {
			leave := enter(t, g, "a")
			go func() {
				if l, err := g.enter(context.Background(), place{id: "a"}, 0); err == nil {
					l()
				}
			}()
			synctest.Wait()
			begun := time.Now()
			_, err := g.enter(context.Background(), place{id: "a"}, 0)
			if skill.CodeOf(err) != skill.RateLimited || time.Since(begun) != 0 {
				t.Errorf("%v after %v", err, time.Since(begun))
			}
			leave()
		})
	})
	t.Run("passes those who wait for another skill", func(t *testing.T) {
		in(t, func(t *testing.T, g *gate) {
			leave := enter(t, g, "a")
			go func() {
				if l, err := g.enter(context.Background(), place{id: "a"}, 0); err == nil {
					l()
				}
			}()
			synctest.Wait()
			begun := time.Now()
			enter(t, g, "b")()
			if time.Since(begun) != 0 {
				t.Errorf("b waited %v for a", time.Since(begun))
			}
			leave()
		})
	})
	t.Run("forgets those who leave", func(t *testing.T) {
		in(t, func(t *testing.T, g *gate) {
			leave := enter(t, g, "a")
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Millisecond, cancel)
			if _, err := g.enter(ctx, place{id: "a"}, 0); skill.CodeOf(err) != skill.Cancelled {
				t.Errorf("got %v", err)
			}
			if g.line.Len() != 0 {
				t.Error("it is still in line")
			}
			leave()
			if g.running != 0 || g.each[place{id: "a"}].running != 0 {
				t.Errorf("running %d, %d", g.running, g.each[place{id: "a"}].running)
			}
		})
	})
}

func TestRateOfASkill(t *testing.T) {
	now := time.Unix(1000, 0)
	h := open(t, func(o *Options) { o.Now = func() time.Time { return now } })
	invoke := func() *skill.Result { return h.Invoke(context.Background(), skill.Local(), ask("rated", "{}")) }
	for i := range 2 {
		if r := invoke(); !r.Success {
			t.Fatalf("call %d: %+v", i, r.Error)
		}
	}
	r := invoke()
	if r.Success || r.Error.Code != skill.RateLimited || r.Error.Details["retry_after_ms"] != int64(30_000) {
		t.Fatalf("got %+v", r.Error)
	}
	now = now.Add(30 * time.Second)
	if r := invoke(); !r.Success {
		t.Errorf("after the time it was told: %+v", r.Error)
	}
	if r := invoke(); r.Success {
		t.Error("a refused call gave a token back twice")
	}
	if got := len(h.wasm.Calls()); got != 3 {
		t.Errorf("%d runs", got)
	}
}

// TestHeavyInputs: checking large inputs is bounded too, though it comes before
// admission, and its places are given back before the run.
func TestHeavyInputs(t *testing.T) {
	heavy := `{"a":"` + strings.Repeat("x", heavyInput) + `"}`
	h := open(t, func(o *Options) { o.Queue, o.MaxWait = -1, time.Millisecond })
	held := 0
	h.wasm.Answer = func(context.Context, *skill.Call) (*skill.Reply, error) {
		if h.checks.running != held {
			t.Error("a run keeps the place of its check")
		}
		return fakerunner.Prints("{}"), nil
	}
	if r := h.Invoke(context.Background(), skill.Local(), ask("stats", heavy)); !r.Success {
		t.Fatal(r.Error)
	}
	for range h.checks.global { // as if so many were being checked
		if _, err := h.checks.enter(context.Background(), place{}, 0); err != nil {
			t.Fatal(err)
		}
		held++
	}
	if r := h.Invoke(context.Background(), skill.Local(), ask("stats", heavy)); r.Error == nil || r.Error.Code != skill.RateLimited {
		t.Errorf("got %+v", r.Error)
	}
	if r := h.Invoke(context.Background(), skill.Local(), ask("stats", "{}")); !r.Success {
		t.Errorf("a light call must pass: %+v", r.Error)
	}
}

// TestRefusedCallsAreNotCounted: a call that finds no place leaves the skill's
// rate as it was.
func TestRefusedCallsAreNotCounted(t *testing.T) {
	now := time.Unix(1000, 0)
	g := newGate(1, 1, 0, time.Millisecond, func() time.Time { return now })
	leave, err := g.enter(context.Background(), place{id: "a"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := g.enter(context.Background(), place{id: "a"}, 2); skill.CodeOf(err) != skill.RateLimited {
			t.Fatal(err)
		}
	}
	leave()
	if leave, err = g.enter(context.Background(), place{id: "a"}, 2); err != nil {
		t.Fatalf("the second of two a minute: %v", err)
	}
	leave()
	if _, err := g.enter(context.Background(), place{id: "a"}, 2); skill.CodeOf(err) != skill.RateLimited {
		t.Errorf("the third of two a minute: %v", err)
	}
}

// TestTheCallerLeaves is case E25.
func TestTheCallerLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		reply *skill.Reply
		err   error
	}{
		"ended by the runner":   {&skill.Reply{Code: skill.Cancelled, Usage: skill.Usage{Fuel: 3}}, nil},
		"finished all the same": {&skill.Reply{Stdout: []byte("{}"), Usage: skill.Usage{Fuel: 3}}, nil},
		"the host failed":       {nil, errors.New("x")},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, nil)
			ctx, cancel := context.WithCancel(context.Background())
			h.wasm.Answer = func(ctx context.Context, _ *skill.Call) (*skill.Reply, error) {
				cancel()
				<-ctx.Done()
				return c.reply, c.err
			}
			r := h.Invoke(ctx, skill.Local(), ask("stats", "{}"))
			if r.Success || r.Error.Code != skill.Cancelled || c.reply != nil && r.Meta.FuelUsed != 3 {
				t.Errorf("got %+v %+v", r.Error, r.Meta)
			}
			if line := h.line(t); line["error.code"] != "CANCELLED" {
				t.Errorf("log: %v", line)
			}
		})
	}
	t.Run("before the run", func(t *testing.T) {
		h := open(t, nil)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if r := h.Invoke(ctx, skill.Local(), ask("stats", "{}")); r.Error == nil || r.Error.Code != skill.Cancelled || len(h.wasm.Calls()) != 0 {
			t.Errorf("got %+v, %d runs", r.Error, len(h.wasm.Calls()))
		}
	})
	t.Run("its time is over", func(t *testing.T) {
		h := open(t, nil)
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		h.wasm.Answer = func(ctx context.Context, _ *skill.Call) (*skill.Reply, error) {
			<-ctx.Done()
			return &skill.Reply{Code: skill.Cancelled}, nil
		}
		if r := h.Invoke(ctx, skill.Local(), ask("stats", "{}")); r.Error == nil || r.Error.Code != skill.Timeout {
			t.Errorf("got %+v", r.Error)
		}
	})
}

// TestARunnerWithoutADeadline: the door ends a run that its runner does not.
func TestARunnerWithoutADeadline(t *testing.T) {
	h := open(t, nil)
	synctest.Test(t, func(t *testing.T) {
		h.wasm.Answer = func(ctx context.Context, _ *skill.Call) (*skill.Reply, error) {
			<-ctx.Done()
			return &skill.Reply{Code: skill.Cancelled}, nil
		}
		req := ask("stats", "{}")
		req.Limits.Timeout = 2 * time.Second
		begun := time.Now()
		r := h.Invoke(context.Background(), skill.Local(), req)
		if r.Error == nil || r.Error.Code != skill.Timeout || !strings.Contains(r.Error.Message, "2000 ms") {
			t.Errorf("got %+v", r.Error)
		}
		if took := time.Since(begun); took != 2*time.Second+backstop {
			t.Errorf("after %v", took)
		}
		if r.Meta.LatencyMS != 3000 {
			t.Errorf("latency %d", r.Meta.LatencyMS)
		}
	})
}

// TestCallsDoNotMix: what one call holds never shows in another.
func TestCallsDoNotMix(t *testing.T) {
	h := open(t, func(o *Options) { o.Global, o.PerSkill = 64, 64 })
	h.wasm.Answer = func(_ context.Context, c *skill.Call) (*skill.Reply, error) {
		return fakerunner.Prints(fmt.Sprintf(`{"stdin": %s}`, c.Stdin)), nil
	}
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			for j := range 30 {
				trace := fmt.Sprintf("t-%d-%d", i, j)
				req := ask("stats", fmt.Sprintf(`{"mark": "%s"}`, trace))
				req.TraceID = skill.TraceID(trace)
				r := h.Invoke(context.Background(), skill.Local(), req)
				want := fmt.Sprintf(`{"stdin": {"input":{"mark": "%s"},"skill_id":"stats","trace_id":"%s"}}`, trace, trace)
				if string(r.Data) != want || string(r.TraceID) != trace {
					t.Errorf("got %s, want %s", r.Data, want)
					return
				}
			}
		})
	}
	all.Wait()
}
