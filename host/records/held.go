package records

import (
	"context"
	"errors"
	"slices"
	"time"
)

// What waits for chains that another host holds, by its tenant, apart from all else: a host
// that froze in a transaction must not stop the records of tenants whose chains it has not.
// All records of such a tenant wait there, so that the end of a call comes after its beginning.

const (
	mostHeld  = 256                   // records of a tenant that wait for its chain; more calls of it are refused
	mostBytes = maxWaiting / 2        // of the bodies of all that wait for chains; the other half is for those that wait for none
	heldPause = 10 * time.Millisecond // between rounds over what waits, where nothing came free
)

// aside lets a job of a held chain wait by itself. l.mu is held.
func (l *Log) aside(ctx context.Context, j *job) {
	if l.held == nil {
		l.held = map[string][]*job{}
		go l.follow(ctx)
	}
	l.held[j.entry.Tenant] = append(l.held[j.entry.Tenant], j)
	l.count(j, 1)
}

// heldFull reports whether the body of a job has no room among what waits for chains. l.mu is held.
func (l *Log) heldFull(j *job) bool {
	bytes := len(j.entry.Body)
	for _, waiting := range l.held {
		for _, w := range waiting {
			bytes += len(w.entry.Body)
		}
	}
	return bytes > mostBytes
}

// setAside takes the entries out of a batch that were left out since their chains are held.
// Those that somebody asks for again do not wait.
func (l *Log) setAside(ctx context.Context, batch []*job) []*job {
	held := func(j *job) bool { return errors.Is(j.entry.Left, ErrHeld) }
	if !slices.ContainsFunc(batch, held) {
		return batch
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := make([]*job, 0, len(batch))
	for _, j := range batch {
		if !held(j) {
			rest = append(rest, j)
			continue
		}
		l.landed(j)
		full := l.heldFull(j)
		switch {
		case j.again:
			j.done <- ErrHeld
			continue
		case full && j.entry.Started != nil && !j.sure: // it is certain not to be on record
			delete(l.open, j.entry.ExecutionID)
			if !j.gone {
				j.done <- unavailable("audit.Started", refusedMessage, ErrHeld)
			}
			continue
		case full:
			l.strip(j)
		}
		l.aside(ctx, j)
	}
	l.followers()
	return rest
}

// heldAlready sets entries of a batch aside whose tenants have others that wait already.
func (l *Log) heldAlready(ctx context.Context, batch []*job) []*job {
	l.mu.Lock()
	none := l.held == nil
	for _, j := range batch {
		if j.entry.Left = nil; l.held[j.entry.Tenant] != nil {
			j.entry.Left = ErrHeld
		}
	}
	l.mu.Unlock()
	if none {
		return batch
	}
	return l.setAside(ctx, batch)
}

// followers moves what came after records that wait for chains, of their tenants, to them.
// l.mu is held.
func (l *Log) followers() {
	rest := l.waiting[:0]
	for _, j := range l.waiting {
		switch tenant := j.entry.Tenant; {
		case l.held[tenant] == nil:
			rest = append(rest, j)
		case j.again:
			l.count(j, -1)
			j.done <- ErrHeld
		default:
			l.held[tenant] = append(l.held[tenant], j)
		}
	}
	clear(l.waiting[len(rest):])
	l.waiting = rest
	for _, all := range l.held {
		slices.SortFunc(all, older)
	}
}

// follow writes what waits for chains, one after the other, until nothing does.
func (l *Log) follow(ctx context.Context) {
	for {
		l.mu.Lock()
		tenants := make([]string, 0, len(l.held))
		for tenant := range l.held {
			tenants = append(tenants, tenant)
		}
		if len(tenants) == 0 || ctx.Err() != nil {
			l.held = nil
			l.mu.Unlock()
			l.poke()
			return
		}
		l.mu.Unlock()
		pause := heldPause
		for _, tenant := range tenants {
			switch free, err := l.writeHeld(ctx, tenant); {
			case err != nil:
				pause = probeEvery
			case free:
				pause = 0
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// writeHeld tries to write what waits of a tenant, and says whether its chain was free.
func (l *Log) writeHeld(ctx context.Context, tenant string) (free bool, err error) {
	l.mu.Lock()
	// The writer may have more of the tenant, which came in between: parts of a batch.
	if slices.ContainsFunc(l.writing, func(j *job) bool { return j.entry.Tenant == tenant }) {
		l.mu.Unlock()
		return false, nil
	}
	waiting := l.held[tenant]
	batch, n := l.taken(waiting)
	l.held[tenant] = waiting[n:]
	l.mu.Unlock()
	if len(batch) > 0 {
		for _, j := range batch {
			j.entry.Wait = true
		}
		err = l.try(ctx, batch)
	}
	free = err == nil
	switch {
	case len(batch) == 0:
	case err != nil && l.alive(ctx) == nil:
		// The store works, so there is a record among them that it will not have. The writer
		// tries them in halves, as it does with others.
		l.mu.Lock()
		for _, j := range batch {
			j.entry.Wait = false
			l.landed(j)
			l.count(j, 1)
		}
		all := append(batch, l.held[tenant]...)
		delete(l.held, tenant)
		l.toWaiting(all)
		l.mu.Unlock()
		l.poke()
	case err != nil:
		l.mu.Lock()
		l.held[tenant] = append(l.unwritten(batch, err), l.held[tenant]...)
		l.mu.Unlock()
	case errors.Is(batch[0].entry.Left, ErrHeld):
		free = false
		l.mu.Lock()
		for _, j := range batch {
			l.landed(j)
			l.count(j, 1)
		}
		l.held[tenant] = append(batch, l.held[tenant]...)
		l.mu.Unlock()
	default:
		l.foreign(ctx, batch)
		l.written(batch)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.held[tenant]) == 0 {
		delete(l.held, tenant)
	}
	return free, err
}
