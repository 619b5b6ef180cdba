package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os/exec"
	"sync/atomic"
	"time"

	"openskill/internal/measure"

	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/lab/skillbench"
	"openskill/sdk/skill"
)

// benchWorkers is the suite workers: a call through the door in the host's own
// process, the same in a worker process, and a native process that does nothing; how
// soon a new worker answers; and what workers hold.
func (a *cli) benchWorkers(ctx context.Context, s *config.Settings, o *benchOptions, n *skillbench.Native) (rows []measure.Row, err error) {
	// A native process that is started in between takes the caches; calls that follow
	// one another do not. Calculator may be called 600 times a minute.
	calls := []struct {
		name, id, input string
		warm            int
	}{
		{"a call, Rust", "echo", `{"text":"hello"}`, 25},
		{"a call, Python", "calculator", `{"numbers":[1,2,3],"ops":["mean"]}`, 10},
	}
	const fresh = "the first call of a tenant, Rust"
	const idle, loaded, spare = "memory of a worker, idle", "memory of a worker with Python", "memory of a spare worker with Python"
	asked := o.wanted("workers", fresh) || o.wanted("workers", idle)
	for _, c := range calls {
		asked = asked || o.wanted("workers", c.name)
	}
	if !asked {
		return nil, nil
	}
	here, err := openFor(s, true, -1)
	if err != nil {
		return nil, err
	}
	defer here.Close()
	there, err := openFor(s, false, 0)
	if err != nil {
		return nil, err
	}
	defer there.Close()
	if _, ok := there.Workers(); !ok {
		a.say("workers: this platform has none")
		return nil, nil
	}
	rounds := 40
	if o.quick {
		rounds = 3
	}
	var cases []measure.Case
	for _, c := range calls {
		if !o.wanted("workers", c.name) {
			continue
		}
		for _, h := range []*app.Host{here, there} {
			h.Prepare(ctx, skill.ID(c.id))
			for range 20 { // the first ones start things
				if err := called(ctx, h, skill.Local(), c.id, c.input); err != nil {
					return nil, err
				}
			}
		}
		variants := []measure.Variant{
			{Name: "in process", Times: c.warm, Run: through(here, c.id, c.input)},
			{Name: "worker", Times: c.warm, Run: through(there, c.id, c.input)},
			{Name: "native process (/bin/cat)", Run: func(ctx context.Context) (time.Duration, error) {
				began := time.Now()
				cmd := exec.CommandContext(ctx, "/bin/cat")
				cmd.Stdin = bytes.NewReader([]byte(c.input))
				_, err := cmd.Output()
				return time.Since(began), err
			}},
		}
		if n != nil {
			variants = append(variants, measure.Variant{Name: "native process (python3)", Run: func(ctx context.Context) (time.Duration, error) {
				began := time.Now()
				cmd := exec.CommandContext(ctx, n.Path, "-I", "-c", "import sys, json; json.load(sys.stdin); print({})")
				cmd.Stdin = bytes.NewReader([]byte(c.input))
				_, err := cmd.Output()
				return time.Since(began), err
			}})
		}
		cases = append(cases, measure.Case{Suite: "workers", Name: c.name, N: rounds, Most: time.Minute, Variants: variants})
	}
	if o.wanted("workers", fresh) {
		var tenant atomic.Int64
		cases = append(cases, measure.Case{Suite: "workers", Name: fresh, N: rounds, Variants: []measure.Variant{
			{Name: "in process", Run: through(here, "echo", `{"text":"hello"}`)},
			{Name: "worker", Run: func(ctx context.Context) (time.Duration, error) {
				p := skill.Local()
				p.Tenant = fmt.Sprint("bench-", tenant.Add(1))
				began := time.Now()
				err := called(ctx, there, p, "echo", `{"text":"hello"}`)
				return time.Since(began), err
			}, Note: func() string { return "a process is started, and its module loaded" }},
		}})
	}
	if rows, err = a.measure(ctx, cases); err != nil {
		return nil, err
	}
	for i := range rows {
		if r := &rows[i]; r.Variant == "worker" && r.Case == calls[0].name {
			for _, base := range rows {
				if base.Case == r.Case && base.Variant == "in process" {
					hop := time.Duration(r.P50NS - base.P50NS)
					r.Note = "the hop: " + measure.Span(int64(hop))
					r.Goals = append(r.Goals, measure.Verdict{Goal: "the hop at most 60µs at the median", Measured: measure.Span(int64(hop)), Met: hop <= 60*time.Microsecond})
				}
			}
		}
	}
	if !o.wanted("workers", idle) {
		return rows, nil
	}
	more, err := workersHold(ctx, s, []string{idle, loaded, spare})
	return append(rows, more...), err
}

