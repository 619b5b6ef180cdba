package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"openskill/sdk/skill"
)

// push lets an entry wait. An end that finds no room is stripped, and so always finds
// some. l.mu is held.
func (l *Log) push(j *job) {
	held := l.held[j.entry.Tenant] != nil
	if j.entry.Finished != nil && (l.bytes+len(j.entry.Body) > maxWaiting || held && l.heldFull(j)) {
		l.strip(j)
	}
	l.places++
	if j.at = l.places; j.sure {
		l.sure[j.entry.Tenant]++
	}
	switch {
	case !held:
		if len(l.waiting) == 0 {
			l.since = l.o.Now()
		}
		l.waiting = append(l.waiting, j)
	case j.again:
		j.done <- ErrHeld
		return
	default:
		l.held[j.entry.Tenant] = append(l.held[j.entry.Tenant], j)
	}
	l.count(j, 1)
	if n := len(l.waiting); !j.sure || n == 1 || n >= l.o.Batch {
		l.poke()
	}
}

// rest is how long the writer waits for more records: while the journal has all of those that
// wait, and no query waits for them.
// l.mu is held.
func (l *Log) rest() time.Duration {
	if len(l.waiting) == 0 || l.urgent > 0 || len(l.asked) > 0 || l.ending || len(l.waiting) >= l.o.Batch {
		return 0
	}
	return journalRest - l.o.Now().Sub(l.since)
}

// count keeps the sums of what waits. l.mu is held.
func (l *Log) count(j *job, n int) {
	l.bytes += n * len(j.entry.Body)
	if j.entry.Started != nil {
		l.starts += n
	}
	if !j.sure {
		l.urgent += n
	}
	if j.late {
		l.lateBy(j, n)
	}
}

// lateBy counts ends that are late. l.mu is held.
func (l *Log) lateBy(j *job, n int) {
	if l.late[j.entry.Tenant] += n; l.late[j.entry.Tenant] == 0 {
		delete(l.late, j.entry.Tenant)
	}
}

// landed undoes what taken does for a late end, which holds up its tenant while it is
// written. l.mu is held.
func (l *Log) landed(j *job) {
	if j.late {
		l.lateBy(j, -1)
	}
}

func (l *Log) strip(j *job) {
	if j.slim = true; j.entry.Finished != nil {
		j.entry = strippedEntry(j.entry.Of, j.entry.Finished)
		return
	}
	kept := *j.entry.Started // of a call that runs already, or has ended
	kept.Input.Truncated = kept.Input.Truncated || kept.Input.JSON != nil
	kept.Input.JSON, kept.Files = nil, nil
	e, err := startedEntry(&kept)
	if err != nil {
		panic(fmt.Sprintf("audit: a record of numbers and names cannot be written: %v", err))
	}
	e.Sure, j.entry = true, e
	if r := l.open[kept.ExecutionID]; r != nil {
		r.started = &kept
	}
	for _, list := range [][]*job{l.writing, l.waiting, l.held[kept.Tenant]} {
		for _, other := range list {
			if other.entry.Finished != nil && other.entry.ExecutionID == kept.ExecutionID {
				other.entry.Of = &kept
			}
		}
	}
}

// delay notes that the caller of an end was told that it could not be written; until it
// is, nothing begins. l.mu is held.
func (l *Log) delay(j *job) {
	if !j.late {
		j.late = true
		l.lateBy(j, 1)
	}
}

// poke wakes the writer.
func (l *Log) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// write writes what waits until the Log is closed and nothing waits, or ctx ends.
func (l *Log) write(ctx context.Context) {
	defer close(l.drained)
	probe := time.NewTimer(probeEvery)
	defer probe.Stop()
	for ctx.Err() == nil {
		batch, rest, down, end := l.next()
		switch {
		case end:
			return
		case down:
			// What failed is tried again at intervals, and the store itself where nothing
			// waits.
			probe.Reset(probeEvery)
			select {
			case <-ctx.Done():
				return
			case <-probe.C:
			}
			if batch = l.again(); len(batch) > 0 {
				l.give(ctx, batch)
			} else if err := l.alive(ctx); err == nil {
				l.up()
			}
		case len(batch) > 0:
			l.give(ctx, batch)
			// Who was answered just now often has another record soon: it comes into the
			// next transaction, not into the one after.
			runtime.Gosched()
		case rest > 0:
			probe.Reset(rest)
			select {
			case <-ctx.Done():
			case <-l.wake:
			case <-probe.C:
			}
		default:
			select {
			case <-ctx.Done():
			case <-l.wake:
			}
		}
	}
}

// give writes a batch and tells who waits for it.
func (l *Log) give(ctx context.Context, batch []*job) {
	began := l.o.Now()
	l.put(ctx, batch, l.limit())
	l.paced(len(batch), l.o.Now().Sub(began))
}

