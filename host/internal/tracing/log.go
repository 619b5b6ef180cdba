package tracing

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// SpanIDs adds to each line of a log the span during which it was written, as span_id in
// the 16 hexadecimal digits of W3C Trace Context, so that the line leads to the span. A line
// of no span, or of a trace that is not kept, is as it was: there would be nothing to find.
// The line's trace_id is the caller's own word, and is set by who writes the line.
func SpanIDs(to slog.Handler) slog.Handler { return spanIDs{to} }

type spanIDs struct{ slog.Handler }

// Handle implements [slog.Handler].
func (h spanIDs) Handle(ctx context.Context, r slog.Record) error {
	if c := trace.SpanContextFromContext(ctx); c.IsSampled() && c.HasSpanID() && !c.IsRemote() {
		r = r.Clone()
		r.AddAttrs(slog.String("span_id", c.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h spanIDs) WithAttrs(attrs []slog.Attr) slog.Handler {
	return spanIDs{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h spanIDs) WithGroup(name string) slog.Handler { return spanIDs{h.Handler.WithGroup(name)} }
