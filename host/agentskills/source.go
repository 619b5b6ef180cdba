package agentskills

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// Source gives skills. It is safe for concurrent use, and gives the same values for
// skills that have not changed. The list is the caller's; what is in it is not.
type Source interface {
	Skills(ctx context.Context) ([]Skill, error)
}

// Reporter is a [Source] that can say what it skipped and why.
type Reporter interface {
	Problems() []manifest.Problem
}

func problemsOf(s Source) []manifest.Problem {
	if r, ok := s.(Reporter); ok {
		return r.Problems()
	}
	return nil
}

// inMemory is a source of skills that are there already.
type inMemory []Skill

// NewInMemory makes a source of skills made in Go. The error says what is wrong with
// them.
func NewInMemory(skills ...Skill) (Source, error) {
	var errs []error
	for i, s := range skills {
		if s == nil {
			errs = append(errs, fmt.Errorf("agentskills: the skill at %d is nil", i))
			continue
		}
		if c, ok := s.(interface{ Err() error }); ok {
			errs = append(errs, c.Err())
			continue
		}
		f := s.Frontmatter()
		for _, p := range f.Problems() {
			errs = append(errs, fmt.Errorf("agentskills: skill %s: %s", skill.CleanText(f.Name, 64), p))
		}
	}
	return inMemory(slices.Clone(skills)), errors.Join(errs...)
}

func (m inMemory) Skills(context.Context) ([]Skill, error) { return slices.Clone(m), nil }

// aggregate is many sources as one.
type aggregate struct {
	sources []Source
	log     *slog.Logger
}

// Aggregate gives the skills of all sources, those of the first one first. A source
// that fails is left out and logged; if all do, so does this one. A nil log is
// slog.Default().
func Aggregate(log *slog.Logger, sources ...Source) Source {
	return &aggregate{slices.Clone(sources), logger(log)}
}

func (a *aggregate) Skills(ctx context.Context) ([]Skill, error) {
	var all []Skill
	var errs []error
	for _, s := range a.sources {
		list, err := s.Skills(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			errs = append(errs, err)
			a.log.Warn("a source of Agent Skills failed and is skipped", slog.Any("error", err))
			continue
		}
		all = append(all, list...)
	}
	if len(errs) > 0 && len(errs) == len(a.sources) {
		return nil, errors.Join(errs...)
	}
	return all, nil
}

func (a *aggregate) Problems() (all []manifest.Problem) {
	for _, s := range a.sources {
		all = append(all, problemsOf(s)...)
	}
	return all
}

// filter hides skills.
type filter struct {
	Source
	keep func(Skill) bool
}

// Filter gives the skills of a source that keep wants.
func Filter(s Source, keep func(Skill) bool) Source { return &filter{s, keep} }

func (f *filter) Skills(ctx context.Context) ([]Skill, error) {
	list, err := f.Source.Skills(ctx)
	return slices.DeleteFunc(list, func(s Skill) bool { return !f.keep(s) }), err
}

func (f *filter) Problems() []manifest.Problem { return problemsOf(f.Source) }

// deduplicate hides twins.
type deduplicate struct {
	Source
	log *slog.Logger

	mu       sync.Mutex
	problems []manifest.Problem
}

// Deduplicate gives one skill of each name: one that was not pulled before one that was, one
// whose folder has the name before others, and else the first one. The skills of tenants do not
// hide those of others, and are hidden by those that are everybody's. What is left out
// is logged, once. A nil log is slog.Default().
func Deduplicate(s Source, log *slog.Logger) Source {
	return &deduplicate{Source: s, log: logger(log)}
}

