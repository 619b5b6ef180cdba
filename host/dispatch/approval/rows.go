package approval

import (
	"context"
	"fmt"
	"time"

	"openskill/sdk/skill"
)

// Rows is where approvals are kept: rows of the host's database.
type Rows interface {
	// Select returns the approvals that q selects, those with the highest ids first.
	Select(ctx context.Context, q *Query) ([]*Approval, error)
	// Change calls f in a transaction that no other Change overtakes, on any host. An error
	// of f undoes it. Tenants that wait take turns.
	Change(ctx context.Context, tenant string, f func(tx Tx) error) error
}

// Tx is a transaction of Rows.
type Tx interface {
	Select(q *Query) ([]*Approval, error)
	// Put adds an approval, or replaces the one with its id.
	Put(a *Approval) error
	// Prune removes the oldest approvals of a tenant that do not hold at now, but for keep
	// of them and those that were approved last of each skill.
	Prune(tenant string, now time.Time, keep int) error
}

// Query selects approvals. Zero fields select all; Limit is required.
type Query struct {
	ID, Key       string
	Tenant, Skill string
	Approved      bool      // that were approved at some time, the latest decision first
	State         State     // at Now
	Now           time.Time // required with State
	Before        string    // ids that are lower
	Limit         int
}

// Valid reports whether a stored approval says all that it needs to be found and compared.
// What is missing elsewhere makes it narrower, never wider.
func (a *Approval) Valid() bool {
	if len(a.ID) != 36 || a.Skill == "" || a.Digest == "" || a.CallHash == "" || a.Policy != PerVersion && a.Policy != PerCall {
		return false
	}
	_, err := ParseState(string(a.State))
	return err == nil
}

// Without its record a run does not begin.
func unreadable(err error) error {
	return &skill.Error{
		Op: "approval.read", Code: skill.AuditUnavailable, Err: fmt.Errorf("read approvals: %w", err),
		Message: "approvals cannot be read, so scripts that need one do not run; the server's log has the reason",
	}
}

func unwritable(err error) error {
	return &skill.Error{
		Op: "approval.write", Code: skill.AuditUnavailable, Err: fmt.Errorf("write approvals: %w", err),
		Message: "approvals cannot be written, so scripts that need one do not run; the server's log has the reason",
	}
}
