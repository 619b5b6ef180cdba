package records

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"openskill/host/store"
)

// Append implements [Store]. An entry that was left out has Seq 0 afterwards.
func (a *tables) Append(ctx context.Context, entries []*Entry) error {
	if len(entries) == 0 {
		return nil
	}
	var tenants, ids []string
	for _, e := range entries {
		if err := checkEntry(e); err != nil {
			return err
		}
		e.Time = e.Time.UTC().Truncate(time.Microsecond) // as it is read again
		if tenants = append(tenants, e.Tenant); e.Change == nil {
			ids = append(ids, strings.ToLower(e.ExecutionID))
		}
	}
	slices.Sort(tenants) // the order in which all hosts lock them
	tenants = slices.Compact(tenants)
	once := func() error {
		return a.append(ctx, tenants, ids, entries[0].Wait, func(k *known) (*batch, error) { return chain(entries, k, a.db.Quota(store.AuditRecords).Bytes) })
	}
	return store.Retry(ctx, func() error {
		err := once()
		// A server that was started again leaves connections to the one before. It is open
		// whether this was written, and then it is left out.
		for range idleConns {
			if !a.db.Postgres() || store.ReasonOf(err) != store.Gone || unreachable(err) || ctx.Err() != nil {
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

// known is what the database has of the tenants and executions of a batch. A tenant without
// a head is left out.
type known struct {
	heads map[string]*Head
	phase map[string]phase
	on    map[string]string // the instances that run those that have begun
}

func newKnown() *known {
	return &known{heads: map[string]*Head{}, phase: map[string]phase{}, on: map[string]string{}}
}

// note notes an execution that has begun, on an instance, or is over.
func (k *known) note(id string, over bool, on string) {
	if over {
		k.phase[id] = ended
	} else {
		k.phase[id], k.on[id] = begun, on
	}
}

// phase is how far an execution is on record.
type phase int

const (
	begun phase = iota + 1
	ended
)

// batch is what is written: the rows of each statement. Times in them are of [store.Time].
type batch [statementCount][][]any

func (b *batch) add(s statement, row ...any) { b[s] = append(b[s], row) }

// chain links the entries to their tenants' records and says what is to be written.
func chain(entries []*Entry, k *known, most int64) (*batch, error) {
	b := &batch{}
	begins := map[string]int{} // executions that begin in this batch, with their places in it
	moved := map[string]bool{}
	for _, e := range entries {
		id := strings.ToLower(e.ExecutionID)
		if k.heads[e.Tenant] == nil {
			e.Seq, e.Prev, e.Hash, e.Left = 0, "", "", ErrHeld
			continue
		}
		e.Seq, e.Prev, e.Hash, e.Left = 0, "", "", nil
		if e.Own && k.heads[e.Tenant].Bytes >= most+most/16 {
			e.Left = ErrFull
			continue
		}
		if e.Change != nil { // written twice where it is open whether it was written, with one id
			b.next(k.heads[e.Tenant], &e.Record)
			moved[e.Tenant] = true
			continue
		}
		if k.phase[id] == ended || e.Started != nil && k.phase[id] == begun {
			continue // it was written before
		}
		if on := k.on[id]; e.Finished != nil && on != "" && on != fit(e.Of.host(), mostWord) {
			continue // it has begun again on another host
		}
		if e.Started != nil && !e.Sure && k.heads[e.Tenant].Bytes >= most { // what began may end, and what is changed is on record
			e.Left = ErrFull
			continue
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
	for _, e := range entries {
		h := k.heads[e.Tenant]
		e.Full = h != nil && h.Bytes >= most
	}
	return b, nil
}

// next makes r the last record of h.
func (b *batch) next(h *Head, r *Record) {
	r.Seq = h.Last + 1
	Link(h.LastHash, r)
	h.Last, h.LastHash = r.Seq, r.Hash
	h.Bytes += RecordSize(len(r.Body))
	b.add(insertRecord, r.Tenant, int64(r.Seq), r.Kind, store.Plain(r.ExecutionID), store.Time{Time: store.Micro(r.Time)}, []byte(r.Body), r.Prev, r.Hash)
}

func (b *batch) setTo(h *Head) {
	b.add(setHead, h.Tenant, int64(h.First), h.Prev, int64(h.Last), h.LastHash, max(h.Bytes, 0))
}

// newHead is the chain of a tenant before its first record.
func newHead(tenant string) *Head {
	return &Head{Tenant: tenant, First: 1, Prev: Origin, LastHash: Origin}
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

// into says what an INSERT writes to: its table, the columns with their types on
// PostgreSQL, and what becomes of a row that is there.
func (s statement) into() (table, columns, update string) {
	switch s {
	case insertRecord:
		return "audit_records", "tenant text, seq bigint, kind text, execution_id text, time timestamptz, body bytea, prev text, hash text", ""
	case insertRunning:
		return "running_executions", runningRowOf, ""
	case insertLog:
		return "execution_logs", logRowOf, ""
	default:
		return "audit_heads", "tenant text, first bigint, prev text, last bigint, last_hash text, bytes bigint",
			" ON CONFLICT (tenant) DO UPDATE SET first = excluded.first, prev = excluded.prev, last = excluded.last, last_hash = excluded.last_hash, bytes = excluded.bytes"
	}
}

// split gives the names and the types of columns.
func split(columns string) (names, types []string) {
	for column := range strings.SplitSeq(columns, ",") {
		word := strings.Fields(column)
		names, types = append(names, word[0]), append(types, word[1])
	}
	return names, types
}

// forRow is the statement for one row.
func (s statement) forRow() string {
	if s == deleteRunning {
		return "DELETE FROM running_executions WHERE id = $1"
	}
	table, columns, update := s.into()
	names, _ := split(columns)
	return "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") VALUES (" + store.List(1, len(names)) + ")" + update
}

// forRows is the statement for many rows on PostgreSQL, with an array for each column.
func (s statement) forRows() string {
	if s == deleteRunning {
		return "DELETE FROM running_executions WHERE id = ANY($1::uuid[])"
	}
	table, columns, update := s.into()
	names, types := split(columns)
	for i, of := range types {
		types[i] = fmt.Sprintf("$%d::%s[]", i+1, of)
	}
	return "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") SELECT * FROM unnest(" + strings.Join(types, ", ") + ")" + update
}

// append runs the transaction of a batch: what plan says of what is known is written.
func (a *tables) append(ctx context.Context, tenants, ids []string, wait bool, plan func(*known) (*batch, error)) error {
	if a.db.Postgres() {
		return a.appendPostgres(ctx, tenants, ids, wait, plan)
	}
	return a.appendSQLite(ctx, tenants, ids, plan)
}
