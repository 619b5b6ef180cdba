package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"openskill/host/internal/gate"
)

// Querier runs statements: a pool of a [DB], or a transaction.
type Querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Postgres reports whether the database is PostgreSQL.
func (d *DB) Postgres() bool { return d.kind == Postgres }

// ForUpdate ends a SELECT whose rows the transaction goes on to change.
func (d *DB) ForUpdate() string {
	if d.Postgres() {
		return " FOR UPDATE"
	}
	return ""
}

// SkipLocked ends a SELECT of rows for which the transaction does not wait.
func (d *DB) SkipLocked() string {
	if d.Postgres() {
		return " FOR UPDATE SKIP LOCKED"
	}
	return ""
}

// List is n parameters from $first on, with commas between them.
func List(first, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("$" + strconv.Itoa(first+i))
	}
	return b.String()
}

// Values is n rows of parameters for VALUES, each as wide as columns.
func Values(columns, n int) string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = "(" + List(1+i*columns, columns) + ")"
	}
	return strings.Join(rows, ", ")
}

// Args makes arguments of a list.
func Args[T any](list []T) []any {
	args := make([]any, len(list))
	for i, v := range list {
		args[i] = v
	}
	return args
}

// All reads all rows of a query.
func All[T any](ctx context.Context, on Querier, scan func(*sql.Rows) (T, error), query string, args ...any) ([]T, error) {
	return Until(ctx, on, scan, func(T) bool { return false }, query, args...)
}

// Until reads the rows of a query up to the one of which enough is true.
func Until[T any](ctx context.Context, on Querier, scan func(*sql.Rows) (T, error), enough func(T) bool, query string, args ...any) ([]T, error) {
	rows, err := on.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		if all = append(all, one); enough(one) {
			return all, nil
		}
	}
	return all, rows.Err()
}

// Column scans a row of one column, for [All].
func Column[T any](rows *sql.Rows) (v T, err error) { return v, rows.Scan(&v) }

// Statement is one that is run often within transactions. SQLite takes as long to read it as
// to run it, so it is prepared there.
type Statement struct {
	text string
	stmt *sql.Stmt // nil on PostgreSQL, whose driver keeps statements by itself
}

// Prepare gives a statement, of which a program may have few. It cannot be called within a
// transaction, which has the one connection of SQLite.
func (d *DB) Prepare(ctx context.Context, text string) (Statement, error) {
	if d.Postgres() {
		return Statement{text: text}, nil
	}
	d.preparing.Lock()
	defer d.preparing.Unlock()
	if stmt := d.prepared[text]; stmt != nil {
		return Statement{text, stmt}, nil
	}
	var stmt *sql.Stmt
	err := Retry(ctx, func() (err error) {
		stmt, err = d.Write.PrepareContext(ctx, text)
		return err
	})
	if err != nil {
		return Statement{}, err
	}
	d.prepared[text] = stmt
	return Statement{text, stmt}, nil
}

// In gives the statement as it is run in a transaction, however often.
func (s Statement) In(ctx context.Context, tx *sql.Tx) Bound {
	b := Bound{tx: tx, text: s.text}
	if s.stmt != nil {
		b.stmt = tx.StmtContext(ctx, s.stmt)
	}
	return b
}

// Bound is a statement of a transaction.
type Bound struct {
	tx   *sql.Tx
	text string
	stmt *sql.Stmt // nil on PostgreSQL
}

// Exec runs the statement.
func (b Bound) Exec(ctx context.Context, args ...any) (err error) {
	if b.stmt != nil {
		_, err = b.stmt.ExecContext(ctx, args...)
	} else {
		_, err = b.tx.ExecContext(ctx, b.text, args...)
	}
	return err
}

// Row runs the statement for one row.
func (b Bound) Row(ctx context.Context, args ...any) *sql.Row {
	if b.stmt != nil {
		return b.stmt.QueryRowContext(ctx, args...)
	}
	return b.tx.QueryRowContext(ctx, b.text, args...)
}

// Rows runs the statement.
func (b Bound) Rows(ctx context.Context, args ...any) (*sql.Rows, error) {
	if b.stmt != nil {
		return b.stmt.QueryContext(ctx, args...)
	}
	return b.tx.QueryContext(ctx, b.text, args...)
}

// Bounds on how long a transaction is tried again that the database could not do now.
const (
	retryFor   = 5 * time.Second
	firstPause = 2 * time.Millisecond
	mostPause  = 100 * time.Millisecond
)

// InTx runs fn in a transaction that writes, and again where it lost to another one or the
// database was locked, for as long as ctx allows and [retryFor] at most. fn must change
// nothing but by tx, and return the database's errors as they are.
func (d *DB) InTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	return d.InTxOn(ctx, d.Write, fn)
}

