package records

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"openskill/host/store"
)

// Prune implements [Store]. An execution whose first record goes and whose last one
// stays keeps its log until that one goes.
func (a *tables) Prune(ctx context.Context, tenant string, before time.Time, limit int) (removed int, err error) {
	if store.Plain(tenant) != tenant {
		return 0, nil // there is none
	}
	err = a.db.InTx(ctx, func(tx *sql.Tx) error {
		var err error
		removed, err = a.prune(ctx, tx, tenant, before, min(limit, 10_000))
		return err
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}

func (a *tables) prune(ctx context.Context, tx *sql.Tx, tenant string, before time.Time, limit int) (int, error) {
	h := newHead(tenant)
	err := tx.QueryRowContext(ctx, "SELECT first, prev, last, last_hash, bytes FROM audit_heads WHERE tenant = $1"+a.db.ForUpdate(), tenant).
		Scan(&h.First, &h.Prev, &h.Last, &h.LastHash, &h.Bytes)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	running, err := store.All(ctx, tx, store.Column[string], "SELECT id FROM running_executions WHERE tenant = $1", tenant)
	if err != nil {
		return 0, err
	}
	p := pruning{head: h, before: before, running: map[string]bool{}}
	for _, id := range running {
		p.running[id] = true
	}
	rows, err := tx.QueryContext(ctx, "SELECT seq, kind, execution_id, time, hash, octet_length(body) FROM audit_records WHERE tenant = $1 AND seq >= $2 ORDER BY seq LIMIT $3",
		tenant, int64(h.First), limit)
	if err != nil {
		return 0, err
	}
	if err := p.look(rows); err != nil || p.removed == 0 {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM audit_records WHERE tenant = $1 AND seq < $2", tenant, int64(h.First))
	if err != nil {
		return 0, err
	}
	if len(p.over) > 0 {
		if _, err := tx.ExecContext(ctx, "DELETE FROM execution_logs WHERE tenant = $1 AND id IN ("+store.List(2, len(p.over))+")", append([]any{tenant}, store.Args(p.over)...)...); err != nil {
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
			if _, err := tx.ExecContext(ctx, forOneRow[s], a.arguments(row)...); err != nil {
				return 0, err
			}
		}
	}
	return p.removed, nil
}

// pruning finds where the chain begins afterwards.
type pruning struct {
	head    *Head // of the chain; look moves its first end
	before  time.Time
	running map[string]bool

	removed int
	over    []string // executions whose last record goes
	record  Record
}

// look goes through the oldest records, and closes rows.
func (p *pruning) look(rows *sql.Rows) error {
	defer rows.Close()
	for rows.Next() {
		var seq uint64
		var kind, id, hash string
		var when store.Time
		var size int
		l := &lax{names: []string{"seq", "kind", "execution_id", "time", "hash", "body"}}
		if err := rows.Scan(laxly(l, &seq), laxly(l, &kind), laxly(l, &id), laxly(l, &when), laxly(l, &hash), laxly(l, &size)); err != nil {
			return err
		}
		// A gap, and what cannot be read, are left for who verifies the chain.
		if l.wrong != nil || seq != p.head.First || !when.Before(p.before) || p.running[strings.ToLower(id)] {
			break
		}
		p.removed++
		p.head.First, p.head.Prev = seq+1, hash
		p.head.Bytes -= RecordSize(size)
		if kind == KindFinished && store.IsUUID(id) {
			p.over = append(p.over, strings.ToLower(id))
		}
	}
	return rows.Err()
}

// tell makes the record of what was removed.
func (p *pruning) tell() error {
	now := store.Micro(time.Now())
	body, err := json.Marshal(Pruned{Next: p.head.First, Hash: p.head.Prev, Time: now})
	p.record = Record{Tenant: p.head.Tenant, Kind: KindPruned, Time: now, Body: body}
	return err
}
