package storetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"openskill/host/agent/conversations"
	"openskill/internal/musttest"
)

// Sessions holds a store of sessions to its contract. open gives a new, empty one for each
// call; another gives the same one as another process would open it.
func Sessions(t *testing.T, open func(t *testing.T) (store, another conversations.Sessions)) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, s, another conversations.Sessions){
		"what is kept is read": sessionsRoundTrip,
		"of one owner":         sessionsOwners,
		"one end":              sessionsEnd,
		"old ones go":          sessionsPrune,
		"many at once":         sessionsAtOnce,
		"hostile text":         sessionsHostile,
	} {
		t.Run(name, func(t *testing.T) {
			s, another := open(t)
			test(t, s, another)
		})
	}
}

// aSession is the nth, which began n minutes after day.
func aSession(n int) *conversations.Session {
	began := day.Add(time.Duration(n) * time.Minute)
	return &conversations.Session{
		ID: runID(n), Owner: acme, PrincipalType: "agent", Task: "count the files", Status: "running", CreatedAt: began, EndsBy: began.Add(time.Hour),
	}
}

func start(t *testing.T, s conversations.Sessions, all ...*conversations.Session) {
	t.Helper()
	for _, one := range all {
		musttest.Do(t, s.Begin(t.Context(), one))
	}
}

// finds holds that a session is as want, or not there where that is nil.
func finds(t *testing.T, s conversations.Sessions, o conversations.Owner, id string, want *conversations.Session) {
	t.Helper()
	got, err := s.Session(t.Context(), o, id)
	if want == nil {
		if !errors.Is(err, conversations.ErrNotFound) {
			t.Errorf("%q finds %+v, %v", o, got, err)
		}
		return
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%q: %v\n%s", o, err, diff)
	}
}

func sessionsRoundTrip(t *testing.T, s, another conversations.Sessions) {
	t.Helper()
	for i, kind := range []string{"human", "agent", "operator", "anonymous"} {
		one := aSession(i)
		one.PrincipalType, one.Status = kind, ""
		start(t, s, one)
		one.Status = "running"
		finds(t, another, acme, one.ID, one)
	}
	for i, status := range []string{"completed", "terminated", "timeout", "failed"} {
		ends := aSession(i)
		ends.PrincipalType = []string{"human", "agent", "operator", "anonymous"}[i]
		ends.Status, ends.Iterations, ends.Tokens, ends.DurationMS = status, 3, 8192, 60_000
		musttest.Do(t, another.End(t.Context(), ends))
		finds(t, s, acme, ends.ID, ends)
	}
	if err := another.Begin(t.Context(), aSession(1)); err == nil {
		t.Error("an id was taken twice")
	}
	finds(t, s, acme, runID(9), nil)
}

func sessionsOwners(t *testing.T, s, another conversations.Sessions) {
	t.Helper()
	one := aSession(1)
	start(t, s, one)
	for _, o := range []conversations.Owner{{}, {Tenant: "acme"}, {Principal: "key:ci"}, acme} {
		finds(t, another, o, one.ID, one)
	}
	for _, o := range []conversations.Owner{
		owner("other", ""), owner("other", "key:ci"), owner("acme", "key:other"), owner("ACME", ""), owner("acme ", ""), owner("acme\x00", ""), owner("%", ""),
		owner("acme", "key:ci\x00"), owner("acme", "%"),
	} {
		finds(t, another, o, one.ID, nil)
		theirs := *one
		theirs.Owner, theirs.Status = o, "failed"
		if err := another.End(t.Context(), &theirs); err != nil {
			t.Errorf("%q: %v", o, err)
		}
	}
	for _, id := range []string{"", "x", "\x00", "' OR 1=1", "{" + runID(1) + "}", "urn:uuid:" + runID(1)} {
		finds(t, another, acme, id, nil)
		other := *one
		other.ID, other.Status = id, "failed"
		if err := another.End(t.Context(), &other); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	finds(t, s, acme, one.ID, one)
	for _, o := range []conversations.Owner{{}, {Tenant: "acme"}, {Principal: "key:ci"}} {
		nobodys := aSession(2)
		nobodys.Owner = o
		if err := s.Begin(t.Context(), nobodys); err == nil {
			t.Errorf("%q owns something", o)
		}
	}
}

func sessionsEnd(t *testing.T, s, another conversations.Sessions) {
	t.Helper()
	one := aSession(1)
	start(t, s, one)
	end := func(status string, tokens int) error {
		ends := *one
		ends.Status, ends.Tokens = status, tokens
		return another.End(t.Context(), &ends)
	}
	for _, status := range []string{"running", "", "martian"} {
		if err := end(status, 1); err == nil {
			t.Errorf("it has ended as %q", status)
		}
	}
	finds(t, s, acme, one.ID, one)
	for i, status := range []string{"timeout", "completed", "failed"} {
		if err := end(status, i); err != nil {
			t.Error(err)
		}
	}
	one.Status = "timeout" // the first one counts
	finds(t, s, acme, one.ID, one)
	missing := aSession(2)
	missing.Status = "completed"
	if err := s.End(t.Context(), missing); err != nil {
		t.Errorf("one that is not there: %v", err)
	}
	finds(t, s, acme, missing.ID, nil)
}

func sessionsPrune(t *testing.T, s, another conversations.Sessions) {
	t.Helper()
	const number = 1100 // more than go at once
	for n := range number {
		start(t, s, aSession(n))
	}
	for _, step := range []struct{ before, want int }{{0, 0}, {number - 10, number - 10}, {number - 10, 0}} {
		if n, err := another.PruneSessions(t.Context(), aSession(step.before).CreatedAt); n != step.want || err != nil {
			t.Errorf("%d were removed, want %d; %v", n, step.want, err)
		}
	}
	finds(t, s, acme, runID(number-11), nil)
	finds(t, s, acme, runID(number-10), aSession(number-10))
}

func sessionsAtOnce(t *testing.T, s, another conversations.Sessions) {
	t.Helper()
	var all sync.WaitGroup
	for n := range 200 {
		to, from := s, another
		if n%2 == 1 {
			to, from = another, s
		}
		all.Go(func() {
			ctx, one := context.Background(), aSession(n)
			if err := to.Begin(ctx, one); err != nil {
				t.Error(err)
			}
			one.Status, one.Tokens = "completed", n
			if err := from.End(ctx, one); err != nil {
				t.Error(err)
			}
			if got, err := to.Session(ctx, acme, one.ID); err != nil || !cmp.Equal(one, got) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	all.Wait()
}

func sessionsHostile(t *testing.T, s, another conversations.Sessions) {
	t.Helper()
	for n, text := range []string{"'; DROP TABLE agent_sessions; --", "?", "$1", `\`, "☃\u202e"} {
		one := aSession(n)
		one.Task, one.Owner = text, owner(text, text)
		start(t, s, one)
		finds(t, another, one.Owner, one.ID, one)
	}
	one := aSession(50)
	one.Task = "a\x00b\xff" + strings.Repeat("é", 500)
	start(t, s, one)
	got, err := another.Session(t.Context(), acme, one.ID)
	if err != nil || !utf8.ValidString(got.Task) || !strings.HasPrefix(got.Task, "a") || utf8.RuneCountInString(got.Task) > 200 {
		t.Errorf("%+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Begin(ctx, aSession(60)); err == nil {
		t.Error("begun after the end of its context")
	}
	finds(t, another, acme, runID(60), nil)
}
