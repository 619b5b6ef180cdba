package records

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Executions that no record tells of: what queries show is listed in steps of so many, and
// the chain is read once for each step.
const shownStep = 50_000

// apart is how far the time of an execution and the place of its record may differ: hosts
// have clocks of their own, and records wait to be written.
const apart = time.Minute

// runningOf lists the executions of a tenant that queries show as running.
func runningOf(ctx context.Context, s Store, tenant string) (map[string]*Execution, error) {
	out := map[string]*Execution{}
	q := Query{Tenant: tenant, Status: Running, Limit: 1000}
	for {
		page, next, err := s.Executions(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			if e.Tenant == tenant && e.Finished == nil {
				out[strings.ToLower(e.Started.ExecutionID)] = e
			}
		}
		if next == "" || len(out) >= shownStep {
			return out, nil
		}
		q.Cursor = next
	}
}

// see counts what a record tells of.
func (v *verifier) see(r *Record) {
	switch r.Kind {
	case KindStarted:
		delete(v.running, strings.ToLower(r.ExecutionID))
	case KindFinished:
		v.ended++
	}
}

// shown looks for executions that queries show and no record tells of. Of a whole chain
// their number tells whether there are any, since each one on record was looked for: only
// then they are listed. Of a part, those that began in its time are.
func (v *verifier) shown(ctx context.Context, from uint64, since time.Time, whole bool) error {
	if whole {
		for _, e := range v.running {
			if err := v.unrecorded(ctx, e); err != nil {
				return err
			}
		}
		if v.head.Ended+v.lost <= v.ended {
			return nil
		}
		since = time.Time{}
	} else {
		since = since.Add(apart)
	}
	q := Query{Tenant: v.head.Tenant, Since: since, Limit: 1000}
	for more := true; more; {
		list := map[string]*Execution{}
		for more && len(list) < shownStep {
			page, next, err := v.store.Executions(ctx, q)
			if err != nil {
				return err
			}
			for _, e := range page {
				if e.Tenant == v.head.Tenant && (e.Finished != nil || !whole) {
					list[strings.ToLower(e.Started.ExecutionID)] = e
				}
			}
			q.Cursor, more = next, next != ""
		}
		for r, err := range Records(ctx, v.store, v.head.Tenant, from) {
			if err != nil {
				return err
			}
			if r.Kind == KindStarted || r.Kind == KindFinished {
				delete(list, strings.ToLower(r.ExecutionID))
			}
		}
		for _, e := range list {
			if err := v.unrecorded(ctx, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// unrecorded is the fault of an execution without a record, unless it is gone meanwhile.
func (v *verifier) unrecorded(ctx context.Context, e *Execution) error {
	_, err := v.store.Execution(ctx, v.head.Tenant, e.Started.ExecutionID)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	v.c.add(&Fault{
		Wrong: WrongRow, ExecutionID: e.Started.ExecutionID, Time: e.Started.Time,
		Message: "the execution is shown but not recorded: it was added to the database",
	})
	return err
}
