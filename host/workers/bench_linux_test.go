package workers_test

import (
	"context"
	"log/slog"
	"testing"

	"openskill/host/workers"
)

// BenchmarkHop is a call whose runner does nothing: what the way to a worker and back costs.
func BenchmarkHop(b *testing.B) {
	p, err := workers.New(workers.Options{Command: command(b), Dir: b.TempDir(), Spares: -1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	r := p.Runner(planner{})
	b.Cleanup(func() { _, _ = r.Close(), p.Close() })
	call := callOf("a", "say x")
	for b.Loop() {
		if _, err := r.Run(context.Background(), call); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart is a worker from its start to its hello.
func BenchmarkStart(b *testing.B) {
	p, err := workers.New(workers.Options{Command: command(b), Dir: b.TempDir(), Spares: -1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.Close() })
	for b.Loop() {
		if _, err := p.Probe(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
