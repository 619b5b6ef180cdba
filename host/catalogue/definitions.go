package catalogue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"openskill/host/manifest"
	"openskill/host/store"
	"openskill/sdk/skill"
)

// DefinitionOptions are those of Definitions. DB and Own are required.
type DefinitionOptions struct {
	DB  *store.DB
	Own *manifest.Registry // what this host read of its folders
	// Registry is what Own was read with: definitions that came without files look for
	// their code there.
	Registry manifest.Options
	Look     bool // whether nothing is seeded: for those who only look
	// Remote says that changes are asked over a network: they do not enable code outside the
	// sandbox that its files keep off.
	Remote bool

	Log   *slog.Logger     // nil: slog.Default()
	Now   func() time.Time // nil: the system's clock
	NewID func() string    // gives ids of rows; nil: UUID version 7
}

// Definitions are the operator's skills as the database and the files of this host make
// them. They are safe for concurrent use.
//
// A host seeds when it starts: every skill of its trusted folders, of their lists in the
// agent-service form and of the CLI folder becomes a row, or brings its row up to date. Three
// things of a row can be changed over an edge: whether it is enabled, its cost metadata, and
// its description. What was changed stays so until it is given back (null). What the files
// alone can say (schemas, version, digest, how it is run) a host serves as its own files have
// it: schema and code belong together, and hosts that are updated one after the other have
// different files for a while.
//
// A definition may come without code: over an edge, or in a list before its script is there.
// It is listed as not enabled, with the reason. A row whose files are gone from this host is
// not shown here: another host may have them. A definition that came over an edge is removed
// when it is deleted; one that files seed would come back with the next start, so its row
// stays and says that it was deleted.
type Definitions struct {
	o   DefinitionOptions
	own atomic.Pointer[manifest.Registry] // what this host read of its folders last
	now atomic.Pointer[manifest.Registry]

	refreshing sync.Mutex
	told       map[skill.ID]string // what was logged last of a definition that cannot be used; refreshing is held
}

