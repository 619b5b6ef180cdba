package records_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// open makes a Log that is closed with the test.
func open(t *testing.T, s records.Store, change func(*records.Options)) *records.Log {
	t.Helper()
	o := records.Options{Store: s, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	l := musttest.Get(records.Open(t.Context(), o))(t)
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return l
}

var ids atomic.Uint64

// call is a call as the door puts it on record.
func call(tenant string) *records.Started {
	id := fmt.Sprintf("0198c2f0-0000-7000-8000-%012d", ids.Add(1))
	return &records.Started{
		ExecutionID: id, Tenant: tenant, Principal: "p", PrincipalType: skill.Agent, TraceID: "trace", Session: id,
		Skill: "echo", Version: "0.1.0", Digest: "sha256:00",
	}
}

func success() *records.Finished {
	return &records.Finished{Status: records.Success, Runner: skill.WasmWASI, Fuel: 7, DurationMS: 1}
}

// wantStatus looks how an execution stands on record; "" is not at all.
func wantStatus(t *testing.T, s records.Store, id string, want records.Status, code skill.Code) {
	t.Helper()
	e, err := s.Execution(context.Background(), "", id)
	switch {
	case errors.Is(err, records.ErrNotFound) && want == "":
	case err != nil:
		t.Errorf("%s: %v; want it %q", id, err, want)
	case e.Status() != want || e.Finished != nil && e.Finished.Code != code:
		t.Errorf("%s is %s %+v on record; want %q %s", id, e.Status(), e.Finished, want, code)
	}
}

func wantCode(t *testing.T, err error, want skill.Code) {
	t.Helper()
	if skill.CodeOf(err) != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

func wantWhole(t *testing.T, s records.Store) {
	t.Helper()
	r := musttest.Get(records.Verify(context.Background(), s, records.VerifyOptions{Rows: true}))(t)
	for _, c := range r.Chains {
		if c.Fault != nil {
			t.Errorf("the chain of %s: %+v", c.Tenant, c.Fault)
		}
	}
}

func TestCallOnRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		l := open(t, s, func(o *records.Options) { o.Policy = records.KeepFull })
		c, f := call("acme"), success()
		wantCode(t, l.Started(t.Context(), c, []byte(`{"text": "hello"}`)), "")
		wantStatus(t, s, c.ExecutionID, records.Running, "")
		time.Sleep(1234567 * time.Nanosecond)
		wantCode(t, l.Finished(t.Context(), c, f, []byte(`{"echoed":"hello"}`)), "")
		wantStatus(t, s, c.ExecutionID, records.Success, "")
		e := musttest.Get(s.Execution(t.Context(), "acme", c.ExecutionID))(t)
		if e.Instance != l.Instance() || e.Instance == "" || string(e.Input.JSON) != `{"text": "hello"}` || e.Input.Bytes != 17 || len(e.Input.SHA256) != 64 {
			t.Errorf("on record is %+v", e.Started)
		}
		if string(e.Finished.Output.JSON) != `{"echoed":"hello"}` || e.Finished.Time.Sub(e.Started.Time) != 1234*time.Microsecond || e.Started.Time.Location() != time.UTC {
			t.Errorf("on record is %+v", e.Finished)
		}
		if c.Input.Bytes != 17 || f.Output.Bytes != 18 || f.ExecutionID != c.ExecutionID || c.Time.IsZero() || f.Time.IsZero() {
			t.Errorf("the caller is not told: %+v %+v", c, f)
		}
		// It ends once, and what never began does not end.
		wantCode(t, l.Finished(t.Context(), c, success(), nil), skill.Internal)
		wantCode(t, l.Finished(t.Context(), call("acme"), success(), nil), skill.Internal)
		wantWhole(t, s)
	})
}

// Calls that come together share a transaction, and one that comes alone waits for
// nothing but its own.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		const commit = time.Millisecond
		s.Before(func(_ context.Context, op string) error {
			if op == "Append" {
				time.Sleep(commit)
			}
			return nil
		})
		l := open(t, s, func(o *records.Options) { o.Batch = 50 })
		began := time.Now()
		c := call("alone")
		wantCode(t, l.Started(t.Context(), c, nil), "")
		wantCode(t, l.Finished(t.Context(), c, success(), nil), "")
		if took := time.Since(began); took != 2*commit {
			t.Errorf("a call alone waited %v for two commits of %v", took, commit)
		}
		began = time.Now()
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				c := call(fmt.Sprintf("t%d", i%3))
				if err := l.Started(t.Context(), c, nil); err != nil {
					t.Error(err)
				}
				if err := l.Finished(t.Context(), c, success(), nil); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took > 12*commit {
			t.Errorf("200 calls at once took %v with commits of %v", took, commit)
		}
		if n := s.Appends(); slices.Max(n) > 50 || len(n) > 14 {
			t.Errorf("the transactions had %v records; want at most 50, and few", n)
		}
		wantWhole(t, s)
	})
}

