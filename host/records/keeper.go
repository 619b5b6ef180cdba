package records

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"openskill/sdk/skill"
)

// Retention: how often records are looked for that are too old, and how many go at once,
// so that calls never wait long for the removal.
const (
	pruneFirst = time.Minute
	pruneEvery = time.Hour
	pruneStep  = 500
	pruneRest  = 20 * time.Millisecond
)

// feedLimit is how long the journals of hosts that are gone may take.
const feedLimit = time.Minute

// askLimit is how long a question that nobody waits for may take.
const askLimit = 10 * time.Second

// forgetAfter is how long a beginning is looked for whose answer was lost: a database
// may finish a transaction some time after it lost the client.
const forgetAfter = time.Minute

// notConfirmed is what is on record of a call that was refused and came to be on record
// nevertheless.
const notConfirmed = "its start could not be recorded in time; nothing ran"

// keep does what a host owes beside its calls, until ctx ends.
func (l *Log) keep(ctx context.Context) {
	defer close(l.kept)
	var all sync.WaitGroup
	all.Go(func() { l.beat(ctx) })
	all.Go(func() { l.tidy(ctx) })
	all.Go(func() { l.sweep(ctx) })
	all.Go(func() { l.retain(ctx) })
	all.Wait()
}

// beat says that this host is alive.
func (l *Log) beat(ctx context.Context) {
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := l.alive(ctx)
		l.mu.Lock()
		if l.silent = err != nil; l.silent {
			l.steady = l.o.Now()
		}
		l.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			l.o.Log.Warn("audit: cannot write the heartbeat of this host", slog.Any("error", err))
		}
	}
}

// sweep ends on record what is in doubt, and what other hosts left.
func (l *Log) sweep(ctx context.Context) {
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.nudge:
		case <-tick.C:
		}
		l.mu.Lock()
		steady, down := l.steady, l.down
		l.mu.Unlock()
		if down {
			continue
		}
		l.settle(ctx)
		// While the database was away, others could not say that they are alive either:
		// they get as much time for it as a host that is new.
		if l.o.Now().Sub(steady) >= deadAfter {
			l.endOrphans(ctx)
		}
	}
}

// retain removes what is too old.
func (l *Log) retain(ctx context.Context) {
	next := time.NewTimer(pruneFirst)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		if err := l.Prune(ctx); err != nil && ctx.Err() == nil {
			l.o.Log.Warn("audit: cannot remove old records; retrying", slog.Any("error", err))
		}
		next.Reset(pruneEvery)
	}
}

// settle looks at beginnings that were refused and may be on record, and ends them there.
func (l *Log) settle(ctx context.Context) {
	l.mu.Lock()
	var doubts []*run
	for _, r := range l.open {
		if r.doubt && !r.ended {
			doubts = append(doubts, r)
		}
	}
	l.mu.Unlock()
	for _, r := range doubts {
		e, err := l.execution(ctx, r.started)
		l.mu.Lock()
		switch now := l.o.Now(); {
		case err == nil && e.Finished == nil && e.host() == l.o.Instance && e.Started.Time.Equal(r.started.Time):
			l.revoke(r, skill.AuditUnavailable, notConfirmed)
		case err == nil:
			delete(l.open, r.started.ExecutionID)
		case !errors.Is(err, ErrNotFound): // it is asked again
		case r.forget.IsZero():
			r.forget = now.Add(forgetAfter)
		case !now.Before(r.forget):
			delete(l.open, r.started.ExecutionID)
		}
		l.mu.Unlock()
		if err != nil && !errors.Is(err, ErrNotFound) {
			return
		}
	}
}

func (l *Log) execution(ctx context.Context, s *Started) (*Execution, error) {
	ctx, cancel := context.WithTimeout(ctx, l.o.Wait)
	defer cancel()
	return l.o.Store.Execution(ctx, s.Tenant, s.ExecutionID)
}