// limit is the moment after which a batch that fails is not tried in parts any more.
func (l *Log) limit() time.Time { return l.o.Now().Add(l.o.Wait) }

// next takes what is to be written next.
func (l *Log) next() (batch []*job, rest time.Duration, down, end bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down && !(l.ending && len(l.waiting) == 0) {
		return nil, 0, true, false
	}
	if rest = l.rest(); rest > 0 {
		return nil, rest, false, false
	}
	batch = l.take()
	return batch, 0, false, l.ending && len(batch) == 0 && l.held == nil && l.coming == 0
}

// again takes what is to be tried again.
func (l *Log) again() []*job {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.take()
}

// take gives a batch from the front. Beginnings whose callers were refused are left out:
// they are certain not to be on record. l.mu is held.
func (l *Log) take() (batch []*job) {
	batch, n := l.taken(l.waiting)
	clear(l.waiting[:n])
	if l.waiting = l.waiting[n:]; len(l.waiting) == 0 {
		l.waiting = nil // the array is given back
	}
	l.writing = batch
	return batch
}

// taken gives a batch of a list, and how much of the list that is. l.mu is held.
func (l *Log) taken(list []*job) (batch []*job, n int) {
	size := 0
	for _, j := range list {
		if len(batch) >= l.o.Batch || len(batch) > 0 && size+len(j.entry.Body) > maxBatch {
			break
		}
		n++
		l.count(j, -1)
		if j.gone {
			delete(l.open, j.entry.ExecutionID)
			continue
		}
		batch = append(batch, j)
		size += len(j.entry.Body)
	}
	// A late end keeps new calls of its tenant from beginning until it is written.
	for _, j := range batch {
		if j.late {
			l.lateBy(j, 1)
		}
	}
	return batch, n
}

// put writes a batch. One that fails although the store works is tried in halves, so
// that an entry that the store will not have costs no other call its record.
func (l *Log) put(ctx context.Context, batch []*job, limit time.Time) (works bool) {
	if batch = l.heldAlready(ctx, batch); len(batch) == 0 {
		return true
	}
	err := l.try(ctx, batch)
	switch {
	case err == nil:
		batch = l.setAside(ctx, batch)
		l.foreign(ctx, batch)
		l.written(batch)
		return true
	case !l.o.Now().Before(limit), errors.Is(err, context.DeadlineExceeded), l.alive(ctx) != nil:
		l.failed(batch, err)
		return false
	case len(batch) == 1:
		return l.refused(ctx, batch[0], err, limit)
	}
	first, second := batch[:len(batch)/2], batch[len(batch)/2:]
	if !l.put(ctx, first, limit) {
		l.failed(second, err)
		return false
	}
	return l.put(ctx, second, limit)
}

func (l *Log) try(ctx context.Context, batch []*job) error {
	entries := make([]*Entry, len(batch))
	for i, j := range batch {
		entries[i] = j.entry
	}
	ctx, cancel := context.WithTimeout(ctx, l.o.Wait)
	defer cancel()
	return l.o.Store.Append(ctx, entries)
}

// alive writes that this host is alive, by which it shows whether the store works.
func (l *Log) alive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.o.Wait)
	defer cancel()
	before := l.o.Now()
	there, err := l.o.Store.Alive(ctx, l.o.Instance)
	if err == nil {
		l.compareClocks(before, there, l.o.Now())
	}
	return err
}

// foreign marks entries that the store left out, since there are other ones in their
// place: an end that another host wrote, which took this one for dead. One that is there
// since it was written before, and the answer lost, is the same one. A beginning of which
// that cannot be told now stays in doubt.
func (l *Log) foreign(ctx context.Context, batch []*job) {
	for _, j := range batch {
		switch f := j.entry.Finished; {
		case j.entry.Seq != 0 || j.again || j.entry.Left != nil || f == nil && j.sure:
		case f == nil:
			e, err := l.execution(ctx, j.entry.Started)
			if err != nil && !errors.Is(err, ErrNotFound) {
				j.unsure = err
				continue
			}
			j.foreign = err != nil || e.Finished != nil || e.host() != j.entry.Started.Instance || !e.Started.Time.Equal(j.entry.Started.Time)
		default:
			e, err := l.execution(ctx, j.entry.Of)
			if j.sure && err != nil && !errors.Is(err, ErrNotFound) {
				continue // what it is cannot be told now
			}
			j.foreign = err != nil || e.Finished == nil || e.Finished.Status != f.Status || !e.Finished.Time.Equal(f.Time)
		}
	}
}

