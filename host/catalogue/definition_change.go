package catalogue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"openskill/host/manifest"
	"openskill/host/records"
	"openskill/internal/safeyaml"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// microsecond is what databases keep of times.
const microsecond = time.Microsecond

// A patch changes a definition. Fields that are nil stay as they are.
type patch struct {
	Description *given[string]
	Enabled     *given[bool]
	Cost        *given[costChange]
}

// given is a new value; without one, what the seed says holds again.
type given[T any] struct{ Value *T }

// costChange changes single numbers of the cost metadata; nil ones stay.
type costChange struct {
	EstimatedTokens     *int `json:"estimated_tokens"`
	EstimatedDurationMS *int `json:"estimated_duration_ms"`
	RateLimitPerMinute  *int `json:"rate_limit_per_minute"`
}

// maxCost is the largest number of the cost metadata, as in a manifest.
const maxCost = 1_000_000_000

// parsePatch reads a patch of a JSON object with the keys description, is_enabled and
// cost_metadata, where null gives a field back to the seed. The error is a *skill.Error.
func parsePatch(b []byte) (patch, error) {
	var p patch
	err := strictjson.Object(b, func(key, value []byte) error {
		null := string(value) == "null"
		switch string(key) {
		case fieldDescription:
			p.Description = &given[string]{}
			if null {
				return nil
			}
			var s string
			if json.Unmarshal(value, &s) != nil {
				return wrong(fieldDescription, "must be a string, or null for the value in the files")
			}
			s, err := description(s)
			p.Description.Value = &s
			return err
		case fieldEnabled:
			p.Enabled = &given[bool]{}
			if null {
				return nil
			}
			on := string(value) == "true"
			if !on && string(value) != "false" {
				return wrong(fieldEnabled, "must be true, false, or null for the value in the files")
			}
			p.Enabled.Value = &on
			return nil
		case fieldCost:
			p.Cost = &given[costChange]{}
			if null {
				return nil
			}
			c, err := costPatch(value)
			p.Cost.Value = c
			return err
		}
		return wrong(skill.CleanText(string(key), 80), "is unknown; use description, is_enabled or cost_metadata")
	})
	switch syntax, ok := errors.AsType[*strictjson.Error](err); {
	case ok:
		return p, wrong("", "the body must be one JSON object: "+skill.CleanText(syntax.Error(), 200))
	case err != nil:
		return p, err
	case p == patch{}:
		return p, wrong("", "nothing to change; send description, is_enabled or cost_metadata")
	}
	return p, nil
}

func description(s string) (string, error) {
	s = strings.Join(strings.Fields(s), " ")
	_, hidden := skill.Unseen(s)
	switch {
	case s == "" || len(s) > manifest.MaxDescription:
		return "", wrong(fieldDescription, fmt.Sprintf("must have 1 to %d bytes", manifest.MaxDescription))
	case hidden:
		return "", wrong(fieldDescription, "holds an invisible or control character")
	}
	return s, nil
}

func costPatch(b []byte) (*costChange, error) {
	c := &costChange{}
	err := strictjson.Object(b, func(key, value []byte) error {
		to := map[string]**int{
			"estimated_tokens": &c.EstimatedTokens, "estimated_duration_ms": &c.EstimatedDurationMS, "rate_limit_per_minute": &c.RateLimitPerMinute,
		}[string(key)]
		if to == nil {
			return wrong(fieldCost, "has an unknown key; use estimated_tokens, estimated_duration_ms or rate_limit_per_minute")
		}
		var n int
		if json.Unmarshal(value, &n) != nil || string(value) == "null" || n < 0 || n > maxCost {
			return wrong(fieldCost+"."+string(key), fmt.Sprintf("must be a whole number from 0 to %d", maxCost))
		}
		*to = &n
		return nil
	})
	if _, ok := errors.AsType[*strictjson.Error](err); ok || err == nil && *c == (costChange{}) {
		return nil, wrong(fieldCost, "must be an object with estimated_tokens, estimated_duration_ms or rate_limit_per_minute, or null")
	}
	return c, err
}

