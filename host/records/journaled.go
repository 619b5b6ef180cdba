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
	fast := l.journal != nil && l.leased() && checkEntry(j.entry) == nil
	if of := j.entry.Of; of != nil && of.On != "" { // the journal does not have which host it ended on
		return false
	}
	if s := j.entry.Started; s != nil {
		fast = fast && !s.Contested && len(l.waiting) < mostSure && time.Duration(len(l.waiting))*l.pace < mostBehind && l.held[s.Tenant] == nil && !l.full[s.Tenant]
	}
	if fast {
		l.coming++
	}
	return fast
}

// leased reports whether no other host can have this one for dead. The clock that only goes
// forward stands still while a machine sleeps. l.mu is held.
func (l *Log) leased() bool {
	now := l.o.Now()
	return max(now.Sub(l.heard), now.Round(0).Sub(l.heard.Round(0))) < leaseTime
}

// journaled writes a record to the journal and lets it wait for the database. It is false
// where the caller must wait too.
func (l *Log) journaled(j *job) bool {
	segment, err := l.journal.append(j.entry)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.coming--
	if failed := err != nil; failed != l.unwritable && !errors.Is(err, errNotTaken) {
		if l.unwritable = failed; failed {
			l.o.Log.Error("audit: the journal cannot be written; calls wait for the database", slog.Any("error", err))
		}
	}
	r := l.open[j.entry.ExecutionID]
	if j.entry.Finished != nil && r != nil {
		j.entry.Of = r.started // which may have been stripped meanwhile
	}
	if err == nil && l.leased() && (!l.closed || j.entry.Finished != nil) {
		j.sure, j.entry.Sure, j.segment, j.done = true, true, segment, nil
	} else if segment != nil {
		segment.left.Add(-1)
	}
	l.push(j)
	if j.sure && j.entry.Started != nil {
		r.begun = true
	}
	return j.sure
}

// landedSure is for what the journal had: its caller was told so. l.mu is held.
func (l *Log) landedSure(j *job) {
	if j.entry.Finished != nil {
		delete(l.open, j.entry.ExecutionID)
	}
	if j.foreign {
		l.o.Log.Error("audit: a record that was acknowledged is not on record: another one has its place",
			slog.String("kind", j.entry.Kind), slog.String("execution_id", j.entry.ExecutionID))
	}
	if j.segment != nil {
		j.segment.left.Add(-1)
	}
	if j.done != nil {
		j.done <- nil
	}
	if l.sure[j.entry.Tenant]--; l.sure[j.entry.Tenant] == 0 {
		delete(l.sure, j.entry.Tenant)
	}
	l.asked = slices.DeleteFunc(l.asked, func(q *question) bool {
		if j.at > q.at || q.tenant != "" && q.tenant != j.entry.Tenant {
			return false
		}
		if q.left--; q.left == 0 {
			close(q.done)
		}
		return q.left == 0
	})
}

// question is somebody who waits for the database to have sure records of a tenant, up to a place.
type question struct {
	tenant string // "": of all
	at     uint64
	left   int // of these, how many it may not have
	done   chan struct{}
}

// current is a Store whose answers contain what was on record before a question.
type current struct {
	Store
	log *Log
}

func (c current) Tenants(ctx context.Context) ([]Head, error) {
	if err := c.log.catchUp(ctx, ""); err != nil {
		return nil, err
	}
	return c.Store.Tenants(ctx)
}

func (c current) Shown(ctx context.Context, tenant string) ([]Shown, error) {
	if err := c.log.catchUp(ctx, tenant); err != nil {
		return nil, err
	}
	return c.Store.Shown(ctx, tenant)
}

func (c current) Execution(ctx context.Context, tenant, id string) (*Execution, error) {
	if err := c.log.catchUp(ctx, tenant); err != nil {
		return nil, err
	}
	return c.Store.Execution(ctx, tenant, id)
}

func (c current) Executions(ctx context.Context, q Query) ([]*Execution, string, error) {
	if err := c.log.catchUp(ctx, q.Tenant); err != nil {
		return nil, "", err
	}
	return c.Store.Executions(ctx, q)
}

// catchUp waits until the database has all that the journal has now of a tenant, "" of all.
func (l *Log) catchUp(ctx context.Context, tenant string) error {
	l.mu.Lock()
	left := l.sure[tenant]
	if tenant == "" {
		for _, n := range l.sure {
			left += n
		}
	}
	if left == 0 {
		l.mu.Unlock()
		return nil
	}
	q := &question{tenant: tenant, at: l.places, left: left, done: make(chan struct{})}
	l.asked = append(l.asked, q)
	l.mu.Unlock()
	l.poke()
	limit := time.NewTimer(l.o.Wait)
	defer limit.Stop()
	var err error
	select {
	case <-q.done:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-limit.C:
		err = unavailable("audit.Store", "audit log unavailable: records are waiting to be written to the database; retry", errors.New("the database did not respond in time"))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = slices.DeleteFunc(l.asked, func(other *question) bool { return other == q })
	return err
}

// Waiting is how many records the database does not have yet.
func (l *Log) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.waiting)
	for _, held := range l.held {
		n += len(held)
	}
	return n
}

// paced notes how long the database needed for the batch that is written.
func (l *Log) paced(records int, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pace = (3*l.pace + took/time.Duration(records)) / 4
	l.writing = nil
}

// tidy deletes what the journal need not keep. It is apart from all else, since it waits for the disk.
func (l *Log) tidy(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for l.journal != nil {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := l.journal.tidy(); err != nil {
			l.o.Log.Warn("audit: cannot delete a segment of the journal", slog.Any("error", err))
		}
	}
}