var errStore = errors.New("the store cannot")

// failing is a hook that lets all operations fail while it is set.
func failing(on *atomic.Bool, err error) func(context.Context, string) error {
	return func(context.Context, string) error {
		if on.Load() {
			return err
		}
		return nil
	}
}

func TestStoreFailsAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		var bad atomic.Bool
		var tried atomic.Int64
		s.Before(func(_ context.Context, op string) error {
			if bad.Load() && op == "Append" {
				tried.Add(1)
			}
			return failing(&bad, errStore)(nil, op)
		})
		l := open(t, s, nil)
		running := call("acme")
		wantCode(t, l.Started(t.Context(), running, nil), "")

		bad.Store(true)
		began := time.Now()
		refused := call("acme")
		wantCode(t, l.Started(t.Context(), refused, nil), skill.AuditUnavailable)
		for range 1000 {
			wantCode(t, l.Started(t.Context(), call("acme"), nil), skill.AuditUnavailable)
		}
		if took := time.Since(began); took != 0 || tried.Load() != 1 {
			t.Errorf("the refusals took %v and %d tries", took, tried.Load())
		}
		// What runs ends: its caller waits as long as is bearable, its record longer.
		wantCode(t, l.Finished(t.Context(), running, success(), []byte("x")), skill.AuditUnavailable)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("the caller of a call that ended waited %v", took)
		}
		time.Sleep(time.Hour)
		wantCode(t, l.Started(t.Context(), call("acme"), nil), skill.AuditUnavailable)

		bad.Store(false)
		time.Sleep(300 * time.Millisecond)
		wantStatus(t, s, running.ExecutionID, records.Success, "")
		wantStatus(t, s, refused.ExecutionID, "", "")
		c := call("acme")
		wantCode(t, l.Started(t.Context(), c, nil), "")
		wantCode(t, l.Finished(t.Context(), c, success(), nil), "")
		wantWhole(t, s)
	})
}

// A record that is written while its answer is lost, or comes too late, is of a call that
// was refused: it is ended on record.
func TestAnswerLost(t *testing.T) {
	for _, c := range []struct {
		name string
		hook func(s *faulty, on *atomic.Bool)
		took time.Duration
	}{
		{"lost", func(s *faulty, on *atomic.Bool) {
			s.After(func(_ context.Context, op string) error {
				if on.Load() && op != "Execution" {
					return errStore
				}
				return nil
			})
		}, 0},
		{"late", func(s *faulty, on *atomic.Bool) {
			s.After(func(_ context.Context, op string) error {
				if on.Load() && op != "Execution" {
					time.Sleep(time.Minute) // whatever the context says
				}
				return nil
			})
		}, 2 * time.Second},
		{"ended", func(s *faulty, on *atomic.Bool) {
			s.After(func(ctx context.Context, op string) error {
				if on.Load() && op != "Execution" {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			})
		}, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFaulty(t)
				var bad atomic.Bool
				l := open(t, s, nil)
				c.hook(s, &bad)
				bad.Store(true)
				began := time.Now()
				refused := call("acme")
				wantCode(t, l.Started(t.Context(), refused, nil), skill.AuditUnavailable)
				if took := time.Since(began); took != c.took {
					t.Errorf("the refusal took %v, want %v", took, c.took)
				}
				wantCode(t, l.Started(t.Context(), call("acme"), nil), skill.AuditUnavailable)
				wantStatus(t, s, refused.ExecutionID, records.Running, "") // the worst case is what is tested
				bad.Store(false)
				time.Sleep(70 * time.Second)
				wantStatus(t, s, refused.ExecutionID, records.Terminated, skill.AuditUnavailable)
				next := call("acme")
				wantCode(t, l.Started(t.Context(), next, nil), "")
				wantCode(t, l.Finished(t.Context(), next, success(), nil), "")
				wantWhole(t, s)
			})
		})
	}
}

