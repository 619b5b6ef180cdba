package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"openskill/cmd/openskill/internal/watch"
	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// trial is the skill of a folder on a host of its own, and on a second one that runs its
// fallback: what authors test and measure goes through the same door as all calls.
type trial struct {
	id       skill.ID
	skill    *manifest.Skill
	main     *app.Host
	fallback *app.Host // nil: the skill has no fallback, it is not used, or missing has the reason
	second   bool      // main runs the fallback too, since it cannot run the skill as it asks
	missing  string    // why the fallback runs nothing beside main; "" where it does, or is not asked for
	said     said
}

// said is what the last run wrote to standard error that wrote anything.
type said struct {
	mu       sync.Mutex
	id, text string
}

func (s *said) hear(executionID, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id, s.text = executionID, text
}

// of is what a run wrote, if no other has written since.
func (s *said) of(executionID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id != executionID {
		return ""
	}
	return s.text
}

// openTrial opens the skill in folder and gets ready what it runs on. The caller closes it.
func (a *cli) openTrial(ctx context.Context, s *config.Settings, folder string, fallback bool) (*trial, error) {
	one, err := a.buildable(folder)
	if err != nil {
		return nil, err
	}
	// Without its module nothing could be said of the skill.
	if err := unbuilt(one, folder); err != nil && one.Fallback == nil {
		return nil, err
	}
	a.older(one, folder)
	t := &trial{skill: one}
	if err := a.fillTrial(ctx, s, folder, t, fallback && one.Fallback != nil); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (a *cli) fillTrial(ctx context.Context, s *config.Settings, folder string, t *trial, fallback bool) (err error) {
	open := func(byFallback bool) (*app.Host, error) {
		h, err := app.Open(s, &app.Options{ // nothing to wait for
			Log: a.logger(level(s, slog.LevelError)), Roots: []string{folder}, Trial: &app.Trial{Fallback: byFallback, Unlimited: true, Said: t.said.hear},
		})
		if err != nil {
			return nil, hostFailed(err)
		}
		return h, nil
	}
	if t.main, err = open(false); err != nil {
		return err
	}
	name, err := onlySkill(t.main, folder)
	if err != nil {
		a.skipped(t.main)
		return err
	}
	t.id = skill.ID(name)
	stop := a.after(time.Second, "openskill: getting the skill's runtime ready; the first time takes some seconds")
	defer stop()
	t.main.Prepare(ctx, t.id)
	if err := t.main.Ready(t.id); err != nil && t.skill.Fallback != nil {
		t.second, t.missing = true, "it ran the cases, because "+skill.CleanText(reason(err), 300)
		return nil
	}
	if !fallback {
		return nil
	}
	if t.fallback, err = open(true); err != nil {
		return err
	}
	t.fallback.Prepare(ctx, t.id)
	if err := t.fallback.Ready(t.id); err != nil {
		t.missing = "it cannot run on this machine: " + skill.CleanText(reason(err), 300)
		err = t.fallback.Close()
		t.fallback = nil
		return err
	}
	return nil
}

// unbuilt says that a skill's module is not there.
func unbuilt(s *manifest.Skill, folder string) error {
	if entry := filepath.FromSlash(s.Primary.File()); filepath.Ext(entry) == ".wasm" {
		if _, err := os.Stat(filepath.Join(folder, entry)); errors.Is(err, os.ErrNotExist) {
			return failed(skill.NotFound, "%s is not built yet: openskill skill build %s", quote(s.Primary.File()), quote(folder))
		}
	}
	return nil
}

// travels looks at what a build makes of a skill that is to be signed or to be shared.
// What else is wrong with it, packing says.
func (a *cli) travels(folder string) error {
	s, _, err := onlyOne(folder)
	if err != nil {
		return nil
	}
	a.older(s, folder)
	return unbuilt(s, folder)
}

// older says that a module was built before a file of its sources was changed: whoever
// tries or signs it may mean what he has written since.
func (a *cli) older(s *manifest.Skill, folder string) {
	if s.Language == "" || s.Language == "none" {
		return
	}
	module, err := moduleOf(s)
	if err != nil || s.Primary.File() != module { // a script, which runs as it is
		return
	}
	built, err := os.Stat(filepath.Join(folder, filepath.FromSlash(module)))
	if err != nil {
		return
	}
	files, err := watch.Look(folder, module, manifest.Manifest(folder))
	if err != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if needsBuild([]string{name}) && files[name].Modified.After(built.ModTime()) {
			a.say("openskill: %s was built before %s was changed: openskill skill build %s", quote(module), quote(name), quote(folder))
			return
		}
	}
}

// call calls the skill, or its fallback.
func (t *trial) call(ctx context.Context, h *app.Host, input json.RawMessage, limits skill.Limits) *skill.Result {
	return h.Invoke(ctx, skill.Local(), skill.Request{SkillID: t.id, Input: input, Limits: limits})
}

func (t *trial) close() {
	for _, h := range []*app.Host{t.main, t.fallback} {
		if h != nil {
			_ = h.Close() // the answers are there
		}
	}
}

// reason is what an error says to whoever must mend it.
func reason(err error) string {
	if e, ok := errors.AsType[*skill.Error](err); ok && e.Message != "" {
		return e.Message
	}
	return err.Error()
}
