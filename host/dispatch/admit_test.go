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

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// TestTwoThousandCallsAtOnce is case A08: the bounds hold, the rest is refused at
// once with a time to come back, and nothing waits without an end.
func TestTwoThousandCallsAtOnce(t *testing.T) {
	const global, perSkill, queue, calls = 8, 5, 4, 2000
	h := open(t, func(o *Options) {
		o.Global, o.PerSkill, o.Queue, o.MaxWait, o.Alone = global, perSkill, queue, time.Minute, true
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
		return runnertest.Prints("{}"), nil
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
	if running, waiting, _, _ := h.Load(); running != 0 || waiting != 0 {
		t.Errorf("left behind: %d running, %d waiting", running, waiting)
	}
}

func TestCallersHaveBounds(t *testing.T) {
	h := open(t, func(o *Options) { o.PerPrincipal, o.PerTenant = 2, 3 })
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h.wasm.Answer = func(context.Context, *skill.Call) (*skill.Reply, error) {
			<-release
			return runnertest.Prints("{}"), nil
		}
		bob := of("acme")
		bob.ID = "bob"
		run := func(p skill.Principal) { go h.Invoke(context.Background(), p, ask("stats", "{}")) }
		refused := func(p skill.Principal, message, what string, limit int64) {
			t.Helper()
			r := h.Invoke(context.Background(), p, ask("stats", "{}"))
			want := map[string]any{"what": what, "unit": "calls_at_once", "limit": limit, "remaining": int64(0), "retry_after_ms": int64(250), "reset_ms": int64(250)}
			if r.Error == nil || r.Error.Code != skill.RateLimited || r.Error.Message != message {
				t.Fatalf("%+v", r.Error)
			}
			if diff := cmp.Diff(want, r.Error.Details); diff != "" {
				t.Error(diff)
			}
		}
		run(of("acme"))
		run(of("acme"))
		synctest.Wait()
		refused(of("acme"), "2 calls of the principal are running, which is the maximum; try again in 250 ms", "principal", 2)
		run(bob)
		synctest.Wait()
		refused(bob, "3 calls of the tenant are running, which is the maximum; try again in 250 ms", "tenant", 3)
		if running, _, _, _ := h.Load(); running != 3 {
			t.Errorf("%d are running", running)
		}
		h.Admit(Bounds{PerTenant: 4})
		run(bob)
		synctest.Wait()
		refused(bob, "4 calls of the tenant are running, which is the maximum; try again in 250 ms", "tenant", 4)
		close(release)
	})
}

// A refusal says of what there are too many calls.
func TestRefusalsSayWhatIsFull(t *testing.T) {
	for want, c := range map[string]struct {
		change func(*Options)
		calls  []string // tenants with a call each
	}{
		"too many calls are running":                                  {func(o *Options) { o.Global = 2 }, []string{"a", "b"}},
		"the tenant has used its share of concurrent calls":           {func(o *Options) { o.Global = 2 }, []string{"acme"}},
		"too many calls to this skill are running":                    {func(o *Options) { o.PerSkill = 1 }, []string{"a"}},
		"too many calls to this tenant's uploaded skills are running": {func(o *Options) { o.Global = 6; asUploads(o, "acme") }, []string{"acme", "acme", "acme"}},
		"1 calls of the tenant are running, which is the maximum":     {func(o *Options) { o.PerTenant = 1 }, []string{"acme"}},
	} {
		t.Run(want, func(t *testing.T) {
			h := open(t, func(o *Options) { o.Queue = -1; c.change(o) })
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				h.wasm.Answer = func(context.Context, *skill.Call) (*skill.Reply, error) {
					<-release
					return runnertest.Prints("{}"), nil
				}
				for _, tenant := range c.calls {
					go h.Invoke(context.Background(), of(tenant), ask("stats", "{}"))
				}
				synctest.Wait()
				r := h.Invoke(context.Background(), of("acme"), ask("stats", "{}"))
				if r.Error == nil || r.Error.Code != skill.RateLimited || r.Error.Message != want+"; try again in 250 ms" {
					t.Errorf("%+v", r.Error)
				}
				close(release)
			})
		})
	}
}

func TestABusySkillHoldsUpNoOther(t *testing.T) {
	h := open(t, func(o *Options) { o.Global, o.PerSkill = 2, 1 })
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h.wasm.Answer = func(_ context.Context, c *skill.Call) (*skill.Reply, error) {
			if c.SkillID == "stats" {
				<-release
			}
			return runnertest.Prints("{}"), nil
		}
		for range 2 { // one runs, one waits
			go h.Invoke(context.Background(), of("acme"), ask("stats", "{}"))
		}
		synctest.Wait()
		begun := time.Now()
		if r := h.Invoke(context.Background(), of("beta"), ask("plain", "{}")); !r.Success || time.Since(begun) != 0 {
			t.Errorf("%+v after %v", r.Error, time.Since(begun))
		}
		if r := h.Invoke(context.Background(), of("beta"), ask("stats", "{}")); r.Success || time.Since(begun) != 250*time.Millisecond {
			t.Errorf("%+v after %v", r.Error, time.Since(begun))
		}
		close(release)
	})
}

