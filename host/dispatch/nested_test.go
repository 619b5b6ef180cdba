package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// nesting is a house whose code does what do says.
func nesting(t *testing.T, change func(*Options), do func(h *house, c *skill.Call)) *house {
	t.Helper()
	h := codeHouse(t, change)
	h.wasm.Answer = runnertest.Always(skill.Reply{Stdout: []byte(`{"mean": 2}`), Usage: skill.Usage{Fuel: 300}})
	h.python.Answer = func(_ context.Context, c *skill.Call) (*skill.Reply, error) {
		do(h, c)
		return &skill.Reply{}, nil
	}
	return h
}

var oneNumber = json.RawMessage(`{"numbers": [1]}`)

// TestNested: running code calls a skill with the rights of its caller, and the record names the parent.
func TestNested(t *testing.T) {
	var mu sync.Mutex
	var started []*records.Started
	var r *skill.Result
	var parent string
	h := nesting(t, func(o *Options) {
		o.Recorder = recorder(func(s *records.Started) {
			mu.Lock()
			defer mu.Unlock()
			started = append(started, s)
		})
	}, func(h *house, c *skill.Call) {
		parent = c.ExecutionID
		if p, ok := h.Caller(parent); !ok || p.ID != "local" {
			t.Errorf("on behalf of %+v", p)
		}
		r = h.Nested(context.Background(), parent, "stats", oneNumber)
	})
	if out := h.Invoke(context.Background(), skill.Local(), run(`{"language": "python", "code": ""}`)); !out.Success || !r.Success || string(r.Data) != `{"mean": 2}` {
		t.Fatalf("%+v %+v", out.Error, r)
	}
	if len(started) != 2 || started[0].Parent != "" || started[1].Parent != parent || started[1].Session != parent || started[1].TraceID != "t-1" || started[1].Principal != "local" {
		t.Errorf("on record: %+v", started)
	}
	c := h.wasm.Calls()[0]
	if c.Tenant != "local" || c.Limits.Timeout > time.Second || c.Limits.Fuel > 1000 {
		t.Errorf("%+v", c.Limits)
	}
	if late := h.Nested(context.Background(), parent, "stats", oneNumber); late.Success || late.Error.Code != skill.Forbidden {
		t.Errorf("after its end: %+v", late)
	}
	if _, ok := h.Caller(parent); ok {
		t.Error("it is still somebody's")
	}
}

