package app

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"openskill/host/catalogue/manifest"
	"openskill/host/workers"
	"openskill/plugins/extism"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// warmer is a runner that has something to get ready before the first call.
type warmer interface {
	Warm(ctx context.Context) error
}

// requirer is one where that depends on what a skill requires.
type requirer interface {
	WarmWith(ctx context.Context, requires []string) error
}

// starter is a runner that starts a skill once for all its calls, and can do so
// before the first one.
type starter interface {
	Start(ctx context.Context, call *skill.Call) error
}

// A chore is a piece of work ahead of calls.
type chore struct {
	msg, what string
	kind      skill.Kind
	left      func() bool // whether there is something to do
	do        func() error
}

// warm gets what skills use ready in the background, one after the other so that
// calls keep the processors. The channel is closed when it is done or ctx has ended.
func (h *Host) warm(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		began := time.Now()
		skills := h.enabled()
		var list []chore
		for _, s := range skills {
			if s.Primary.Kind.OwnModule() {
				list = append(list, chore{
					"warmed up", string(s.Descriptor.ID), s.Primary.Kind,
					func() bool { return h.runner(s).Ready(s.Folder, s.Primary.Entry) == nil },
					func() error { return h.compile(ctx, s) },
				})
			}
		}
		list = append(list, h.runtimeChores(ctx, append(skills[:len(skills):len(skills)], h.oneScriptEach(ctx)...))...)
		list = append(list, h.startChores(ctx, skills)...)
		for i, c := range list {
			h.warming.Store(kindsOf(list[i:]))
			if ctx.Err() != nil {
				return
			}
			if c.left() {
				h.done(ctx, c.msg, c.what, c.do)
			}
		}
		h.warming.Store(kindsOf(nil))
		h.log.Info("skills are ready", slog.Int64("ms", time.Since(began).Milliseconds()))
	}()
	return done
}

// kindsOf names the kinds of skills that chores are for.
func kindsOf(list []chore) *[]string {
	var kinds []string
	for _, c := range list {
		kinds = append(kinds, string(c.kind))
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	return &kinds
}

// Warming names the kinds of skills of which some are still being compiled or started:
// the first calls of those wait for that.
func (h *Host) Warming() []string {
	if kinds := h.warming.Load(); kinds != nil {
		return *kinds
	}
	return nil
}

// oneScriptEach gives a script of the operator's Agent Skills for each runner that some need.
func (h *Host) oneScriptEach(ctx context.Context) (list []*manifest.Skill) {
	all, err := h.agents.List(ctx, skill.Local())
	if err != nil {
		return nil // callers are told
	}
	done := map[string]bool{}
	for _, a := range all {
		for _, f := range a.Scripts {
			ext := strings.ToLower(path.Ext(f.Name))
			if done[ext] || scriptKinds[ext] == "" {
				continue
			}
			if s, err := (scripts{h}).Script(ctx, skill.Local(), a.Name, f.Name); err == nil {
				done[ext] = true
				list = append(list, s)
			}
		}
	}
	return list
}

// runtimeChores compile the language runtimes that skills ask for first, those for
// what they require included; one that none asks for is not loaded.
func (h *Host) runtimeChores(ctx context.Context, skills []*manifest.Skill) (list []chore) {
	done := map[string]bool{}
	for _, r := range h.all {
		w, ok := r.(warmer)
		if !ok || r.Kind().OwnModule() { // a command has no runtime
			continue
		}
		for _, s := range skills {
			what := string(r.Kind())
			if requires := s.Descriptor.Requires; len(requires) > 0 {
				what += " with " + strings.Join(requires, ", ")
			}
			if s.Primary.Kind != r.Kind() || done[what] {
				continue
			}
			done[what] = true
			list = append(list, chore{"warmed up", what, r.Kind(), func() bool { return true }, func() error { return warmFor(ctx, w, s) }})
		}
	}
	return list
}

func warmFor(ctx context.Context, w warmer, s *manifest.Skill) error {
	if r, ok := w.(requirer); ok {
		return r.WarmWith(ctx, s.Descriptor.Requires)
	}
	return w.Warm(ctx)
}

const (
	// maxStarted is how many skills are started ahead: each takes memory until it is
	// called, or for the minutes that images are kept.
	maxStarted = 64
	// starting bounds the start of one skill.
	starting = time.Minute
)

// startChores start skills that can be started once for all their calls.
func (h *Host) startChores(ctx context.Context, skills []*manifest.Skill) (list []chore) {
	n := 0
	for _, s := range skills {
		r, ok := h.runner(s).(starter)
		if !ok {
			continue
		}
		list = append(list, chore{
			"started ahead of calls", string(s.Descriptor.ID), s.Primary.Kind,
			func() bool {
				left := n < maxStarted && h.ready(s) == nil
				if left {
					n++
				}
				return left
			},
			func() error {
				bounded, stop := context.WithTimeout(ctx, starting)
				defer stop()
				call, err := h.callOf(s)
				if err != nil {
					return err
				}
				return r.Start(bounded, call)
			},
		})
	}
	return list
}

// ready reports whether a skill would run as it asks first; the reason against it is
// logged elsewhere.
func (h *Host) ready(s *manifest.Skill) error {
	_, _, err := h.runners.Choose(s.Descriptor.Trust, s.Folder, s.Descriptor.Requires, s.Primary, nil)
	return err
}

// callOf is a call of a skill as the door would make it, but for its input and time.
func (h *Host) callOf(s *manifest.Skill) (*skill.Call, error) {
	granted, err := h.door.Grants(s)
	if err != nil {
		return nil, err
	}
	c := &skill.Call{
		SkillID: s.Descriptor.ID, Tenant: skill.Local().Tenant, Folder: s.Folder, Entry: s.Primary.Entry, Digest: s.Descriptor.Digest,
		Trust: s.Descriptor.Trust, Requires: s.Descriptor.Requires, Limits: s.Limits, Grants: granted,
	}
	c.Limits.Timeout = starting
	if r := h.records(); r != nil { // runs that are recorded begin in images of their own
		c.Record = r.Most()
	}
	return c, nil
}

// done does one piece of work ahead of calls and logs how it went, at the default level
// only what failed.
func (h *Host) done(ctx context.Context, msg, what string, do func() error) {
	began := time.Now()
	err := do()
	attrs := []slog.Attr{
		slog.String("what", what),
		slog.Int64("ms", time.Since(began).Milliseconds()),
	}
	level := slog.LevelDebug
	switch {
	case ctx.Err() != nil:
		return // stopping: nobody waits for it
	case err != nil:
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("code", string(skill.CodeOf(err))), slog.String("reason", err.Error()))
	}
	h.log.LogAttrs(ctx, level, msg, attrs...) //nolint:sloglint // one of two constants
}

