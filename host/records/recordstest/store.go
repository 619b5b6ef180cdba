// Package recordstest gives records a store in memory that does what a test tells it: fail,
// block, answer late, or lose its answer. It keeps all that records.Store promises.
package recordstest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// Store keeps records and executions in memory. Its zero value is empty and works.
type Store struct {
	mu         sync.Mutex
	chains     map[string]*chain
	executions map[string]*records.Execution
	instances  map[string]time.Time
	appends    []int // how many entries each Append brought
	before     func(ctx context.Context, op string) error
	after      func(ctx context.Context, op string) error
	full       map[string]bool
	held       string // tenant whose chain another host holds
}

type chain struct {
	head    records.Head
	records []records.Record
}

var _ records.Store = (*Store)(nil)

// Before has every operation call f first, with the name of the operation, and fail with
// its error without having done anything. nil: none.
func (s *Store) Before(f func(ctx context.Context, op string) error) { s.hook(&s.before, f) }

// After has every operation call f last, and fail with its error although it did all. nil: none.
func (s *Store) After(f func(ctx context.Context, op string) error) { s.hook(&s.after, f) }

// Fill has the records of a tenant take as much as they may.
func (s *Store) Fill(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = map[string]bool{tenant: true}
}

// Hold has another host hold the chain of a tenant; "": of none.
func (s *Store) Hold(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = tenant
}

func (s *Store) hook(at *func(context.Context, string) error, f func(context.Context, string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*at = f
}

// Appends gives how many entries each Append brought that worked.
func (s *Store) Appends() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.appends)
}

// Change lets f change the records of a tenant, as somebody does who has the database.
func (s *Store) Change(tenant string, f func(h *records.Head, records []records.Record) []records.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chain(tenant)
	c.records = f(&c.head, c.records)
}

// ChangeExecution lets f change an execution, as queries show it.
func (s *Store) ChangeExecution(id string, f func(e *records.Execution)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.executions[id])
}

// AddExecution lets queries show an execution that is not on record.
func (s *Store) AddExecution(e *records.Execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.executions[e.Started.ExecutionID] = e
}

// do runs an operation between the two hooks.
func (s *Store) do(ctx context.Context, op string, f func() error) error {
	s.mu.Lock()
	before, after := s.before, s.after
	s.mu.Unlock()
	if before != nil {
		if err := before(ctx, op); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	err := f()
	s.mu.Unlock()
	if err == nil && after != nil {
		err = after(ctx, op)
	}
	return err
}

// chain gives the chain of a tenant, a new one where there is none. s.mu is held.
func (s *Store) chain(tenant string) *chain {
	if s.chains == nil {
		s.chains, s.executions = map[string]*chain{}, map[string]*records.Execution{}
	}
	c := s.chains[tenant]
	if c == nil {
		c = &chain{head: records.Head{Tenant: tenant, First: 1, Prev: records.Origin, LastHash: records.Origin}}
		s.chains[tenant] = c
	}
	return c
}

// Append implements records.Store.
func (s *Store) Append(ctx context.Context, entries []*records.Entry) error {
	return s.do(ctx, "Append", func() error {
		for _, e := range entries {
			if e.Started == nil && e.Finished == nil && e.Change == nil || e.Finished != nil && e.Of == nil {
				return errors.New("an entry without what it says")
			}
		}
		for _, e := range entries {
			s.append(e)
		}
		s.appends = append(s.appends, len(entries))
		return nil
	})
}

func (s *Store) append(e *records.Entry) {
	e.Seq, e.Prev, e.Hash, e.Left = 0, "", "", nil
	if e.Tenant == s.held {
		e.Left = records.ErrHeld
		return
	}
	c := s.chain(e.Tenant)
	x := s.executions[e.ExecutionID]
	switch {
	case e.Change != nil:
	case e.Started != nil && x != nil, e.Finished != nil && x != nil && x.Finished != nil:
		return // it was written before
	case e.Started != nil && s.full[e.Tenant]:
		e.Left = records.ErrFull
		return
	case e.Started != nil:
		x = &records.Execution{Started: *e.Started}
		s.executions[e.ExecutionID] = x
	case e.Finished != nil:
		if x == nil {
			x = &records.Execution{Started: *e.Of}
			s.executions[e.ExecutionID] = x
		}
		f := *e.Finished
		x.Finished = &f
	}
	e.Seq = c.head.Last + 1
	records.Link(c.head.LastHash, &e.Record)
	r := e.Record
	r.Body = bytes.Clone(r.Body)
	c.records = append(c.records, r)
	c.head.Last, c.head.LastHash = r.Seq, r.Hash
}

// Tenants implements records.Store.
func (s *Store) Tenants(ctx context.Context) (heads []records.Head, err error) {
	err = s.do(ctx, "Tenants", func() error {
		for _, c := range s.chains {
			heads = append(heads, c.head)
		}
		slices.SortFunc(heads, func(a, b records.Head) int { return strings.Compare(a.Tenant, b.Tenant) })
		return nil
	})
	return heads, err
}

// Changes implements records.Store.
func (s *Store) Changes(ctx context.Context, q records.ChangeQuery) (all []records.Change, err error) {
	err = s.do(ctx, "Changes", func() error {
		for _, c := range s.chains {
			for _, r := range c.records {
				if r.Kind != records.KindChange || q.Tenant != "" && r.Tenant != q.Tenant || r.Time.Before(q.Since) || !q.Until.IsZero() && !r.Time.Before(q.Until) {
					continue
				}
				var c records.Change
				if err := json.Unmarshal(r.Body, &c); err != nil {
					return err
				}
				all = append(all, c)
			}
		}
		slices.SortFunc(all, func(a, b records.Change) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.ID, a.ID)) })
		if q.After != "" {
			if i := slices.IndexFunc(all, func(c records.Change) bool { return c.ID == q.After }); i >= 0 {
				all = all[i+1:]
			} else {
				all = nil
			}
		}
		all = all[:min(len(all), min(max(q.Limit, 1), 1000))]
		return nil
	})
	return all, err
}