// TestHeavyInputs: checking large inputs is bounded too, though it comes before
// admission, and its places are given back before the run.
func TestHeavyInputs(t *testing.T) {
	heavy := `{"a":"` + strings.Repeat("x", HeavyInput) + `"}`
	h := open(t, func(o *Options) { o.Queue, o.MaxWait = -1, time.Millisecond })
	held := 0
	h.wasm.Answer = func(context.Context, *skill.Call) (*skill.Reply, error) {
		if n, _, _, _ := h.checks.Load(); n != held {
			t.Error("a run keeps the place of its check")
		}
		return runnertest.Prints("{}"), nil
	}
	if r := h.Invoke(context.Background(), skill.Local(), ask("stats", heavy)); !r.Success {
		t.Fatal(r.Error)
	}
	_, _, places, _ := h.checks.Load()
	for ; held < places; held++ { // as if so many were being checked
		musttest.Get(h.checks.TryEnter(fmt.Sprint(held)))(t)
	}
	if r := h.Invoke(context.Background(), skill.Local(), ask("stats", heavy)); r.Error == nil || r.Error.Code != skill.RateLimited {
		t.Errorf("got %+v", r.Error)
	}
	if r := h.Invoke(context.Background(), skill.Local(), ask("stats", "{}")); !r.Success {
		t.Errorf("a light call must pass: %+v", r.Error)
	}
}

// TestSlowChecks: so is what is small and takes long to check.
func TestSlowChecks(t *testing.T) {
	h := open(t, func(o *Options) { o.Queue, o.MaxWait = -1, time.Millisecond })
	items := func(n int) string { return `{"a":[1` + strings.Repeat(",1", n-1) + `]}` }
	if r := h.Invoke(context.Background(), skill.Local(), ask("slow", items(50))); !r.Success {
		t.Fatal(r.Error)
	}
	r := h.Invoke(context.Background(), skill.Local(), ask("slow", items(5000)))
	if r.Error == nil || r.Error.Code != skill.InvalidArgument || !strings.Contains(r.Error.Message, "too many steps") {
		t.Errorf("more steps than a check may take: %+v", r.Error)
	}
	_, _, places, _ := h.checks.Load()
	for i := range places {
		musttest.Get(h.checks.TryEnter(fmt.Sprint(i)))(t)
	}
	if r := h.Invoke(context.Background(), skill.Local(), ask("slow", items(50))); r.Error == nil || r.Error.Code != skill.RateLimited {
		t.Errorf("without a place: %+v", r.Error)
	}
	if r := h.Invoke(context.Background(), skill.Local(), ask("slow", items(1))); !r.Success {
		t.Errorf("a quick check must pass: %+v", r.Error)
	}
}

// To compile a large schema takes as long as to check a large input, so it has a place as well.
func TestLargeSchemasAreCompiledByTurns(t *testing.T) {
	h := open(t, func(o *Options) { o.Queue, o.MaxWait = -1, time.Millisecond })
	_, _, places, _ := h.checks.Load()
	var all []func()
	for i := range places {
		leave := musttest.Get(h.checks.TryEnter(fmt.Sprint(i)))(t)
		all = append(all, leave)
	}
	if r := h.Invoke(context.Background(), skill.Local(), ask("wide", "{}")); r.Error == nil || r.Error.Code != skill.RateLimited {
		t.Errorf("without a place: %+v", r.Error)
	}
	all[0]()
	if r := h.Invoke(context.Background(), skill.Local(), ask("wide", "{}")); !r.Success {
		t.Errorf("with one: %+v", r.Error)
	}
	musttest.Get(h.checks.TryEnter("0"))(t)
	if r := h.Invoke(context.Background(), skill.Local(), ask("wide", "{}")); !r.Success {
		t.Errorf("once it is compiled: %+v", r.Error)
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
		if took := time.Since(begun); took != skill.Preparing+2*time.Second+backstop {
			t.Errorf("after %v", took)
		}
		if r.Meta.LatencyMS != 123_000 {
			t.Errorf("latency %d", r.Meta.LatencyMS)
		}
	})
}

// TestCallsDoNotMix: what one call holds never shows in another.
func TestCallsDoNotMix(t *testing.T) {
	h := open(t, func(o *Options) { o.Global, o.PerSkill, o.Alone = 64, 64, true })
	h.wasm.Answer = func(_ context.Context, c *skill.Call) (*skill.Reply, error) {
		return runnertest.Prints(fmt.Sprintf(`{"stdin": %s}`, c.Stdin)), nil
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
