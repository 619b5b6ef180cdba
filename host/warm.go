package host

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"openskill/host/registry"
	"openskill/sdk/skill"
)

// warmer is a runner that has something to get ready before the first call.
type warmer interface {
	Warm(ctx context.Context) error
}

// warm gets what skills use ready in the background, one after the other so that
// calls keep the processors. The channel is closed when it is done or ctx has ended.
func (h *Host) warm(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		skills := h.enabled()
		for _, s := range skills {
			if ctx.Err() == nil && s.Primary.Kind == skill.WasmWASI && h.runner(s).Ready(s.Folder, s.Primary.Entry) == nil {
				h.warmed(ctx, string(s.Descriptor.ID), func() error { return h.compile(ctx, s) })
			}
		}
		for _, r := range h.all {
			if w, ok := r.(warmer); ok && ctx.Err() == nil && used(skills, r.Kind()) {
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

// enabled are the skills that can be called.
func (h *Host) enabled() (list []*registry.Skill) {
	for cursor := ""; ; {
		page, next, err := h.registry.List(cursor, registry.MaxPage)
		for _, d := range page {
			if s, err := h.registry.Get(d.ID, ""); err == nil && d.Enabled {
				list = append(list, s)
			}
		}
		if err != nil || next == "" {
			return list
		}
		cursor = next
	}
}

// used reports whether a runner is what some skill asks for first: a runtime that
// none does is not compiled.
func used(skills []*registry.Skill, kind skill.Kind) bool {
	return slices.ContainsFunc(skills, func(s *registry.Skill) bool { return s.Primary.Kind == kind })
}

// maxModule is the size in bytes up to which a module is compiled ahead.
const maxModule = 64 << 20

// compile leaves a skill's module in the engine, where its runner finds it by its
// content.
func (h *Host) compile(ctx context.Context, s *registry.Skill) error {
	root, err := os.OpenRoot(s.Folder)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // read only
	f, err := root.Open(filepath.FromSlash(s.Primary.Entry))
	if err != nil {
		return err
	}
	defer f.Close()                                      //nolint:errcheck // read only
	b, err := io.ReadAll(io.LimitReader(f, maxModule+1)) // one more, for the cap to see
	if err != nil {
		return err
	}
	_, err = h.engine.Compile(ctx, b, nil)
	return err
}

// runner is the one that a skill asks for first; nil if there is none.
func (h *Host) runner(s *registry.Skill) skill.Runner {
	for _, r := range h.all {
		if r.Kind() == s.Primary.Kind {
			return r
		}
	}
	return nil
}

// preparing bounds Prepare: a call that still finds nothing ready is told so.
const preparing = time.Minute

// Prepare gets one skill ready and returns when it is, so that a single call
// neither takes the fallback nor runs out of time only because it is the first.
// What cannot be got ready is for the door to tell.
func (h *Host) Prepare(ctx context.Context, id skill.ID) {
	s, err := h.registry.Get(id, "")
	if err != nil || !s.Descriptor.Enabled {
		return
	}
	ctx, stop := context.WithTimeout(ctx, preparing)
	defer stop()
	w, warms := h.runner(s).(warmer)
	switch {
	case warms:
		err = w.Warm(ctx)
	case s.Primary.Kind == skill.WasmWASI:
		err = h.compile(ctx, s)
	}
	if err != nil {
		h.log.Debug("not prepared", slog.String("skill_id", string(id)), slog.String("reason", err.Error()))
	}
}