func wrong(field, what string) error {
	message := what
	if field != "" {
		message = field + " " + what
	}
	return &skill.Error{
		Op: "catalogue.Parse", Code: skill.InvalidArgument, Subject: field, Message: message,
		Details: map[string]any{"fields": []map[string]string{{"field": "/" + field, "problem": what}}},
	}
}

// apply makes the change. Values that are as the seed has them are changed all the same:
// they stay when the seed says otherwise later.
func (p *patch) apply(d *Definition) {
	if g := p.Description; g != nil {
		if d.mark(fieldDescription, g.Value != nil); g.Value != nil {
			d.Description = *g.Value
		}
	}
	if g := p.Enabled; g != nil {
		if d.mark(fieldEnabled, g.Value != nil); g.Value != nil {
			d.Enabled = *g.Value
		}
	}
	if g := p.Cost; g != nil {
		if d.mark(fieldCost, g.Value != nil); g.Value != nil {
			d.Cost = g.Value.on(d.Cost)
		}
	}
	d.settle()
}

func (p *costChange) on(now *skill.Cost) *skill.Cost {
	out := &skill.Cost{}
	if now != nil {
		*out = *now
	}
	for _, f := range []struct{ from, to *int }{
		{p.EstimatedTokens, &out.EstimatedTokens}, {p.EstimatedDurationMS, &out.EstimatedDurationMS}, {p.RateLimitPerMinute, &out.RateLimitPerMinute},
	} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	return out
}

// Update changes what the keys description, is_enabled and cost_metadata of a JSON object say. The
// answer is the skill as it is now; errors are *skill.Error.
func (c *Definitions) Update(ctx context.Context, by skill.Principal, id skill.ID, change []byte) (skill.Descriptor, error) {
	p, err := parsePatch(change)
	if err != nil {
		return skill.Descriptor{}, err
	}
	return c.update(ctx, by, id, p)
}

func (c *Definitions) update(ctx context.Context, by skill.Principal, id skill.ID, p patch) (skill.Descriptor, error) {
	made, err := c.change(ctx, by, id, "update", func(now *Definition) (*Definition, error) {
		if now == nil || !now.DeletedAt.IsZero() {
			return nil, noDefinition(id)
		}
		next := now.clone()
		p.apply(next)
		return next, nil
	})
	return c.show(made), err
}

// Decide enables or disables a skill. It has one version on this host.
func (c *Definitions) Decide(ctx context.Context, d Decision) (skill.VersionState, error) {
	if now := c.Now(); now.Has(d.ID) {
		s, err := now.Get(d.ID, d.Version)
		if err != nil {
			return skill.VersionState{}, err
		}
		if has := s.Descriptor.Digest; d.Digest != "" && d.Digest != has {
			return skill.VersionState{}, d.refuse(skill.Conflict, "digest mismatch: the skill has the digest "+has+"; check it again", map[string]any{"digest": has})
		}
	} else if d.Digest != "" {
		return skill.VersionState{}, d.refuse(skill.Conflict, "the skill is deleted and its digest unknown here: omit the digest", nil)
	}
	act := c.Enable
	switch d.Action {
	case Enable:
	case Disable:
		act = c.Disable
	case Approve, Rollback, Delete:
		return skill.VersionState{}, d.refuse(skill.InvalidArgument, "the operator's own skills have one version: enable, disable or delete the skill", nil)
	}
	now, err := act(ctx, d.By, d.ID)
	if err != nil {
		return skill.VersionState{}, err
	}
	c.o.Log.InfoContext(ctx, "a decision about a skill", slog.String("decision", string(d.Action)), slog.String("principal", skill.CleanText(d.By.ID, 128)),
		slog.String("skill_id", string(d.ID)), slog.String("reason", skill.CleanText(d.Reason, 400)))
	state := skill.StateDisabled
	if now.Enabled {
		state = skill.StateEnabled
	}
	return skill.VersionState{ID: now.ID, Version: now.Version, Digest: now.Digest, State: state, Reason: now.Reason}, nil
}

