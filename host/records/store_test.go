package records_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
)

// faulty is a store that fails, blocks, answers late or loses its answer, as a test tells it.
type faulty struct {
	records.Store
	db *store.DB
	t  testing.TB

	mu            sync.Mutex
	before, after func(ctx context.Context, op string) error
	appends       []int
	held          string
	changed       map[string]chain
}

// chain is one as Change left it: also what no primary key allows.
type chain struct {
	head    records.Head
	records []records.Record
}

func newFaulty(t testing.TB) *faulty {
	t.Helper()
	db := storetest.SQLite(t)
	return &faulty{Store: records.NewStore(db), db: db, t: t, changed: map[string]chain{}}
}

// Before has every operation call f first, and fail with its error without having done
// anything. nil: none.
func (s *faulty) Before(f func(ctx context.Context, op string) error) { s.hook(&s.before, f) }

// After has every operation call f last, and fail with its error although it did all. nil: none.
func (s *faulty) After(f func(ctx context.Context, op string) error) { s.hook(&s.after, f) }

func (s *faulty) hook(at *func(context.Context, string) error, f func(context.Context, string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*at = f
}

// Hold has another host hold the chain of a tenant; "": of none.
func (s *faulty) Hold(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = tenant
}

// Appends gives how many entries each Append brought that worked.
func (s *faulty) Appends() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.appends)
}

func (s *faulty) exec(statement string, args ...any) {
	s.t.Helper()
	musttest.Get(s.db.Exec(context.Background(), statement, args...))(s.t)
}

// Fill has the records of a tenant take as much as they may.
func (s *faulty) Fill(tenant string) {
	s.t.Helper()
	s.exec("UPDATE audit_heads SET bytes = $1 WHERE tenant = $2", s.db.Quota(store.AuditRecords).Bytes, tenant)
}

// Change lets f change the records of a tenant, as somebody does who has the database.
func (s *faulty) Change(tenant string, f func(h *records.Head, all []records.Record) []records.Record) {
	s.t.Helper()
	heads, err := s.Tenants(context.Background())
	i := slices.IndexFunc(heads, func(h records.Head) bool { return h.Tenant == tenant })
	if err != nil || i < 0 {
		s.t.Fatal(tenant, err)
	}
	all := musttest.Get(s.Records(context.Background(), tenant, 0, 1<<20))(s.t)
	c := chain{head: heads[i]}
	c.records = f(&c.head, all)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed[tenant] = c
}

// ChangeExecution lets f change an execution, as queries show it.
func (s *faulty) ChangeExecution(id string, f func(e *records.Execution)) {
	s.t.Helper()
	e := musttest.Get(s.Store.Execution(context.Background(), "", id))(s.t)
	for _, table := range []string{"execution_logs", "running_executions"} {
		s.exec("DELETE FROM "+table+" WHERE id = $1", id)
	}
	f(e)
	s.AddExecution(e)
}

// AddExecution lets queries show an execution that is not on record: it is appended, and its
// records are taken away.
func (s *faulty) AddExecution(e *records.Execution) {
	s.t.Helper()
	list := []*records.Entry{{Record: records.Record{Kind: records.KindStarted, Time: e.Started.Time}, Started: &e.Started}}
	if f := e.Finished; f != nil {
		f.ExecutionID = e.ExecutionID
		list = append(list, &records.Entry{Record: records.Record{Kind: records.KindFinished, Time: f.Time}, Finished: f, Of: &e.Started})
	}
	for _, one := range list {
		one.Tenant, one.ExecutionID, one.Body = e.Tenant, e.ExecutionID, []byte("{}")
	}
	var head records.Head
	row := s.db.Write.QueryRowContext(context.Background(), "SELECT last, last_hash, bytes FROM audit_heads WHERE tenant = $1", e.Tenant)
	if err := row.Scan(&head.Last, &head.LastHash, &head.Bytes); err != nil && !errors.Is(err, sql.ErrNoRows) {
		s.t.Fatal(err)
	}
	if len(list) == 1 {
		list[0].Body = started(s.t, &e.Started)
	}
	if err := s.Store.Append(context.Background(), list); err != nil || list[0].Seq == 0 {
		s.t.Fatal(list[0].Left, err)
	}
	s.exec("DELETE FROM audit_records WHERE tenant = $1 AND seq > $2", e.Tenant, int64(head.Last))
	if head.Last == 0 {
		s.exec("DELETE FROM audit_heads WHERE tenant = $1", e.Tenant)
	}
	s.exec("UPDATE audit_heads SET last = $1, last_hash = $2, bytes = $3 WHERE tenant = $4", int64(head.Last), head.LastHash, head.Bytes, e.Tenant)
}

