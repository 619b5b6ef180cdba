package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// clock is the time of the database: that which all hosts have in common. A file of SQLite is
// on their one machine, and its time is that machine's.
func (d *DB) clock(ctx context.Context, on bun.IDB) (now stamp, err error) {
	q := "SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER)"
	if d.postgres() {
		q = "SELECT clock_timestamp()"
	}
	return now, on.QueryRowContext(ctx, q).Scan(&now)
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
	there, err := d.clock(ctx, d.read)
	if err != nil {
		return 0, opening(err)
	}
	half := time.Since(before) / 2
	return before.Add(half).Sub(there.Time), nil
}
