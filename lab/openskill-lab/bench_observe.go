package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"openskill/internal/measure"

	"golang.org/x/sync/errgroup"

	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/lab/skillbench"
	"openskill/sdk/skill"
)

// benchObserve is the suite observe: warm calls through the door in a worker, by a host
// that nobody watches, by one with metrics, and by one that traces every call besides. What
// watching takes of the processors shows in the calls of eight callers at once.
func (a *cli) benchObserve(ctx context.Context, s *config.Settings, o *benchOptions, _ *skillbench.Native) ([]measure.Row, error) {
	const one, eight = "a warm call, Rust", "calls by eight callers, Rust"
	if !o.wanted("observe", one) && !o.wanted("observe", eight) {
		return nil, nil
	}
	rounds, times, each := 60, 25, 400
	if o.quick {
		rounds, times, each = 3, 5, 40
	}
	cases := []measure.Case{
		{Suite: "observe", Name: one, N: rounds, Most: time.Minute},
		{Suite: "observe", Name: eight, N: rounds, Most: time.Minute},
	}
	skills, err := unlimitedEcho(filepath.Join(s.SkillsDir, "echo"))
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(skills)
	for _, v := range []struct {
		name   string
		mode   app.Mode
		traces config.Traces
		ratio  float64
	}{
		{"without", app.Local, config.TracesNone, 0},
		{"metrics", app.Watched, config.TracesNone, 0},
		{"metrics, and one call of ten traced into a file", app.Watched, config.TracesFile, 0.1},
		{"metrics, and every call traced into a file", app.Watched, config.TracesFile, 1},
	} {
		own := *s
		own.Traces, own.TracesRatio = v.traces, v.ratio
		if err := ownDatabase(&own); err != nil {
			return nil, err
		}
		h, err := app.Open(&own, &app.Options{Roots: []string{skills}, Log: slog.New(slog.DiscardHandler), Mode: v.mode, Spares: -1})
		if err != nil {
			return nil, err
		}
		defer h.Close()
		h.Prepare(ctx, "echo")
		// Trace ids as hosts make them for callers who send none.
		var calls atomic.Uint64
		call := func(ctx context.Context) error {
			id := skill.TraceID(fmt.Sprintf("0123456789abcdef%016x", bits.Reverse64(calls.Add(1))))
			r := h.Invoke(ctx, skill.Local(), skill.Request{SkillID: "echo", Input: json.RawMessage(`{"text":"hello"}`), TraceID: id})
			if !r.Success {
				return fmt.Errorf("echo: %s: %s", r.Error.Code, r.Error.Message)
			}
			return nil
		}
		for range 20 { // the first ones start things
			if err := call(ctx); err != nil {
				return nil, err
			}
		}
		timed := func(run func(ctx context.Context) error, of int) func(ctx context.Context) (time.Duration, error) {
			return func(ctx context.Context) (time.Duration, error) {
				began := time.Now()
				err := run(ctx)
				return time.Since(began) / time.Duration(of), err
			}
		}
		together := measure.Variant{Name: v.name, Run: timed(func(ctx context.Context) error {
			g, ctx := errgroup.WithContext(ctx)
			for range 8 {
				g.Go(func() error {
					for range each / 8 {
						if err := call(ctx); err != nil {
							return err
						}
					}
					return nil
				})
			}
			return g.Wait()
		}, each), Note: func() string { return fmt.Sprintf("time of %d calls, by their number", each) }}
		if v.mode != app.Local {
			together.Goals = []measure.Goal{measure.AtMost(1.03)}
		}
		cases[0].Variants = append(cases[0].Variants, measure.Variant{Name: v.name, Times: times, Run: timed(call, 1)})
		cases[1].Variants = append(cases[1].Variants, together)
	}
	return a.measure(ctx, slices.DeleteFunc(cases, func(c measure.Case) bool { return !o.wanted("observe", c.Name) }))
}
