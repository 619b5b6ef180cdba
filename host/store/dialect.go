package store

import (
	"context"
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
	return again(ctx, func() error { return d.write.RunInTx(ctx, nil, fn) })
}

// again calls do until it did what it does, or says that waiting does not help.
func again(ctx context.Context, do func() error) error {
	end := time.Now().Add(retryFor) //nolint:forbidigo // a bound on a wait, which no test's clock moves
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
		if time.Now().After(end) { //nolint:forbidigo // as above
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
