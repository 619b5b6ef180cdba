package records_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/records"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// segments are the segments of all journals in a folder, in their order.
func segments(t *testing.T, dir string) []string {
	t.Helper()
	return musttest.Get(filepath.Glob(filepath.Join(dir, "*.journal")))(t)
}

// withJournal gives a Log a journal in a new folder.
func withJournal(t *testing.T, s records.Store) (l *records.Log, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "journal")
	return open(t, s, func(o *records.Options) { o.Journal, o.Wait = dir, time.Minute }), dir
}

// blocked has the database take nothing until free is called.
func blocked(t *testing.T, s *faulty) (free func()) {
	t.Helper()
	hold := make(chan struct{})
	free = sync.OnceFunc(func() { close(hold) })
	t.Cleanup(free)
	s.Before(func(_ context.Context, op string) error {
		if op == "Append" {
			<-hold
		}
		return nil
	})
	return free
}

// wholeCall puts a call on record.
func wholeCall(t *testing.T, l *records.Log, tenant string) *records.Started {
	t.Helper()
	c := call(tenant)
	wantCode(t, l.Started(t.Context(), c, []byte(`{"text":"hello"}`)), "")
	wantCode(t, l.Finished(t.Context(), c, success(), []byte(`{}`)), "")
	return c
}

// With a journal, a call does not wait for the database, but a query does. A host that stops deletes its journal.
func TestJournal(t *testing.T) {
	t.Parallel()
	s := newFaulty(t)
	l, dir := withJournal(t, s)
	free := blocked(t, s)
	c := wholeCall(t, l, "acme")
	wantStatus(t, s.Store, c.ExecutionID, "", "")
	if len(segments(t, dir)) != 1 {
		t.Fatalf("segments: %v", segments(t, dir))
	}
	if mode := musttest.Get(os.Stat(segments(t, dir)[0]))(t).Mode(); mode.Perm() != 0o600 {
		t.Errorf("a segment is %v", mode)
	}
	wantCode(t, l.Finished(t.Context(), c, success(), nil), skill.Internal) // it ends once
	time.AfterFunc(50*time.Millisecond, free)
	wantStatus(t, l.Store(), c.ExecutionID, records.Success, "")
	if list, _, err := l.Store().Executions(t.Context(), records.Query{Limit: 10}); err != nil || len(list) != 1 {
		t.Error(list, err)
	}
	running := call("acme")
	wantCode(t, l.Started(t.Context(), running, nil), "")
	musttest.Do(t, l.Close(t.Context()))
	wantStatus(t, s, running.ExecutionID, records.Terminated, skill.Cancelled)
	if left := musttest.Get(os.ReadDir(dir))(t); len(left) != 0 {
		t.Errorf("after the end the folder has %v", left)
	}
	wantWhole(t, s)
}