// enabled are the skills that can be called.
func (h *Host) enabled() (list []*manifest.Skill) {
	own := h.skills.Now()
	for cursor := ""; ; {
		page, next, err := own.List(cursor, manifest.MaxPage)
		for _, d := range page {
			if s, err := own.Get(d.ID, ""); err == nil && d.Enabled {
				list = append(list, s)
			}
		}
		if err != nil || next == "" {
			return list
		}
		cursor = next
	}
}

// maxModule is the size in bytes up to which a module is compiled ahead.
const maxModule = 64 << 20

// compile leaves a skill's module compiled, where its runner finds it by its content.
func (h *Host) compile(ctx context.Context, s *manifest.Skill) error {
	root, err := os.OpenRoot(s.Folder)
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := root.Open(filepath.FromSlash(s.Primary.File()))
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxModule+1)) // one more, for the cap to see
	if err != nil {
		return err
	}
	if s.Primary.Kind == skill.WasmExtism {
		_, function := extism.Split(s.Primary.Entry)
		if b, err = extism.Command(b, function); err != nil {
			return err
		}
	}
	if h.workers != nil {
		_, err = h.workers.modules.Ensure(ctx, wasm.Digest(b), &workers.Source{
			Tenant: s.Owner, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil },
		})
		return err
	}
	_, err = h.engine.Compile(ctx, b, nil)
	return err
}

// runner is the one that a skill asks for first; nil if there is none.
func (h *Host) runner(s *manifest.Skill) skill.Runner {
	for _, r := range h.all {
		if r.Kind() == s.Primary.Kind {
			return r
		}
	}
	return nil
}

// preparing bounds Prepare: a call that still finds nothing ready is told so. The
// largest runtime takes a minute or two the first time.
const preparing = 5 * time.Minute

// Prepare gets one skill ready and returns when it is, so that a single call
// neither takes the fallback nor runs out of time only because it is the first.
// What cannot be got ready is for the door to tell.
func (h *Host) Prepare(ctx context.Context, id skill.ID) {
	s, err := h.skills.Now().Get(id, "")
	if err != nil || !s.Descriptor.Enabled {
		return
	}
	h.prepare(ctx, h.trial.of(s))
}

// PrepareScript is Prepare for a script of the operator's own Agent Skills.
func (h *Host) PrepareScript(ctx context.Context, name, script string) {
	s, err := scripts{h}.Script(ctx, skill.Local(), name, script)
	if err != nil {
		return
	}
	h.prepare(ctx, s)
}

func (h *Host) prepare(ctx context.Context, s *manifest.Skill) {
	ctx, stop := context.WithTimeout(ctx, preparing)
	defer stop()
	w, warms := h.runner(s).(warmer)
	var err error
	switch {
	case s.Primary.Kind.OwnModule():
		err = h.compile(ctx, s)
	case warms:
		err = warmFor(ctx, w, s)
	}
	if err != nil {
		h.log.Debug("not prepared", slog.String("skill_id", string(s.Descriptor.ID)), slog.String("reason", err.Error()))
	}
}
