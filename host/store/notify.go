package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// channel is what PostgreSQL tells listeners on; the payload is a topic.
const channel = "openskill_changes"

// Change runs fn in a transaction that changes something of a topic for a tenant. Transactions
// of one topic come one after the other, in the order of the revisions that fn is given, and
// whoever watches learns of it when it is committed. An error of fn undoes all.
func (d *DB) Change(ctx context.Context, topic, tenant string, fn func(tx *sql.Tx, revision uint64) error) error {
	return d.InTopic(ctx, topic, tenant, func() error {
		return d.InTx(ctx, func(tx *sql.Tx) error {
			revision, err := d.Raise(ctx, tx, topic)
			if err != nil {
				return err
			}
			return fn(tx, revision)
		})
	})
}

// Raise takes the next revision of a topic, and holds it until the transaction ends. It
// is not only greater than the last one, but not before the clock's microseconds: a
// server that comes back without its last transactions, as a replica may, must not give
// a revision again that hosts have seen already.
func (d *DB) Raise(ctx context.Context, tx *sql.Tx, topic string) (uint64, error) {
	var revision int64
	clock := time.Now().UnixMicro()
	err := tx.QueryRowContext(ctx, "UPDATE revisions SET revision = CASE WHEN revision < $1 THEN $1 ELSE revision + 1 END WHERE topic = $2 RETURNING revision", clock, topic).Scan(&revision)
	if err != nil {
		return 0, err
	}
	if d.Postgres() {
		if _, err := tx.ExecContext(ctx, "SELECT pg_notify($1, $2)", channel, topic); err != nil {
			return 0, err
		}
	}
	return uint64(revision), nil
}

// The times of Watch.
const (
	polling        = time.Second            // between two looks at the revisions
	firstReconnect = 250 * time.Millisecond // after the first failure to listen; twice as long after each one more
	lastReconnect  = 10 * time.Second
	looking        = 5 * time.Second  // for one look at the revisions
	pinging        = 30 * time.Second // a listening connection without a word is asked whether it lives
)

// Watch calls changed for each topic of which something was changed, by whatever process,
// until ctx ends: with every topic when it begins, then within two seconds of a commit,
// and mostly at once. Calls come one after the other; changes meanwhile are told once. A
// topic whose call fails is told again with the next look.
//
// It looks at the revisions every second, which no lost message can spoil, and on
// PostgreSQL it looks at once when the server says so (LISTEN), by a connection that is
// made anew when it breaks.
func (d *DB) Watch(ctx context.Context, changed func(ctx context.Context, topic string) error) {
	wake := make(chan struct{}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if d.Postgres() {
			d.listen(ctx, wake)
		}
	}()
	defer func() { <-done }()
	tick := time.NewTicker(polling)
	defer tick.Stop()
	seen := map[string]int64{}
	failing := false
	for {
		err := d.look(ctx, seen, changed)
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			if failing = failed; failing {
				d.log.Warn("changes by other processes are not seen now; it is tried again every second", slog.String("error", err.Error()))
			} else {
				d.log.Info("changes by other processes are seen again")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-tick.C:
		}
	}
}

// look reads the revisions and tells of those that were not seen.
func (d *DB) look(ctx context.Context, seen map[string]int64, changed func(ctx context.Context, topic string) error) error {
	type row struct {
		topic    string
		revision int64
	}
	bounded, stop := context.WithTimeout(ctx, looking)
	rows, err := All(bounded, d.Urgent, func(rows *sql.Rows) (r row, err error) { return r, rows.Scan(&r.topic, &r.revision) },
		"SELECT topic, revision FROM revisions ORDER BY topic")
	stop()
	if err != nil {
		return err
	}
	for _, r := range rows {
		if last, known := seen[r.topic]; known && last == r.revision {
			continue
		}
		if failed := changed(ctx, r.topic); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		seen[r.topic] = r.revision
	}
	return err
}

// listen wakes the watcher when the server says that something was changed, and whenever
// a connection is there anew: what came before it was not heard.
func (d *DB) listen(ctx context.Context, wake chan<- struct{}) {
	pause := firstReconnect
	for ctx.Err() == nil {
		err := d.listenOnce(ctx, func() {
			pause = firstReconnect
			select {
			case wake <- struct{}{}:
			default: // it is about to look anyway
			}
		})
		if ctx.Err() != nil {
			return
		}
		d.log.Info("the connection for change notifications failed; polling every second", slog.String("error", err.Error()))
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		pause = min(2*pause, lastReconnect)
	}
}

func (d *DB) listenOnce(ctx context.Context, heard func()) error {
	c, err := connectListener(ctx, d.url)
	if err != nil {
		return err
	}
	defer func() {
		bounded, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		_ = c.Close(bounded) // the server notices otherwise
	}()
	if _, err := c.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	heard()
	for {
		waiting, stop := context.WithTimeout(ctx, pinging)
		_, err := c.WaitForNotification(waiting)
		quiet := waiting.Err() != nil && ctx.Err() == nil
		stop()
		switch {
		case err == nil:
			heard()
		case quiet && !c.IsClosed():
			bounded, stop := context.WithTimeout(ctx, looking)
			err := c.Ping(bounded)
			stop()
			if err != nil {
				return err
			}
		default:
			return err
		}
	}
}