// Many calls at once, over several segments: each is on record once, and segments go.
func TestJournalOfManyCalls(t *testing.T) {
	t.Parallel()
	s := newFaulty(t)
	dir := t.TempDir()
	l := open(t, s, func(o *records.Options) {
		o.Journal, o.Policy, o.Sync, o.Wait, o.Segment = dir, records.KeepFull, true, time.Minute, 64<<10
	})
	input := []byte(`"` + strings.Repeat("x", 15_000) + `"`)
	var all sync.WaitGroup
	const callers, each = 8, 20
	for n := range callers {
		all.Go(func() {
			for range each {
				c := call(fmt.Sprint("tenant-", n%3))
				if err := errors.Join(l.Started(t.Context(), c, input), l.Finished(t.Context(), c, success(), input)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if all, err := l.Store().Shown(t.Context(), ""); err != nil || all[0].Ended+all[1].Ended+all[2].Ended != callers*each {
		t.Errorf("on record are %+v, %v", all, err)
	}
	eventually(t, func() error {
		if left := segments(t, dir); len(left) > 1 || len(left) == 1 && strings.HasSuffix(left[0], "-00000001.journal") {
			return fmt.Errorf("of many records, segments are left: %v", left)
		}
		return nil
	})
	wantWhole(t, s)
}

// leftover is the journal of a host that was killed before its database had any of it, after
// so many calls of acme and the beginning of one more.
func leftover(t *testing.T, calls int) (dir string, ended []*records.Started, running *records.Started) {
	t.Helper()
	s := newFaulty(t)
	l, live := withJournal(t, s)
	free := blocked(t, s)
	for range calls {
		ended = append(ended, wholeCall(t, l, "acme"))
	}
	running = call("acme")
	wantCode(t, l.Started(t.Context(), running, nil), "")
	dir = t.TempDir()
	for _, from := range segments(t, live) {
		musttest.Do(t, os.WriteFile(filepath.Join(dir, filepath.Base(from)), musttest.Get(os.ReadFile(from))(t), 0o600))
	}
	free()
	return dir, ended, running
}

// recovered opens a Log on the journals in a folder, and returns its store and its log lines.
func recovered(t *testing.T, dir string) (records.Store, string) {
	t.Helper()
	s := records.NewStore(storetest.SQLite(t))
	said := &musttest.Buffer{}
	open(t, s, func(o *records.Options) {
		o.Journal, o.Log, o.Batch = dir, slog.New(slog.NewTextHandler(said, nil)), 3
	})
	wantWhole(t, s)
	return s, said.String()
}

// What a host that was killed left is on record before the next one serves: once, also if that one is
// killed in the middle of it.
func TestJournalOfKilledHost(t *testing.T) {
	t.Parallel()
	dir, ended, running := leftover(t, 5)
	again := t.TempDir()
	musttest.Do(t, os.CopyFS(again, os.DirFS(dir)))
	s := records.NewStore(storetest.SQLite(t))
	for n, folder := range []string{dir, again} {
		said := &musttest.Buffer{}
		l := open(t, s, func(o *records.Options) { o.Journal, o.Log = folder, slog.New(slog.NewTextHandler(said, nil)) })
		for _, c := range ended {
			wantStatus(t, s, c.ExecutionID, records.Success, "")
			if e := musttest.Get(s.Execution(t.Context(), "acme", c.ExecutionID))(t); e.Input.Bytes != 16 || e.Instance != c.Instance || !e.Started.Time.Equal(c.Time) {
				t.Errorf("on record is %+v", e)
			}
		}
		wantStatus(t, s, running.ExecutionID, records.Terminated, skill.WorkerCrashed)
		if want := []string{"records=11 new=11", ""}[n]; !strings.Contains(said.String(), want) || strings.Contains(said.String(), "damaged") {
			t.Errorf("want %q, it says %s", want, said.String())
		}
		wholeCall(t, l, "acme")
		musttest.Do(t, l.Close(t.Context()))
		if left := musttest.Get(os.ReadDir(folder))(t); len(left) != 1 || left[0].Name() != "recovery" {
			t.Errorf("after the end the folder has %v", left)
		}
	}
	wantWhole(t, s)
}

// The journal of a host that lives is left alone.
func TestJournalOfLiveHost(t *testing.T) {
	t.Parallel()
	s := newFaulty(t)
	l, dir := withJournal(t, s)
	wholeCall(t, l, "acme")
	other := open(t, s, func(o *records.Options) { o.Journal = dir })
	wholeCall(t, other, "acme")
	if left := segments(t, dir); len(left) != 2 {
		t.Errorf("segments: %v", left)
	}
	wantWhole(t, s)
}

// What is torn, changed or missing in a journal is named, and all else is on record.
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	const head, record = 20 + 8 + 32, 12 + 32
	// at gives the offset of a record.
	at := func(data []byte, n int) int {
		at := head
		for range n {
			at += record + int(binary.BigEndian.Uint32(data[at:]))
		}
		return at
	}
	for name, c := range map[string]struct {
		damage func(data []byte) []byte
		says   string // "": it is not damage
		lost   []int  // of the records: 2n is the beginning of call n, 2n+1 its end
	}{
		"torn":           {func(d []byte) []byte { return d[:len(d)-3] }, "", []int{10}},
		"torn length":    {func(d []byte) []byte { return d[:at(d, 10)+2] }, "", []int{10}},
		"torn head":      {func(d []byte) []byte { return d[:20] }, "", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		"changed":        {func(d []byte) []byte { d[at(d, 4)+record+60] ^= 1; return d }, "a record is changed", []int{4, 5}},
		"changed end":    {func(d []byte) []byte { d[at(d, 3)+record+60] ^= 1; return d }, "a record is changed", []int{3}},
		"changed hash":   {func(d []byte) []byte { d[at(d, 5)+12] ^= 1; return d }, "records before this one are missing or changed", nil},
		"changed length": {func(d []byte) []byte { d[at(d, 8)] ^= 0x80; return d }, "the length of a record is wrong", []int{8, 9}},
		"longer":         {func(d []byte) []byte { d[at(d, 8)+2] ^= 0x40; return d }, "the length of a record is wrong", []int{8, 9}},
		"shorter":        {func(d []byte) []byte { d[at(d, 0)+3] ^= 1; return d }, "the length of a record is wrong", []int{0, 1}},
		"changed magic":  {func(d []byte) []byte { d[3] ^= 1; return d }, "its head is missing", nil},
		"cut out":        {func(d []byte) []byte { return slices.Delete(d, at(d, 2), at(d, 4)) }, "records before this one are missing or changed", []int{2, 3}},
		"zeros behind":   {func(d []byte) []byte { return append(d, make([]byte, 500)...) }, "the length of a record is wrong", nil},
		"not one of ours": {func(d []byte) []byte {
			return append(d, 0, 0, 0, 0)
		}, "", nil},
		"empty": {func([]byte) []byte { return nil }, "", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, ended, running := leftover(t, 5)
			file := segments(t, dir)[0]
			musttest.Do(t, os.WriteFile(file, c.damage(musttest.Get(os.ReadFile(file))(t)), 0o600))
			s, said := recovered(t, dir)
			if !strings.Contains(said, c.says) || strings.Contains(said, "damaged") != (c.says != "") {
				t.Errorf("want %q, it says %s", c.says, said)
			}
			if _, err := os.Stat(file + ".damaged"); (err == nil) != (c.says != "") {
				t.Errorf("the damaged segment is kept: %v", err)
			}
			for n, c2 := range append(ended, running) {
				want, code := records.Success, skill.Code("")
				switch {
				case slices.Contains(c.lost, 2*n):
					want = ""
				case slices.Contains(c.lost, 2*n+1), c2 == running:
					want, code = records.Terminated, skill.WorkerCrashed
				}
				wantStatus(t, s, c2.ExecutionID, want, code)
			}
		})
	}
}

// A segment that is missing between others is named.
func TestMissingSegment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		missing int
		says    string
	}{"middle": {1, "segments between 1 and 3 are missing"}, "first": {0, ""}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFaulty(t)
			live := t.TempDir()
			l := open(t, s, func(o *records.Options) { o.Journal, o.Policy, o.Segment = live, records.KeepFull, 20<<10 })
			free := blocked(t, s)
			input := []byte(`"` + strings.Repeat("x", 10<<10) + `"`)
			for range 5 {
				wantCode(t, l.Started(t.Context(), call("acme"), input), "")
			}
			dir := t.TempDir()
			all := segments(t, live)
			if len(all) != 3 {
				t.Fatalf("segments: %v", all)
			}
			for n, from := range all {
				if n != c.missing {
					musttest.Do(t, os.WriteFile(filepath.Join(dir, filepath.Base(from)), musttest.Get(os.ReadFile(from))(t), 0o600))
				}
			}
			free()
			next, said := recovered(t, dir)
			if !strings.Contains(said, c.says) || strings.Contains(said, "damaged") != (c.says != "") {
				t.Errorf("want %q, it says %s", c.says, said)
			}
			if list, _, err := next.Executions(t.Context(), records.Query{Limit: 10}); err != nil || len(list) != 3 {
				t.Error(len(list), err)
			}
		})
	}
}

