package app

import (
	"context"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"openskill/host/dispatch"
	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// A chore is a piece of work ahead of calls.
type chore struct {
	msg, what string
	kind      skill.Kind
	do        func(ctx context.Context) error
}

// warm gets what skills use ready in the background, one after the other so that
// calls keep the processors. When ctx has ended it begins nothing more; chore is the context of
// what it does. The channel is closed when it has ended.
func (h *Host) warm(ctx, chore context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		began := time.Now()
		skills := h.enabled()
		list := h.warmups(append(skills[:len(skills):len(skills)], h.oneScriptEach(ctx)...))
		list = append(list, h.startChores(skills)...)
		for i, c := range list {
			h.warming.Store(kindsOf(list[i:]))
			if ctx.Err() != nil {
				return
			}
			h.done(chore, c.msg, c.what, func() error { return c.do(chore) })
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

// warmups compile the modules of skills, and then the language runtimes that skills ask for
// first, those for what they require included.
func (h *Host) warmups(skills []*manifest.Skill) (list []chore) {
	var runtimes []chore
	done := map[string]bool{}
	for _, s := range skills {
		c := chore{"warmed up", string(s.Descriptor.ID), s.Primary.Kind, func(ctx context.Context) error { return h.compiled(ctx, s) }}
		switch {
		case s.Primary.Kind.OwnModule():
			if missing(s.Folder + "/" + s.Primary.File()) { // it is not built: a call tells
				continue
			}
			list = append(list, c)
		case dispatch.OutsideSandbox(s.Primary.Kind):
		default:
			c.what = string(s.Primary.Kind)
			if requires := s.Descriptor.Requires; len(requires) > 0 {
				c.what += " with " + strings.Join(requires, ", ")
			}
			if !done[c.what] {
				runtimes = append(runtimes, c)
			}
			done[c.what] = true
		}
	}
	return append(list, runtimes...)
}

const (
	// maxStarted is how many skills are started ahead: each takes memory until it is
	// called, or for the minutes that images are kept.
	maxStarted = 64
	// starting bounds the start of one skill.
	starting = time.Minute
)

// startChores start skills that can be started once for all their calls.
func (h *Host) startChores(skills []*manifest.Skill) (list []chore) {
	n := 0
	for _, s := range skills {
		if dispatch.OutsideSandbox(s.Primary.Kind) {
			continue
		}
		list = append(list, chore{"started ahead of calls", string(s.Descriptor.ID), s.Primary.Kind, func(ctx context.Context) error {
			ctx, stop := context.WithTimeout(ctx, starting)
			defer stop()
			r, plan, err := h.plan(ctx, s, false)
			if err != nil || plan.Missing != nil || n >= maxStarted {
				return nil // what is missing was logged
			}
			n++
			call, err := h.callOf(s)
			if err != nil {
				return err
			}
			call.Plan, call.Ahead = plan, true
			reply, err := r.Run(ctx, call)
			if err == nil && reply.Code != "" {
				err = &skill.Error{Op: "host.start", Code: reply.Code, Message: reply.Message}
			}
			return err
		}})
	}
	return list
}

// plan prepares calls of a skill as it asks first; wait says to wait until they can be run.
func (h *Host) plan(ctx context.Context, s *manifest.Skill, wait bool) (skill.Runner, skill.Plan, error) {
	r, err := h.runners.Get(s.Primary.Kind)
	if err != nil {
		return nil, skill.Plan{}, err
	}
	spec := s.Spec(s.Primary, s.Owner)
	spec.Wait = wait
	if s.Code {
		spec.Script, spec.Code = true, []byte{}
	}
	plan, err := r.Prepare(ctx, spec)
	return r, plan, err
}

// compiled returns when what a skill runs on is compiled.
func (h *Host) compiled(ctx context.Context, s *manifest.Skill) error {
	_, _, err := h.plan(ctx, s, true)
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
		Trust: s.Descriptor.Trust, Limits: s.Limits, Grants: granted,
	}
	c.Limits.Timeout = starting
	c.Script, c.Code = s.Code, s.Code
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
	if dispatch.OutsideSandbox(s.Primary.Kind) {
		return
	}
	if err := h.compiled(ctx, s); err != nil {
		h.log.Debug("not prepared", slog.String("skill_id", string(s.Descriptor.ID)), slog.String("reason", err.Error()))
	}
}
