package tracing

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Exporter takes finished spans; [File] and package otlp have one.
type Exporter = sdk.SpanExporter

// Options of a Tracer. Exporter is required.
type Options struct {
	Exporter Exporter
	Version  string // of the host
	// PerMillion is how many of a million traces are kept, by their ids: hosts with the
	// same number keep the same ones. 0: none.
	PerMillion int
	// AtOnce exports each span when it ends, for tests; otherwise they are exported in the
	// background, and those for which there is no room are dropped.
	AtOnce bool
	Log    *slog.Logger // nil: silent
}

// Tracer makes spans. It is safe for concurrent use. A nil one makes none.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// Names of attributes.
const (
	attrTrace = "openskill.trace_id" // the caller's, where it is no OpenTelemetry trace id
)

// maxQueued is how many finished spans wait to be exported; about 1 KiB each.
const maxQueued = 8192

// New makes a Tracer, which is closed by its owner.
func New(o Options) *Tracer {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	export := &careful{Exporter: o.Exporter, log: o.Log}
	var processor sdk.SpanProcessor
	if o.AtOnce {
		processor = sdk.NewSimpleSpanProcessor(export)
	} else {
		processor = sdk.NewBatchSpanProcessor(export, sdk.WithMaxQueueSize(maxQueued), sdk.WithBatchTimeout(time.Second))
	}
	p := sdk.NewTracerProvider(
		sdk.WithSpanProcessor(processor), sdk.WithIDGenerator(ids{}),
		sdk.WithSampler(sdk.TraceIDRatioBased(float64(o.PerMillion)/1e6)),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "openskill"), attribute.String("service.version", o.Version))),
	)
	return &Tracer{provider: p, tracer: p.Tracer("openskill")}
}

// Close exports what is left, for as long as ctx lasts. It may be called twice.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Span is a part of the way of a call. Its methods do nothing on a nil one.
type Span struct {
	span trace.Span
	id   string // of the caller's trace, where it is an attribute
}

type idKey struct{}

// Root begins the way of a request. id is the caller's trace id, parent what it says of
// its own span, if it does.
func (t *Tracer) Root(ctx context.Context, name, id string, parent Parent) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	if parent.Valid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: parent.trace, SpanID: parent.span, Remote: true}))
		if id == parent.TraceID() {
			id = ""
		}
	} else {
		of := idOf(id)
		ctx = context.WithValue(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), wantedKey{}, of)
		if strings.EqualFold(id, of.String()) {
			id = ""
		}
	}
	return t.begin(context.WithValue(ctx, idKey{}, id), name, id)
}

// Start begins a part of what ctx is a part of. Without such a thing, or where its trace is
// not kept, there is no span.
func (t *Tracer) Start(ctx context.Context, name string) (context.Context, *Span) {
	if t == nil || !trace.SpanContextFromContext(ctx).IsSampled() {
		return ctx, nil
	}
	id, _ := ctx.Value(idKey{}).(string)
	return t.begin(ctx, name, id)
}

// StartOrRoot is Start where ctx is a part of something, and else Root.
func (t *Tracer) StartOrRoot(ctx context.Context, name, id string) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	if trace.SpanContextFromContext(ctx).IsValid() {
		return t.Start(ctx, name)
	}
	return t.Root(ctx, name, id, Parent{})
}

func (t *Tracer) begin(ctx context.Context, name, id string, o ...trace.SpanStartOption) (context.Context, *Span) {
	ctx, s := t.tracer.Start(ctx, name, o...)
	if id != "" {
		s.SetAttributes(attribute.String(attrTrace, id))
	}
	return ctx, &Span{span: s, id: id}
}

// Past tells of a part that is over, and that somebody else has measured.
func (t *Tracer) Past(ctx context.Context, name string, began time.Time, took time.Duration) {
	if t == nil || !trace.SpanContextFromContext(ctx).IsSampled() {
		return
	}
	id, _ := ctx.Value(idKey{}).(string)
	_, s := t.begin(ctx, name, id, trace.WithTimestamp(began))
	s.span.End(trace.WithTimestamp(began.Add(took)))
}

// Header is the traceparent for who is called next on behalf of ctx; "": there is none.
func (t *Tracer) Header(ctx context.Context) string {
	if t == nil {
		return ""
	}
	c := trace.SpanContextFromContext(ctx)
	if !c.IsValid() {
		return ""
	}
	flags := "00"
	if c.IsSampled() {
		flags = "01"
	}
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + flags
}

// In gives a context whose parts are parts of s, for those who make contexts of their own.
func (s *Span) In(ctx context.Context) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(trace.ContextWithSpan(ctx, s.span), idKey{}, s.id)
}

// Text adds an attribute, whose value is of the host's making.
func (s *Span) Text(name, value string) {
	if s != nil && value != "" {
		s.span.SetAttributes(attribute.String(name, value))
	}
}

// Number adds an attribute.
func (s *Span) Number(name string, value int64) {
	if s != nil {
		s.span.SetAttributes(attribute.Int64(name, value))
	}
}

// Fail says that this part failed, with a code; "": it did not.
func (s *Span) Fail(code string) {
	if s != nil && code != "" {
		s.span.SetAttributes(attribute.String("openskill.code", code))
		s.span.SetStatus(codes.Error, code)
	}
}

// End ends it; only the first call counts.
func (s *Span) End() {
	if s != nil {
		s.span.End()
	}
}

// careful is an exporter whose failures are in the log, one a minute at most: the SDK
// would print them.
type careful struct {
	Exporter
	log  *slog.Logger
	last atomic.Int64 // Unix time of the last line
}

// ExportSpans implements the SDK's SpanExporter.
func (c *careful) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := c.Exporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	now := time.Now().Unix()
	if last := c.last.Load(); now-last >= 60 && c.last.CompareAndSwap(last, now) {
		c.log.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn, "traces cannot be exported", slog.Int("spans", len(spans)), slog.String("reason", err.Error()))
	}
	return nil
}