// written tells that a batch is on record.
func (l *Log) written(batch []*job) {
	l.up()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range batch {
		l.landed(j)
		id := j.entry.ExecutionID
		if l.room(j.entry); j.sure {
			l.landedSure(j)
			continue
		}
		switch {
		case j.entry.Left != nil:
			delete(l.open, id)
			if !j.gone {
				j.done <- fullError("audit.Started")
			}
			continue
		case j.unsure != nil:
			l.doubt(j, j.unsure)
			continue
		case j.foreign:
			delete(l.open, id)
			if j.done != nil {
				j.done <- unavailable("audit.Log", foreignMessage, errors.New("the database has another record with this number"))
			}
			continue
		case j.entry.Finished != nil:
			delete(l.open, id)
		case j.gone: // it came to be on record after its caller was refused
			l.revoke(l.open[id], skill.AuditUnavailable, notConfirmed)
		case l.closed:
			l.revoke(l.open[id], skill.Cancelled, hostEnded)
			j.done <- unavailable("audit.Started", stoppingMessage, nil)
			continue
		default:
			l.open[id].begun = true
		}
		if j.done != nil {
			j.done <- nil
		}
	}
}

// room notes whether a tenant has room for more records. l.mu is held.
func (l *Log) room(e *Entry) {
	if e.Full {
		l.full[e.Tenant] = true
	} else {
		delete(l.full, e.Tenant)
	}
}

// revoke ends on record a call that is on record and never began. l.mu is held.
func (l *Log) revoke(r *run, code skill.Code, message string) {
	r.ended = true
	l.push(&job{entry: strippedEntry(r.started, l.terminated(code, message))})
}

// up notes that the store works.
func (l *Log) up() {
	l.mu.Lock()
	was := l.down
	l.down, l.silent = false, false
	l.mu.Unlock()
	if was {
		l.o.Log.Info("audit: the database accepts records again")
		select {
		case l.nudge <- struct{}{}:
		default:
		}
	}
}

// fell notes that the store does not work.
func (l *Log) fell(err error) {
	l.mu.Lock()
	was := l.down
	l.down = true
	l.mu.Unlock()
	if !was {
		l.o.Log.Error("audit: the database rejects records; calls are refused until it accepts them", slog.Any("error", err))
	}
}

// failed tells that a batch could not be written. Beginnings are refused, and in doubt:
// the store may have written them and lost its answer. Ends wait further.
func (l *Log) failed(batch []*job, err error) {
	l.fell(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.toWaiting(l.unwritten(batch, err))
	// What waits behind will not be written soon either.
	l.refuseWaiting(unavailable("audit.Started", refusedMessage, err))
}

// toWaiting lets jobs wait again, in the order in which they came. l.mu is held.
func (l *Log) toWaiting(jobs []*job) {
	l.waiting = append(jobs, l.waiting...)
	slices.SortFunc(l.waiting, older)
	l.followers()
}

func older(a, b *job) int { return cmp.Compare(a.at, b.at) }

// unwritten refuses the beginnings of a batch that could not be written, and gives what waits
// further. l.mu is held.
func (l *Log) unwritten(batch []*job, err error) (kept []*job) {
	for _, j := range batch {
		l.landed(j) // it is counted again where it waits
		switch {
		case j.entry.Started != nil && !j.sure:
			l.doubt(j, err)
		case j.again:
			j.done <- err
		default:
			l.count(j, 1)
			kept = append(kept, j)
		}
	}
	return kept
}

// refuseWaiting refuses the beginnings that wait. l.mu is held.
func (l *Log) refuseWaiting(err error) {
	rest := l.waiting[:0]
	for _, j := range l.waiting {
		if j.entry.Started == nil || j.sure {
			rest = append(rest, j)
			continue
		}
		l.count(j, -1)
		delete(l.open, j.entry.ExecutionID)
		if !j.gone {
			j.gone = true
			j.done <- err
		}
	}
	clear(l.waiting[len(rest):])
	l.waiting = rest
}

// doubt refuses a beginning that may be on record. l.mu is held.
func (l *Log) doubt(j *job, err error) {
	l.open[j.entry.ExecutionID].doubt = true
	if !j.gone {
		j.gone = true
		j.done <- unavailable("audit.Started", refusedMessage, err)
	}
}

// refused treats an entry that the store does not take although it works. An end, and what
// the journal has, is tried again without what a guest wrote, and when even that is not taken, it is the
// store that does not work.
func (l *Log) refused(ctx context.Context, j *job, err error, limit time.Time) (works bool) {
	if j.slim {
		l.failed([]*job{j}, err)
		return false
	}
	l.o.Log.Error("audit: the database refuses a record", slog.String("kind", j.entry.Kind),
		slog.String("execution_id", j.entry.ExecutionID), slog.Any("error", err))
	l.mu.Lock()
	if j.entry.Started != nil && j.sure { // before what follows it
		l.strip(j)
		l.mu.Unlock()
		return l.put(ctx, []*job{j}, limit)
	}
	defer l.mu.Unlock()
	switch {
	case j.entry.Started != nil:
		l.doubt(j, err)
		return true
	case j.again:
		j.done <- err
		return true
	}
	l.landed(j)
	l.strip(j)
	l.count(j, 1)
	l.toWaiting([]*job{j})
	return true
}
