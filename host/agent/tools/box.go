package tools

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"openskill/host/internal/gate"
	"openskill/host/internal/table"
	"openskill/sdk/skill"
)

// The defaults of [Options].
const (
	DefaultParallel = 16
	DefaultMaxText  = 16 << 10
	DefaultMaxTools = 128

	leastText = 2 << 10

	mostWaiting = 1 << 20 // calls; turns, of which there are few, bound them first
	pageSize    = 200     // of the catalogue
)

// Toolbox gives callers' models their tools. It is safe for concurrent use.
type Toolbox struct {
	o    Options
	gate *gate.Gate
	made *table.Cache // tools of skills
	left left
}

// New makes a toolbox. The error says what is wrong with the options.
func New(o Options) (*Toolbox, error) {
	switch {
	case o.Door == nil || o.Catalogue == nil:
		return nil, errors.New("tools.New: Door and Catalogue are required")
	case o.Parallel < 0 || o.MaxTools < 0:
		return nil, errors.New("tools.New: Parallel and MaxTools must not be negative")
	case o.MaxText != 0 && o.MaxText < leastText:
		return nil, fmt.Errorf("tools.New: MaxText must be at least %d", leastText)
	}
	if o.Parallel == 0 {
		o.Parallel = DefaultParallel
	}
	if o.MaxText == 0 {
		o.MaxText = DefaultMaxText
	}
	if o.MaxTools == 0 {
		o.MaxTools = DefaultMaxTools
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Toolbox{o: o, made: table.NewCache(mostMade), gate: gate.New(gate.Options{Places: o.Parallel, Queue: mostWaiting, Alone: o.Alone})}, nil
}

// For returns the tools of a caller: the enabled skills that it finds, which takes the scope
// skills:read, and may call; and those of Agent Skills, if there are any. only limits them to
// the named ones; one that the caller does not have is AGENT_SKILL_NOT_FOUND. Without only,
// form chooses the tools; "" is [FormAll], or [FormCode] if there are too many.
func (b *Toolbox) For(ctx context.Context, p skill.Principal, only []skill.ID, form Form) (_ Set, err error) {
	defer func() {
		if v := recover(); v != nil {
			b.broken(ctx, "", v)
			err = &skill.Error{Op: "tools.For", Code: skill.Internal}
		}
	}()
	k := &kit{box: b, p: p}
	if !p.May(skill.ScopeRead) {
		if err := missing(only, nil); err != nil {
			return nil, err
		}
		return k, nil
	}
	skills, err := b.callable(p)
	if err != nil {
		return nil, err
	}
	var agents []skill.Tool
	if b.o.AgentSkills != nil {
		given, err := b.o.AgentSkills.Tools(ctx, p)
		if err != nil {
			return nil, err
		}
		agents = slices.DeleteFunc(slices.Clone(given), func(t skill.Tool) bool { return !Reserved(t.Name) })
		for i := range agents {
			agents[i].Description, agents[i].OutputSchema = line(agents[i].Description, maxDescription), nil
		}
	}
	if only != nil {
		if err := missing(only, available(agents, skills)); err != nil {
			return nil, err
		}
		agents = slices.DeleteFunc(agents, func(t skill.Tool) bool { return !slices.Contains(only, skill.ID(t.Name)) })
		skills = slices.DeleteFunc(skills, func(d *skill.Descriptor) bool { return !slices.Contains(only, d.ID) })
	}
	if only == nil && b.o.Search != nil {
		if agents, skills, err = b.inForm(form, p, agents, skills); err != nil {
			return nil, err
		}
	}
	agents = agents[:min(len(agents), b.o.MaxTools)]
	room := b.o.MaxTools - len(agents)
	if len(skills) > room {
		b.left.tell(ctx, b.o.Log, p.Tenant, skills[room:])
		skills = skills[:room]
	}
	k.agents, k.list = len(agents), b.add(p.Tenant, agents, skills)
	k.ids = make([]skill.ID, len(skills)) // and not the descriptors, which would live as long as a turn
	for i, d := range skills {
		k.ids[i] = d.ID
	}
	if len(agents) == 0 || b.o.AgentSkills == nil {
		return k, nil
	}
	if k.instructions, err = b.o.AgentSkills.Instructions(ctx, p); err != nil {
		return nil, err
	}
	return k, nil
}

// inForm adds the tool search_skills and removes the skills that a form leaves out.
func (b *Toolbox) inForm(form Form, p skill.Principal, agents []skill.Tool, skills []*skill.Descriptor) ([]skill.Tool, []*skill.Descriptor, error) {
	var code []*skill.Descriptor // run_code, or nothing
	if i := slices.IndexFunc(skills, func(d *skill.Descriptor) bool { return d.ID == skill.RunCode }); i >= 0 {
		code = skills[i : i+1]
	}
	switch {
	case form == "" && len(agents)+len(skills) > b.o.MaxTools && code != nil:
		form = FormCode
	case form == "" || form == FormAll:
		return agents, skills, nil
	}
	if form == FormCode {
		if code == nil {
			return nil, nil, NoCode(p, nil)
		}
		skills = code
	}
	search := SearchTool
	search.Description = line(search.Description, maxDescription)
	return append(agents, search), skills, nil
}

// callable are the skills of the catalogue that a caller may call, in the order of ids.
func (b *Toolbox) callable(p skill.Principal) (all []*skill.Descriptor, err error) {
	last := skill.ID("")
	for cursor := ""; ; {
		page, next, err := b.o.Catalogue.List(p, cursor, pageSize)
		if err != nil {
			return nil, err
		}
		for i := range page {
			d := &page[i]
			if d.ID <= last { // the catalogue changed between two pages
				continue
			}
			if last = d.ID; d.Callable() && p.MayInvoke(d.ID) && validName(NameOf(d.ID)) {
				all = append(all, d)
			}
		}
		if next == "" || next == cursor {
			return all, nil
		}
		cursor = next
	}
}

// available are the names by which callers name tools.
func available(agents []skill.Tool, skills []*skill.Descriptor) (names []string) {
	for i := range agents {
		names = append(names, agents[i].Name)
	}
	for i := range skills {
		names = append(names, string(skills[i].ID))
	}
	return names
}

// missing is the error for the first of only that is not available; nil: they all are.
func missing(only []skill.ID, available []string) error {
	for _, id := range only {
		if !slices.Contains(available, string(id)) {
			name := skill.CleanText(string(id), 64)
			return &skill.Error{
				Op: "tools.For", Code: skill.AgentSkillNotFound, Subject: name,
				Message: skill.CleanText(fmt.Sprintf("skill %q not found or not permitted; %s", name, listed(available)), skill.MaxMessage),
			}
		}
	}
	return nil
}

// listed names the first of all, as far as a message has room.
func listed(all []string) string {
	if len(all) == 0 {
		return "none is available"
	}
	var b strings.Builder
	b.WriteString("available: ")
	for i, name := range all {
		if b.Len()+len(name) > 240 {
			fmt.Fprintf(&b, " and %d more", len(all)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name)
	}
	return b.String()
}

// broken logs a panic of what the toolbox asks. Where tools are listed there is no trace.
func (b *Toolbox) broken(ctx context.Context, trace skill.TraceID, v any) {
	b.o.Log.LogAttrs(context.WithoutCancel(ctx), slog.LevelError, "a panic behind the tools of a model",
		slog.String("trace_id", string(trace)), slog.Any("cause", v), slog.String("stack", string(debug.Stack())))
}

// mostMade bounds what is kept of tools, in bytes. Tenants share it.
const mostMade = 16 << 20

// madeOf is what the tool of a skill is made of: a digest is over all that a skill consists
// of, its manifest included, and the description may be changed beside it.
type madeOf struct{ version, digest, description string }

// add puts the tools of a tenant's skills behind others.
func (b *Toolbox) add(tenant string, before []skill.Tool, skills []*skill.Descriptor) []skill.Tool {
	list := slices.Grow(slices.Clone(before), len(skills))
	for _, d := range skills {
		at := madeOf{d.Version, d.Digest, d.Description}
		v, kept := b.made.Get(tenant, string(d.ID), at)
		t, _ := v.(skill.Tool) // all are
		if !kept {
			t = toolOf(d)
			if d.Digest != "" {
				b.made.Put(tenant, string(d.ID), at, t, len(t.Description)+len(t.InputSchema)+len(t.OutputSchema))
			}
		}
		t.Cost = d.Cost // which the operator may change too
		list = append(list, t)
	}
	return list
}

// left knows of which skills there was no room, so that the log tells it once.
type left struct {
	mu   sync.Mutex
	told map[string]uint64 // by tenant, what was told
}

var leftSeed = maphash.MakeSeed()

func (l *left) tell(ctx context.Context, log *slog.Logger, tenant string, skills []*skill.Descriptor) {
	var h maphash.Hash
	h.SetSeed(leftSeed)
	for _, d := range skills {
		_, _ = h.WriteString(string(d.ID)) // never fails
		_ = h.WriteByte(0)
	}
	l.mu.Lock()
	sum, again := l.told[tenant]
	if again = again && sum == h.Sum64(); !again {
		if l.told == nil || len(l.told) >= 1000 {
			l.told = map[string]uint64{}
		}
		l.told[tenant] = h.Sum64()
	}
	l.mu.Unlock()
	if again {
		return
	}
	ids := make([]string, len(skills))
	for i, d := range skills {
		ids[i] = string(d.ID)
	}
	log.LogAttrs(ctx, slog.LevelWarn, "a model is not offered all skills: there are too many",
		slog.String("tenant", skill.CleanText(tenant, 128)), slog.Int("left_out", len(ids)), slog.String("skill_ids", skill.CleanText(strings.Join(ids, " "), 4<<10)))
}
