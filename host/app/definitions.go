package app

import (
	"context"
	"log/slog"
	"sync"

	"openskill/host/api"
	"openskill/host/app/config"
	"openskill/host/catalogue"
	"openskill/host/manifest"
	"openskill/host/store"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

// readOptions are what the folders of skills are read with.
func readOptions(s *config.Settings, roots []manifest.Root, schemas *manifest.Schemas) manifest.Options {
	return manifest.Options{Roots: roots, List: s.SkillConfigPath, CLIDir: s.CLIDir, StateDir: s.StateDir, Defaults: s.Defaults(), Caps: s.Caps(), Packages: runtimes.CheckRequires, Schemas: schemas}
}

// openDefinitions reads the folders of skills and seeds the database with them. Folders
// that were named for this host alone seed nothing: they are somebody's who tries them.
//
// opening a host is no call that somebody could leave
func (h *Host) openDefinitions(roots []manifest.Root, named bool) error {
	own, err := manifest.Open(readOptions(h.settings, roots, h.schemas))
	if err != nil {
		return err
	}
	if named {
		h.skills = catalogue.StillDefinitions(own)
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), opening)
	defer stop()
	h.skills, err = Definitions(ctx, h.settings, h.kept.db, catalogue.DefinitionOptions{Own: own, Log: h.log, Remote: true, Registry: manifest.Options{Schemas: h.schemas}})
	return err
}

// Definitions gives the operator's skills as a database has them. Of the options, what
// was read of the settings' folders is required; of Registry, Schemas is taken.
func Definitions(ctx context.Context, s *config.Settings, db *store.DB, o catalogue.DefinitionOptions) (*catalogue.Definitions, error) {
	o.Record = recordDefinitions(db)
	o.DB, o.Registry = db, readOptions(s, Roots(s, nil), o.Registry.Schemas)
	return catalogue.OpenDefinitions(ctx, o)
}

func (h *Host) watch() error {
	ctx, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { h.KeepUp(ctx) })
	h.owns(func() error {
		stop()
		ended.Wait()
		return nil
	})
	return nil
}

// KeepUp reads what other processes change of skills, until ctx ends. A host that serves
// does so by itself.
func (h *Host) KeepUp(ctx context.Context) { h.kept.db.Watch(ctx, h.changed) }

// changed reads what was changed of a topic.
func (h *Host) changed(ctx context.Context, topic string) error {
	switch topic {
	case catalogue.DefinitionsTopic:
		return h.skills.Refresh(ctx)
	case catalogue.Topic:
		if h.uploads != nil {
			return h.uploads.store.Refresh(ctx)
		}
	}
	return nil
}

// changes are the operator's skills as the edge changes them.
type changes struct{ h *Host }

var _ api.Definitions = changes{}

// Has reports whether an id is that of one of the operator's skills.
func (c changes) Has(id skill.ID) bool { return c.h.skills.Knows(id) }

// Create adds a definition.
func (c changes) Create(ctx context.Context, p skill.Principal, entry []byte) (skill.Descriptor, error) {
	return c.h.skills.Create(ctx, p, entry)
}

// Update changes one.
func (c changes) Update(ctx context.Context, p skill.Principal, id skill.ID, change []byte) (skill.Descriptor, error) {
	patch, err := catalogue.ParsePatch(change)
	if err != nil {
		return skill.Descriptor{}, err
	}
	return c.h.skills.Update(ctx, p, id, patch)
}

// Delete takes one away.
func (c changes) Delete(ctx context.Context, p skill.Principal, id skill.ID) (skill.VersionState, error) {
	d, err := c.h.skills.Delete(ctx, p, id)
	return skill.VersionState{ID: d.ID, Version: d.Version, Digest: d.Digest, State: skill.StateDeleted}, err
}

// Enable lets a skill be called.
func (c changes) Enable(ctx context.Context, p skill.Principal, w api.Which) (skill.VersionState, error) {
	return c.decided(ctx, p, "enable", w, c.h.skills.Enable)
}

// Disable stops a skill from being called.
func (c changes) Disable(ctx context.Context, p skill.Principal, w api.Which) (skill.VersionState, error) {
	return c.decided(ctx, p, "disable", w, c.h.skills.Disable)
}

func (c changes) decided(ctx context.Context, p skill.Principal, what string, w api.Which, act func(context.Context, skill.Principal, skill.ID) (skill.Descriptor, error)) (skill.VersionState, error) {
	if now := c.h.skills.Now(); now.Has(w.ID) { // there is one version of each
		s, err := now.Get(w.ID, w.Version)
		if err != nil {
			return skill.VersionState{}, err
		}
		if d := s.Descriptor.Digest; w.Digest != "" && w.Digest != d {
			return skill.VersionState{}, &skill.Error{
				Op: "host.decided", Code: skill.Conflict, Subject: string(w.ID),
				Message: "digest mismatch: the skill has the digest " + d + "; check it again", Details: map[string]any{"digest": d},
			}
		}
	} else if w.Digest != "" {
		return skill.VersionState{}, &skill.Error{Op: "host.decided", Code: skill.Conflict, Subject: string(w.ID), Message: "the skill is deleted and its digest unknown here: omit the digest"}
	}
	d, err := act(ctx, p, w.ID)
	if err != nil {
		return skill.VersionState{}, err
	}
	c.h.log.InfoContext(ctx, "a decision about a skill", slog.String("decision", what), slog.String("principal", skill.CleanText(p.ID, 128)),
		slog.String("skill_id", string(w.ID)), slog.String("reason", skill.CleanText(w.Reason, 400)))
	state := skill.StateDisabled
	if d.Enabled {
		state = skill.StateEnabled
	}
	return skill.VersionState{ID: d.ID, Version: d.Version, Digest: d.Digest, State: state, Reason: d.Reason}, nil
}