// Enable lets a skill be called, and brings it back if it was deleted.
func (c *Definitions) Enable(ctx context.Context, by skill.Principal, id skill.ID) (skill.Descriptor, error) {
	on := true
	made, err := c.change(ctx, by, id, "enable", func(now *Definition) (*Definition, error) {
		if now == nil {
			return nil, noDefinition(id)
		}
		next := now.clone()
		next.DeletedAt = time.Time{}
		(&patch{Enabled: &given[bool]{&on}}).apply(next)
		return next, nil
	})
	return c.show(made), err
}

// Disable stops a skill from being called. Calls that run go on.
func (c *Definitions) Disable(ctx context.Context, by skill.Principal, id skill.ID) (skill.Descriptor, error) {
	off := false
	return c.update(ctx, by, id, patch{Enabled: &given[bool]{&off}})
}

// Delete takes a definition away. The answer is the version that it had.
func (c *Definitions) Delete(ctx context.Context, by skill.Principal, id skill.ID) (skill.VersionState, error) {
	was, err := c.Now().Get(id, "")
	if err != nil {
		was = &manifest.Skill{Descriptor: skill.Descriptor{ID: id}} // this host has not seen it; the database decides
	}
	_, err = c.change(ctx, by, id, "delete", func(now *Definition) (*Definition, error) {
		switch {
		case now == nil || !now.DeletedAt.IsZero():
			return nil, noDefinition(id)
		case now.Source == Created:
			return nil, nil
		}
		next := now.clone()
		next.DeletedAt = c.o.Now().UTC().Truncate(microsecond)
		return next, nil
	})
	d := &was.Descriptor
	return skill.VersionState{ID: d.ID, Version: d.Version, Digest: d.Digest, State: skill.StateDeleted}, err
}

// Create adds a definition of an entry in the form of a list's, as a JSON object; see
// [manifest.Define] for where its code is looked for. What is wrong with the entry is
// INVALID_MANIFEST, an id that is taken CONFLICT.
func (c *Definitions) Create(ctx context.Context, by skill.Principal, entry []byte) (skill.Descriptor, error) {
	if err := authorize(by, skill.ScopeAdmin); err != nil {
		return skill.Descriptor{}, err
	}
	if len(entry) > safeyaml.MaxBytes {
		return skill.Descriptor{}, &skill.Error{Op: "catalogue.Create", Code: skill.PayloadTooLarge, Message: fmt.Sprintf("the definition is too large; the limit is %d bytes", safeyaml.MaxBytes)}
	}
	value, err := strictjson.Decode(entry, safeyaml.MaxDepth, nil)
	if err != nil {
		return skill.Descriptor{}, wrong("", "the body must be one JSON object: "+skill.CleanText(err.Error(), 200))
	}
	text, err := marshal(value)
	if err != nil {
		return skill.Descriptor{}, fmt.Errorf("catalogue.Create: %w", err)
	}
	s, _, problems := manifest.Define(text, c.o.Registry)
	if len(problems) > 0 {
		return skill.Descriptor{}, refused(problems)
	}
	id := s.Descriptor.ID
	own := c.own.Load()
	bare := own.Bare(id) // a script that nothing defines yet
	if own.Has(id) && !bare {
		return skill.Descriptor{}, taken(id)
	}
	made, err := c.change(ctx, by, id, "create", func(now *Definition) (*Definition, error) {
		if now != nil && now.DeletedAt.IsZero() && !(bare && now.Source == Seeded) {
			return nil, taken(id)
		}
		next := of(s, "")
		next.ID, next.Source, next.Manifest = c.o.NewID(), Created, text
		next.CreatedAt = c.o.Now().UTC().Truncate(microsecond)
		return next, nil
	})
	return c.show(made), err
}

