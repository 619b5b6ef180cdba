package agentskills

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// counted is a source that can fail or wait, and counts.
type counted struct {
	list  []Skill
	err   error
	delay time.Duration
	asked atomic.Int32
}

func (c *counted) Skills(ctx context.Context) ([]Skill, error) {
	c.asked.Add(1)
	if c.delay > 0 {
		select {
		case <-time.After(c.delay):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return append([]Skill{}, c.list...), c.err
}

func (c *counted) Problems() []manifest.Problem { return []manifest.Problem{{File: "counted"}} }

func TestAggregate(t *testing.T) {
	t.Parallel()
	broken := &counted{err: errors.New("down")}
	list := skillsOf(t, Aggregate(quiet, &counted{list: []Skill{inline("b", "D")}}, broken, memory(t, inline("a", "D"), inline("b", "Other"))))
	if diff := cmp.Diff([]string{"b", "a", "b"}, namesOf(list)); diff != "" {
		t.Error(diff)
	}
	if _, err := Aggregate(quiet, broken, broken).Skills(t.Context()); err == nil {
		t.Error("all sources fail, and nobody is told")
	}
	if list := skillsOf(t, Aggregate(quiet)); len(list) != 0 {
		t.Error(namesOf(list))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Aggregate(quiet, memory(t)).Skills(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	src := memory(t, inline("a", "D"), inline("b", "D"), inline("c", "D"))
	f := Filter(src, func(s Skill) bool { return s.Frontmatter().Name != "b" })
	for range 2 { // the source's own list stays as it is
		if diff := cmp.Diff([]string{"a", "c"}, namesOf(skillsOf(t, f))); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, namesOf(skillsOf(t, src))); diff != "" {
		t.Error(diff)
	}
}

func TestDeduplicate(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	one, two := t.TempDir(), t.TempDir()
	write(t, one, map[string]string{"demo/SKILL.md": md("demo", "First.")})
	write(t, two, map[string]string{"demo/SKILL.md": md("demo", "Second."), "own/SKILL.md": md("own", "D")})
	d := Deduplicate(Aggregate(quiet, source(t, nil, one, two), memory(t, owned{inline("demo", "T"), "t"}, owned{inline("x", "D"), "t"}, owned{inline("x", "D"), "u"}, owned{inline("x", "D"), "u"})),
		slog.New(slog.NewTextHandler(&log, nil)))
	for range 2 {
		list := skillsOf(t, d)
		if diff := cmp.Diff([]string{"demo", "own", "x", "x"}, namesOf(list)); diff != "" {
			t.Error(diff)
		}
		if list[0].Frontmatter().Description != "First." {
			t.Error("not the first one is kept")
		}
	}
	problems := d.(Reporter).Problems()
	if len(problems) != 3 || problems[0].File != filepath.Join(two, "demo") || !strings.Contains(problems[0].Message, "already taken by "+filepath.Join(one, "demo")) {
		t.Errorf("%q", lines(problems))
	}
	if n := strings.Count(log.String(), "already taken"); n != 3 {
		t.Errorf("%d warnings in the log, want 3 of two looks: %s", n, &log)
	}
}

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &counted{list: []Skill{inline("a", "D")}}
		c := Cache(src, 0)
		want := func(asked int32, names ...string) {
			t.Helper()
			if diff := cmp.Diff(names, namesOf(skillsOf(t, c))); diff != "" || src.asked.Load() != asked {
				t.Errorf("asked %d times, want %d; %s", src.asked.Load(), asked, diff)
			}
		}
		want(1, "a")
		src.list = []Skill{inline("b", "D")}
		time.Sleep(DefaultEvery - 1)
		want(1, "a")
		time.Sleep(time.Nanosecond)
		want(2, "b")
		// What the source said before holds while it fails.
		src.err = errors.New("down")
		time.Sleep(DefaultEvery)
		want(3, "b")
		src.err = nil
		want(4, "b")
		// One waits, the others are given what is known.
		src.delay = time.Second
		src.list = []Skill{inline("c", "D")}
		time.Sleep(DefaultEvery)
		var wg sync.WaitGroup
		wg.Go(func() { skillsOf(t, c) })
		synctest.Wait()
		want(5, "b")
		wg.Wait()
		want(5, "c")
		if len(c.(Reporter).Problems()) != 1 {
			t.Error("the problems of the source are lost")
		}
	})
}

// Callers that come together before anything is known wait for one look.
func TestCacheTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &counted{list: []Skill{inline("a", "D")}, delay: time.Second}
		c := Cache(src, time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { _, err := c.Skills(ctx); first <- err }()
		synctest.Wait()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if diff := cmp.Diff([]string{"a"}, namesOf(skillsOf(t, c))); diff != "" {
					t.Error(diff)
				}
			})
		}
		// That the first one leaves is not the others' loss.
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		wg.Wait()
		if n := src.asked.Load(); n != 2 {
			t.Errorf("asked %d times, want 2", n)
		}
	})
}

