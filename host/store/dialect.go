package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"github.com/uptrace/bun/schema"

	"openskill/host/internal/gate"
)

// postgres reports whether the database is PostgreSQL.
func (d *DB) postgres() bool { return d.kind == Postgres }

// forUpdate ends a SELECT whose rows the transaction goes on to change.
func (d *DB) forUpdate() string {
	if d.postgres() {
		return " FOR UPDATE"
	}
	return ""
}

// unlocked ends a SELECT of rows for which the transaction does not wait.
func (d *DB) unlocked() string {
	if d.postgres() {
		return " FOR UPDATE SKIP LOCKED"
	}
	return ""
}

// marked is a statement with question marks as the driver takes it: for values that are
// too large for bun, which would write them into its text.
func (d *DB) marked(statement string) string {
	if !d.postgres() {
		return statement
	}
	parts := strings.Split(statement, "?")
	var b strings.Builder
	b.WriteString(parts[0])
	for i, part := range parts[1:] {
		b.WriteString("$" + strconv.Itoa(i+1) + part)
	}
	return b.String()
}

// query is a statement that is run often, within transactions.
type query struct {
	text string
	stmt *sql.Stmt // of SQLite, which takes as long to read the text as to do what it says
}

// query gives a statement with question marks, of which there are few. It cannot be
// called within a transaction, which has the one connection of SQLite.
func (d *DB) query(ctx context.Context, text string) (query, error) {
	if d.postgres() {
		return query{text: d.marked(text)}, nil
	}
	d.preparing.Lock()
	defer d.preparing.Unlock()
	if stmt := d.prepared[text]; stmt != nil {
		return query{text, stmt}, nil
	}
	var stmt *sql.Stmt
	err := again(ctx, func() (err error) {
		stmt, err = d.write.DB.PrepareContext(ctx, text)
		return err
	})
	if err != nil {
		return query{}, err
	}
	d.prepared[text] = stmt
	return query{text, stmt}, nil
}

func (q query) exec(ctx context.Context, tx bun.Tx, args ...any) (err error) {
	if q.stmt != nil {
		_, err = tx.StmtContext(ctx, q.stmt).ExecContext(ctx, args...)
	} else {
		_, err = tx.Tx.ExecContext(ctx, q.text, args...)
	}
	return err
}

func (q query) row(ctx context.Context, tx bun.Tx, args ...any) *sql.Row {
	if q.stmt != nil {
		return tx.StmtContext(ctx, q.stmt).QueryRowContext(ctx, args...)
	}
	return tx.Tx.QueryRowContext(ctx, q.text, args...)
}

// Bounds on how long a transaction is tried again that the database could not do now.
const (
	retryFor   = 5 * time.Second
	firstPause = 2 * time.Millisecond
	mostPause  = 100 * time.Millisecond
)

// inTx runs fn in a transaction that writes, and again where it lost to another one or
// the database was locked, for as long as ctx allows and [retryFor] at most. fn must
// change nothing but by tx, and give the database's errors as they are.
func (d *DB) inTx(ctx context.Context, fn func(ctx context.Context, tx bun.Tx) error) error {
	return d.inTxOn(ctx, d.write, fn)
}

func (d *DB) inTxOn(ctx context.Context, pool *bun.DB, fn func(ctx context.Context, tx bun.Tx) error) error {
	return again(ctx, func() error { return pool.RunInTx(ctx, nil, fn) })
}

// inTurn calls do when few others do something of this kind: what there is much of, and
// may wait. A pool gives its connections in no order, and records and quotas, which calls
// wait for, would stand among all of it. On SQLite one at a time is in turn, on PostgreSQL
// as many as half the pool has connections; tenants that wait take turns.
func (d *DB) inTurn(ctx context.Context, tenant string, do func() error) error {
	return passing(ctx, d.turns, tenant, "too much of this tenant waits to be stored", do)
}

// inTopic calls do when no other change of a topic is under way on this host. Each would
// hold a connection while it waits for the row of the topic, and of all of them the
// database lets one go on; here tenants that wait take turns.
func (d *DB) inTopic(ctx context.Context, topic, tenant string, do func() error) error {
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

// again calls do until it did what it does, or says that waiting does not help.
func again(ctx context.Context, do func() error) error {
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

// mostFreed is how many bytes are removed in one transaction, where they are counted.
// SQLite goes through every page of what it removes, and has one connection that writes:
// records, which calls wait for, would wait for all of it.
const mostFreed = 16 << 20

// portions cuts a list into parts of no more than [mostFreed] bytes together, or of one
// item.
func portions[T any](list []T, size func(T) int64) (parts [][]T) {
	for len(list) > 0 {
		n, sum := 1, size(list[0])
		for n < len(list) && sum+size(list[n]) <= mostFreed {
			sum += size(list[n])
			n++
		}
		parts, list = append(parts, list[:n]), list[n:]
	}
	return parts
}

// exec runs one statement that changes something, and says how many rows it changed.
func (d *DB) exec(ctx context.Context, statement string, args ...any) (n int, err error) {
	err = again(ctx, func() error {
		res, err := d.write.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		changed, err := res.RowsAffected()
		n = int(changed)
		return err
	})
	return n, err
}

// stamp is a time in a column: TIMESTAMPTZ, or INTEGER microseconds since 1970. The zero
// time is NULL.
type stamp struct{ time.Time } //nolint:recvcheck // Scan sets it, the others are asked of values

// at is t as databases keep it: in microseconds, UTC.
func at(t time.Time) stamp {
	if t.IsZero() {
		return stamp{}
	}
	return stamp{t.UTC().Truncate(time.Microsecond)}
}

var _ schema.QueryAppender = stamp{}

// AppendQuery implements schema.QueryAppender: bun writes it into statements.
func (s stamp) AppendQuery(gen schema.QueryGen, b []byte) ([]byte, error) {
	switch {
	case s.IsZero():
		return append(b, "NULL"...), nil
	case gen.Dialect().Name() == dialect.SQLite:
		return strconv.AppendInt(b, s.UnixMicro(), 10), nil
	}
	b = append(b, '\'')
	b = s.UTC().AppendFormat(b, "2006-01-02 15:04:05.999999Z07:00")
	return append(b, '\''), nil
}

// Scan implements sql.Scanner.
func (s *stamp) Scan(from any) error {
	switch v := from.(type) {
	case nil:
		s.Time = time.Time{}
	case int64:
		s.Time = time.UnixMicro(v).UTC()
	case time.Time:
		s.Time = v.UTC()
	default:
		return fmt.Errorf("store: a time cannot be read from %T", from)
	}
	return nil
}

// of gives s as an argument of a statement that bun does not write.
func (s stamp) of(kind Kind) driver.Value {
	switch {
	case s.IsZero():
		return nil
	case kind == SQLite:
		return s.UnixMicro()
	}
	return s.Time
}

// plain is text that both databases hold: NUL and what is not UTF-8 become U+FFFD.
func plain(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s
}