// Of several beginnings that were written together, and whose answer was lost, each is
// found to be on record when it is written again: the calls run. Where that cannot be told
// they are refused, and ended on record.
func TestAnswerOfManyLost(t *testing.T) {
	for name, told := range map[string]bool{"found": true, "in doubt": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFaulty(t)
				l := open(t, s, nil)
				var appends atomic.Int32
				var lost, away atomic.Bool
				s.Before(func(_ context.Context, op string) error {
					switch {
					case op == "Append" && appends.Add(1) == 1:
						time.Sleep(100 * time.Millisecond) // the others gather meanwhile
					case op == "Execution" && away.Load():
						return errStore
					}
					return nil
				})
				s.After(func(_ context.Context, op string) error {
					if op == "Append" && appends.Load() == 2 && lost.CompareAndSwap(false, true) {
						away.Store(!told)
						return errStore
					}
					return nil
				})
				first, rest := call("acme"), []*records.Started{call("acme"), call("acme"), call("acme"), call("acme")}
				var all sync.WaitGroup
				all.Go(func() { wantCode(t, l.Started(t.Context(), first, nil), "") })
				time.Sleep(time.Millisecond)
				for _, c := range rest {
					all.Go(func() {
						if told {
							wantCode(t, l.Started(t.Context(), c, nil), "")
						} else {
							wantCode(t, l.Started(t.Context(), c, nil), skill.AuditUnavailable)
						}
					})
				}
				all.Wait()
				if !lost.Load() {
					t.Fatal("no answer was lost")
				}
				away.Store(false)
				if !told {
					time.Sleep(20 * time.Second)
				}
				for _, c := range rest {
					if told {
						wantStatus(t, s, c.ExecutionID, records.Running, "")
						wantCode(t, l.Finished(t.Context(), c, success(), nil), "")
						wantStatus(t, s, c.ExecutionID, records.Success, "")
					} else {
						wantStatus(t, s, c.ExecutionID, records.Terminated, skill.AuditUnavailable)
					}
				}
				wantCode(t, l.Finished(t.Context(), first, success(), nil), "")
				wantWhole(t, s)
			})
		})
	}
}

// A transaction whose answer was lost may come to be on record some time later.
func TestWrittenAfterItWasLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		var bad atomic.Bool
		s.Before(failing(&bad, errStore))
		l := open(t, s, nil)
		bad.Store(true)
		refused := call("acme")
		wantCode(t, l.Started(t.Context(), refused, nil), skill.AuditUnavailable)
		bad.Store(false)
		time.Sleep(20 * time.Second)
		kept := *refused
		if err := s.Append(t.Context(), []*records.Entry{{
			Record:  records.Record{Tenant: "acme", Kind: records.KindStarted, ExecutionID: kept.ExecutionID, Time: kept.Time, Body: body(t, &kept)},
			Started: &kept,
		}}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, s, refused.ExecutionID, records.Running, "")
		time.Sleep(6 * time.Second)
		wantStatus(t, s, refused.ExecutionID, records.Terminated, skill.AuditUnavailable)
		wantWhole(t, s)
	})
}

// The caller leaves while the record is written.
func TestCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		l := open(t, s, nil)
		s.Before(func(_ context.Context, op string) error {
			if op == "Append" {
				time.Sleep(time.Second)
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		left := call("acme")
		wantCode(t, l.Started(ctx, left, nil), skill.Cancelled)
		waiting := call("acme") // behind it, and its caller leaves too: it is never written
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		wantCode(t, l.Started(ctx, waiting, nil), skill.Cancelled)
		c := call("acme") // nobody else is touched
		wantCode(t, l.Started(t.Context(), c, nil), "")
		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		wantCode(t, l.Finished(ctx, c, success(), nil), "") // an end is on record whoever left
		time.Sleep(3 * time.Second)
		wantStatus(t, s, left.ExecutionID, records.Terminated, skill.AuditUnavailable)
		wantStatus(t, s, waiting.ExecutionID, "", "")
		wantStatus(t, s, c.ExecutionID, records.Success, "")
		wantWhole(t, s)
	})
}

