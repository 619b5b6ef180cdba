package approval

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"openskill/host/store"
	"openskill/sdk/skill"
)

// query selects approvals. Zero fields select all; Limit is required.
type query struct {
	ID, Key       string
	Tenant, Skill string
	Approved      bool      // that were approved at some time, the latest decision first
	State         State     // at Now
	Now           time.Time // required with State
	Before        string    // ids that are lower
	Limit         int
}

// selected returns the approvals that q selects, those with the highest ids first.
func (s *Store) selected(ctx context.Context, on store.Querier, q *query) ([]*Approval, error) {
	where, args := "true", []any{q.Limit}
	and := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", "$"+strconv.Itoa(len(args)), 1)
		}
		where += " AND " + condition
	}
	for column, value := range map[string]string{"id": q.ID, "asks": q.Key, "tenant": q.Tenant, "skill": q.Skill} {
		if value != "" {
			and(column+" = ?", store.Plain(value))
		}
	}
	if q.Before != "" {
		and("id < ?", store.Plain(q.Before))
	}
	switch now := s.o.DB.At(q.Now); q.State {
	case "":
	case Pending, Approved:
		and("state = ? AND (expires_at IS NULL OR expires_at > ?)", string(q.State), now)
	case Expired:
		and("(state = ? OR state IN (?, ?) AND expires_at <= ?)", string(Expired), string(Pending), string(Approved), now)
	case Denied, Used:
		and("state = ?", string(q.State))
	}
	order := "id DESC"
	if q.Approved {
		and("approved_at IS NOT NULL")
		order = "approved_at DESC, id DESC"
	}
	rows, err := store.All(ctx, on, func(rows *sql.Rows) (r [2]string, err error) { return r, rows.Scan(&r[0], &r[1]) },
		"SELECT id, body FROM approvals WHERE "+where+" ORDER BY "+order+" LIMIT $1", args...)
	if err != nil {
		return nil, err
	}
	list := make([]*Approval, 0, len(rows))
	for _, r := range rows {
		id, body := r[0], r[1]
		a := &Approval{}
		if json.Unmarshal([]byte(body), a) != nil || !a.valid() || a.ID != id {
			s.o.Log.Warn("skipped a damaged row of approvals", slog.String("id", id))
			continue
		}
		if a.Arguments == nil {
			a.Arguments = []string{}
		}
		list = append(list, a)
	}
	return list, nil
}

// changing is a transaction that changes approvals.
type changing struct {
	ctx   context.Context //nolint:containedctx // it lives as long as the call that has it
	store *Store
	tx    *sql.Tx
}

// all returns the approvals that q selects.
func (c *changing) all(q *query) ([]*Approval, error) {
	list, err := c.store.selected(c.ctx, c.tx, q)
	if err != nil {
		return nil, unreadable(err)
	}
	return list, nil
}

// first returns the newest approval that q selects, or nil.
func (c *changing) first(q query) (*Approval, error) {
	q.Limit = 1
	list, err := c.all(&q)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

// put adds an approval, or replaces the one with its id.
func (c *changing) put(a *Approval) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	db, approved := c.store.o.DB, time.Time{}
	if a.State == Approved || a.State == Used {
		approved = a.DecidedAt
	}
	_, err = c.tx.ExecContext(c.ctx, "INSERT INTO approvals (id, asks, tenant, skill, state, expires_at, approved_at, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"+
		" ON CONFLICT (id) DO UPDATE SET state = excluded.state, expires_at = excluded.expires_at,"+
		" approved_at = COALESCE(excluded.approved_at, approvals.approved_at), body = excluded.body",
		store.Plain(a.ID), a.Key(), store.Plain(a.Tenant), store.Plain(a.Skill), string(a.State), db.At(a.ExpiresAt), db.At(approved), string(body))
	if err != nil {
		return unwritable(err)
	}
	return nil
}

// prune removes the oldest approvals of a tenant that do not hold at now, but for MaxPast
// of them and those that were approved last of each skill.
func (c *changing) prune(tenant string, now time.Time) error {
	db := c.store.o.DB
	_, err := c.tx.ExecContext(c.ctx, `DELETE FROM approvals WHERE tenant = $1 AND id IN (
			SELECT id FROM approvals WHERE tenant = $1 AND (state IN ($2, $3) OR expires_at IS NOT NULL AND expires_at <= $4) ORDER BY id DESC LIMIT $5 OFFSET $6)
		AND NOT EXISTS (SELECT 1 FROM (SELECT skill, MAX(approved_at) AS latest FROM approvals WHERE tenant = $1 GROUP BY skill) AS last
			WHERE last.skill = approvals.skill AND last.latest = approvals.approved_at)`,
		store.Plain(tenant), string(Used), string(Expired), db.At(now), 1<<30, c.store.o.MaxPast)
	if err != nil {
		return unwritable(err)
	}
	return nil
}

// valid reports whether a stored approval says all that it needs to be found and compared.
// What is missing elsewhere makes it narrower, never wider.
func (a *Approval) valid() bool {
	if len(a.ID) != 36 || a.Skill == "" || a.Digest == "" || a.CallHash == "" || a.Policy != PerVersion && a.Policy != PerCall && a.Policy != Enabling || (a.Policy == Enabling) != (a.Version != "") {
		return false
	}
	_, err := ParseState(string(a.State))
	return err == nil
}

// Without its record a run does not begin.
func unreadable(err error) error {
	return &skill.Error{
		Op: "approval.read", Code: skill.AuditUnavailable, Err: fmt.Errorf("read approvals: %w", err),
		Message: "cannot read approvals, so scripts that need one do not run; see the server's log",
	}
}

func unwritable(err error) error {
	return &skill.Error{
		Op: "approval.write", Code: skill.AuditUnavailable, Err: fmt.Errorf("write approvals: %w", err),
		Message: "cannot store approvals, so scripts that need one do not run; see the server's log",
	}
}
