package store

import (
	"context"
	"time"
)

// Now is the time of the database: that which all hosts have in common. A file of SQLite is
// on their one machine, and its time is that machine's.
func (d *DB) Now(ctx context.Context, on Querier) (time.Time, error) {
	if !d.Postgres() {
		return time.Now().UTC(), ctx.Err()
	}
	var now Time
	err := on.QueryRowContext(ctx, "SELECT clock_timestamp()").Scan(&now)
	return now.Time, err
}

// Unwatched is the context of statements within a transaction. SQLite's driver watches a
// context that can end by a goroutine for each statement. None of them waits, as the
// transaction has the lock: that the whole ends with the context is enough.
func (d *DB) Unwatched(ctx context.Context) context.Context {
	if d.Postgres() {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// Skew measures how far the clock of this machine is ahead of that of a database server, to
// about the time of one question. It leaves the database as it is. A file of SQLite has the
// clock of its machine.
func Skew(ctx context.Context, o Options) (ahead time.Duration, err error) {
	where, err := o.parse()
	if err != nil || where.kind == SQLite {
		return 0, err
	}
	d, err := where.connect(ctx)
	if err != nil {
		return 0, opening(err)
	}
	defer d.Close()
	before := time.Now()
	there, err := d.Now(ctx, d.Read)
	if err != nil {
		return 0, opening(err)
	}
	half := time.Since(before) / 2
	return before.Add(half).Sub(there), nil
}