// TestNestedRefused: a refused nested call returns an error to the code, which continues.
func TestNestedRefused(t *testing.T) {
	var got []string
	say := func(r *skill.Result) { got = append(got, string(codeOfResult(r))) }
	ctx := context.Background()
	h := nesting(t, nil, func(h *house, c *skill.Call) {
		for _, id := range []skill.ID{"stats", "plain", skill.RunCode, "NO ID"} {
			say(h.Nested(ctx, c.ExecutionID, id, oneNumber))
		}
		say(h.Nested(ctx, c.ExecutionID, "stats", json.RawMessage(`{"numbers": ["x"]}`)))
		say(h.Nested(ctx, c.ExecutionID, "stats", json.RawMessage(`no JSON`)))
		say(h.Nested(ctx, "another", "stats", oneNumber))
		for range 3 { // of 300 units, from 1000: 900 with the first, then 100 are left, then none
			say(h.Nested(ctx, c.ExecutionID, "stats", oneNumber))
		}
		say(h.Nested(ctx, c.ExecutionID, "stats", oneNumber))
	})
	who := skill.Principal{ID: "p", Type: skill.Agent, Tenant: "acme", Scopes: []string{"skills:invoke:run_code", "skills:invoke:stats"}}
	if r := h.Invoke(ctx, who, run(`{"language": "python", "code": ""}`)); !r.Success {
		t.Fatal(r.Error)
	}
	want := []string{"", "FORBIDDEN", "FORBIDDEN", "FORBIDDEN", "INVALID_ARGUMENT", "INVALID_ARGUMENT", "FORBIDDEN", "", "", "", "FUEL_EXHAUSTED"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, c := range h.wasm.Calls() {
		if c.Limits.Fuel == 0 || c.Limits.Fuel > 1000 {
			t.Errorf("fuel of a call: %d", c.Limits.Fuel)
		}
	}
}

// TestNestedWithoutEnd: the number and the time of nested calls are limited.
func TestNestedWithoutEnd(t *testing.T) {
	var last *skill.Result
	n := 0
	h := nesting(t, nil, func(h *house, c *skill.Call) {
		h.wasm.Answer = runnertest.Always(skill.Reply{Stdout: []byte(`{"mean": 2}`)})
		for n = 0; n < maxNested+5; n++ {
			if last = h.Nested(context.Background(), c.ExecutionID, "stats", oneNumber); !last.Success {
				return
			}
		}
	})
	if h.Invoke(context.Background(), skill.Local(), run(`{"language": "python", "code": ""}`)); n != maxNested || last.Error.Code != skill.RateLimited {
		t.Errorf("%d calls, %+v", n, last.Error)
	}
	now := time.Now()
	h = nesting(t, func(o *Options) { o.Now = func() time.Time { return now } }, func(h *house, c *skill.Call) {
		now = now.Add(c.Limits.Timeout)
		last = h.Nested(context.Background(), c.ExecutionID, "stats", oneNumber)
	})
	if h.Invoke(context.Background(), skill.Local(), run(`{"language": "python", "code": ""}`)); last.Success || last.Error.Code != skill.Timeout {
		t.Errorf("%+v", last)
	}
}

// TestNestedTakesNoPlace: nested calls run when code holds all places.
func TestNestedTakesNoPlace(t *testing.T) {
	const places = 64
	all := make(chan struct{})
	var in sync.WaitGroup
	in.Add(places)
	h := nesting(t, func(o *Options) { o.Bounds = Bounds{Global: places, PerSkill: places}; o.Alone = true }, func(h *house, c *skill.Call) {
		in.Done()
		<-all
		if r := h.Nested(context.Background(), c.ExecutionID, "stats", oneNumber); !r.Success {
			t.Error(r.Error)
		}
	})
	var wg sync.WaitGroup
	for i := range places {
		wg.Go(func() {
			if r := h.Invoke(context.Background(), skill.Local(), run(fmt.Sprintf(`{"language": "python", "code": %q}`, strings.Repeat("#", i)))); !r.Success {
				t.Error(r.Error)
			}
		})
	}
	in.Wait()
	if r := h.Invoke(context.Background(), skill.Local(), ask("stats", string(oneNumber))); r.Success || r.Error.Code != skill.RateLimited {
		t.Errorf("a call beside them: %+v", r)
	}
	close(all)
	wg.Wait()
}

// TestNestedOneAtATime: concurrent nested calls of one run are serialized and share its fuel.
func TestNestedOneAtATime(t *testing.T) {
	var running, most atomic.Int32
	codes := make([]skill.Code, 8)
	h := nesting(t, nil, func(h *house, c *skill.Call) {
		var all sync.WaitGroup
		for i := range codes {
			all.Go(func() { codes[i] = codeOfResult(h.Nested(context.Background(), c.ExecutionID, "stats", oneNumber)) })
		}
		all.Wait()
	})
	answer := h.wasm.Answer
	h.wasm.Answer = func(ctx context.Context, c *skill.Call) (*skill.Reply, error) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		time.Sleep(time.Millisecond)
		return answer(ctx, c)
	}
	if r := h.Invoke(context.Background(), skill.Local(), run(`{"language": "python", "code": ""}`)); !r.Success {
		t.Fatal(r.Error)
	}
	slices.Sort(codes)
	want := []skill.Code{"", "", "", "", skill.FuelExhausted, skill.FuelExhausted, skill.FuelExhausted, skill.FuelExhausted} // 300 of 1000 each
	if most.Load() != 1 || !slices.Equal(codes, want) {
		t.Errorf("%d at once: %q", most.Load(), codes)
	}
}
