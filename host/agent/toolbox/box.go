package toolbox

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
	"openskill/host/tools"
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
	made made
	left left
}

// New makes a toolbox. The error says what is wrong with the options.
func New(o Options) (*Toolbox, error) {
	switch {
	case o.Door == nil || o.Catalogue == nil:
		return nil, errors.New("toolbox.New: Door and Catalogue are required")
	case o.Parallel < 0 || o.MaxTools < 0:
		return nil, errors.New("toolbox.New: Parallel and MaxTools must not be negative")
	case o.MaxText != 0 && o.MaxText < leastText:
		return nil, fmt.Errorf("toolbox.New: MaxText must be at least %d", leastText)
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
	return &Toolbox{o: o, gate: gate.New(gate.Options{Places: o.Parallel, Queue: mostWaiting, Alone: o.Alone})}, nil
}

// For gives the tools of a caller: the enabled skills that it finds, which takes the scope
// skills:read, and may call; and those for Agent Skills, where there are some. only names
// the tools that there shall be, of these; nil: all. One that is not among them is
// AGENT_SKILL_NOT_FOUND.
func (b *Toolbox) For(ctx context.Context, p skill.Principal, only []skill.ID) (_ Tools, err error) {
	defer func() {
		if v := recover(); v != nil {
			b.broken(ctx, "", v)
			err = &skill.Error{Op: "toolbox.For", Code: skill.Internal}
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
		agents = slices.DeleteFunc(slices.Clone(given), func(t skill.Tool) bool { return !tools.Reserved(t.Name) })
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
	agents = agents[:min(len(agents), b.o.MaxTools)]
	room := b.o.MaxTools - len(agents)
	if len(skills) > room {
		b.left.tell(ctx, b.o.Log, p.Tenant, skills[room:])
		skills = skills[:room]
	}
	k.agents, k.list = len(agents), b.made.add(agents, skills)
	k.ids = make([]skill.ID, len(skills)) // and not the descriptors, which would live as long as a turn
	for i, d := range skills {
		k.ids[i] = d.ID
	}
	if len(agents) == 0 {
		return k, nil
	}
	if k.instructions, err = b.o.AgentSkills.Instructions(ctx, p); err != nil {
		return nil, err
	}
	return k, nil
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
			if last = d.ID; d.Enabled && p.MayInvoke(d.ID) && validName(tools.NameOf(d.ID)) {
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
				Op: "toolbox.For", Code: skill.AgentSkillNotFound, Subject: name,
				Message: skill.CleanText(fmt.Sprintf("there is no skill %q that the caller may call; %s", name, listed(available)), skill.MaxMessage),
			}
		}
	}
	return nil
}

// listed names the first of all, as far as a message has room.
func listed(all []string) string {
	if len(all) == 0 {
		return "there is none"
	}
	var b strings.Builder
	b.WriteString("there are ")
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

// made are tools by what they were made of: a digest is over all that a skill consists
// of, its manifest included, and the description may be changed beside it.
type made struct {
	mu    sync.RWMutex
	tools map[key]skill.Tool
}

type key struct {
	id              skill.ID
	version, digest string
	description     string // which the operator may change without a new digest
}

// mostMade bounds what is kept; one is a few kilobytes.
const mostMade = 4096

// add puts the tools of skills behind others.
func (m *made) add(before []skill.Tool, skills []*skill.Descriptor) []skill.Tool {
	list := make([]skill.Tool, len(before)+len(skills))
	copy(list, before)
	to := list[len(before):]
	var lacking []int
	m.mu.RLock()
	for i := range skills {
		d := skills[i]
		t, ok := m.tools[key{d.ID, d.Version, d.Digest, d.Description}]
		if !ok {
			lacking = append(lacking, i)
		}
		t.Cost = d.Cost // which the operator may change too
		to[i] = t
	}
	m.mu.RUnlock()
	if len(lacking) == 0 {
		return list
	}
	for _, i := range lacking { // others need not wait for that
		to[i] = toolOf(skills[i])
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.tools)+len(lacking) > mostMade || m.tools == nil {
		m.tools = map[key]skill.Tool{}
	}
	for _, i := range lacking {
		if d := skills[i]; d.Digest != "" {
			m.tools[key{d.ID, d.Version, d.Digest, d.Description}] = to[i]
		}
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