// Without room for a journal, calls wait for the database.
func TestNoRoomForJournal(t *testing.T) {
	t.Parallel()
	s := newFaulty(t)
	file := filepath.Join(t.TempDir(), "file")
	l, err := records.Open(t.Context(), records.Options{Store: s, Journal: file, Log: slog.New(slog.DiscardHandler)})
	musttest.Do(t, err)
	musttest.Do(t, os.WriteFile(file, nil, 0o600))
	c := wholeCall(t, l, "acme")
	wantStatus(t, s.Store, c.ExecutionID, records.Success, "")
	musttest.Do(t, l.Close(t.Context()))
}

// A host that others may have for dead waits for the database, which can have another end
// of its calls.
func TestJournalNeedsHeartbeats(t *testing.T) {
	t.Parallel()
	s := newFaulty(t)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := open(t, s, func(o *records.Options) { o.Journal = dir })
		c, late := call("acme"), call("acme")
		wantCode(t, l.Started(t.Context(), c, nil), "")
		wantCode(t, l.Started(t.Context(), late, nil), "")
		musttest.Get(l.Store().Execution(t.Context(), "acme", late.ExecutionID))(t)
		var frozen atomic.Bool
		frozen.Store(true)
		s.Before(func(_ context.Context, op string) error {
			if op == "Alive" && frozen.Load() {
				return errors.New("the process is frozen")
			}
			return nil
		})
		time.Sleep(4 * time.Second)
		wantCode(t, l.Finished(t.Context(), c, success(), nil), "")
		wantStatus(t, s.Store, c.ExecutionID, records.Running, "") // the journal has it
		time.Sleep(12 * time.Second)
		other := open(t, s.Store, func(o *records.Options) { o.Instance = "other" })
		time.Sleep(20 * time.Second)
		wantStatus(t, s.Store, late.ExecutionID, records.Terminated, skill.WorkerCrashed)
		wantCode(t, l.Finished(t.Context(), late, success(), nil), skill.AuditUnavailable)
		musttest.Do(t, other.Close(t.Context()))
		frozen.Store(false)
		time.Sleep(6 * time.Second)
		wholeCall(t, l, "acme")
		wantWhole(t, s)
	})
}

