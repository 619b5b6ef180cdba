package store

import (
	"context"
	"database/sql"
	"time"
)

// Run runs a statement as it is, without a bound on its time, which tests set up their
// data with.
func (d *DB) Run(ctx context.Context, statement string) error {
	c, err := d.Write.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if d.Postgres() {
		if _, err := c.ExecContext(ctx, "SET statement_timeout = 0"); err != nil {
			return err
		}
	}
	_, err = c.ExecContext(ctx, statement)
	return err
}

// Within runs do in a transaction that has written something.
func (d *DB) Within(ctx context.Context, do func() error) error {
	return d.InTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO instances (id, seen) VALUES ('within', $1)", d.At(time.Now())); err != nil {
			return err
		}
		return do()
	})
}

// Waiting is how often somebody had to wait for a connection that writes.
func (d *DB) Waiting() int64 { return d.Write.Stats().WaitCount }

// HoldReaders takes all connections that lists of callers read by, and gives them back.
func (d *DB) HoldReaders(ctx context.Context) (release func(), err error) {
	var held []*sql.Conn
	for range d.Read.Stats().MaxOpenConnections {
		c, err := d.Read.Conn(ctx)
		if err != nil {
			return nil, err
		}
		held = append(held, c)
	}
	return func() {
		for _, c := range held {
			_ = c.Close()
		}
	}, nil
}
