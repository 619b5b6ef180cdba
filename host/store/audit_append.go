package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"openskill/host/audit"
)

// Append implements [audit.Store]. An entry that was left out has Seq 0 afterwards.
func (a *auditStore) Append(ctx context.Context, entries []*audit.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	var tenants, ids []string
	for _, e := range entries {
		if err := checkEntry(e); err != nil {
			return err
		}
		e.Time = e.Time.UTC().Truncate(time.Microsecond) // as it is read again
		tenants, ids = append(tenants, e.Tenant), append(ids, lower(e.ExecutionID))
	}
	slices.Sort(tenants) // the order in which all hosts lock them
	tenants = slices.Compact(tenants)
	once := func() error {
		return a.append(ctx, tenants, ids, func(k *known) (*batch, error) { return link(entries, k) })
	}
	return again(ctx, func() error {
		err := once()
		// A server that was started again leaves connections to the one before. It is open
		// whether this was written, and then it is left out.
		for range idleConns {
			if a.db.kind != Postgres || ReasonOf(err) != Gone || unreachable(err) || ctx.Err() != nil {
				break
			}
			err = once()
		}
		return err
	})
}

// idleConns is more than the connections that a pool keeps without use.
const idleConns = 5

// unreachable reports whether err says that a server cannot be connected to.
func unreachable(err error) bool {
	var connect *pgconn.ConnectError
	return errors.As(err, &connect)
}

// known is what the database has of the tenants and executions of a batch.
type known struct {
	heads map[string]*audit.Head
	phase map[string]phase
}

// phase is how far an execution is on record.
type phase int

const (
	begun phase = iota + 1
	ended
)

// batch is what is written: the rows of each statement. Times in them are stamps.
type batch [statementCount][][]any

func (b *batch) add(s statement, row ...any) { b[s] = append(b[s], row) }

// link chains the entries to their tenants' records and says what is to be written.
func link(entries []*audit.Entry, k *known) (*batch, error) {
	b := &batch{}
	begins := map[string]int{} // executions that begin in this batch, with their places in it
	moved := map[string]bool{}
	for _, e := range entries {
		id := lower(e.ExecutionID)
		e.Seq, e.Prev, e.Hash = 0, "", ""
		if k.phase[id] == ended || e.Started != nil && k.phase[id] == begun {
			continue // it was written before
		}
		if e.Started != nil {
			k.phase[id], begins[id] = begun, len(b[insertRunning])
			b.add(insertRunning, runningRow(e.Started, e.Body)...)
		} else {
			row, err := logRow(e.Of, e.Finished)
			if err != nil {
				return nil, err
			}
			b.add(insertLog, row...)
			if at, ok := begins[id]; ok {
				b[insertRunning][at] = nil
			} else if k.phase[id] == begun {
				b.add(deleteRunning, id)
			}
			k.phase[id] = ended
		}
		b.next(k.heads[e.Tenant], &e.Record)
		moved[e.Tenant] = true
	}
	b[insertRunning] = slices.DeleteFunc(b[insertRunning], func(row []any) bool { return row == nil })
	for tenant := range moved {
		b.setTo(k.heads[tenant])
	}
	return b, nil
}

// next makes r the last record of h.
func (b *batch) next(h *audit.Head, r *audit.Record) {
	r.Seq = h.Last + 1
	audit.Link(h.LastHash, r)
	h.Last, h.LastHash = r.Seq, r.Hash
	b.add(insertRecord, r.Tenant, int64(r.Seq), r.Kind, plain(r.ExecutionID), at(r.Time), []byte(r.Body), r.Prev, r.Hash) //nolint:gosec // not in 100,000 years
}

func (b *batch) setTo(h *audit.Head) {
	b.add(setHead, h.Tenant, int64(h.First), h.Prev, int64(h.Last), h.LastHash) //nolint:gosec // as above
}

// newHead is the chain of a tenant before its first record.
func newHead(tenant string) *audit.Head {
	return &audit.Head{Tenant: tenant, First: 1, Prev: audit.Origin, LastHash: audit.Origin}
}

// statement is one of the statements that write a batch, in their order.
type statement int

const (
	insertRecord statement = iota
	deleteRunning
	insertRunning
	insertLog
	setHead
	statementCount
)

// shape is a statement's table and its columns with their types on PostgreSQL; what is no
// INSERT is written out.
type shape struct {
	table, columns, types string
	update                string
}

func (s statement) shape() shape {
	switch s {
	case insertRecord:
		return shape{
			table: "audit_records", columns: "tenant, seq, kind, execution_id, time, body, prev, hash",
			types: "text, bigint, text, text, timestamptz, bytea, text, text",
		}
	case insertRunning:
		return shape{
			table: "running_executions", columns: "id, tenant, principal_id, skill_name, session_id, trace_id, instance, created_at, started",
			types: "uuid, text, text, text, uuid, text, text, timestamptz, bytea",
		}
	case insertLog:
		return shape{table: "execution_logs", columns: logColumns, types: logTypes}
	default:
		return shape{
			table: "audit_heads", columns: "tenant, first, prev, last, last_hash", types: "text, bigint, text, bigint, text",
			update: " ON CONFLICT (tenant) DO UPDATE SET first = excluded.first, prev = excluded.prev, last = excluded.last, last_hash = excluded.last_hash",
		}
	}
}

// forRow is the statement for one row, with a question mark for each of its values.
func (s statement) forRow() string {
	if s == deleteRunning {
		return "DELETE FROM running_executions WHERE id = ?"
	}
	t := s.shape()
	return "INSERT INTO " + t.table + " (" + t.columns + ") VALUES (?" + strings.Repeat(", ?", strings.Count(t.columns, ",")) + ")" + t.update
}

// forRows is the statement for many rows on PostgreSQL, with an array for each column.
func (s statement) forRows() string {
	if s == deleteRunning {
		return "DELETE FROM running_executions WHERE id = ANY($1::uuid[])"
	}
	t := s.shape()
	var arrays []string
	for i, of := range strings.Split(t.types, ", ") {
		arrays = append(arrays, fmt.Sprintf("$%d::%s[]", i+1, of))
	}
	return "INSERT INTO " + t.table + " (" + t.columns + ") SELECT * FROM unnest(" + strings.Join(arrays, ", ") + ")" + t.update
}

// append runs the transaction of a batch: what plan says of what is known is written.
func (a *auditStore) append(ctx context.Context, tenants, ids []string, plan func(*known) (*batch, error)) error {
	if a.db.postgres() {
		return a.appendPostgres(ctx, tenants, ids, plan)
	}
	return a.appendSQLite(ctx, tenants, ids, plan)
}
