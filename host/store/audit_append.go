package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

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
	return again(ctx, func() error {
		return a.append(ctx, tenants, ids, func(known *known) ([]change, error) { return link(entries, known) })
	})
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

// change is one statement with its arguments.
type change struct {
	what statement
	args []any // times as stamp
}

// link chains the entries to their tenants' records and says what is to be written.
func link(entries []*audit.Entry, k *known) ([]change, error) {
	changes := make([]change, 0, 2*len(entries)+len(k.heads))
	moved := map[string]bool{}
	for _, e := range entries {
		id := lower(e.ExecutionID)
		e.Seq, e.Prev, e.Hash = 0, "", ""
		var table change
		switch {
		case e.Started != nil:
			if k.phase[id] >= begun {
				continue
			}
			k.phase[id] = begun
			table = change{insertRunning, runningArgs(e.Started, e.Body)}
		case e.Finished != nil:
			if k.phase[id] == ended {
				continue
			}
			if k.phase[id] == begun {
				changes = append(changes, change{deleteRunning, []any{id}})
			}
			k.phase[id] = ended
			args, err := logArgs(e.Of, e.Finished)
			if err != nil {
				return nil, err
			}
			table = change{insertLog, args}
		}
		changes = append(changes, next(k.heads[e.Tenant], &e.Record))
		if table.args != nil {
			changes = append(changes, table)
		}
		moved[e.Tenant] = true
	}
	for tenant := range moved {
		changes = append(changes, setTo(k.heads[tenant]))
	}
	return changes, nil
}

// next makes r the last record of h.
func next(h *audit.Head, r *audit.Record) change {
	r.Seq = h.Last + 1
	audit.Link(h.LastHash, r)
	h.Last, h.LastHash = r.Seq, r.Hash
	return change{insertRecord, []any{
		r.Tenant, int64(r.Seq), r.Kind, plain(r.ExecutionID), at(r.Time), []byte(r.Body), r.Prev, r.Hash, //nolint:gosec // not in 100,000 years
	}}
}

func setTo(h *audit.Head) change {
	return change{setHead, []any{h.Tenant, int64(h.First), h.Prev, int64(h.Last), h.LastHash}} //nolint:gosec // as above
}

// newHead is the chain of a tenant before its first record.
func newHead(tenant string) *audit.Head {
	return &audit.Head{Tenant: tenant, First: 1, Prev: audit.Origin, LastHash: audit.Origin}
}

// statement is one of the statements of Append, prepared on each connection.
type statement int

const (
	insertRecord statement = iota
	setHead
	insertRunning
	deleteRunning
	insertLog
	statementCount
)

// text is the statement, with a question mark for each argument.
func (s statement) text() string {
	switch s {
	case insertRecord:
		return "INSERT INTO audit_records (tenant, seq, kind, execution_id, time, body, prev, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
	case setHead:
		return `INSERT INTO audit_heads (tenant, first, prev, last, last_hash) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (tenant) DO UPDATE SET first = excluded.first, prev = excluded.prev, last = excluded.last, last_hash = excluded.last_hash`
	case insertRunning:
		return `INSERT INTO running_executions (id, tenant, principal_id, skill_name, session_id, trace_id, instance, created_at, started)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	case deleteRunning:
		return "DELETE FROM running_executions WHERE id = ?"
	default:
		return "INSERT INTO execution_logs (" + logColumns + ") VALUES (?" + strings.Repeat(", ?", logColumnCount-1) + ")"
	}
}

// numbered writes $1, $2 … for the question marks, as PostgreSQL has them.
func numbered(text string) string {
	var b strings.Builder
	n := 0
	for _, part := range strings.SplitAfter(text, "?") {
		before, found := strings.CutSuffix(part, "?")
		b.WriteString(before)
		if found {
			n++
			b.WriteString("$" + strconv.Itoa(n))
		}
	}
	return b.String()
}

// append runs the transaction of a batch: what plan says of what is known is written.
func (a *auditStore) append(ctx context.Context, tenants, ids []string, plan func(*known) ([]change, error)) error {
	if a.db.postgres() {
		return a.appendPostgres(ctx, tenants, ids, plan)
	}
	return a.appendSQLite(ctx, tenants, ids, plan)
}
