package records

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"
)

// What the journal of a host changes for its calls: a record that it has is sure, and the
// writer gives it to the database a moment later, with all that came in between.

const (
	journalRest = 20 * time.Millisecond // how long sure records wait for others
	mostSure    = 512                   // records that wait for the database while calls do not; beyond that calls wait, too
	mostBehind  = time.Second / 4       // how long the database may need for them
	leaseTime   = deadAfter - aliveEvery
)

// fast reports whether a record goes to the journal first. It does not where only the database
// can tell that it counts, since another host may have this one for dead, or a call may begin,
// since the tenant's chain is held or has no room. l.mu is held.
func (l *Log) fast(j *job) bool {
	fast := l.journal != nil && l.leased()
	if s := j.entry.Started; s != nil {
		fast = fast && len(l.waiting) < mostSure && time.Duration(len(l.waiting))*l.pace < mostBehind && l.held[s.Tenant] == nil && !l.full[s.Tenant]
	}
	if fast {
		l.coming++
	}
	return fast
}

// leased reports whether no other host can have this one for dead. l.mu is held.
func (l *Log) leased() bool { return l.o.Now().Sub(l.heard) < leaseTime }

// journaled writes a record to the journal and lets it wait for the database. It is false
// where the caller must wait too.
func (l *Log) journaled(j *job) bool {
	segment, err := l.journal.append(j.entry)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.coming--
	r := l.open[j.entry.ExecutionID]
	if err == nil && l.leased() && (!l.closed || j.entry.Finished != nil) {
		j.sure, j.entry.Sure, j.done = true, true, nil
	}
	l.push(j)
	if segment != nil {
		l.journal.take(segment, j.at)
	}
	if j.sure && j.entry.Started != nil {
		r.begun = true
	}
	return j.sure
}

// question is somebody who waits for the database to have all records up to a place.
type question struct {
	at   uint64
	done chan struct{}
}

// current is a Store whose answers contain all that was on record before a question.
type current struct {
	Store
	log *Log
}

func (c current) Tenants(ctx context.Context) ([]Head, error) {
	if err := c.log.catchUp(ctx); err != nil {
		return nil, err
	}
	return c.Store.Tenants(ctx)
}

func (c current) Shown(ctx context.Context, tenant string) ([]Shown, error) {
	if err := c.log.catchUp(ctx); err != nil {
		return nil, err
	}
	return c.Store.Shown(ctx, tenant)
}

func (c current) Execution(ctx context.Context, tenant, id string) (*Execution, error) {
	if err := c.log.catchUp(ctx); err != nil {
		return nil, err
	}
	return c.Store.Execution(ctx, tenant, id)
}

func (c current) Executions(ctx context.Context, q Query) ([]*Execution, string, error) {
	if err := c.log.catchUp(ctx); err != nil {
		return nil, "", err
	}
	return c.Store.Executions(ctx, q)
}

// catchUp waits until the database has all that the journal has now.
func (l *Log) catchUp(ctx context.Context) error {
	l.mu.Lock()
	sure := func(j *job) bool { return j.sure }
	if !slices.ContainsFunc(l.writing, sure) && !slices.ContainsFunc(l.waiting, sure) {
		l.mu.Unlock()
		return nil
	}
	q := question{l.places, make(chan struct{})}
	l.asked = append(l.asked, q)
	l.mu.Unlock()
	l.poke()
	limit := time.NewTimer(l.o.Wait)
	defer limit.Stop()
	select {
	case <-q.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-limit.C:
		return unavailable("audit.Store", "audit log unavailable: records are waiting to be written to the database; retry", errors.New("the database did not respond in time"))
	}
}

// Waiting is how many records the database does not have yet.
func (l *Log) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.waiting) + len(l.writing)
	for _, held := range l.held {
		n += len(held)
	}
	return n
}

// oldest is the place of the first record that the database may not have. l.mu is held.
func (l *Log) oldest() uint64 {
	oldest := l.places + 1
	if len(l.writing) > 0 {
		oldest = l.writing[0].at
	}
	if len(l.waiting) > 0 {
		oldest = min(oldest, l.waiting[0].at)
	}
	return oldest
}

// paced notes how long the database needed for a batch.
func (l *Log) paced(records int, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pace = (3*l.pace + took/time.Duration(records)) / 4
}

// caughtUp tells who waits for records that the database has now, and deletes segments.
func (l *Log) caughtUp() {
	l.mu.Lock()
	l.writing = nil
	oldest := l.oldest()
	rest := l.asked[:0]
	for _, q := range l.asked {
		if q.at < oldest {
			close(q.done)
			continue
		}
		rest = append(rest, q)
	}
	l.asked = rest
	var over []*segment
	if l.journal != nil {
		for _, waiting := range l.held {
			for _, j := range waiting {
				oldest = min(oldest, j.at)
			}
		}
		over = l.journal.release(oldest)
	}
	l.mu.Unlock()
	for _, s := range over {
		if err := s.remove(); err != nil {
			l.o.Log.Warn("audit: cannot delete a segment of the journal", slog.Any("error", err))
		}
	}
}