// A tenant without room is refused, after what the journal had; with room again it may go on.
func TestJournalOfFullTenant(t *testing.T) {
	t.Parallel()
	s := newFaulty(t)
	l, _ := withJournal(t, s)
	wholeCall(t, l, "acme")
	musttest.Get(l.Store().Tenants(t.Context()))(t)
	s.Fill("acme")
	before := wholeCall(t, l, "acme") // the host does not know it yet
	wantStatus(t, l.Store(), before.ExecutionID, records.Success, "")
	for range 3 {
		wantCode(t, l.Started(t.Context(), call("acme"), nil), skill.RateLimited)
	}
	wholeCall(t, l, "other")
	s.exec("UPDATE audit_heads SET bytes = 1000 WHERE tenant = 'acme'")
	for range 3 {
		wholeCall(t, l, "acme")
	}
	wantWhole(t, l.Store())
}

// A database that is away for a while costs no call its record: what began is answered, and what
// begins later is refused.
func TestJournalOutlivesOutages(t *testing.T) {
	t.Parallel()
	s := newFaulty(t)
	dir := t.TempDir()
	l := open(t, s, func(o *records.Options) { o.Journal, o.Wait = dir, 300*time.Millisecond })
	running := call("acme")
	wantCode(t, l.Started(t.Context(), running, nil), "")
	s.Before(func(context.Context, string) error { return errors.New("gone") })
	var ended []*records.Started
	eventually(t, func() error {
		c := call("acme")
		if err := l.Started(t.Context(), c, nil); err != nil {
			wantCode(t, err, skill.AuditUnavailable)
			return nil
		}
		wantCode(t, l.Finished(t.Context(), c, success(), nil), "")
		ended = append(ended, c)
		return errors.New("calls begin")
	})
	wantCode(t, l.Finished(t.Context(), running, success(), nil), "")
	if _, err := l.Store().Execution(t.Context(), "acme", running.ExecutionID); skill.CodeOf(err) != skill.AuditUnavailable {
		t.Errorf("the query fails with %v", err)
	}
	s.Before(nil)
	eventually(t, func() error { return l.Started(t.Context(), call("acme"), nil) })
	for _, c := range append(ended, running) {
		wantStatus(t, l.Store(), c.ExecutionID, records.Success, "")
	}
	wantWhole(t, s)
}