func TestDisableCaching(t *testing.T) {
	t.Parallel()
	for disabled, want := range map[bool]int32{false: 1, true: 3} {
		src := &counted{list: []Skill{inline("a", "D")}}
		p := musttest.Get(New(src, &Options{DisableCaching: disabled, Every: time.Hour, Log: quiet}))(t)
		for range 3 {
			musttest.Get(p.List(t.Context(), skill.Local()))(t)
		}
		if n := src.asked.Load(); n != want {
			t.Errorf("disabled %v: asked %d times, want %d", disabled, n, want)
		}
	}
	if _, err := New(nil, nil); err == nil {
		t.Error("a provider without a source")
	}
	p := provide(t, &counted{err: errors.New("secret")}, nil)
	if _, err := p.List(t.Context(), skill.Local()); skill.CodeOf(err) != skill.Internal {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.List(ctx, skill.Local()); skill.CodeOf(err) != skill.Cancelled {
		t.Errorf("%v", err)
	}
}

func TestBuilder(t *testing.T) {
	t.Parallel()
	one, two := t.TempDir(), t.TempDir()
	write(t, one, map[string]string{"a/SKILL.md": md("a", "D"), "a/run.py": "1", "draft/SKILL.md": md("draft", "D"), "bad/SKILL.md": "x"})
	write(t, two, map[string]string{"b/SKILL.md": md("b", "D"), "b/run.rb": "1", "a/SKILL.md": md("a", "Twin.")})
	var log strings.Builder
	asked := 0
	p, err := NewBuilder().
		UseFileSkill(one, nil).
		UseFileSkills([]string{two}, &FileOptions{ScriptExtensions: []string{".rb"}, Runner: func(context.Context, *FileSkill, *FileScript, *Call) (any, error) { return "ruby", nil }}).
		UseRoots([]Root{{Path: filepath.Join(two, "b"), Trust: skill.Community, Owner: "t"}}, nil).
		UseSkill(inline("c", "D")).UseSkills(inline("d", "D"), inline("e", "D")).
		UseSource(memory(t, inline("f", "D"))).
		UseFilter(func(s Skill) bool { return s.Frontmatter().Name != "draft" }).
		UseFilter(func(s Skill) bool { return s.Frontmatter().Name != "e" }).
		UsePromptTemplate("{skills}").
		UseScriptApproval(func(context.Context, Approval) error { asked++; return nil }).
		UseFileScriptRunner(printed).
		UseLogger(slog.New(slog.NewTextHandler(&log, nil))).
		UseOptions(func(o *Options) { o.DisableCaching = true }).
		Build()
	musttest.Do(t, err)
	list := musttest.Get(p.List(t.Context(), skill.Local()))(t)
	names := []string{}
	for _, s := range list {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "f"}, names); diff != "" {
		t.Error(diff)
	}
	for script, want := range map[string]string{"a/run.py": `a run.py [] ""`, "b/run.rb": "ruby"} {
		name, file, _ := strings.Cut(script, "/")
		if got := field(t, p.RunScript(t.Context(), skill.Local(), skill.ScriptRequest{Skill: name, Script: file}), "output"); got != want {
			t.Errorf("%s: %s, want %s", script, got, want)
		}
	}
	if asked != 2 {
		t.Errorf("asked for approval %d times", asked)
	}
	if text, err := p.Instructions(t.Context(), skill.Local()); err != nil || !strings.HasPrefix(text, "<available_skills>") {
		t.Errorf("%q, %v", text, err)
	}
	if !strings.Contains(log.String(), "SKILL.md:1") || !strings.Contains(log.String(), "already taken") {
		t.Errorf("the log does not tell what was skipped: %s", &log)
	}
	if n := len(p.Problems()); n != 3 {
		t.Errorf("%d problems: %q", n, lines(p.Problems()))
	}
	for name, b := range map[string]*Builder{
		"nothing":           NewBuilder(),
		"a nil source":      NewBuilder().UseSource(nil),
		"a bad skill":       NewBuilder().UseSkill(inline("Bad", "D")),
		"a bad prompt":      NewBuilder().UseSkill(inline("a", "D")).UsePromptTemplate("x"),
		"a bad extension":   NewBuilder().UseSkill(inline("a", "D")).UseFileScriptRunner(printed, "py"),
		"nobody's own root": NewBuilder().UseRoots([]Root{{Path: one}}, nil),
	} {
		if _, err := b.Build(); err == nil {
			t.Errorf("%s: it is built", name)
		}
	}
}
