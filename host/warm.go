package host

import (
	"context"
	"log/slog"
	"time"

	"openskill/sdk/skill"
)

// warmer is a runner that has something to get ready before the first call.
type warmer interface {
	Warm(ctx context.Context) error
}

// warm gets runners ready in the background, one after the other so that calls
// keep the processors. The channel is closed when it is done or ctx has ended.
func (h *Host) warm(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, r := range h.all {
			if w, ok := r.(warmer); ok && ctx.Err() == nil {
				h.warmed(ctx, string(r.Kind()), func() error { return w.Warm(ctx) })
			}
		}
	}()
	return done
}

// warmed does one piece of warming up and logs how it went.
func (h *Host) warmed(ctx context.Context, what string, do func() error) {
	began := time.Now() //nolint:forbidigo // for the log alone
	err := do()
	attrs := []slog.Attr{
		slog.String("what", what),
		slog.Int64("ms", time.Since(began).Milliseconds()), //nolint:forbidigo // as above
	}
	level := slog.LevelInfo
	switch {
	case ctx.Err() != nil:
		return // stopping: nobody waits for it
	case err != nil:
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("code", string(skill.CodeOf(err))), slog.String("reason", err.Error()))
	}
	h.log.LogAttrs(ctx, level, "warmed up", attrs...)
}