// Shown implements records.Store.
func (s *Store) Shown(ctx context.Context, tenant string) (all []records.Shown, err error) {
	err = s.do(ctx, "Shown", func() error {
		by := map[string]*records.Shown{}
		of := func(name string) *records.Shown {
			if by[name] == nil {
				by[name] = &records.Shown{Head: records.Head{Tenant: name}}
			}
			return by[name]
		}
		for _, c := range s.chains {
			of(c.head.Tenant).Head = c.head
		}
		for _, x := range s.executions {
			if e := of(x.Tenant); x.Finished != nil {
				e.Ended++
			}
		}
		for _, e := range by {
			if tenant == "" || e.Tenant == tenant {
				all = append(all, *e)
			}
		}
		slices.SortFunc(all, func(a, b records.Shown) int { return strings.Compare(a.Tenant, b.Tenant) })
		return nil
	})
	return all, err
}

// Records implements records.Store.
func (s *Store) Records(ctx context.Context, tenant string, from uint64, limit int) (page []records.Record, err error) {
	err = s.do(ctx, "Records", func() error {
		c := s.chains[tenant]
		if c == nil {
			return nil
		}
		for _, r := range c.records {
			if r.Seq >= from && len(page) < limit {
				page = append(page, r)
			}
		}
		return nil
	})
	return page, err
}

// Execution implements records.Store.
func (s *Store) Execution(ctx context.Context, tenant, id string) (found *records.Execution, err error) {
	err = s.do(ctx, "Execution", func() error {
		x := s.executions[id]
		if x == nil || tenant != "" && x.Tenant != tenant {
			return records.ErrNotFound
		}
		found = copied(x)
		return nil
	})
	return found, err
}

func copied(x *records.Execution) *records.Execution {
	c := *x
	if x.Finished != nil {
		f := *x.Finished
		c.Finished = &f
	}
	return &c
}

// Executions implements records.Store.
func (s *Store) Executions(ctx context.Context, q records.Query) (page []*records.Execution, next string, err error) {
	err = s.do(ctx, "Executions", func() error {
		q.Limit, q.Session = min(max(q.Limit, 1), 1000), strings.ToLower(q.Session)
		after, err := parsePosition(q.Cursor)
		if err != nil {
			return err
		}
		var all []*records.Execution
		for _, x := range s.executions {
			if chosen(&q, x) && (q.Cursor == "" || newest(at(x), after) > 0) {
				all = append(all, copied(x))
			}
		}
		slices.SortFunc(all, func(a, b *records.Execution) int { return newest(at(a), at(b)) })
		page = all[:min(len(all), q.Limit)]
		if len(all) > q.Limit {
			next = at(page[q.Limit-1]).String()
		}
		return nil
	})
	return page, next, err
}

