package records

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"
)

// This part finds what is due of schedules and webhooks. Their callers take turns, so that neither many rows of one nor rows that this host cannot
// handle keep it from those of others.

const (
	mostOwners = 256         // callers of a look
	notHere    = time.Minute // until a host looks again at what others may be able to handle,

	failedPause = 10 * time.Second // and at what failed
)

// duty is one kind of rows that become due, and what a host does with them.
type duty struct {
	*work
	table string
	do    func(ctx context.Context, owner whose) error

	after  whose // whose rows were looked at last
	failed bool  // at the last look
	wake   chan struct{}
}

// keep looks for due rows until ctx ends.
func (d *duty) keep(ctx context.Context) {
	look := time.NewTicker(d.o.AskEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		case <-d.wake:
		}
		err := d.all(ctx)
		if err != nil && !d.failed && ctx.Err() == nil {
			d.o.Log.LogAttrs(ctx, slog.LevelWarn, "cannot handle rows that are due", slog.String("table", d.table), slog.Any("error", err))
		}
		d.failed = err != nil
	}
}

// all gives each caller with due rows a turn.
func (d *duty) all(ctx context.Context) (err error) {
	wrapped := false
	for range mostOwners {
		owner, found := d.next(ctx)
		if found != nil || ctx.Err() != nil {
			return errors.Join(err, found)
		}
		if owner.tenant == "" {
			if wrapped || d.after.tenant == "" {
				return err
			}
			d.after, wrapped = whose{}, true
			continue
		}
		d.after = owner
		one, cancel := context.WithTimeout(ctx, askLimit)
		err = errors.Join(err, d.do(one, owner))
		cancel()
	}
	return err
}

// next gives the caller with due rows after the last one; none has no tenant.
func (d *duty) next(ctx context.Context) (owner whose, err error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	err = d.db.Read.QueryRowContext(ctx, "SELECT tenant, principal FROM "+d.table+" WHERE (tenant, principal) > ($1, $2) AND next_at <= $3 ORDER BY tenant, principal LIMIT 1",
		d.after.tenant, d.after.principal, d.o.Now().UnixMicro()).Scan(&owner.tenant, &owner.principal)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return owner, err
}