// OpenDefinitions seeds the database with what the host has read, unless it only looks, and reads
// it.
func OpenDefinitions(ctx context.Context, o DefinitionOptions) (*Definitions, error) {
	if o.DB == nil || o.Own == nil {
		return nil, errors.New("catalogue.OpenDefinitions: DB and Own are required")
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	c := &Definitions{o: o, told: map[skill.ID]string{}}
	c.own.Store(o.Own)
	c.now.Store(o.Own)
	if !o.Look {
		if err := c.seed(ctx, o.Own); err != nil {
			return nil, fmt.Errorf("catalogue: seed the database: %w", err)
		}
	}
	if err := c.Refresh(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Now is the registry as it was read last. It does not change: ask again.
func (c *Definitions) Now() *manifest.Registry { return c.now.Load() }

// Refresh reads the definitions. On an error the catalogue stays as it is.
func (c *Definitions) Refresh(ctx context.Context) error {
	if c.o.DB == nil {
		return nil
	}
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	made, err := c.made(ctx, c.own.Load())
	if err == nil {
		c.now.Store(made)
	}
	return err
}

// Reread seeds the database with what the host has read of its folders now, and gives
// what makes it hold. Until then, and on an error, the catalogue stays as it is.
func (c *Definitions) Reread(ctx context.Context, own *manifest.Registry) (use func(), err error) {
	if c.o.DB == nil {
		return func() { c.own.Store(own); c.now.Store(own) }, nil
	}
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	if !c.o.Look {
		if err := c.seed(ctx, own); err != nil {
			return nil, fmt.Errorf("catalogue: seed the database: %w", err)
		}
	}
	made, err := c.made(ctx, own)
	if err != nil {
		return nil, err
	}
	return func() {
		c.refreshing.Lock()
		defer c.refreshing.Unlock()
		c.own.Store(own)
		c.now.Store(made)
	}, nil
}

// made puts together what was read of folders and what the database says of it;
// refreshing is held.
func (c *Definitions) made(ctx context.Context, own *manifest.Registry) (*manifest.Registry, error) {
	all, err := definitions(ctx, c.o.DB.Read, "TRUE")
	if err != nil {
		return nil, fmt.Errorf("catalogue: read the database: %w", err)
	}
	rows := make(map[skill.ID]*Definition, len(all))
	for _, d := range all {
		rows[d.Name] = d
	}
	var skills []*manifest.Skill
	have := map[skill.ID]bool{}
	for _, id := range own.IDs() {
		if d := rows[id]; d != nil && d.Source == Created && own.Bare(id) {
			continue // the script of a definition
		}
		have[id] = true
		s, err := own.Get(id, "")
		if err != nil {
			continue // it lists what it has
		}
		if d := rows[id]; d == nil || d.DeletedAt.IsZero() {
			skills = append(skills, overlaid(s, d))
		}
	}
	for _, s := range own.Defined() {
		id := s.Descriptor.ID
		if d := rows[id]; !have[id] && (d == nil || d.DeletedAt.IsZero() && d.Source == Seeded) {
			have[id] = true
			skills = append(skills, withoutCode(overlaid(s, d), "the skill has no code on this host: the code named by its list is missing"))
		}
	}
	for _, d := range all {
		if d.Source == Created && d.DeletedAt.IsZero() && !have[d.Name] {
			if s := c.define(d); s != nil {
				skills = append(skills, s)
			}
		}
	}
	return own.Of(skills), nil
}

// overlaid is a skill with what was changed of it; d may be nil.
func overlaid(s *manifest.Skill, d *Definition) *manifest.Skill {
	if d == nil || len(d.Changed) == 0 {
		return s
	}
	out := *s
	if d.changed(fieldDescription) {
		out.Descriptor.Description = d.Description
	}
	if d.changed(fieldEnabled) {
		out.Descriptor.Enabled = d.Enabled
	}
	if d.changed(fieldCost) {
		out.Descriptor.Cost = d.Cost
	}
	return &out
}

// withoutCode is a skill that can only be looked at.
func withoutCode(s *manifest.Skill, why string) *manifest.Skill {
	out := *s
	out.Folder = ""
	out.Descriptor.Enabled = false
	out.Descriptor.Reason = why
	return &out
}

// define makes the skill of a definition that came over an edge; nil where this release
// does not take it.
func (c *Definitions) define(d *Definition) *manifest.Skill {
	s, missing, problems := manifest.Define(d.Manifest, c.o.Registry)
	if s == nil || s.Descriptor.ID != d.Name {
		why := "the definition is for another skill"
		if len(problems) > 0 {
			why = problems[0].Message
		}
		c.tell(d.Name, "a definition is ignored: this host refuses it", why)
		return nil
	}
	s = overlaid(s, d)
	switch {
	case len(problems) > 0: // made by an earlier release
		c.tell(d.Name, "a definition in the database is ignored: these fields are allowed in files only", missing)
		return withoutCode(s, missing)
	case missing == "":
		delete(c.told, d.Name)
		return s
	}
	c.tell(d.Name, "a definition has no code on this host; it cannot be called", missing)
	return withoutCode(s, "the skill has no code on this host: "+missing)
}

// tell logs what is so of a definition, once until it changes.
func (c *Definitions) tell(id skill.ID, msg, why string) {
	if c.told[id] == msg+why {
		return
	}
	c.told[id] = msg + why
	c.o.Log.Warn(msg, slog.String("skill_id", string(id)), slog.String("reason", skill.CleanText(why, skill.MaxMessage))) //nolint:sloglint // one of two constants
}

// StillDefinitions are what was read of folders and nothing more: nobody changes it,
// and no database knows of it.
func StillDefinitions(own *manifest.Registry) *Definitions {
	c := &Definitions{o: DefinitionOptions{Own: own}}
	c.own.Store(own)
	c.now.Store(own)
	return c
}

// Has reports whether an id is that of one of the operator's skills, deleted ones
// included whose files are here.
func (c *Definitions) Has(id skill.ID) bool { return c.own.Load().Has(id) || c.Now().Has(id) }

// Hides says why the Agent Skill in a folder is not offered, "" if it is: the skill of the
// folder may not be called now, or one of the operator's own has the name of a pulled one.
func (c *Definitions) Hides(folder string, name skill.ID, pulled bool) string {
	own, now := c.own.Load(), c.Now()
	for _, id := range own.IDs() {
		s, err := own.Get(id, "")
		switch {
		case err != nil:
		case s.Folder == folder:
			if s, err = now.Get(id, ""); err != nil || s.Folder != folder || !s.Descriptor.Enabled {
				return fmt.Sprintf("is not offered: the skill %s of this folder is disabled or deleted", id)
			}
			return ""
		case id == name && pulled && !own.Pulled(id):
			return fmt.Sprintf("was pulled, but its name is taken by the operator's own %s", own.Place(id))
		}
	}
	return ""
}
