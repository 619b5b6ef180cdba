package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"openskill/host/records"
)

// Prune implements [records.Store]. An execution whose first record goes and whose last one
// stays keeps its log until that one goes.
func (a *auditStore) Prune(ctx context.Context, tenant string, before time.Time, limit int) (removed int, err error) {
	if plain(tenant) != tenant {
		return 0, nil // there is none
	}
	err = a.db.inTx(ctx, func(ctx context.Context, tx bun.Tx) error {
		var err error
		removed, err = a.prune(ctx, tx, tenant, before, min(limit, 10_000))
		return err
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}

func (a *auditStore) prune(ctx context.Context, tx bun.Tx, tenant string, before time.Time, limit int) (int, error) {
	h := newHead(tenant)
	err := tx.QueryRowContext(ctx, "SELECT first, prev, last, last_hash, bytes FROM audit_heads WHERE tenant = ?"+a.db.forUpdate(), tenant).
		Scan(&h.First, &h.Prev, &h.Last, &h.LastHash, &h.Bytes)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	running, err := column(ctx, tx, "SELECT id FROM running_executions WHERE tenant = ?", tenant)
	if err != nil {
		return 0, err
	}
	p := pruning{head: h, before: before, running: map[string]bool{}}
	for _, id := range running {
		p.running[id] = true
	}
	rows, err := tx.QueryContext(ctx, "SELECT seq, kind, execution_id, time, hash, octet_length(body) FROM audit_records WHERE tenant = ? AND seq >= ? ORDER BY seq LIMIT ?",
		tenant, int64(h.First), limit)
	if err != nil {
		return 0, err
	}
	if err := p.look(rows); err != nil || p.removed == 0 {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM audit_records WHERE tenant = ? AND seq < ?", tenant, int64(h.First))
	if err != nil {
		return 0, err
	}
	if len(p.over) > 0 {
		if _, err := tx.ExecContext(ctx, "DELETE FROM execution_logs WHERE tenant = ? AND id IN (?)", tenant, bun.List(p.over)); err != nil {
			return 0, err
		}
	}
	if err := p.tell(); err != nil {
		return 0, err
	}
	b := &batch{}
	b.next(h, &p.record)
	b.setTo(h)
	for s, rows := range b {
		for _, row := range rows {
			if _, err := tx.ExecContext(ctx, statement(s).forRow(), row...); err != nil {
				return 0, err
			}
		}
	}
	return p.removed, nil
}

// column reads one column.
func column(ctx context.Context, tx bun.Tx, query string, args ...any) ([]string, error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(rows *sql.Rows) (s string, err error) { return s, rows.Scan(&s) })
}

// pruning finds where the chain begins afterwards.
type pruning struct {
	head    *records.Head // of the chain; look moves its first end
	before  time.Time
	running map[string]bool

	removed int
	over    []string // executions whose last record goes
	record  records.Record
}

// look goes through the oldest records, and closes rows.
func (p *pruning) look(rows *sql.Rows) error {
	defer rows.Close()
	for rows.Next() {
		var seq uint64
		var kind, id, hash string
		var when stamp
		var size int
		l := &lax{names: []string{"seq", "kind", "execution_id", "time", "hash", "body"}}
		if err := rows.Scan(laxly(l, &seq), laxly(l, &kind), laxly(l, &id), laxly(l, &when), laxly(l, &hash), laxly(l, &size)); err != nil {
			return err
		}
		// A gap, and what cannot be read, are left for who verifies the chain.
		if l.wrong != nil || seq != p.head.First || !when.Before(p.before) || p.running[lower(id)] {
			break
		}
		p.removed++
		p.head.First, p.head.Prev = seq+1, hash
		p.head.Bytes -= records.RecordSize(size)
		if kind == records.KindFinished && isUUID(id) {
			p.over = append(p.over, lower(id))
		}
	}
	return rows.Err()
}

// tell makes the record of what was removed.
func (p *pruning) tell() error {
	now := at(time.Now()).Time
	body, err := json.Marshal(records.Pruned{Next: p.head.First, Hash: p.head.Prev, Time: now})
	p.record = records.Record{Tenant: p.head.Tenant, Kind: records.KindPruned, Time: now, Body: body}
	return err
}
