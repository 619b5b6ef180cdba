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

// missedAfter is how late a call is one of a time that was missed.
const missedAfter = time.Minute

// makeDue makes the calls of a caller whose time has come.
func (w *work) makeDue(ctx context.Context, owner whose) error {
	now := w.o.Now().UTC().Truncate(time.Microsecond)
	due, err := store.All(ctx, w.db.Read, scanSchedule, "SELECT "+scheduleColumns+" FROM schedules WHERE tenant = $1 AND principal = $2 AND next_at <= $3 ORDER BY next_at", owner.tenant, owner.principal, now.UnixMicro())
	for _, s := range due {
		if until, passed := w.passed[s.key]; passed && now.Before(until) {
			continue
		}
		delete(w.passed, s.key)
		made := w.makeCall(ctx, s, now)
		if made != nil {
			w.passOver(s.key, now.Add(failedPause))
			err = errors.Join(err, made)
		}
	}
	return err
}

// passOver leaves a schedule alone until a time, which this host cannot handle.
func (w *work) passOver(k ownKey, until time.Time) {
	if len(w.passed) > mostTurns {
		clear(w.passed)
	}
	w.passed[k] = until
}

// makeCall makes a call of a schedule, or moves the schedule on without one.
func (w *work) makeCall(ctx context.Context, s *schedule, now time.Time) error {
	if s.damaged {
		return w.endSchedule(ctx, s, "its row is damaged")
	}
	at, err := next(s.Cron, s.TimeZone, now)
	if err != nil {
		return w.endSchedule(ctx, s, "it has no next time")
	}
	if now.Sub(s.NextAt) > missedAfter && s.Missed == skill.SkipMissed {
		return w.moveOn(ctx, s, at, nil, "")
	}
	_, _, done, err := w.by.Admit(ctx, s.principal, s.CreatedAt)
	switch {
	case skill.CodeOf(err) == skill.Unauthorized:
		return w.endSchedule(ctx, s, "its credentials are no longer valid")
	case err != nil: // another host may know them
		w.passOver(s.key, now.Add(notHere))
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
	if r.Webhook != "" && w.o.Queue.Post == nil {
		err = noWebhook(r.Webhook)
	} else {
		err = w.moveOn(ctx, s, at, c, "")
	}
	switch e, _ := errors.AsType[*skill.Error](err); {
	case errors.Is(err, errQueueFull):
		err = w.moveOn(ctx, s, at, nil, skill.RateLimited)
	case e != nil && (e.Code == skill.NotFound || e.Code == skill.RateLimited): // of its webhook
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
	err := w.endOwn(ctx, k, "schedule.end", why, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM schedules WHERE tenant = $1 AND principal = $2 AND name = $3 AND created_at = $4", k.tenant, k.principal, k.id, s.CreatedAt.UnixMicro())
		return err
	})
	return err
}

// endOwn removes what belongs to a principal, on record. It is the host that does so, and has room for it where the tenant has none.
func (w *work) endOwn(ctx context.Context, k ownKey, action, why string, do func(tx *sql.Tx) error) error {
	by := skill.Principal{ID: k.principal, Type: skill.Agent, Tenant: k.tenant, Scopes: []string{skill.ScopeHost}}
	err := w.changeOwn(ctx, by, action, k.id, map[string]string{"reason": why}, do)
	if err == nil {
		w.o.Log.LogAttrs(ctx, slog.LevelWarn, "ended by the host", slog.String("action", action), slog.String("name", k.id), slog.String("tenant", k.tenant), slog.String("reason", why))
	}
	return err
}