func started(t testing.TB, s *records.Started) []byte {
	t.Helper()
	return musttest.Get(json.Marshal(s))(t)
}

// do runs an operation between the two hooks.
func (s *faulty) do(ctx context.Context, op string, f func() error) error {
	s.mu.Lock()
	before, after := s.before, s.after
	s.mu.Unlock()
	if before != nil {
		if err := before(ctx, op); err != nil {
			return err
		}
	}
	err := ctx.Err()
	if err == nil {
		err = f()
	}
	if err == nil && after != nil {
		err = after(ctx, op)
	}
	return err
}

func (s *faulty) Append(ctx context.Context, entries []*records.Entry) error {
	return s.do(ctx, "Append", func() error {
		s.mu.Lock()
		s.appends = append(s.appends, len(entries))
		held := s.held
		s.mu.Unlock()
		free := make([]*records.Entry, 0, len(entries))
		for _, e := range entries {
			if e.Seq, e.Left = 0, nil; held != "" && e.Tenant == held {
				e.Left = records.ErrHeld
				continue
			}
			free = append(free, e)
		}
		return s.Store.Append(ctx, free)
	})
}

func (s *faulty) Tenants(ctx context.Context) (heads []records.Head, err error) {
	err = s.do(ctx, "Tenants", func() (err error) {
		heads, err = s.Store.Tenants(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, h := range heads {
			if c, ok := s.changed[h.Tenant]; ok {
				heads[i] = c.head
			}
		}
		return err
	})
	return heads, err
}

func (s *faulty) Shown(ctx context.Context, tenant string) (all []records.Shown, err error) {
	err = s.do(ctx, "Shown", func() (err error) {
		all, err = s.Store.Shown(ctx, tenant)
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, h := range all {
			if c, ok := s.changed[h.Tenant]; ok {
				all[i].Head = c.head
			}
		}
		return err
	})
	return all, err
}

func (s *faulty) Records(ctx context.Context, tenant string, from uint64, limit int) (page []records.Record, err error) {
	err = s.do(ctx, "Records", func() (err error) {
		s.mu.Lock()
		c, ok := s.changed[tenant]
		s.mu.Unlock()
		if !ok {
			page, err = s.Store.Records(ctx, tenant, from, limit)
			return err
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

func (s *faulty) Execution(ctx context.Context, tenant, id string) (e *records.Execution, err error) {
	err = s.do(ctx, "Execution", func() (err error) {
		e, err = s.Store.Execution(ctx, tenant, id)
		return err
	})
	return e, err
}

func (s *faulty) Executions(ctx context.Context, q records.Query) (page []*records.Execution, next string, err error) {
	err = s.do(ctx, "Executions", func() (err error) {
		page, next, err = s.Store.Executions(ctx, q)
		return err
	})
	return page, next, err
}

func (s *faulty) Alive(ctx context.Context, instance string) (now time.Time, err error) {
	err = s.do(ctx, "Alive", func() (err error) {
		now, err = s.Store.Alive(ctx, instance)
		return err
	})
	return now, err
}

func (s *faulty) Gone(ctx context.Context, instance string) error {
	return s.do(ctx, "Gone", func() error { return s.Store.Gone(ctx, instance) })
}

func (s *faulty) Orphans(ctx context.Context, silent time.Duration, limit int) (list []*records.Started, err error) {
	err = s.do(ctx, "Orphans", func() (err error) {
		list, err = s.Store.Orphans(ctx, silent, limit)
		return err
	})
	return list, err
}

func (s *faulty) Prune(ctx context.Context, tenant string, before time.Time, limit int) (n int, err error) {
	err = s.do(ctx, "Prune", func() (err error) {
		n, err = s.Store.Prune(ctx, tenant, before, limit)
		return err
	})
	return n, err
}
