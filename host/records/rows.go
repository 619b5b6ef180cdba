package records

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
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

// compared is what a comparison found.
type compared struct {
	faults []*Fault
	signs  uint64 // executions that differ by the sign of a zero alone
	lost   uint64 // executions that are not shown
}

// compare asks for the executions and forgets them.
func (s *rows) compare(ctx context.Context, store Store) (found compared, err error) {
	together, err := s.together(ctx, store)
	if err != nil {
		return found, err
	}
	var mu sync.Mutex // guards found
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(rowsAtOnce)
	for id, e := range s.byID {
		all.Go(func() error {
			one, err := e.compare(ctx, store, id, together[id])
			mu.Lock()
			defer mu.Unlock()
			found.faults = append(found.faults, one.faults...)
			found.signs += one.signs
			found.lost += one.lost
			return err
		})
	}
	*s = rows{}
	return found, all.Wait()
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
func (e *row) compare(ctx context.Context, store Store, id string, shown *Execution) (found compared, err error) {
	r := e.started
	if r == nil {
		r = e.finished
	}
	if shown == nil || shown.Finished == nil { // it may have ended meanwhile
		shown, err = store.Execution(ctx, r.Tenant, id)
	}
	wrong := func(r *Record, message string) (compared, error) {
		found.faults = append(found.faults, faultAt(WrongRow, r, message))
		return found, nil
	}
	switch {
	case errors.Is(err, ErrNotFound):
		if e.finished != nil {
			found.lost = 1
		}
		return wrong(r, "the execution is recorded but missing among the executions")
	case err != nil:
		return found, err
	case shown.Damaged != "":
		return wrong(r, "the execution shown by queries was changed: "+shown.Damaged)
	}
	signs := false
	if e.started != nil {
		same, sign := says(e.started, &shown.Started)
		if !same {
			return wrong(e.started, "the execution shown by queries has another start than its record")
		}
		signs = sign
	}
	if e.finished != nil {
		if shown.Finished == nil {
			return wrong(e.finished, "the execution ended but is shown as running")
		}
		same, sign := says(e.finished, shown.Finished)
		if !same {
			return wrong(e.finished, "the execution shown by queries has another end than its record")
		}
		signs = signs || sign
	}
	if signs {
		found.signs = 1
	}
	return found, nil
}

// says reports whether the body of a record is v, however it is spelt. sign says that v has
// lost the sign of a zero.
func says(r *Record, v any) (same, sign bool) {
	b, err := json.Marshal(v)
	switch {
	case err != nil:
		return false, false
	case bytes.Equal(b, r.Body) || sameJSON(b, r.Body, false):
		return true, false
	}
	sign = sameJSON(b, r.Body, true)
	return sign, sign
}

// sameJSON compares without regard to spaces, order and spelling. unsigned takes each -0 of
// record for 0.
func sameJSON(shown, record []byte, unsigned bool) bool {
	decode := func(data []byte) (out any, err error) {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		err = dec.Decode(&out)
		return out, err
	}
	x, err1 := decode(shown)
	y, err2 := decode(record)
	if err1 != nil || err2 != nil {
		return false
	}
	if unsigned {
		y = withoutSigns(y)
	}
	p, err1 := json.Marshal(x)
	q, err2 := json.Marshal(y)
	return err1 == nil && err2 == nil && bytes.Equal(p, q)
}

// withoutSigns drops the sign of zeros, as JSONB does.
func withoutSigns(v any) any {
	switch v := v.(type) {
	case json.Number:
		if digits, negative := strings.CutPrefix(v.String(), "-"); negative && strings.Trim(digits, "0.") == "" {
			return json.Number(digits)
		}
	case []any:
		for i := range v {
			v[i] = withoutSigns(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = withoutSigns(v[k])
		}
	}
	return v
}