// While another host holds the chain of a tenant now and then, each end comes after its beginning.
func TestJournalOfHeldTenant(t *testing.T) {
	t.Parallel()
	s := newFaulty(t)
	l, _ := withJournal(t, s)
	done := make(chan struct{})
	var callers, holder sync.WaitGroup
	holder.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				s.Hold("")
				return
			case <-time.After(3 * time.Millisecond):
				s.Hold([]string{"acme", ""}[n%2])
			}
		}
	})
	for n := range 4 {
		callers.Go(func() {
			for range 100 {
				c := call([]string{"acme", "other"}[n%2])
				eventually(t, func() error { return l.Started(t.Context(), c, nil) }) // too many may wait
				wantCode(t, l.Finished(t.Context(), c, success(), nil), "")
			}
		})
	}
	callers.Wait()
	close(done)
	holder.Wait()
	musttest.Do(t, l.Close(t.Context()))
	for _, tenant := range []string{"acme", "other"} {
		begun, ended := map[string]bool{}, 0
		for _, r := range musttest.Get(s.Records(t.Context(), tenant, 0, 1000))(t) {
			switch {
			case r.Kind == records.KindStarted:
				begun[r.ExecutionID] = true
			case !begun[r.ExecutionID]:
				t.Errorf("%s ends before it begins", r.ExecutionID)
			default:
				ended++
			}
		}
		if ended != 200 {
			t.Errorf("%d calls of %s ended", ended, tenant)
		}
	}
	wantWhole(t, s)
}

// A record that the database refuses, of a call that runs, is kept without what strangers wrote.
func TestJournaledRecordIsRefused(t *testing.T) {
	t.Parallel()
	s := newFaulty(t)
	dir := t.TempDir()
	l := open(t, s, func(o *records.Options) { o.Journal, o.Policy = dir, records.KeepFull })
	s.exec(`CREATE TRIGGER no BEFORE INSERT ON audit_records WHEN instr(CAST(new.body AS TEXT), 'poison') BEGIN SELECT RAISE(ABORT, 'no'); END`)
	c, good := call("acme"), call("acme")
	for of, input := range map[*records.Started]string{c: `{"text":"poison"}`, good: `{"text":"hello"}`} {
		wantCode(t, l.Started(t.Context(), of, []byte(input)), "")
		wantCode(t, l.Finished(t.Context(), of, success(), []byte(input)), "")
	}
	for _, of := range []*records.Started{c, good} {
		e := musttest.Get(l.Store().Execution(t.Context(), "acme", of.ExecutionID))(t)
		if e.Status() != records.Success || (e.Input.JSON == nil) != (of == c) || e.Input.Truncated != (of == c) || (e.Finished.Output.JSON == nil) != (of == c) {
			t.Errorf("on record is %+v", e)
		}
	}
	wantWhole(t, s)
}
