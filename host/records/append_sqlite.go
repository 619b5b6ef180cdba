package records

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"openskill/host/store"
)

const (
	askHead   = "SELECT first, prev, last, last_hash, bytes FROM audit_heads WHERE tenant = $1"
	askPhases = `SELECT j.value, EXISTS (SELECT 1 FROM execution_logs WHERE id = j.value), COALESCE((SELECT instance FROM running_executions WHERE id = j.value), '') FROM json_each($1) j
		WHERE EXISTS (SELECT 1 FROM execution_logs WHERE id = j.value) OR EXISTS (SELECT 1 FROM running_executions WHERE id = j.value)`
)

func (a *tables) appendSQLite(ctx context.Context, tenants, ids []string, plan func(*known) (*batch, error)) error {
	var ask [2]store.Statement
	var changes [statementCount]store.Statement
	var err error
	for i, text := range []string{askHead, askPhases} {
		if ask[i], err = a.db.Prepare(ctx, text); err != nil {
			return err
		}
	}
	for s, text := range forOneRow {
		if changes[s], err = a.db.Prepare(ctx, text); err != nil {
			return err
		}
	}
	return a.db.Tx(ctx, a.db.Write, func(tx *sql.Tx) error {
		ctx := a.db.Unwatched(ctx)
		k := newKnown()
		head := ask[0].In(ctx, tx)
		for _, tenant := range tenants {
			h := newHead(tenant)
			err := head.Row(ctx, tenant).Scan(&h.First, &h.Prev, &h.Last, &h.LastHash, &h.Bytes)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			k.heads[tenant] = h
		}
		if err := phasesIn(ctx, ask[1].In(ctx, tx), ids, k); err != nil {
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
			change := changes[s].In(ctx, tx)
			for _, row := range rows {
				if err := change.Exec(ctx, a.arguments(row)...); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// forOneRow are the statements for one row each.
var forOneRow = func() (all [statementCount]string) {
	for s := range statementCount {
		all[s] = s.forRow()
	}
	return all
}()

// arguments makes arguments of the values of a row.
func (a *tables) arguments(row []any) []any {
	for i, value := range row {
		if t, ok := value.(store.Time); ok {
			row[i] = a.db.At(t.Time)
		}
	}
	return row
}

// phasesIn asks how far executions are. Their ids are UUIDs, which JSON needs no escapes for.
func phasesIn(ctx context.Context, ask store.Bound, ids []string, into *known) error {
	if len(ids) == 0 {
		return nil
	}
	rows, err := ask.Rows(ctx, `["`+strings.Join(ids, `","`)+`"]`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, on string
		var over bool
		if err := rows.Scan(&id, &over, &on); err != nil {
			return err
		}
		into.note(id, over, on)
	}
	return rows.Err()
}
