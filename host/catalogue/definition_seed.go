package catalogue

import (
	"context"
	"log/slog"

	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// seed brings the rows of all skills that this host has read up to date. What could not
// be read is told with file and line, and has no part in it.
func (c *Definitions) seed(ctx context.Context, own *manifest.Registry) error {
	for _, p := range own.Problems() {
		c.o.Log.Warn("cannot seed a definition", slog.String("file", skill.CleanText(p.File, 400)), slog.Int("line", p.Line), slog.String("problem", skill.CleanText(p.Message, skill.MaxMessage)))
	}
	all, err := definitions(ctx, c.o.DB.Read, "TRUE")
	if err != nil {
		return err
	}
	rows := make(map[skill.ID]*Definition, len(all))
	for _, d := range all {
		rows[d.Name] = d
	}
	for _, s := range defined(own) {
		want := of(s, own.Place(s.Descriptor.ID))
		if c.seeded(own, rows[want.Name], want) == nil {
			continue // without a transaction: at most starts nothing has changed
		}
		err := changeDefinition(ctx, c.o.DB, want.Name, func(now *Definition) (*Definition, error) {
			next := c.seeded(own, now, want)
			if next == nil {
				return nil, errUnchanged
			}
			return next, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// defined gives what this host's files define, with code and without, each id once.
func defined(own *manifest.Registry) (list []*manifest.Skill) {
	for _, id := range own.IDs() {
		if s, err := own.Get(id, ""); err == nil {
			list = append(list, s)
		}
	}
	for _, s := range own.Defined() {
		if !own.Has(s.Descriptor.ID) {
			list = append(list, s)
		}
	}
	return list
}

// seeded is a row as a seed leaves it; nil where it leaves it alone. One that came over
// an edge, and whose files are here now, becomes the files': what it said counts as
// changed where they say otherwise.
func (c *Definitions) seeded(own *manifest.Registry, now, want *Definition) *Definition {
	at := c.o.Now().UTC().Truncate(microsecond)
	if now == nil {
		next := want.clone()
		next.ID, next.CreatedAt, next.UpdatedAt = c.o.NewID(), at, at
		return next
	}
	if now.Source == Created && own.Bare(want.Name) {
		return nil // the script is the code of the definition
	}
	next := now.clone()
	next.Version, next.Digest, next.Kind, next.Entry = want.Version, want.Digest, want.Kind, want.Entry
	next.InputSchema, next.OutputSchema, next.Seed = want.InputSchema, want.OutputSchema, want.Seed
	if now.Source == Created {
		next.Source, next.Manifest = Seeded, nil
		next.mark(fieldDescription, now.Description != want.Description)
		next.mark(fieldEnabled, want.Enabled && !now.Enabled) // what came over an edge turns off what the files turn on, never the other way
		next.mark(fieldCost, !Values{Cost: now.Cost}.same(Values{Cost: want.Cost}))
	}
	next.settle()
	if next.same(now) {
		return nil
	}
	next.Place, next.UpdatedAt, next.UpdatedBy = want.Place, at, ""
	return next
}
