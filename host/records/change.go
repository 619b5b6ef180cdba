package records

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"openskill/sdk/skill"
)

// KindChange is the kind of a record of a [Change].
const KindChange = "change"

// Change is on record before somebody changes what calls may do: keys, skills, approvals,
// settings. It holds no secret.
type Change struct {
	ID            string              `json:"id"`     // UUID version 7
	Tenant        string              `json:"tenant"` // whom it concerns, and whose chain has it; local where it is the host
	Action        string              `json:"action"` // such as key.create
	Subject       string              `json:"subject"`
	Details       map[string]string   `json:"details,omitempty"`
	Failed        skill.Code          `json:"failed,omitempty"` // of a second record with the same action and subject: the change was not made
	Principal     string              `json:"principal"`
	PrincipalType skill.PrincipalType `json:"principal_type"`
	Of            string              `json:"principal_tenant"`
	Time          time.Time           `json:"time"` // UTC, in microseconds
}

// ChangeQuery chooses changes. Zero fields choose all.
type ChangeQuery struct {
	Tenant string
	Since  time.Time // at or after
	Until  time.Time // before
	After  string    // the id of the last change of the page before
	Limit  int       // 1 to 1000
}

// changeWait is how long a change waits for its record.
const changeWait = 5 * time.Second

// Around puts c on record, as asked for by a principal, and then makes the change. Where it
// cannot be put on record, the change is not made, and the error is AUDIT_UNAVAILABLE.
// A change that fails is followed by a record that says so: what is on record without
// it was made, or was cut off by the end of the process.
func Around(ctx context.Context, s Store, by skill.Principal, c Change, do func() error) error {
	c.Principal, c.PrincipalType, c.Of = by.ID, by.Type, by.Tenant
	if c.Tenant == "" {
		c.Tenant = skill.Local().Tenant
	}
	own := by.Type != skill.Operator && !by.May(skill.ScopeAdmin) && !by.May(skill.ScopeHost)
	err := putChange(ctx, s, c, own)
	if errors.Is(err, ErrFull) {
		return fullError("audit.Around")
	}
	if err != nil {
		return &skill.Error{
			Op: "audit.Around", Code: skill.AuditUnavailable, Subject: c.Subject, Err: err,
			Message: "audit log unavailable: the change cannot be recorded; nothing was changed; retry",
		}
	}
	err = do()
	if err != nil {
		if c.Failed = skill.CodeOf(err); c.Failed == "" {
			c.Failed = skill.Internal
		}
		_ = putChange(context.WithoutCancel(ctx), s, c, own)
	}
	return err
}

// putChange writes c. Own is of one that a tenant made by itself.
func putChange(ctx context.Context, s Store, c Change, own bool) error {
	ctx, cancel := context.WithTimeout(ctx, changeWait)
	defer cancel()
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	c.ID, c.Time = id.String(), time.Now().UTC().Truncate(time.Microsecond)
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	e := &Entry{Record: Record{Tenant: c.Tenant, Kind: KindChange, ExecutionID: c.ID, Time: c.Time, Body: body}, Change: &c, Own: own, Wait: true}
	for {
		if err := s.Append(ctx, []*Entry{e}); err != nil || !errors.Is(e.Left, ErrHeld) {
			return cmp.Or(err, e.Left)
		}
		select {
		case <-ctx.Done():
			return e.Left
		case <-time.After(heldPause):
		}
	}
}
