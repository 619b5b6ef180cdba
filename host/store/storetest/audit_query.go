package storetest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// questions asks by each filter, and by several, and compares with what plain code finds.
func questions(t *testing.T, open func() records.Store) {
	t.Helper()
	s := open()
	var all []*records.Execution
	session := newID()
	statuses := []records.Status{records.Success, records.Failed, records.Terminated, records.TimedOut, records.Running}
	var batch []*records.Entry
	for i := range 60 {
		tenant := []string{"acme", "other"}[i%2]
		b := begun(tenant, noon.Add(time.Duration(i/4)*time.Second)) // some at the same time
		b.Principal = fmt.Sprint("p", i%3)
		b.Skill = fmt.Sprint("s", i%4)
		b.TraceID = fmt.Sprint("t", i%5)
		if i%6 < 2 {
			b.Session = session
		}
		e := &records.Execution{Started: *b}
		batch = append(batch, entryOf(b))
		if status := statuses[i%len(statuses)]; status != records.Running {
			e.Finished = over(b, status)
			if status == records.Failed {
				e.Finished.Code = skill.Trap
			}
			batch = append(batch, endOf(b, e.Finished))
		}
		all = append(all, e)
	}
	write(t, s, batch...)
	slices.SortFunc(all, func(a, b *records.Execution) int {
		if c := b.Started.Time.Compare(a.Started.Time); c != 0 {
			return c
		}
		return strings.Compare(b.ExecutionID, a.ExecutionID)
	})
	for _, tenant := range []string{"acme", "other", "nobody", ""} {
		for _, q := range []records.Query{
			{},
			{Principal: "p1"},
			{Skill: "s2"},
			{TraceID: "t3"},
			{Session: session},
			{Session: strings.ToUpper(session)},
			{Status: records.Success},
			{Status: records.Failed},
			{Status: records.Terminated},
			{Status: records.TimedOut},
			{Status: records.Running},
			{Status: "odd"},
			{Code: string(skill.Trap)},
			{Code: "NO_SUCH"},
			{Principal: "p9"},
			{Session: newID()},
			{Session: "not a UUID"},
			{Since: noon.Add(5 * time.Second)},
			{Until: noon.Add(5 * time.Second)},
			{Since: noon.Add(5*time.Second + 1), Until: noon.Add(9*time.Second + 1)},
			{Principal: "p1", Skill: "s1", TraceID: "t1"},
			{Principal: "p0", Status: records.Running},
			{Code: string(skill.Timeout), Status: records.TimedOut, Skill: "s3"},
			{Code: string(skill.Trap), Status: records.Running},
			{Session: session, Principal: "p0", Since: noon.Add(time.Second)},
		} {
			q.Tenant = tenant
			var want []string
			for _, e := range all {
				if chosen(e, &q) {
					want = append(want, e.ExecutionID)
				}
			}
			for _, limit := range []int{1, 4, 1000} {
				q.Limit, q.Cursor = limit, ""
				if got := walk(t, s, q, len(want)); !slices.Equal(got, want) {
					t.Errorf("%+v\ngot  %v\nwant %v", q, got, want)
				}
			}
		}
	}
}

// chosen says by plain code whether a question chooses an execution.
func chosen(e *records.Execution, q *records.Query) bool {
	code := ""
	if e.Finished != nil {
		code = string(e.Finished.Code)
	}
	is := func(asked, has string) bool { return asked == "" || asked == has }
	return is(q.Tenant, e.Tenant) && is(q.Principal, e.Principal) && is(q.Skill, e.Skill) && is(q.TraceID, e.TraceID) &&
		is(strings.ToLower(q.Session), e.Session) && is(string(q.Status), string(e.Status())) && is(q.Code, code) &&
		(q.Since.IsZero() || !e.Started.Time.Before(q.Since)) && (q.Until.IsZero() || e.Started.Time.Before(q.Until))
}

// walk reads all pages, of which none is too long and only the last one short.
func walk(t *testing.T, s records.Store, q records.Query, most int) (ids []string) {
	t.Helper()
	for range most + 2 {
		page, next, err := s.Executions(t.Context(), q)
		musttest.Do(t, err)
		if len(page) > q.Limit || next != "" && len(page) < q.Limit {
			t.Fatalf("%+v: a page of %d, then %q", q, len(page), next)
		}
		for _, e := range page {
			ids = append(ids, e.ExecutionID)
		}
		if next == "" {
			return ids
		}
		q.Cursor = next
	}
	t.Fatalf("%+v: the pages do not end", q)
	return nil
}

// pagesMeanwhile goes through pages while executions begin and end: each that was there at
// the start comes once, in order.
func pagesMeanwhile(t *testing.T, open func() records.Store) {
	t.Helper()
	s := open()
	var want []string
	var running []*records.Started
	for i := range 20 {
		b := begun("acme", noon.Add(-time.Duration(i)*time.Second))
		want = append(want, b.ExecutionID)
		if i%2 == 0 {
			write(t, s, entryOf(b))
			running = append(running, b)
			continue
		}
		ran(t, s, b, records.Success)
	}
	q := records.Query{Tenant: "acme", Limit: 3}
	var got []string
	for {
		page, next, err := s.Executions(t.Context(), q)
		musttest.Do(t, err)
		for _, e := range page {
			got = append(got, e.ExecutionID)
		}
		if next == "" {
			break
		}
		q.Cursor = next
		ran(t, s, begun("acme", noon.Add(time.Duration(len(got))*time.Second)), records.Success)
		if len(running) > 0 {
			last := running[len(running)-1]
			running = running[:len(running)-1]
			write(t, s, endOf(last, over(last, records.Failed)))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func cursorsOfNobody(t *testing.T, open func() records.Store) {
	t.Helper()
	s := open()
	for range 3 {
		ran(t, s, begun("acme", noon), records.Success)
	}
	_, good, err := s.Executions(t.Context(), records.Query{Tenant: "acme", Limit: 1})
	if err != nil || good == "" {
		t.Fatalf("%q, %v", good, err)
	}
	for _, cursor := range []string{
		"x", good[1:], good + "A", good + "\n", strings.Repeat("A", 1<<20), "' OR 1=1", "\x00", "////", strings.Repeat("_", len(good)),
		base64.RawURLEncoding.EncodeToString([]byte(strings.Repeat("\xff", 8) + newID())),
		base64.RawURLEncoding.EncodeToString([]byte("\x7f" + strings.Repeat("\xff", 7) + newID())),
	} {
		_, _, err := s.Executions(t.Context(), records.Query{Tenant: "acme", Limit: 1, Cursor: cursor})
		var told *skill.Error
		// One that happens to be well-formed is a place in the list, and nothing more.
		if err != nil && (!errors.As(err, &told) || told.Code != skill.InvalidArgument) {
			t.Errorf("%.50q: got %v, want %s", cursor, err, skill.InvalidArgument)
		}
		if err == nil && !strings.HasPrefix(cursor, "____") && len(cursor) != len(good) {
			t.Errorf("%.50q was taken", cursor)
		}
	}
	// A cursor of one tenant opens nothing to another.
	if all, _, err := s.Executions(t.Context(), records.Query{Tenant: "other", Limit: 9, Cursor: good}); err != nil || len(all) != 0 {
		t.Errorf("another tenant sees %d, %v", len(all), err)
	}
}
