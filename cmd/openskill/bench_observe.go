package main

import (
	"context"
	"log/slog"
	"time"

	"openskill/host"
	"openskill/host/config"
	"openskill/plugins/skillbench"
	"openskill/sdk/skill"
	"openskill/wasm/bench"
)

// benchObserve is the suite observe: a warm call through the door in a worker, by a host
// that nobody watches, by one with metrics, and by one that traces every call besides.
func (a *app) benchObserve(ctx context.Context, s *config.Settings, o *benchOptions, _ *skillbench.Native) ([]bench.Row, error) {
	const name, id, input = "a warm call, Rust", "echo", `{"text":"hello"}`
	if !o.wanted("observe", name) {
		return nil, nil
	}
	rounds, times := 60, 25
	if o.quick {
		rounds, times = 3, 5
	}
	c := bench.Case{Suite: "observe", Name: name, N: rounds, Most: time.Minute}
	for _, v := range []struct {
		name   string
		watch  bool
		traces config.Traces
	}{
		{"without", false, config.TracesOff},
		{"metrics", true, config.TracesOff},
		{"metrics, and every call traced into a file", true, config.TracesFile},
	} {
		own := *s
		own.Traces, own.TracesPerMillion, own.TracesMB, own.WorkersSpare = v.traces, 1_000_000, 2, 0
		if err := ownDatabase(&own); err != nil {
			return nil, err
		}
		h, err := host.Open(&own, &host.Options{Log: slog.New(slog.DiscardHandler), Observe: v.watch})
		if err != nil {
			return nil, err
		}
		defer h.Close() //nolint:errcheck // what was measured is told
		h.Prepare(ctx, skill.ID(id))
		for range 20 { // the first ones start things
			if err := called(ctx, h, skill.Local(), id, input); err != nil {
				return nil, err
			}
		}
		variant := bench.Variant{Name: v.name, Times: times, Run: through(h, id, input)}
		if v.watch {
			variant.Goals = []bench.Goal{bench.AtMost(1.03)}
		}
		c.Variants = append(c.Variants, variant)
	}
	return a.measure(ctx, []bench.Case{c})
}