// workersHold measures the memory of workers: ones that have answered in Rust alone,
// ones that have answered in Python too, and ones that wait with Python loaded. There are
// two each time, of which the larger counts, by what it has for itself: that is what
// one worker more costs, and it does not hang on how many there are.
func workersHold(ctx context.Context, s *config.Settings, names []string) (rows []measure.Row, err error) {
	h, err := openFor(s, false, -1)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	add := func(name string, h *app.Host, goal int64) error {
		stats, _ := h.Workers()
		if len(stats.Pids) != 2 {
			return fmt.Errorf("%d workers are there to be measured, where two were started", len(stats.Pids))
		}
		r := measure.Row{Suite: "workers", Case: name, Variant: "worker", Baseline: "worker", N: len(stats.Pids)}
		var shared int64
		for _, pid := range stats.Pids {
			own, others, err := skillbench.Own(pid)
			if err != nil {
				return err
			}
			if own > r.Bytes {
				r.Bytes, shared = own, others
			}
		}
		r.Note = "its own; beside " + measure.Bytes(shared) + " that all have once"
		if goal > 0 {
			g := measure.Size(goal)
			r.Goals = append(r.Goals, g.Of(&r, &r))
		}
		rows = append(rows, r)
		return nil
	}
	other := skill.Local()
	other.Tenant = "bench-other"
	both := []skill.Principal{skill.Local(), other}
	for _, p := range both {
		if err := called(ctx, h, p, "echo", `{"text":"hello"}`); err != nil {
			return nil, err
		}
	}
	if err := add(names[0], h, 12<<20); err != nil {
		return nil, err
	}
	h.Prepare(ctx, "calculator")
	for range 5 {
		for _, p := range both {
			if err := called(ctx, h, p, "calculator", `{"numbers":[1,2],"ops":["mean"]}`); err != nil {
				return nil, err
			}
		}
	}
	time.Sleep(6 * time.Second) // then they have returned what they do not need
	if err := add(names[1], h, 20<<20); err != nil {
		return nil, err
	}
	with, err := openFor(s, false, len(both))
	if err != nil {
		return nil, err
	}
	defer with.Close()
	with.Prepare(ctx, "calculator")
	for ctx.Err() == nil {
		if stats, _ := with.Workers(); stats.Spares == len(both) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return rows, add(names[2], with, 0)
}

// openFor opens a host with these settings, in this process or with workers.
func openFor(s *config.Settings, inProcess bool, spares int) (*app.Host, error) {
	own := *s
	own.InProcess = inProcess
	if spares == 0 {
		spares = -1
	}
	if err := ownDatabase(&own); err != nil {
		return nil, err
	}
	return app.Open(&own, &app.Options{Log: slog.New(slog.DiscardHandler), Spares: spares})
}

func called(ctx context.Context, h *app.Host, p skill.Principal, id, input string) error {
	r := h.Invoke(ctx, p, skill.Request{SkillID: skill.ID(id), Input: json.RawMessage(input), TraceID: "bench"})
	if !r.Success {
		return fmt.Errorf("%s: %s: %s", id, r.Error.Code, r.Error.Message)
	}
	return nil
}

func through(h *app.Host, id, input string) func(ctx context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		err := called(ctx, h, skill.Local(), id, input)
		return time.Since(began), err
	}
}