func (d *deduplicate) Skills(ctx context.Context) ([]Skill, error) {
	all, err := d.Source.Skills(ctx)
	if err != nil {
		return nil, err
	}
	type key struct{ owner, name string }
	first := make(map[key]int, len(all))
	for i, s := range all {
		k := key{claimant(s), s.Frontmatter().Name}
		if at, there := first[k]; !there || claim(s) > claim(all[at]) {
			first[k] = i
		}
	}
	var problems []manifest.Problem
	var kept []Skill
	for i, s := range all {
		name := s.Frontmatter().Name
		owner := claimant(s)
		at, everybodys := first[key{"", name}]
		if owner != "" && !everybodys {
			at = first[key{owner, name}]
		}
		if at == i {
			kept = append(kept, s)
			continue
		}
		other := all[at]
		message := fmt.Sprintf("the name %s is already taken by %s; this one is skipped", name, where(other))
		if pulled(s) && !pulled(other) {
			message = fmt.Sprintf("the name %s is that of the operator's own %s; this one was pulled, and is skipped", name, where(other))
		}
		problems = append(problems, manifest.Problem{File: where(s), Message: message})
	}
	d.report(problems)
	return kept, nil
}

// claim is how good a skill's claim to its name is.
func claim(s Skill) (n int) {
	if !pulled(s) {
		n += 2
	}
	if f, ok := s.(*FileSkill); !ok || filepath.Base(f.path) == f.front.Name {
		n++
	}
	return n
}

func (d *deduplicate) report(problems []manifest.Problem) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range problems {
		if !slices.Contains(d.problems, p) {
			d.log.Warn("Agent Skill skipped", slog.String("problem", skill.CleanText(p.String(), 1000)))
		}
	}
	d.problems = problems
}

func (d *deduplicate) Problems() []manifest.Problem {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append(problemsOf(d.Source), d.problems...)
}

// pulled reports whether a skill is a folder that came from elsewhere.
func pulled(s Skill) bool {
	f, ok := s.(*FileSkill)
	return ok && f.pulled
}

// where says where a skill comes from, for the operator.
func where(s Skill) string {
	if f, ok := s.(*FileSkill); ok {
		if f.place.shown != "" {
			return f.place.shown
		}
		return f.path
	}
	return "a skill made in this program"
}

// cache remembers for a while.
type cache struct {
	Source
	every time.Duration
	now   func() time.Time

	changes func() uint64 // the list is read again if its value changes; nil: only after every
	changed uint64

	turn  chan struct{} // full while someone looks
	mu    sync.Mutex
	list  []Skill
	at    time.Time
	known bool
}

// DefaultEvery is how often a [Cache] looks at its source at most.
const DefaultEvery = 2 * time.Second

// Cache asks a source at most once in every, 0 for DefaultEvery, and gives what it said
// in between. While one caller waits for the source others are given what it said
// before, and so is everyone when it fails.
func Cache(s Source, every time.Duration) Source {
	if every <= 0 {
		every = DefaultEvery
	}
	return &cache{Source: s, every: every, now: time.Now, turn: make(chan struct{}, 1)}
}

// revision is that of the source's changes.
func (c *cache) revision() uint64 {
	if c.changes == nil {
		return 0
	}
	return c.changes()
}

func (c *cache) Skills(ctx context.Context) ([]Skill, error) {
	if list, ok := c.remembered(false); ok {
		return list, nil
	}
	select {
	case c.turn <- struct{}{}:
	default:
		if list, ok := c.remembered(true); ok {
			return list, nil
		}
		select {
		case c.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer func() { <-c.turn }()
	if list, ok := c.remembered(false); ok { // of the one before
		return list, nil
	}
	begun, at := c.now(), c.revision()
	list, err := c.Source.Skills(ctx)
	if err != nil {
		if old, ok := c.remembered(true); ok && ctx.Err() == nil {
			return old, nil
		}
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list, c.at, c.changed, c.known = list, begun, at, true
	return slices.Clone(list), nil
}

func (c *cache) remembered(old bool) ([]Skill, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known || !old && (c.now().Sub(c.at) >= c.every || c.revision() != c.changed) {
		return nil, false
	}
	return slices.Clone(c.list), true
}

func (c *cache) Problems() []manifest.Problem { return problemsOf(c.Source) }

func logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.Default()
	}
	return l
}

// same reports whether two lists hold the same skills. Skills of a type that cannot be
// compared are taken for others.
func same(a, b []Skill) bool {
	return slices.EqualFunc(a, b, func(x, y Skill) bool {
		return reflect.TypeOf(x).Comparable() && x == y
	})
}