// position is where an execution stands in the order of all.
type position struct {
	Time int64
	ID   string
}

func at(x *records.Execution) position {
	return position{x.Started.Time.UnixMicro(), x.Started.ExecutionID}
}

// String is a cursor.
func (p position) String() string { return fmt.Sprintf("%020d.%s", p.Time, p.ID) }

func parsePosition(cursor string) (p position, err error) {
	if cursor == "" {
		return p, nil
	}
	if _, err := fmt.Sscanf(cursor, "%d.%36s", &p.Time, &p.ID); err != nil || p.String() != cursor || len(p.ID) != 36 {
		return p, &skill.Error{Op: "recordstest.Executions", Code: skill.InvalidArgument, Subject: "cursor", Message: "not a cursor"}
	}
	return p, nil
}

func newest(a, b position) int {
	return cmp.Or(cmp.Compare(b.Time, a.Time), strings.Compare(b.ID, a.ID))
}

func chosen(q *records.Query, x *records.Execution) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	code := ""
	if x.Finished != nil {
		code = string(x.Finished.Code)
	}
	return is(q.Tenant, x.Tenant) && is(q.Principal, x.Principal) && is(q.Skill, x.Skill) && is(string(q.Status), string(x.Status())) &&
		is(q.Code, code) && is(q.Session, x.Session) && is(q.TraceID, x.TraceID) &&
		(q.Since.IsZero() || !x.Started.Time.Before(q.Since)) && (q.Until.IsZero() || x.Started.Time.Before(q.Until))
}

// Alive implements records.Store.
func (s *Store) Alive(ctx context.Context, instance string) (now time.Time, err error) {
	now = time.Now() // which is of the bubble in a test that has one
	return now, s.do(ctx, "Alive", func() error {
		if s.instances == nil {
			s.instances = map[string]time.Time{}
		}
		s.instances[instance] = now
		return nil
	})
}

// Gone implements records.Store.
func (s *Store) Gone(ctx context.Context, instance string) error {
	return s.do(ctx, "Gone", func() error {
		delete(s.instances, instance)
		return nil
	})
}

// Orphans implements records.Store.
func (s *Store) Orphans(ctx context.Context, silent time.Duration, limit int) (orphans []*records.Started, err error) {
	since := time.Now().Add(-silent)
	err = s.do(ctx, "Orphans", func() error {
		var all []*records.Execution
		for _, x := range s.executions {
			if seen, alive := s.instances[x.Instance]; x.Finished == nil && (!alive || seen.Before(since)) {
				all = append(all, x)
			}
		}
		slices.SortFunc(all, func(a, b *records.Execution) int { return newest(at(b), at(a)) })
		for _, x := range all[:min(len(all), limit)] {
			started := x.Started
			orphans = append(orphans, &started)
		}
		return nil
	})
	return orphans, err
}

// Prune implements records.Store.
func (s *Store) Prune(ctx context.Context, tenant string, before time.Time, limit int) (n int, err error) {
	err = s.do(ctx, "Prune", func() error {
		c := s.chains[tenant]
		if c == nil {
			return nil
		}
		for n < min(limit, len(c.records)) {
			r := &c.records[n]
			x := s.executions[r.ExecutionID]
			if !r.Time.Before(before) || x != nil && x.Finished == nil {
				break
			}
			n++
		}
		if n == 0 {
			return nil
		}
		last := c.records[n-1]
		for _, r := range c.records[:n] {
			if r.Kind == records.KindFinished {
				delete(s.executions, r.ExecutionID)
			}
		}
		c.records = slices.Delete(c.records, 0, n)
		c.head.First, c.head.Prev = last.Seq+1, last.Hash
		p := records.Pruned{Next: last.Seq + 1, Hash: last.Hash, Time: before.UTC().Truncate(time.Microsecond)}
		body, err := json.Marshal(&p)
		if err != nil {
			return err
		}
		s.append(&records.Entry{Record: records.Record{Tenant: tenant, Kind: records.KindPruned, Time: p.Time, Body: body}})
		return nil
	})
	return n, err
}
