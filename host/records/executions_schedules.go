package records

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"openskill/host/store"
	"openskill/sdk/skill"
)

// This part makes the calls of schedules: it puts them into the queue, in the transaction that moves the schedule on to its
// next time. So each time has at most one call, whichever hosts look and whichever is killed meanwhile.

const (
	missedAfter = time.Minute // a call that is later is one of a time that was missed
	mostDue     = 100         // schedules of one look
)

// makeDue makes the calls whose time has come.
func (w *work) makeDue(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	now := w.o.Now().UTC().Truncate(time.Microsecond)
	due, err := store.All(ctx, w.db.Read, scanSchedule, "SELECT "+scheduleColumns+" FROM schedules WHERE next_at <= $1 ORDER BY next_at LIMIT $2", now.UnixMicro(), mostDue)
	for _, s := range due {
		if err := w.makeCall(ctx, s, now); err != nil {
			return err
		}
	}
	return err
}

// makeCall makes a call of a schedule, or moves the schedule on without one.
func (w *work) makeCall(ctx context.Context, s *schedule, now time.Time) error {
	at, err := next(s.Cron, s.TimeZone, now)
	if err != nil || s.damaged {
		return w.endSchedule(ctx, s, "its row is damaged")
	}
	if now.Sub(s.NextAt) > missedAfter && s.Missed == skill.SkipMissed {
		return w.moveOn(ctx, s, at, nil, "")
	}
	_, _, done, err := w.by.Admit(ctx, s.principal, s.CreatedAt)
	switch {
	case skill.CodeOf(err) == skill.Unauthorized:
		return w.endSchedule(ctx, s, "its credentials are no longer valid")
	case err != nil: // another host may know them
		return nil
	}
	done()
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	r := *s.request
	r.TraceID = skill.TraceID(id.String())
	c := &QueuedCall{ExecutionID: id.String(), At: now, Principal: s.principal, Request: &r}
	c.Again = w.by.Door.Idempotent(c)
	err = w.moveOn(ctx, s, at, c, "")
	switch e, _ := errors.AsType[*skill.Error](err); {
	case errors.Is(err, errQueueFull):
		err = w.moveOn(ctx, s, at, nil, skill.RateLimited)
	case e != nil: // of its webhook
		err = w.moveOn(ctx, s, at, nil, e.Code)
	}
	w.poke()
	return err
}

// moveOn gives a schedule its next time, with a call of this one or without. It makes none while the call before has not ended.
func (w *work) moveOn(ctx context.Context, s *schedule, at time.Time, c *QueuedCall, skipped skill.Code) error {
	k := s.key
	return w.db.InTurn(ctx, k.tenant, func() error {
		return w.db.InTx(ctx, func(tx *sql.Tx) error {
			skipped, made := skipped, c // of this try
			if made != nil && s.LastID != "" {
				var busy bool
				err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM queued_calls WHERE id = $1) OR EXISTS (SELECT 1 FROM running_executions WHERE id = $1)", s.LastID).Scan(&busy)
				if err != nil {
					return err
				}
				if busy {
					skipped, made = skill.Conflict, nil
				}
			}
			last, lastAt := s.LastID, int64(0)
			if s.LastAt != nil {
				lastAt = s.LastAt.UnixMicro()
			}
			if made != nil {
				last, lastAt = made.ExecutionID, made.At.UnixMicro()
			}
			res, err := tx.ExecContext(ctx, "UPDATE schedules SET next_at = $1, last_at = $2, last_id = $3, skipped = $4 WHERE tenant = $5 AND principal = $6 AND name = $7 AND next_at = $8 AND created_at = $9",
				at.UnixMicro(), lastAt, last, string(skipped), k.tenant, k.principal, k.id, s.NextAt.UnixMicro(), s.CreatedAt.UnixMicro())
			if err != nil {
				return err
			}
			if n, err := res.RowsAffected(); err != nil || n == 0 || made == nil { // 0: another host was first, or it is another schedule by now
				return err
			}
			return w.insert(ctx, tx, made, w.o.Queue.Most)
		})
	})
}

// endSchedule removes a schedule that makes no calls any more, on record.
func (w *work) endSchedule(ctx context.Context, s *schedule, why string) error {
	k := s.key
	by := skill.Principal{ID: k.principal, Type: s.principal.Type, Tenant: k.tenant}
	if s.damaged {
		by.Type = skill.Agent
	}
	err := w.changeOwn(ctx, by, "schedule.end", k.id, map[string]string{"reason": why}, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM schedules WHERE tenant = $1 AND principal = $2 AND name = $3 AND created_at = $4", k.tenant, k.principal, k.id, s.CreatedAt.UnixMicro())
		return err
	})
	if err == nil {
		w.o.Log.LogAttrs(ctx, slog.LevelWarn, "a schedule ended", slog.String("schedule", k.id), slog.String("tenant", k.tenant), slog.String("reason", why))
	}
	return err
}
