package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"openskill/host/internal/tracing"
	"openskill/sdk/skill"
)

// answered is the outermost layer: it makes the result of whatever the layers
// below it did, and writes the call's one log line.
func (d *Dispatcher) answered(next handler) handler {
	return func(ctx context.Context, c *call) error {
		ctx, span := d.o.Trace.StartOrRoot(ctx, "door", string(c.request.TraceID))
		err := next(ctx, c)
		c.result = d.result(c, err)
		c.admission.End() // of a call that was refused
		d.trace(span, c)
		d.log(ctx, c, err)
		d.tell(c)
		return err
	}
}

// Ended is what is told of a call that has ended, whatever it came to.
type Ended struct {
	Principal skill.Principal
	// Known says that there is such a skill, and this caller may see it. The id of a result
	// is otherwise whatever the caller wrote.
	Known  bool
	Owner  string // the tenant that uploaded the skill; "": the operator's own
	Result *skill.Result
	Began  time.Time
	Took   time.Duration
}

// trace ends the span of a call.
func (d *Dispatcher) trace(span *tracing.Span, c *call) {
	if span == nil {
		return
	}
	if c.skill != nil { // else it is whatever the caller wrote
		span.Text("openskill.skill", string(c.skill.Descriptor.ID))
		span.Text("openskill.version", c.skill.Descriptor.Version)
	}
	r := c.result
	span.Text("openskill.execution_id", r.Meta.ExecutionID)
	span.Text("openskill.runner", string(r.Meta.Runner))
	span.Number("openskill.fuel", int64(min(r.Meta.FuelUsed, 1<<62)))               // bounded
	span.Number("openskill.memory_peak", int64(min(r.Meta.MemoryPeakBytes, 1<<62))) // bounded
	if r.Error != nil {
		span.Fail(string(r.Error.Code))
	}
	span.End()
}

func (d *Dispatcher) tell(c *call) {
	if d.o.Watch == nil {
		return
	}
	e := &Ended{Principal: c.principal, Result: c.result, Began: c.begun, Took: max(d.o.Now().Sub(c.begun), 0)}
	if c.skill != nil {
		e.Known, e.Owner = true, c.skill.Owner
	}
	d.o.Watch(e)
}

func (d *Dispatcher) result(c *call, err error) *skill.Result {
	meta := skill.Meta{
		LatencyMS:   max(d.o.Now().Sub(c.begun).Milliseconds(), 0),
		ExecutionID: c.executionID,
		Runner:      c.target.Kind,
		Truncated:   c.outcome.truncated,
		Ran:         c.ran,
	}
	if c.skill != nil {
		meta.Version, meta.Digest = c.skill.Descriptor.Version, c.skill.Descriptor.Digest
	}
	if c.reply != nil {
		meta.FuelUsed, meta.MemoryPeakBytes = c.reply.Usage.Fuel, c.reply.Usage.MemoryPeak
		meta.Processes = c.reply.Processes
		for _, a := range c.reply.Artifacts {
			if c.listed(&a) {
				meta.Artifacts = append(meta.Artifacts, a)
			}
		}
	}
	id := skill.ID(skill.CleanText(string(c.request.SkillID), 64))
	switch {
	case err != nil:
		return skill.Failure(id, c.request.TraceID, meta, err)
	case c.outcome.guest != nil:
		return &skill.Result{SkillID: id, TraceID: c.request.TraceID, Error: c.outcome.guest, Meta: meta}
	default:
		return &skill.Result{Success: true, SkillID: id, TraceID: c.request.TraceID, Data: c.outcome.data, Meta: meta}
	}
}

// listed reports whether the answer lists an artifact. The guest chose its name: names with control characters,
// or with a backslash, which is a path separator on Windows, are hidden.
func (c *call) listed(a *skill.Artifact) bool {
	return a.Name != "" && a.Name == skill.CleanText(a.Name, 255) && !strings.Contains(a.Name, `\`) && (c.script != nil || c.code != nil || !strings.Contains(a.Name, "/"))
}

// log writes the line of a call. Inputs and outputs are never in it: where the
// message for the caller may repeat them, the log has other words.
func (d *Dispatcher) log(ctx context.Context, c *call, err error) {
	r := c.result
	level, code, message := slog.LevelInfo, skill.Code(""), ""
	var extra []slog.Attr
	if r.Error != nil {
		level, code, message = slog.LevelWarn, r.Error.Code, words(r.Error, err)
		switch broken, ok := errors.AsType[*panicError](err); {
		case ok:
			level = slog.LevelError
			extra = append(extra, slog.String("cause", err.Error()), slog.String("stack", string(broken.stack)))
		case err != nil && code == skill.Internal:
			level = slog.LevelError
			extra = append(extra, slog.String("cause", err.Error()))
		}
	}
	attrs := []slog.Attr{
		slog.String("trace_id", string(r.TraceID)),
		slog.String("execution_id", r.Meta.ExecutionID),
		slog.String("skill_id", string(r.SkillID)),
		slog.String("version", r.Meta.Version),
		slog.String("runner_type", string(r.Meta.Runner)),
		slog.String("principal", skill.CleanText(c.principal.ID, 128)),
		slog.String("tenant", skill.CleanText(c.principal.Tenant, 128)),
		slog.Bool("success", r.Success),
		slog.Int64("latency_ms", r.Meta.LatencyMS),
		slog.String("error.code", string(code)),
		slog.String("error.message", message),
		slog.Uint64("fuel_used", r.Meta.FuelUsed),
		slog.Uint64("memory_peak_bytes", r.Meta.MemoryPeakBytes),
	}
	ctx = context.WithoutCancel(ctx)
	d.o.Log.LogAttrs(ctx, level, "invoke", append(attrs, extra...)...)
	if c.reply != nil && len(c.reply.Stderr) > 0 && d.o.Log.Enabled(ctx, slog.LevelDebug) {
		// Not in the line of the call: it is the guest's words, and may repeat an input.
		d.o.Log.LogAttrs(ctx, slog.LevelDebug, "stderr", attrs[0], attrs[1], attrs[2],
			slog.Int("bytes", len(c.reply.Stderr)), slog.String("text", d.tail(c.reply.Stderr, c.skill.Folder, maxLogged)))
	}
}

// words is the message of an error without what a caller or a guest wrote: what logs
// and records may keep.
func words(shown *skill.ResultError, err error) string {
	switch instead, ok := errors.AsType[logError](err); {
	case err == nil:
		return "reported by the skill; the result has its message"
	case ok:
		return string(instead)
	}
	return shown.Message
}

// maxLogged is how many bytes of the end of a guest's standard error are logged.
const maxLogged = 4 << 10
