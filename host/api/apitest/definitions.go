package apitest

import (
	"context"
	"sync"

	"openskill/host/api"
	"openskill/host/catalogue"
	"openskill/sdk/skill"
)

// Definitions has the skill "own", and remembers what is done to it by who may. It is
// safe for concurrent use.
type Definitions struct {
	mu   sync.Mutex
	done []string
}

var _ api.Definitions = (*Definitions)(nil)

// Done gives what was done, in order: the action, the id and the body or word.
func (d *Definitions) Done() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.done...)
}

// Has knows "own".
func (d *Definitions) Has(id skill.ID) bool { return id == "own" }

func (d *Definitions) act(ctx context.Context, p skill.Principal, action string, id skill.ID, with string) error {
	if err := may(p, skill.ScopeAdmin); err != nil {
		return err
	}
	if id != "own" {
		return &skill.Error{Code: skill.NotFound, Message: "there is no such skill"}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = append(d.done, action+" "+string(id)+" "+with)
	return ctx.Err()
}

// shown is how a skill looks.
func shown(id skill.ID, description string) skill.Descriptor {
	d := NewCatalogue()[0]
	d.ID, d.Description = id, description
	return d
}

// Create answers as if "own" were made of any body.
func (d *Definitions) Create(ctx context.Context, p skill.Principal, entry []byte) (skill.Descriptor, error) {
	return shown("own", "An own one."), d.act(ctx, p, "create", "own", string(entry))
}

// Update answers as if any change were made.
func (d *Definitions) Update(ctx context.Context, p skill.Principal, id skill.ID, change []byte) (skill.Descriptor, error) {
	return shown(id, "A changed one."), d.act(ctx, p, "update", id, string(change))
}

// Delete answers as if the skill were gone.
func (d *Definitions) Delete(ctx context.Context, p skill.Principal, id skill.ID) (skill.VersionState, error) {
	return skill.VersionState{ID: id, Version: "1.0.0", State: skill.StateDeleted}, d.act(ctx, p, "delete", id, "")
}

// Decide answers as if it were done.
func (d *Definitions) Decide(ctx context.Context, what catalogue.Decision) (skill.VersionState, error) {
	state := skill.StateEnabled
	if what.Action == catalogue.Disable {
		state = skill.StateDisabled
	}
	return skill.VersionState{ID: what.ID, Version: "1.0.0", State: state}, d.act(ctx, what.By, string(what.Action), what.ID, what.Reason)
}
