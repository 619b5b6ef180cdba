package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"

	"openskill/host/records"
)

// lite are the statements of Append, prepared for SQLite. Once they are ready they do not
// change.
type lite struct {
	mu      sync.Mutex // guards all
	ready   bool
	head    *sql.Stmt
	phases  *sql.Stmt
	changes [statementCount]*sql.Stmt
}

// prepare prepares the statements, where that was not done. It cannot be done within a
// transaction, which has the one connection.
func (l *lite) prepare(ctx context.Context, db *sql.DB) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ready {
		return nil
	}
	var err error
	stmt := func(text string) (s *sql.Stmt) {
		if err == nil {
			s, err = db.PrepareContext(ctx, text)
		}
		return s
	}
	l.head = stmt("SELECT first, prev, last, last_hash, bytes FROM audit_heads WHERE tenant = ?")
	l.phases = stmt(`SELECT j.value, EXISTS (SELECT 1 FROM execution_logs WHERE id = j.value) FROM json_each(?) j
		WHERE EXISTS (SELECT 1 FROM execution_logs WHERE id = j.value) OR EXISTS (SELECT 1 FROM running_executions WHERE id = j.value)`)
	for s := range statementCount {
		l.changes[s] = stmt(s.forRow())
	}
	l.ready = err == nil
	return err
}

func (a *auditStore) appendSQLite(ctx context.Context, tenants, ids []string, plan func(*known) (*batch, error)) error {
	db := a.db.write.DB
	if err := a.lite.prepare(ctx, db); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	if err := a.appendIn(ctx, tx, tenants, ids, plan); err != nil {
		if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
			return ctx.Err() // which rolled it back meanwhile
		}
		return err
	}
	return tx.Commit()
}

func (a *auditStore) appendIn(ctx context.Context, tx *sql.Tx, tenants, ids []string, plan func(*known) (*batch, error)) error {
	// The driver watches a context that can end by a goroutine for each statement. None of
	// them waits, as the transaction has the lock: that the whole ends with it is enough.
	ctx = context.WithoutCancel(ctx)
	k := &known{heads: map[string]*records.Head{}, phase: map[string]phase{}}
	head := tx.StmtContext(ctx, a.lite.head)
	for _, tenant := range tenants {
		h := newHead(tenant)
		err := head.QueryRowContext(ctx, tenant).Scan(&h.First, &h.Prev, &h.Last, &h.LastHash, &h.Bytes)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		k.heads[tenant] = h
	}
	if err := phasesIn(ctx, tx.StmtContext(ctx, a.lite.phases), ids, k.phase); err != nil {
		return err
	}
	b, err := plan(k)
	if err != nil {
		return err
	}
	for s, rows := range b {
		if len(rows) == 0 {
			continue
		}
		stmt := tx.StmtContext(ctx, a.lite.changes[s])
		for _, row := range rows {
			for i, value := range row {
				if t, ok := value.(stamp); ok {
					row[i] = t.of(SQLite)
				}
			}
			if _, err := stmt.ExecContext(ctx, row...); err != nil {
				return err
			}
		}
	}
	return nil
}

// phasesIn asks how far executions are. Their ids are UUIDs, which JSON needs no escapes for.
func phasesIn(ctx context.Context, stmt *sql.Stmt, ids []string, into map[string]phase) error {
	if len(ids) == 0 {
		return nil
	}
	rows, err := stmt.QueryContext(ctx, `["`+strings.Join(ids, `","`)+`"]`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var over bool
		if err := rows.Scan(&id, &over); err != nil {
			return err
		}
		into[id] = begun
		if over {
			into[id] = ended
		}
	}
	return rows.Err()
}