// InTxOn is InTx on a pool that writes.
func (d *DB) InTxOn(ctx context.Context, pool *sql.DB, fn func(tx *sql.Tx) error) error {
	return Retry(ctx, func() error { return d.Tx(ctx, pool, fn) })
}

// Tx is InTxOn that tries once.
func (d *DB) Tx(ctx context.Context, pool *sql.DB, fn func(tx *sql.Tx) error) error {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	if err := fn(tx); err != nil {
		if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
			return ctx.Err() // which rolled it back meanwhile
		}
		return err
	}
	return tx.Commit()
}

// InTurn calls do when few others do something of this kind: what there is much of, and
// may wait. A pool gives its connections in no order, and records and quotas, which calls
// wait for, would stand among all of it. On SQLite one at a time is in turn, on PostgreSQL
// as many as half the pool has connections; tenants that wait take turns.
func (d *DB) InTurn(ctx context.Context, tenant string, do func() error) error {
	return passing(ctx, d.turns, tenant, "too much of this tenant waits to be stored", do)
}

// InTopic calls do when no other change of a topic is under way on this host. Each would
// hold a connection while it waits for the row of the topic, and of all of them the
// database lets one go on; here tenants that wait take turns.
func (d *DB) InTopic(ctx context.Context, topic, tenant string, do func() error) error {
	return passing(ctx, d.changes, tenant, "too many changes of this tenant wait for their turn", do, gate.Part{Key: topic, Places: 1})
}

func passing(ctx context.Context, through *gate.Gate, tenant, full string, do func() error, parts ...gate.Part) error {
	leave, err := through.Enter(ctx, tenant, parts...)
	switch {
	case ctx.Err() != nil && err != nil:
		return ctx.Err()
	case err != nil:
		return gate.Refusal(err, "store.wait", full)
	}
	defer leave()
	return do()
}

// Retry calls do until it succeeds, or fails with an error that waiting does not cure.
func Retry(ctx context.Context, do func() error) error {
	end := time.Now().Add(retryFor)
	pause := firstPause
	var before error
	for {
		err := do()
		switch ReasonOf(err) {
		case Locked, Raced:
			before = err
		case Ended:
			return errors.Join(before, err) // it is told what was waited for
		default:
			return err
		}
		if time.Now().After(end) {
			return err
		}
		wait := time.NewTimer(pause/2 + rand.N(pause)) //nolint:gosec // so that two do not meet again
		select {
		case <-ctx.Done():
			wait.Stop()
			return err
		case <-wait.C:
		}
		pause = min(2*pause, mostPause)
	}
}

// MostFreed is how many bytes are removed in one transaction, where they are counted.
// SQLite goes through every page of what it removes, and has one connection that writes:
// records, which calls wait for, would wait for all of it.
const MostFreed = 16 << 20

// Portions cuts a list into parts of no more than [MostFreed] bytes together, or of one
// item.
func Portions[T any](list []T, size func(T) int64) (parts [][]T) {
	for len(list) > 0 {
		n, sum := 1, size(list[0])
		for n < len(list) && sum+size(list[n]) <= MostFreed {
			sum += size(list[n])
			n++
		}
		parts, list = append(parts, list[:n]), list[n:]
	}
	return parts
}

// Exec runs one statement that changes something, and says how many rows it changed.
func (d *DB) Exec(ctx context.Context, statement string, args ...any) (n int, err error) {
	err = Retry(ctx, func() error {
		res, err := d.Write.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		changed, err := res.RowsAffected()
		n = int(changed)
		return err
	})
	return n, err
}

// ExecInTurn is Exec by [DB.InTurn].
func (d *DB) ExecInTurn(ctx context.Context, tenant, statement string, args ...any) (n int, err error) {
	err = d.InTurn(ctx, tenant, func() (err error) {
		n, err = d.Exec(ctx, statement, args...)
		return err
	})
	return n, err
}

// Time is a time read from a column: TIMESTAMPTZ, or INTEGER microseconds since 1970. NULL
// is the zero time.
type Time struct{ time.Time }

// Scan implements sql.Scanner.
func (t *Time) Scan(from any) error {
	switch v := from.(type) {
	case nil:
		t.Time = time.Time{}
	case int64:
		t.Time = time.UnixMicro(v).UTC()
	case time.Time:
		t.Time = v.UTC()
	default:
		return fmt.Errorf("store: a time cannot be read from %T", from)
	}
	return nil
}

// Micro is t as databases keep it: in microseconds, UTC.
func Micro(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

// At is a time as an argument of a statement; the zero time is NULL.
func (d *DB) At(t time.Time) any {
	switch t = Micro(t); {
	case t.IsZero():
		return nil
	case d.Postgres():
		return t
	}
	return t.UnixMicro()
}

// Plain is text that both databases hold: NUL and what is not UTF-8 become U+FFFD.
func Plain(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s
}
