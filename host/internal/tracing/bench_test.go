package tracing

import (
	"testing"
)

// BenchmarkCall is what the nine spans of a warm call take, into a file.
func BenchmarkCall(b *testing.B) {
	f, err := OpenFile(b.TempDir(), 2<<20)
	if err != nil {
		b.Fatal(err)
	}
	tracer := New(Options{Exporter: f, PerMillion: 1e6})
	b.ReportAllocs()
	for b.Loop() {
		ctx, root := tracer.Root(b.Context(), "http", "demo-123", Parent{})
		root.Text("http.route", "/skills/{id}:invoke")
		root.Number("http.response.status_code", 200)
		ctx, door := tracer.Start(ctx, "door")
		door.Text("openskill.skill", "echo")
		door.Number("openskill.fuel", 56950)
		for _, name := range []string{"admission", "audit.started", "run", "worker", "guest", "output", "audit.finished"} {
			_, s := tracer.Start(ctx, name)
			s.End()
		}
		door.End()
		root.End()
	}
	if err := tracer.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}
