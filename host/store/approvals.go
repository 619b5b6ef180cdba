package store

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/uptrace/bun"

	"openskill/host/dispatch/approval"
)

// Approvals is where it is kept what people allowed scripts.
func (d *DB) Approvals() approval.Rows { return approvalStore{d} }

type approvalStore struct{ db *DB }

// approvalRow is a row of approvals. Body is the approval; the others find it.
type approvalRow struct {
	bun.BaseModel `bun:"table:approvals,alias:approvals"`

	ID         string `bun:"id"`
	Asks       string `bun:"asks"` // the approval's Key
	Tenant     string `bun:"tenant"`
	Skill      string `bun:"skill"`
	State      string `bun:"state"`
	ExpiresAt  stamp  `bun:"expires_at"`
	ApprovedAt stamp  `bun:"approved_at"` // also of what was denied or used afterwards
	Body       string `bun:"body"`
}

// Select implements approval.Rows.
func (s approvalStore) Select(ctx context.Context, q *approval.Query) ([]*approval.Approval, error) {
	return s.selected(ctx, s.db.read, q)
}

func (s approvalStore) selected(ctx context.Context, on bun.IDB, q *approval.Query) ([]*approval.Approval, error) {
	var rows []*approvalRow
	ask := on.NewSelect().Model(&rows).Column("id", "body").Limit(int64(q.Limit))
	for column, value := range map[string]string{"id": q.ID, "asks": q.Key, "tenant": q.Tenant, "skill": q.Skill} {
		if value != "" {
			ask = ask.Where(column+" = ?", plain(value))
		}
	}
	if q.Before != "" {
		ask = ask.Where("id < ?", plain(q.Before))
	}
	const over = "expires_at IS NOT NULL AND expires_at <= ?"
	switch now := at(q.Now); q.State {
	case "":
	case approval.Pending, approval.Approved:
		ask = ask.Where("state = ? AND NOT ("+over+")", string(q.State), now)
	case approval.Expired:
		ask = ask.Where("(state = ? OR state IN (?, ?) AND "+over+")", string(approval.Expired), string(approval.Pending), string(approval.Approved), now)
	case approval.Denied, approval.Used:
		ask = ask.Where("state = ?", string(q.State))
	}
	if q.Approved {
		ask = ask.Where("approved_at IS NOT NULL").OrderExpr("approved_at DESC")
	}
	if err := ask.OrderExpr("id DESC").Scan(ctx); err != nil {
		return nil, err
	}
	list := make([]*approval.Approval, 0, len(rows))
	for _, r := range rows {
		a := &approval.Approval{}
		if json.Unmarshal([]byte(r.Body), a) != nil || !a.Valid() || a.ID != r.ID {
			s.db.log.Warn("skipped a damaged row of approvals", slog.String("id", r.ID))
			continue
		}
		if a.Arguments == nil {
			a.Arguments = []string{}
		}
		list = append(list, a)
	}
	return list, nil
}

// Change implements approval.Rows.
func (s approvalStore) Change(ctx context.Context, tenant string, f func(tx approval.Tx) error) error {
	const topic = "approvals"
	return s.db.inTopic(ctx, topic, tenant, func() error {
		return s.db.inTx(ctx, func(ctx context.Context, tx bun.Tx) error {
			if _, err := s.db.Raise(ctx, tx.Tx, topic); err != nil {
				return err
			}
			return f(approvalTx{ctx, s, tx})
		})
	})
}

// approvalTx is one transaction.
type approvalTx struct {
	ctx   context.Context //nolint:containedctx // it lives as long as the call that has it
	store approvalStore
	tx    bun.Tx
}

// Select implements approval.Tx.
func (t approvalTx) Select(q *approval.Query) ([]*approval.Approval, error) {
	return t.store.selected(t.ctx, t.tx, q)
}

// Put implements approval.Tx.
func (t approvalTx) Put(a *approval.Approval) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	r := &approvalRow{
		ID: plain(a.ID), Asks: a.Key(), Tenant: plain(a.Tenant), Skill: plain(a.Skill), State: string(a.State),
		ExpiresAt: at(a.ExpiresAt), Body: string(body),
	}
	if a.State == approval.Approved || a.State == approval.Used {
		r.ApprovedAt = at(a.DecidedAt)
	}
	_, err = t.tx.NewInsert().Model(r).On("CONFLICT (id) DO UPDATE").Set("state = EXCLUDED.state").Set("expires_at = EXCLUDED.expires_at").
		Set("approved_at = COALESCE(EXCLUDED.approved_at, approvals.approved_at)").Set("body = EXCLUDED.body").Exec(t.ctx)
	return err
}

// Prune implements approval.Tx.
func (t approvalTx) Prune(tenant string, now time.Time, keep int) error {
	tenant = plain(tenant)
	_, err := t.tx.NewRaw(`DELETE FROM approvals WHERE tenant = ? AND id IN (
			SELECT id FROM approvals WHERE tenant = ? AND (state IN (?, ?) OR expires_at IS NOT NULL AND expires_at <= ?) ORDER BY id DESC LIMIT ? OFFSET ?)
		AND NOT EXISTS (SELECT 1 FROM (SELECT skill, MAX(approved_at) AS latest FROM approvals WHERE tenant = ? GROUP BY skill) AS last
			WHERE last.skill = approvals.skill AND last.latest = approvals.approved_at)`,
		tenant, tenant, string(approval.Used), string(approval.Expired), at(now), 1<<30, keep, tenant).Exec(t.ctx)
	return err
}