// What waits is bounded, and so is what runs; beyond that calls are refused at once.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		l := open(t, s, func(o *records.Options) { o.Queue, o.Open, o.Batch = 8, 20, 4 })
		var slow atomic.Bool
		s.Before(func(_ context.Context, op string) error {
			if op == "Append" && slow.Load() {
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		})
		slow.Store(true)
		var began, refused atomic.Int64
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				start := time.Now()
				if err := l.Started(t.Context(), call("acme"), nil); err == nil {
					began.Add(1)
				} else if refused.Add(1); time.Since(start) != 0 || skill.CodeOf(err) != skill.AuditUnavailable {
					t.Errorf("refused after %v: %v", time.Since(start), err)
				}
			})
		}
		all.Wait()
		// One batch is being written, whatever was in it when it began, and eight wait.
		if n := began.Load(); n < 8 || n > 12 || n+refused.Load() != 100 {
			t.Errorf("%d calls began, %d were refused", n, refused.Load())
		}
		slow.Store(false)
		for began.Load() < 20 {
			wantCode(t, l.Started(t.Context(), call("acme"), nil), "")
			began.Add(1)
		}
		wantCode(t, l.Started(t.Context(), call("acme"), nil), skill.AuditUnavailable)
		again := call("acme")
		again.ExecutionID = strings.Repeat("0", 36)
		wantCode(t, l.Started(t.Context(), again, nil), skill.AuditUnavailable)
	})
}

// picky refuses records by what they say.
type picky struct {
	*faulty
	refuse func(e *records.Entry) bool
}

func (p *picky) Append(ctx context.Context, entries []*records.Entry) error {
	if slices.ContainsFunc(entries, p.refuse) {
		return errStore
	}
	return p.Store.Append(ctx, entries)
}

// A record that the database will not have costs no other call its record, and keeps
// nothing from being written for ever.
func TestRecordThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := func(e *records.Entry) bool {
			return e.Started != nil && e.Started.Skill == "bad" || e.Finished != nil && e.Finished.Message != ""
		}
		s := &picky{newFaulty(t), bad}
		s.Before(func(_ context.Context, op string) error {
			if op == "Append" {
				time.Sleep(time.Millisecond)
			}
			return nil
		})
		l := open(t, s, func(o *records.Options) { o.Policy = records.KeepFull })
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				c, f := call("acme"), success()
				if i == 50 {
					c.Skill = "bad"
					wantCode(t, l.Started(t.Context(), c, nil), skill.AuditUnavailable)
					wantStatus(t, s, c.ExecutionID, "", "")
					return
				}
				if i == 70 {
					f.Status, f.Code, f.Message = records.Failed, skill.ToolInvocationError, "what a guest said"
				}
				wantCode(t, l.Started(t.Context(), c, nil), "")
				wantCode(t, l.Finished(t.Context(), c, f, []byte(`{"a":1}`)), "")
				wantStatus(t, s, c.ExecutionID, f.Status, f.Code)
			})
		}
		all.Wait()
		wantWhole(t, s)
	})
}

// While the store is away ends are kept in memory, which is bounded: beyond it they are
// kept without what guests wrote.
func TestEndsAreKeptInBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		var bad atomic.Bool
		s.Before(failing(&bad, errStore))
		const size = 1 << 20
		l := open(t, s, func(o *records.Options) { o.Policy, o.MaxPayload = records.KeepFull, size })
		var calls []*records.Started
		for range 75 {
			c := call("acme")
			wantCode(t, l.Started(t.Context(), c, nil), "")
			calls = append(calls, c)
		}
		bad.Store(true)
		large := []byte(`"` + strings.Repeat("x", size-2) + `"`)
		var all sync.WaitGroup
		for _, c := range calls {
			all.Go(func() { wantCode(t, l.Finished(t.Context(), c, success(), large), skill.AuditUnavailable) })
		}
		all.Wait()
		bad.Store(false)
		time.Sleep(300 * time.Millisecond)
		whole, short := 0, 0
		for _, c := range calls {
			e, err := s.Execution(t.Context(), "acme", c.ExecutionID)
			if err != nil || e.Status() != records.Success || e.Finished.Output.Bytes != size || e.Finished.Output.SHA256 == "" {
				t.Fatalf("%+v, %v", e, err)
			}
			if out := e.Finished.Output; out.JSON != nil {
				whole++
			} else if short++; !out.Truncated {
				t.Error("an output is left out, and not said to be")
			}
		}
		if whole < 50 || short < 8 {
			t.Errorf("%d outputs whole, %d left out; want about 64 MiB of them", whole, short)
		}
		wantWhole(t, s)
	})
}
