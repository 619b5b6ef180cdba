package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"github.com/uptrace/bun/schema"
)

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
	err := Retry(ctx, func() (err error) {
		stmt, err = d.Write.PrepareContext(ctx, text)
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

// inTx runs fn in a transaction that writes, and again where it lost to another one or
// the database was locked, for as long as ctx allows and [retryFor] at most. fn must
// change nothing but by tx, and give the database's errors as they are.
func (d *DB) inTx(ctx context.Context, fn func(ctx context.Context, tx bun.Tx) error) error {
	return d.inTxOn(ctx, d.write, fn)
}

func (d *DB) inTxOn(ctx context.Context, pool *bun.DB, fn func(ctx context.Context, tx bun.Tx) error) error {
	return Retry(ctx, func() error { return pool.RunInTx(ctx, nil, fn) })
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

// What files that are about to move call by their old names.
func (d *DB) postgres() bool    { return d.Postgres() }
func (d *DB) forUpdate() string { return d.ForUpdate() }
func (d *DB) unlocked() string  { return d.SkipLocked() }
func (d *DB) inTurn(ctx context.Context, tenant string, do func() error) error {
	return d.InTurn(ctx, tenant, do)
}

func (d *DB) inTopic(ctx context.Context, topic, tenant string, do func() error) error {
	return d.InTopic(ctx, topic, tenant, do)
}

func again(ctx context.Context, do func() error) error { return Retry(ctx, do) }

const mostFreed = MostFreed

func portions[T any](list []T, size func(T) int64) [][]T { return Portions(list, size) }

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

func plain(s string) string { return Plain(s) }
