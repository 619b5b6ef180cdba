package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
)

// How many records wait until their executions are asked for, and how many are asked for at
// once. Most executions end soon, and are asked for once then.
const (
	maxRows      = 2000
	maxRowsBytes = 8 << 20
	rowsAtOnce   = 4
)

// rows are executions whose records were read, to be compared with what queries show.
type rows struct {
	byID  map[string]*row
	count int // of records
	bytes int // of their bodies
}

// row is what records say of an execution; nil: no record that was read lately.
type row struct{ started, finished *Record }

func (s *rows) add(r *Record) {
	if s.byID == nil {
		s.byID = map[string]*row{}
	}
	e := s.byID[r.ExecutionID]
	if e == nil {
		e = &row{}
		s.byID[r.ExecutionID] = e
	}
	if r.Kind == KindStarted {
		e.started = r
	} else {
		e.finished = r
	}
	s.count++
	s.bytes += len(r.Body)
}

func (s *rows) full() bool { return s.count >= maxRows || s.bytes >= maxRowsBytes }

// compare asks for the executions and forgets them. The fault is that with the lowest
// number.
func (s *rows) compare(ctx context.Context, store Store) (*Fault, error) {
	together, err := s.together(ctx, store)
	if err != nil {
		return nil, err
	}
	faults := make(chan *Fault, len(s.byID))
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(rowsAtOnce)
	for id, e := range s.byID {
		all.Go(func() error {
			fault, err := e.compare(ctx, store, id, together[id])
			if fault != nil {
				faults <- fault
			}
			return err
		})
	}
	*s = rows{}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	close(faults)
	var first *Fault
	for f := range faults {
		if first == nil || f.Seq < first.Seq {
			first = f
		}
	}
	return first, nil
}

// together asks for the executions that began in the time of these records, which is by
// far cheaper than to ask for each. What does not come by it is asked for by itself.
func (s *rows) together(ctx context.Context, store Store) (map[string]*Execution, error) {
	page := min(max(len(s.byID), 10), 1000) // few where records are large
	q := Query{Limit: page}
	for _, e := range s.byID {
		if r := e.started; r != nil {
			q.Tenant = r.Tenant
			if q.Since.IsZero() || r.Time.Before(q.Since) {
				q.Since = r.Time
			}
			if !r.Time.Before(q.Until) {
				q.Until = r.Time.Add(time.Microsecond)
			}
		}
	}
	if q.Since.IsZero() {
		return nil, nil
	}
	found := make(map[string]*Execution, len(s.byID))
	for range len(s.byID)/page + 2 { // there may be any number more, if times are odd
		all, next, err := store.Executions(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, e := range all {
			if s.byID[e.Started.ExecutionID] != nil {
				found[e.Started.ExecutionID] = e
			}
		}
		if next == "" {
			break
		}
		q.Cursor = next
	}
	return found, nil
}

// compare compares with shown, or with what the store says if that is nil.
func (e *row) compare(ctx context.Context, store Store, id string, shown *Execution) (fault *Fault, err error) {
	r := e.started
	if r == nil {
		r = e.finished
	}
	if shown == nil || shown.Finished == nil { // it may have ended meanwhile
		shown, err = store.Execution(ctx, r.Tenant, id)
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return faultAt(WrongRow, r, "the execution is on record, and not among the executions"), nil
	case err != nil:
		return nil, err
	case e.started != nil && !says(e.started, &shown.Started):
		return faultAt(WrongRow, e.started, "the execution, as queries show it, did not begin as its record says"), nil
	case e.finished == nil:
		return nil, nil //nolint:nilnil // no fault
	case shown.Finished == nil:
		return faultAt(WrongRow, e.finished, "the execution ended, and is shown as running"), nil
	case !says(e.finished, shown.Finished):
		return faultAt(WrongRow, e.finished, "the execution, as queries show it, did not end as its record says"), nil
	}
	return nil, nil //nolint:nilnil // no fault
}

// says reports whether the body of a record is v, however it is spelt.
func says(r *Record, v any) bool {
	b, err := json.Marshal(v)
	return err == nil && (bytes.Equal(b, r.Body) || sameJSON(b, r.Body))
}

// sameJSON compares without regard to spaces, order and spelling.
func sameJSON(a, b []byte) bool {
	decode := func(data []byte) (out any, err error) {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		err = dec.Decode(&out)
		return out, err
	}
	x, err1 := decode(a)
	y, err2 := decode(b)
	if err1 != nil || err2 != nil {
		return false
	}
	p, err1 := json.Marshal(x)
	q, err2 := json.Marshal(y)
	return err1 == nil && err2 == nil && bytes.Equal(p, q)
}
