package app

import (
	"context"
	"log/slog"
	"math"
	"path/filepath"

	"openskill/host/agent/llm"
	"openskill/host/app/config"
	"openskill/host/internal/tracing"
	"openskill/sdk/skill"
)

// tracesDir is the folder of traces in a state folder.
func tracesDir(stateDir string) string { return filepath.Join(stateDir, "traces") }

// maxTraces is how many bytes the files of traces may have; the oldest go first.
const maxTraces = 64 << 20

// openTraces makes what the settings say. to takes the spans instead, at once.
func (h *Host) openTraces(to tracing.Exporter) error {
	s := h.settings
	o := tracing.Options{Exporter: to, AtOnce: to != nil, Version: Version, PerMillion: int(math.Round(s.TracesRatio * 1e6)), Log: h.log}
	var err error
	switch {
	case to != nil:
	case s.Traces == config.TracesFile:
		o.Exporter, err = tracing.OpenFile(tracesDir(s.StateDir), maxTraces)
	case s.Traces == config.TracesOTLP:
		ctx, cancel := context.WithTimeout(context.Background(), opening)
		defer cancel()
		o.Exporter, err = tracing.NewOTLP(ctx)
	default:
		return nil
	}
	if err != nil {
		return &skill.Error{
			Op: "host.Open", Code: skill.InvalidArgument, Subject: "OTEL_TRACES_EXPORTER", Err: err,
			Message: "OTEL_TRACES_EXPORTER is " + string(s.Traces) + ": " + err.Error(),
		}
	}
	h.trace = tracing.New(o)
	h.owns(func() error { return closeTraces(h.trace) })
	h.log = slog.New(tracing.SpanIDs(h.log.Handler())) // all that is made from here on writes its lines with their spans
	return nil
}

// closeTraces exports the last spans, for as long as a host that stops may take.
func closeTraces(t *tracing.Tracer) error {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	return t.Close(ctx)
}

// traced makes a span of each request of a guest.
func (h *Host) traced(next skill.Outgoing) skill.Outgoing {
	if h.trace == nil || next == nil {
		return next
	}
	return tracedOutgoing{next, h.trace}
}

type tracedOutgoing struct {
	next  skill.Outgoing
	trace *tracing.Tracer
}

// For implements [skill.Outgoing].
func (o tracedOutgoing) For(call *skill.Call) skill.Fetch {
	fetch := o.next.For(call)
	return func(ctx context.Context, request []byte) []byte {
		ctx, span := o.trace.Start(ctx, "egress")
		defer span.End()
		response := fetch(ctx, request)
		span.Number("openskill.response_bytes", int64(len(response)))
		return response
	}
}

// tracedModel makes a span of each request to a model.
func (h *Host) tracedModel(name string, next llm.Provider) llm.Provider {
	if h.trace == nil {
		return next
	}
	return tracedModel{next, name, h.trace}
}

type tracedModel struct {
	next  llm.Provider
	name  string
	trace *tracing.Tracer
}

// Chat implements [llm.Provider].
func (p tracedModel) Chat(ctx context.Context, r *llm.Request, text func(part string)) (*llm.Reply, error) {
	ctx, span := p.trace.Start(ctx, "model")
	defer span.End()
	span.Text("openskill.provider", p.name)
	reply, err := p.next.Chat(ctx, r, text)
	if err != nil {
		span.Fail(string(skill.CodeOf(err)))
		return reply, err
	}
	span.Number("openskill.tokens", int64(reply.Usage.Total()))
	return reply, nil
}