// endDead ends on record the executions of hosts whose process on this machine is gone:
// nobody needs to wait until they have been silent for long enough.
func (l *Log) endDead(ctx context.Context) {
	dead := map[string]bool{}
	for cursor := ""; ; {
		asked, cancel := context.WithTimeout(ctx, askLimit)
		page, next, err := l.o.Store.Executions(asked, Query{Status: Running, Cursor: cursor, Limit: 1000})
		cancel()
		if err != nil {
			l.o.Log.Warn("audit: cannot find executions of crashed hosts; retrying", slog.Any("error", err))
			return
		}
		var left []*Started
		for _, e := range page {
			on := e.host()
			if e.Finished != nil || on == l.o.Instance {
				continue
			}
			if _, known := dead[on]; !known {
				dead[on] = instanceDead(on)
			}
			if dead[on] {
				left = append(left, &e.Started)
			}
		}
		if left, err = l.unlessResumed(ctx, left); err != nil {
			l.o.Log.Warn("audit: cannot find executions of crashed hosts; retrying", slog.Any("error", err))
			return
		}
		if _, err := l.endAll(ctx, left); err != nil || next == "" {
			return
		}
		cursor = next
	}
}

// endOrphans ends on record the executions of hosts that have not been alive for some
// time.
func (l *Log) endOrphans(ctx context.Context) {
	for {
		const limit = 200
		asked, cancel := context.WithTimeout(ctx, askLimit)
		orphans, err := l.o.Store.Orphans(asked, deadAfter, limit)
		cancel()
		if err != nil {
			l.o.Log.Warn("audit: cannot find executions without a host; retrying", slog.Any("error", err))
			return
		}
		others := orphans[:0]
		for _, s := range orphans {
			if s.host() != l.o.Instance {
				others = append(others, s)
			}
		}
		if n, err := l.endAll(ctx, others); err != nil || n == 0 || len(orphans) < limit {
			return
		}
	}
}

// endAll ends executions whose host is gone, with the code of a worker that crashed: the
// process in which they ran is gone. CANCELLED would say that somebody wanted it. It gives
// how many it ended: not those of tenants whose chains are held, which are found again. Those
// whose end is in a journal end as they did.
func (l *Log) endAll(ctx context.Context, left []*Started) (ended int, err error) {
	if len(left) == 0 {
		return 0, nil
	}
	feeding, cancel := context.WithTimeout(ctx, feedLimit)
	defer cancel()
	if err := l.feedLeft(feeding); err != nil {
		l.o.Log.Warn("audit: cannot write the records of a host that crashed to the database; retrying", slog.Any("error", err))
		return 0, err
	}
	jobs := make([]*job, len(left))
	l.mu.Lock()
	for i, s := range left {
		jobs[i] = &job{
			entry: strippedEntry(s, l.terminated(skill.WorkerCrashed, hostEnded)),
			done:  make(chan error, 1), again: true,
		}
		l.push(jobs[i])
	}
	l.mu.Unlock()
	for i, j := range jobs {
		select {
		case err := <-j.done:
			if errors.Is(err, ErrHeld) {
				continue
			}
			if err != nil {
				return ended, err
			}
		case <-l.drained:
			return ended, errors.New("the log is closed")
		case <-ctx.Done():
			return ended, ctx.Err()
		}
		if ended++; j.entry.Seq == 0 {
			continue // it had ended
		}
		l.o.Log.Warn("audit: an execution was marked terminated because its host is gone",
			slog.String("execution_id", left[i].ExecutionID), slog.String("instance", left[i].host()))
	}
	return ended, nil
}

// Prune removes what is older than the retention, of all tenants, in small steps. The Log
// calls it by itself every hour.
func (l *Log) Prune(ctx context.Context) error {
	asked, cancel := context.WithTimeout(ctx, askLimit)
	heads, err := l.o.Store.Tenants(asked)
	cancel()
	if err != nil {
		return err
	}
	before := l.DatabaseTime().UTC().Add(-l.o.Retention)
	rest := time.NewTimer(pruneRest)
	defer rest.Stop()
	var errs []error // one tenant's keeps nobody else's records
	for _, h := range heads {
		for {
			asked, cancel := context.WithTimeout(ctx, askLimit)
			n, err := l.o.Store.Prune(asked, h.Tenant, before, pruneStep)
			cancel()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				errs = append(errs, err)
			}
			if n < pruneStep {
				break
			}
			rest.Reset(pruneRest)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-rest.C:
			}
		}
	}
	return errors.Join(errs...)
}
