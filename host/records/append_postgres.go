package records

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"openskill/host/store"
)

// What Append asks a PostgreSQL server, in two round trips: the first one begins a
// transaction, locks the chains and asks what is there; the second one writes and commits.
// A chain that another host has locked is left out: that host may have frozen.
const (
	// makeHeads gives new tenants a chain that can be locked. It is a transaction of its own:
	// others wait for who makes the same.
	makeHeads = `INSERT INTO audit_heads (tenant, first, prev, last, last_hash)
		SELECT t, 1, $2, 0, $2 FROM unnest($1::text[]) t WHERE NOT EXISTS (SELECT 1 FROM audit_heads h WHERE h.tenant = t)
		ORDER BY t ON CONFLICT DO NOTHING`
	waitHeads   = `SELECT tenant, first, prev, last, last_hash, bytes FROM audit_heads WHERE tenant = ANY($1::text[]) ORDER BY tenant FOR UPDATE`
	lockHeads   = waitHeads + " SKIP LOCKED"
	askHeads    = `SELECT tenant FROM audit_heads WHERE tenant = ANY($1::text[])`
	askPhasesOf = `SELECT id::text, false, instance FROM running_executions WHERE id = ANY($1::uuid[])
		UNION ALL SELECT id::text, true, '' FROM execution_logs WHERE id = ANY($1::uuid[])`
)

// prepared are these statements and those of a batch, by the names under which each
// connection has them.
var prepared = func() map[string]string {
	all := map[string]string{"audit_make_heads": makeHeads, "audit_lock_heads": lockHeads, "audit_wait_heads": waitHeads, "audit_ask_heads": askHeads, "audit_ask_phases": askPhasesOf}
	for s := range statementCount {
		all[s.name()] = s.forRows()
	}
	return all
}()

func (s statement) name() string {
	return [...]string{"audit_record", "audit_ended", "audit_begun", "audit_log", "audit_head"}[s]
}

func (a *tables) appendPostgres(ctx context.Context, tenants, ids []string, wait bool, plan func(*known) (*batch, error)) error {
	c, err := a.db.Records.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Raw(func(under any) error {
		std, ok := under.(*stdlib.Conn)
		if !ok {
			return errors.New("store: the driver's connection is of another kind")
		}
		conn := std.Conn()
		for name, text := range prepared { // without a round trip where it was done before
			if _, err := conn.Prepare(ctx, name, text); err != nil {
				return err
			}
		}
		err := a.appendOn(ctx, conn, tenants, ids, wait, plan)
		if err != nil && !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
			// The context may be over. A connection that cannot even do this is closed, and
			// then the server rolls back.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			if _, back := conn.Exec(ctx, "ROLLBACK"); back != nil {
				_ = conn.Close(ctx)
			}
		}
		return err
	})
}

// waitForHeads is how long a chain is waited for: longer than another host has it that works.
const waitForHeads = "SET LOCAL lock_timeout = '50ms'"

func (a *tables) appendOn(ctx context.Context, conn *pgx.Conn, tenants, ids []string, wait bool, plan func(*known) (*batch, error)) error {
	k, there, err := lock(ctx, conn, tenants, ids, wait)
	if err == nil && len(there) < len(tenants) {
		if _, err = conn.Exec(ctx, "ROLLBACK"); err == nil {
			_, err = conn.Exec(ctx, "audit_make_heads", tenants, Origin)
		}
		if err == nil {
			k, _, err = lock(ctx, conn, tenants, ids, wait)
		}
	}
	if wait && err != nil && store.ReasonOf(err) == store.Locked {
		_, err = conn.Exec(ctx, "ROLLBACK")
		k = &known{}
		if err == nil {
			_, err = plan(k)
		}
		return err
	}
	if err != nil {
		return err
	}
	b, err := plan(k)
	if err != nil {
		return err
	}
	tell := &pgx.Batch{}
	for s, rows := range b {
		if len(rows) > 0 {
			tell.Queue(statement(s).name(), a.columns(rows)...)
		}
	}
	tell.Queue("COMMIT")
	return conn.SendBatch(ctx, tell).Close()
}

// lock begins a transaction and says what is known, and which tenants have a chain.
func lock(ctx context.Context, conn *pgx.Conn, tenants, ids []string, wait bool) (k *known, there []string, err error) {
	k = newKnown()
	ask := &pgx.Batch{}
	ask.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	heads := "audit_lock_heads"
	if wait {
		heads = "audit_wait_heads"
		ask.Queue(waitForHeads)
	}
	ask.Queue(heads, tenants).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			h := &Head{}
			if err := rows.Scan(&h.Tenant, &h.First, &h.Prev, &h.Last, &h.LastHash, &h.Bytes); err != nil {
				return err
			}
			k.heads[h.Tenant] = h
		}
		return rows.Err()
	})
	ask.Queue("audit_ask_heads", tenants).Query(func(rows pgx.Rows) error {
		there, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	ask.Queue("audit_ask_phases", ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var id, on string
			var over bool
			if err := rows.Scan(&id, &over, &on); err != nil {
				return err
			}
			k.note(id, over, on)
		}
		return rows.Err()
	})
	if err := conn.SendBatch(ctx, ask).Close(); err != nil {
		return nil, nil, err
	}
	return k, there, nil
}

// columns makes an array of each column, of its type in Go.
func (a *tables) columns(rows [][]any) []any {
	out := make([]any, len(rows[0]))
	for i, first := range rows[0] {
		switch first.(type) {
		case int64:
			out[i] = array(rows, i, func(v any) (n int64) { n, _ = v.(int64); return })
		case bool:
			out[i] = array(rows, i, func(v any) (b bool) { b, _ = v.(bool); return })
		case store.Time:
			out[i] = array(rows, i, func(v any) any { s, _ := v.(store.Time); return a.db.At(s.Time) })
		case []byte:
			out[i] = array(rows, i, func(v any) (b []byte) { b, _ = v.([]byte); return })
		default: // text, which nil may stand for
			out[i] = array(rows, i, func(v any) *string {
				if s, ok := v.(string); ok {
					return &s
				}
				return nil
			})
		}
	}
	return out
}

func array[T any](rows [][]any, column int, of func(any) T) []T {
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = of(row[column])
	}
	return out
}