// change authorizes a change, makes it, writes it down, and reads what holds now.
func (c *Definitions) change(ctx context.Context, by skill.Principal, id skill.ID, what string, do func(*Definition) (*Definition, error)) (made *Definition, err error) {
	if err := authorize(by, skill.ScopeAdmin); err != nil {
		return nil, err
	}
	if c.o.DB == nil {
		return nil, &skill.Error{Op: "catalogue.Change", Code: skill.Conflict, Subject: string(id), Message: "skills read from named folders cannot be changed; there is no database"}
	}
	change := records.Change{Action: "definition." + what, Subject: string(id)}
	err = records.Around(ctx, records.NewStore(c.o.DB), by, change, func() error {
		return c.put(ctx, by, id, &made, do)
	})
	if err != nil {
		return nil, err
	}
	c.o.Log.Info("a definition was changed", slog.String("change", what), slog.String("skill_id", string(id)), slog.String("principal", skill.CleanText(by.ID, 128)))
	if err := c.Refresh(ctx); err != nil { // it holds all the same; who watches reads it again
		c.o.Log.Warn("a changed definition takes effect here at the next database poll", slog.String("error", err.Error()))
	}
	return made, nil
}

// put makes a change in the database.
func (c *Definitions) put(ctx context.Context, by skill.Principal, id skill.ID, made **Definition, do func(*Definition) (*Definition, error)) error {
	err := changeDefinition(ctx, c.o.DB, id, func(now *Definition) (*Definition, error) {
		next, err := do(now)
		*made = next
		switch {
		case err != nil || next == nil:
			return nil, err
		case c.o.Remote && c.keptOff(now, next):
			return nil, &skill.Error{
				Op: "catalogue.Change", Code: skill.Forbidden, Subject: string(id),
				Message: "this skill runs outside the sandbox and is disabled in its files: enable it there, or with openskill skills enable on the host's machine",
			}
		case now != nil && next.same(now):
			return nil, errUnchanged
		}
		next.UpdatedAt, next.UpdatedBy = c.o.Now().UTC().Truncate(microsecond), skill.CleanText(by.ID, 128)
		return next, nil
	})
	switch _, ok := errors.AsType[*skill.Error](err); {
	case ok:
		return err
	case err != nil:
		return unavailable(err)
	}
	return nil
}

// keptOff reports whether a change turns code outside the sandbox on that is off by its
// files.
func (c *Definitions) keptOff(now, next *Definition) bool {
	if !next.Enabled || next.Seed.Enabled || next.Source != Seeded || now != nil && now.Enabled && now.DeletedAt.IsZero() {
		return false
	}
	s, err := c.own.Load().Get(next.Name, "")
	return err != nil || !manifest.Sandboxed(s.Primary.Kind) || s.Fallback != nil && !manifest.Sandboxed(s.Fallback.Kind)
}

// show is the skill as this host's catalogue has it, or what its row says of one whose
// files other hosts have.
func (c *Definitions) show(d *Definition) skill.Descriptor {
	if d == nil {
		return skill.Descriptor{}
	}
	if s, err := c.Now().Get(d.Name, ""); err == nil {
		return s.Descriptor
	}
	return skill.Descriptor{
		ID: d.Name, Version: d.Version, Digest: d.Digest, Runner: d.Kind, Description: d.Description, Cost: d.Cost,
		InputSchema: d.InputSchema, OutputSchema: d.OutputSchema, Reason: "this host has no files of the skill",
	}
}

func noDefinition(id skill.ID) error {
	return &skill.Error{
		Op: "catalogue.Change", Code: skill.NotFound, Subject: skill.CleanText(string(id), 64),
		Message: "definition not found; GET /skills lists all",
	}
}

func taken(id skill.ID) error {
	return &skill.Error{
		Op: "catalogue.Create", Code: skill.Conflict, Subject: string(id),
		Message: fmt.Sprintf("definition %s already exists; use PATCH to change it", id),
	}
}

func unavailable(err error) error {
	return &skill.Error{
		Op: "catalogue.Change", Code: skill.Internal, Err: err,
		Message: "database write failed; check the result and retry",
	}
}

func refused(problems []manifest.Problem) error {
	messages := make([]string, 0, min(len(problems), 20))
	for _, p := range problems[:min(len(problems), 20)] {
		messages = append(messages, skill.CleanText(p.Message, 200))
	}
	return &skill.Error{
		Op: "catalogue.Create", Code: skill.InvalidManifest,
		Message: skill.CleanText(strings.Join(messages, "; "), skill.MaxMessage), Details: map[string]any{"problems": messages, "total": len(problems)},
	}
}
