package records_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"

	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// slowHeld is a store that waits for chains that are held, as PostgreSQL does.
type slowHeld struct{ *faulty }

func (s slowHeld) Append(ctx context.Context, entries []*records.Entry) error {
	if entries[0].Wait {
		time.Sleep(50 * time.Millisecond)
	}
	return s.faulty.Append(ctx, entries)
}

// A segment stays while a record of it waits for a chain that another host holds, and goes when the
// database has it.
func TestSegmentOfHeldChain(t *testing.T) {
	t.Parallel()
	s := newFaulty(t)
	dir := t.TempDir()
	l := open(t, slowHeld{s}, func(o *records.Options) {
		o.Journal, o.Policy, o.Segment, o.Wait = dir, records.KeepFull, 20<<10, time.Minute
	})
	wholeCall(t, l, "acme")
	musttest.Get(l.Store().Tenants(t.Context()))(t)
	s.Hold("acme")
	t.Cleanup(func() { s.Hold("") }) // before the Log is closed
	c := wholeCall(t, l, "acme")
	first := segments(t, dir)[0]
	input := []byte(`"` + strings.Repeat("x", 10_000) + `"`)
	for range 8 {
		o := call("other")
		wantCode(t, l.Started(t.Context(), o, input), "")
		wantCode(t, l.Finished(t.Context(), o, success(), nil), "")
		musttest.Get(l.Store().Execution(t.Context(), "other", o.ExecutionID))(t) // which waits for those of its tenant
	}
	time.Sleep(1500 * time.Millisecond) // it is looked at every second
	musttest.Get(os.Stat(first))(t)
	s.Hold("")
	wantStatus(t, l.Store(), c.ExecutionID, records.Success, "")
	eventually(t, func() error {
		wholeCall(t, l, "other")
		if _, err := os.Stat(first); err == nil {
			return errors.New("the segment is not deleted")
		}
		return nil
	})
	wantWhole(t, s)
}

// What a killed host left is there until the database has it, also of a tenant whose chain another host holds.
func TestJournalOfKilledHostIsHeld(t *testing.T) {
	t.Parallel()
	dir, ended, _ := leftover(t, 2)
	s := newFaulty(t)
	s.Hold("acme")
	time.AfterFunc(200*time.Millisecond, func() { s.Hold("") })
	open(t, s, func(o *records.Options) { o.Journal = dir })
	for _, c := range ended {
		wantStatus(t, s.Store, c.ExecutionID, records.Success, "")
	}
}

// While one process recovers records, another one waits, and ends no call whose end is on its way.
func TestRecoveryTakesTurns(t *testing.T) {
	t.Parallel()
	dir, ended, _ := leftover(t, 2)
	s := newFaulty(t)
	other := flock.New(filepath.Join(dir, "recovery"))
	musttest.Get(other.TryLock())(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := records.Open(ctx, records.Options{Store: s, Journal: dir})
	wantCode(t, err, skill.AuditUnavailable)
	wantStatus(t, s, ended[0].ExecutionID, "", "")
	musttest.Do(t, other.Close())
	open(t, s, func(o *records.Options) { o.Journal, o.Direct = dir, true })
	wantStatus(t, s, ended[0].ExecutionID, records.Success, "")
}

// A host that finds calls of one that is gone takes their ends from its journal, if that is in its folder.
func TestOrphansEndAsTheirJournalSays(t *testing.T) {
	t.Parallel()
	s := newFaulty(t)
	live, dir := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := open(t, s, func(o *records.Options) { o.Journal = live })
		ended, running := call("acme"), call("acme")
		wantCode(t, l.Started(t.Context(), ended, nil), "")
		wantCode(t, l.Started(t.Context(), running, nil), "")
		wantStatus(t, l.Store(), running.ExecutionID, records.Running, "")
		other := open(t, s.Store, func(o *records.Options) { o.Journal, o.Instance = dir, "other" })
		s.Before(func(context.Context, string) error { return errors.New("the process was killed") })
		wantCode(t, l.Finished(t.Context(), ended, success(), nil), "")
		for _, from := range segments(t, live) {
			musttest.Do(t, os.WriteFile(filepath.Join(dir, filepath.Base(from)), musttest.Get(os.ReadFile(from))(t), 0o600))
		}
		time.Sleep(time.Minute)
		wantStatus(t, s.Store, ended.ExecutionID, records.Success, "")
		wantStatus(t, s.Store, running.ExecutionID, records.Terminated, skill.WorkerCrashed)
		musttest.Do(t, other.Close(t.Context()))
		s.Before(nil)
	})
	wantWhole(t, s)
}

// What was removed for its age does not come back from a journal.
func TestJournalOfRemovedCalls(t *testing.T) {
	t.Parallel()
	dir, ended, _ := leftover(t, 2)
	s := newFaulty(t)
	open(t, s, func(o *records.Options) { o.Journal, o.Retention = dir, time.Nanosecond })
	for _, c := range ended {
		wantStatus(t, s, c.ExecutionID, "", "")
	}
	if left := segments(t, dir); len(left) != 0 {
		t.Errorf("segments are left: %v", left)
	}
}

// What no database takes goes into no journal.
func TestJournalTakesWhatTheDatabaseDoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := musttest.Get(records.Open(t.Context(), records.Options{Store: newFaulty(t), Journal: dir, Log: slog.New(slog.DiscardHandler)}))(t)
	if err := l.Started(t.Context(), call(strings.Repeat("a", 300)), nil); err == nil {
		t.Error("a tenant of 300 bytes is on record")
	}
	if left := segments(t, dir); len(left) != 0 {
		t.Errorf("segments: %v", left)
	}
	c := call("acme")
	wantCode(t, l.Started(t.Context(), c, nil), "")
	wantCode(t, l.Finished(t.Context(), c, success(), nil), "")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	musttest.Do(t, l.Close(ctx))
}
