package approval_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"openskill/host/store/storetest"
	"openskill/internal/musttest"

	"github.com/google/go-cmp/cmp"

	"openskill/host/dispatch/approval"
	"openskill/host/store"
	"openskill/sdk/skill"
)

const (
	digestA = "sha256:aaaa"
	digestB = "sha256:bbbb"
)

var began = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

// clock is a time that tests set.
type clock struct{ now atomic.Pointer[time.Time] }

func newClock() *clock {
	c := &clock{}
	c.set(began)
	return c
}

func (c *clock) set(t time.Time)      { c.now.Store(&t) }
func (c *clock) Now() time.Time       { return *c.now.Load() }
func (c *clock) pass(d time.Duration) { c.set(c.Now().Add(d)) }

// open opens a store of the database in o.Dir, or of a new one, until the end of the test.
// Two stores of one folder are as those of two processes.
func open(t testing.TB, o approval.Options) *approval.Store {
	t.Helper()
	dir := o.Dir
	if dir == "" {
		dir = t.TempDir()
	}
	db := musttest.Get(store.Open(t.Context(), store.Options{StateDir: dir, Log: o.Log}))(t)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.DB = db
	s := musttest.Get(approval.Open(t.Context(), o))(t)
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), s.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func ask() approval.Ask {
	return approval.Ask{
		Skill: "unit-converter", Script: "scripts/convert.py", Digest: digestA, Tenant: "acme", Caller: "agent-1",
		Trust: skill.Trusted, Arguments: []string{"--value", "26.2"},
	}
}

// refusal is what Check answered; ok is false where the script may run.
type refusal struct {
	ID, State, Previous string
	Until               string
}

func check(t testing.TB, s *approval.Store, a approval.Ask) (refusal, bool) {
	t.Helper()
	err := s.Check(t.Context(), a)
	if err == nil {
		return refusal{}, false
	}
	var e *skill.Error
	if !errors.As(err, &e) || e.Code != skill.Forbidden {
		t.Fatalf("Check = %v", err)
	}
	text := func(key string) string { v, _ := e.Details[key].(string); return v }
	if text("reason") != "approval_required" || text("digest") != a.Digest || len(e.Message) > skill.MaxMessage {
		t.Fatalf("details %v, message %q", e.Details, e.Message)
	}
	if e.Message != skill.CleanText(e.Message, skill.MaxMessage) {
		t.Errorf("message %q", e.Message)
	}
	if !strings.Contains(e.Message, text("expires_at")) {
		t.Errorf("message %q does not say until when", e.Message)
	}
	return refusal{text("approval_id"), text("state"), text("previous_digest"), text("expires_at")}, true
}

// asks wants a refusal in a state.
func asks(t testing.TB, s *approval.Store, a approval.Ask, state string) refusal {
	t.Helper()
	r, refused := check(t, s, a)
	if !refused || r.State != state || r.ID == "" {
		t.Fatalf("Check = %+v, refused %v; want it %s", r, refused, state)
	}
	return r
}

func runs(t testing.TB, s *approval.Store, a approval.Ask) {
	t.Helper()
	if r, refused := check(t, s, a); refused {
		t.Fatalf("Check = %+v; want it to run", r)
	}
}

func decide(t testing.TB, s *approval.Store, id string, approve bool) approval.Approval {
	t.Helper()
	a, err := s.Decide(t.Context(), skill.Local(), id, approve)
	if err != nil {
		t.Fatalf("Decide(%v) = %v", approve, err)
	}
	return a
}

func conflict(t testing.TB, s *approval.Store, id string, approve bool) {
	t.Helper()
	if a, err := s.Decide(t.Context(), skill.Local(), id, approve); skill.CodeOf(err) != skill.Conflict {
		t.Errorf("Decide(%v) = %v, %v; want CONFLICT", approve, a.State, err)
	}
}

func get(t testing.TB, s *approval.Store, id string) approval.Approval {
	t.Helper()
	return musttest.Get(s.Get(t.Context(), skill.Local(), id))(t)
}

func TestNeverAsksNobody(t *testing.T) {
	for _, policy := range []approval.Policy{"", approval.Never} {
		s := open(t, approval.Options{Policy: policy})
		runs(t, s, ask())
		runs(t, s, approval.Ask{})
		if s.Policy() != approval.Never {
			t.Errorf("policy %q", s.Policy())
		}
	}
}

func TestOptions(t *testing.T) {
	if _, err := approval.Open(t.Context(), approval.Options{}); err == nil {
		t.Error("opened without rows")
	}
	if _, err := approval.Open(t.Context(), approval.Options{DB: storetest.SQLite(t), Policy: "sometimes"}); skill.CodeOf(err) != skill.InvalidArgument {
		t.Errorf("policy: %v", err)
	}
	for _, word := range []string{"never", "version", "call"} {
		if p, err := approval.ParsePolicy(word); err != nil || string(p) != word {
			t.Errorf("ParsePolicy(%s) = %s, %v", word, p, err)
		}
	}
	if _, err := approval.ParseState("maybe"); skill.CodeOf(err) != skill.InvalidArgument {
		t.Errorf("state: %v", err)
	}
}

// A skill asks once for each of its versions, whatever its scripts and arguments.
func TestByVersion(t *testing.T) {
	dir := t.TempDir()
	s := open(t, approval.Options{Dir: dir, Policy: approval.PerVersion, Now: newClock().Now})
	first := asks(t, s, ask(), "pending")
	if first.Until != "2026-11-22T08:15:00Z" || first.Previous != "" {
		t.Errorf("%+v", first)
	}
	other := ask()
	other.Script, other.Caller, other.Arguments = "scripts/other.py", "agent-2", nil
	if again := asks(t, s, other, "pending"); again.ID != first.ID {
		t.Errorf("another script of the version asks anew: %+v", again)
	}
	got := decide(t, s, first.ID, true)
	want := approval.Approval{
		ID: first.ID, State: approval.Approved, Policy: approval.PerVersion, Skill: "unit-converter", Script: "scripts/convert.py",
		Digest: digestA, Trust: skill.Trusted, Arguments: []string{"--value", "26.2"}, CallHash: got.CallHash,
		Tenant: "acme", Caller: "agent-1", AskedAt: began, DecidedBy: "local", DecidedAt: began,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for range 3 {
		runs(t, s, ask())
		runs(t, s, other)
	}
	if again := decide(t, s, first.ID, true); again.State != approval.Approved {
		t.Errorf("approved twice: %+v", again)
	}

	changed := ask()
	changed.Digest = digestB
	second := asks(t, s, changed, "pending")
	if second.ID == first.ID || second.Previous != digestA {
		t.Errorf("the changed skill: %+v", second)
	}
	runs(t, s, ask()) // the version that was approved still is
	decide(t, s, second.ID, true)
	runs(t, s, changed)
	if a := get(t, s, second.ID); a.Digest != digestB || a.PreviousDigest != digestA {
		t.Errorf("the approval shows not both digests: %+v", a)
	}

	foreign := ask()
	foreign.Tenant = "rival"
	if r := asks(t, s, foreign, "pending"); r.ID == first.ID {
		t.Errorf("another tenant's approval counts: %+v", r)
	}
}

// Every call asks, and an approval is used up by one that is the same in everything.
func TestByCall(t *testing.T) {
	clock := newClock()
	s := open(t, approval.Options{Policy: approval.PerCall, Now: clock.Now})
	first := asks(t, s, ask(), "pending")
	if again := asks(t, s, ask(), "pending"); again != first {
		t.Errorf("the same ask twice: %+v, %+v", first, again)
	}
	clock.pass(10 * time.Minute)
	if a := decide(t, s, first.ID, true); !a.ExpiresAt.Equal(began.Add(25 * time.Minute)) {
		t.Errorf("an approved call can be made until %v", a.ExpiresAt)
	}
	for name, change := range map[string]func(*approval.Ask){
		"argument":          func(a *approval.Ask) { a.Arguments[1] = "26.3" },
		"cut elsewhere":     func(a *approval.Ask) { a.Arguments = []string{"--value2", "6.2"} },
		"one more":          func(a *approval.Ask) { a.Arguments = append(a.Arguments, "") },
		"script":            func(a *approval.Ask) { a.Script = "scripts/other.py" },
		"standard input":    func(a *approval.Ask) { a.Input = []byte("x") },
		"caller":            func(a *approval.Ask) { a.Caller = "agent-2" },
		"tenant":            func(a *approval.Ask) { a.Tenant = "rival" },
		"digest":            func(a *approval.Ask) { a.Digest = digestB },
		"skill":             func(a *approval.Ask) { a.Skill = "other" },
		"input as argument": func(a *approval.Ask) { a.Input, a.Arguments = []byte("--value"), a.Arguments[1:] },
	} {
		a := ask()
		change(&a)
		if r := asks(t, s, a, "pending"); r.ID == first.ID {
			t.Errorf("another %s is the same call", name)
		}
	}
	runs(t, s, ask())
	if a := get(t, s, first.ID); a.State != approval.Used || !a.UsedAt.Equal(clock.Now()) {
		t.Errorf("afterwards: %+v", a)
	}
	conflict(t, s, first.ID, true)
	conflict(t, s, first.ID, false)
	if second := asks(t, s, ask(), "pending"); second.ID == first.ID {
		t.Error("an approval was used twice")
	}
}

func TestDenied(t *testing.T) {
	for _, policy := range []approval.Policy{approval.PerVersion, approval.PerCall} {
		t.Run(string(policy), func(t *testing.T) {
			clock := newClock()
			s := open(t, approval.Options{Policy: policy, Now: clock.Now, TTL: time.Hour})
			first := asks(t, s, ask(), "pending")
			clock.pass(time.Minute)
			decide(t, s, first.ID, false)
			decide(t, s, first.ID, false)
			conflict(t, s, first.ID, true)
			if r := asks(t, s, ask(), "denied"); r.ID != first.ID || r.Until != "2026-11-22T09:01:00Z" {
				t.Errorf("%+v", r)
			}
			clock.pass(time.Hour - time.Nanosecond)
			asks(t, s, ask(), "denied")
			clock.pass(time.Nanosecond)
			if r := asks(t, s, ask(), "pending"); r.ID == first.ID {
				t.Error("a denial is over and is asked again as the same")
			}
			if a := get(t, s, first.ID); a.State != approval.Denied {
				t.Errorf("the denial is now %s", a.State)
			}
		})
	}
}

// What is approved can be withdrawn.
func TestWithdrawn(t *testing.T) {
	for _, policy := range []approval.Policy{approval.PerVersion, approval.PerCall} {
		s := open(t, approval.Options{Policy: policy, Now: newClock().Now})
		id := asks(t, s, ask(), "pending").ID
		decide(t, s, id, true)
		decide(t, s, id, false)
		asks(t, s, ask(), "denied")
		conflict(t, s, id, true)
	}
}

// The moment of expiry belongs to what is expired.
func TestExpiry(t *testing.T) {
	for _, tc := range []struct {
		name  string
		after time.Duration
		open  bool
	}{{"before", 15*time.Minute - time.Millisecond, true}, {"at the moment", 15 * time.Minute, false}, {"after", time.Hour, false}} {
		t.Run(tc.name, func(t *testing.T) {
			clock := newClock()
			s := open(t, approval.Options{Policy: approval.PerVersion, Now: clock.Now})
			id := asks(t, s, ask(), "pending").ID
			clock.pass(tc.after)
			if tc.open {
				decide(t, s, id, true)
				clock.pass(24 * 365 * time.Hour)
				runs(t, s, ask())
				return
			}
			conflict(t, s, id, true)
			conflict(t, s, id, false)
			if a := get(t, s, id); a.State != approval.Expired {
				t.Errorf("it is %s", a.State)
			}
			if r := asks(t, s, ask(), "pending"); r.ID == id {
				t.Error("the expired ask is asked on")
			}
		})
		t.Run(tc.name+", approved", func(t *testing.T) {
			clock := newClock()
			s := open(t, approval.Options{Policy: approval.PerCall, Now: clock.Now})
			id := asks(t, s, ask(), "pending").ID
			decide(t, s, id, true)
			clock.pass(tc.after)
			if tc.open {
				runs(t, s, ask())
				return
			}
			asks(t, s, ask(), "pending")
			conflict(t, s, id, true)
			conflict(t, s, id, false)
		})
	}
}

func TestPages(t *testing.T) {
	s := open(t, approval.Options{Policy: approval.PerCall, Now: newClock().Now})
	var ids []string
	for i := range 7 {
		a := ask()
		a.Arguments = []string{strings.Repeat("x", i)}
		ids = append([]string{asks(t, s, a, "pending").ID}, ids...)
	}
	decide(t, s, ids[3], true)
	for _, state := range []approval.State{"", approval.Pending, approval.Approved, approval.Used} {
		var got, want []string
		for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
			page, next, err := s.ListState(t.Context(), skill.Local(), state, cursor, 2)
			if err != nil || len(page) > 2 || pages > 7 {
				t.Fatalf("page %d: %v, %v", pages, page, err)
			}
			for _, a := range page {
				got = append(got, a.ID)
			}
			cursor = next
		}
		for i, id := range ids {
			if state == "" || state == approval.Pending && i != 3 || state == approval.Approved && i == 3 {
				want = append(want, id)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", state, diff)
		}
	}
	for _, limit := range []int{-1, 0, 101} {
		if _, _, err := s.List(t.Context(), skill.Local(), "", limit); skill.CodeOf(err) != skill.InvalidArgument {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	if list, next, err := s.List(t.Context(), skill.Local(), "../../etc", 1); err != nil || len(list) > 0 || next != "" {
		t.Errorf("a cursor that comes before all: %v, %q, %v", list, next, err)
	}
}

// A tenant has so many pending asks; whoever asks more pushes out its own first.
func TestPendingAsksAreBounded(t *testing.T) {
	s := open(t, approval.Options{Policy: approval.PerCall, MaxPending: 5, Now: newClock().Now})
	one := func(tenant, caller, arg string) string {
		a := ask()
		a.Tenant, a.Caller, a.Arguments = tenant, caller, []string{arg}
		return asks(t, s, a, "pending").ID
	}
	foreign := one("rival", "agent-1", "")
	honest := one("acme", "honest", "")
	var flood []string
	for i := range 20 {
		flood = append(flood, one("acme", "flood", strings.Repeat("x", i)))
	}
	last := one("acme", "newcomer", "")
	if a := get(t, s, foreign); a.State != approval.Pending {
		t.Errorf("another tenant's ask is %s", a.State)
	}
	// The newcomer had none of its own, so the oldest of all went: the honest one's.
	want := map[string]approval.State{honest: approval.Expired, last: approval.Pending}
	for i, id := range flood {
		want[id] = approval.Expired
		if i >= 16 {
			want[id] = approval.Pending
		}
	}
	for id, state := range want {
		if a := get(t, s, id); a.State != state {
			t.Errorf("%s is %s, want %s", id, a.State, state)
		}
	}
	pending, _, err := s.ListState(t.Context(), skill.Principal{ID: "x", Tenant: "acme", Scopes: []string{skill.ScopeRead}}, approval.Pending, "", 100)
	if err != nil || len(pending) != 5 {
		t.Errorf("%d are pending, %v", len(pending), err)
	}
	conflict(t, s, honest, true)
}

func TestWhatIsKeptOfArguments(t *testing.T) {
	s := open(t, approval.Options{Policy: approval.PerCall})
	for _, tc := range []struct {
		name string
		args []string
		want []string
		cut  bool
	}{
		{"none", nil, []string{}, false},
		{"plain", []string{"--x", "é 1", "a=b"}, []string{"--x", "é 1", "a=b"}, false},
		{"hidden", []string{"a\nb", "\x1b[31mred", "a\u202eb", "", "\xff", `a\nb`, `"quoted"`, " space"}, []string{
			`"a\nb"`, `"\x1b[31mred"`, `"a\u202eb"`, `""`, `"\xff"`, `"a\\nb"`, `"\"quoted\""`, `" space"`,
		}, false},
		{"long", []string{strings.Repeat("é", 1000), "next"}, []string{strings.Repeat("é", 200) + "…", "next"}, true},
		{"many", strings.Split(strings.Repeat("x,", 100), ","), strings.Split(strings.Repeat("x,", 63)+"x", ","), true},
		{"many that are hidden", strings.Split(strings.Repeat(strings.Repeat("\x00", 400)+",", 9), ","), slices.Repeat([]string{`"` + strings.Repeat(`\x00`, 400) + `"`}, 5), true},
		{"a megabyte", []string{strings.Repeat("\x00", 1<<20)}, []string{`"` + strings.Repeat(`\x00`, 400) + `\u2026"`}, true},
	} {
		a := ask()
		a.Arguments = tc.args
		got := get(t, s, asks(t, s, a, "pending").ID)
		if diff := cmp.Diff(tc.want, got.Arguments); diff != "" || got.ArgumentsCut != tc.cut {
			t.Errorf("%s: cut %v, %s", tc.name, got.ArgumentsCut, diff)
		}
		if again := asks(t, s, a, "pending"); again.ID != got.ID {
			t.Errorf("%s: asked twice", tc.name)
		}
	}
}

// Many at once, through two stores of one folder, as two processes have.
func TestAtOnce(t *testing.T) {
	dir := t.TempDir()
	clock := newClock()
	stores := []*approval.Store{
		open(t, approval.Options{Dir: dir, Policy: approval.PerCall, Now: clock.Now}),
		open(t, approval.Options{Dir: dir, Policy: approval.PerCall, Now: clock.Now}),
	}
	const many = 8
	for round := range 10 {
		a := ask()
		a.Arguments = []string{strings.Repeat("x", round)}
		var ids sync.Map
		each(many, func(i int) {
			r, refused := check(t, stores[i%2], a)
			if !refused || r.State != "pending" {
				t.Errorf("%+v, %v", r, refused)
			}
			ids.Store(r.ID, true)
		})
		id := ""
		n := 0
		ids.Range(func(k, _ any) bool { n++; id, _ = k.(string); return true })
		if n != 1 {
			t.Fatalf("%d asks of one call", n)
		}

		var approved, denied atomic.Int32
		each(many, func(i int) {
			approve := i%4 < 2
			got, err := stores[i%2].Decide(context.Background(), skill.Local(), id, approve)
			switch {
			case err == nil && approve && got.State == approval.Approved:
				approved.Add(1)
			case err == nil && !approve && got.State == approval.Denied:
				denied.Add(1)
			case approve && skill.CodeOf(err) == skill.Conflict:
			default:
				t.Errorf("Decide(%v) = %s, %v", approve, got.State, err)
			}
		})
		// A denial is never lost, whoever came first.
		if denied.Load() != many/2 || get(t, stores[round%2], id).State != approval.Denied {
			t.Errorf("%d approved, %d denied, and it is %s", approved.Load(), denied.Load(), get(t, stores[0], id).State)
		}
		clock.pass(time.Hour)

		id = asks(t, stores[0], a, "pending").ID
		decide(t, stores[1], id, true)
		var ran atomic.Int32
		each(many, func(i int) {
			if _, refused := check(t, stores[i%2], a); !refused {
				ran.Add(1)
			}
		})
		if ran.Load() != 1 {
			t.Errorf("an approval was used %d times", ran.Load())
		}
		clock.pass(time.Hour)
	}
}

func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

func BenchmarkCheckApproved(b *testing.B) {
	s := open(b, approval.Options{Policy: approval.PerVersion})
	r, _ := check(b, s, ask())
	decide(b, s, r.ID, true)
	for b.Loop() {
		if err := s.Check(b.Context(), ask()); err != nil {
			b.Fatal(err)
		}
	}
}

// A decision that cannot be put on record is not made, and one that is made is on record
// once, with what it decided.
func TestDecisionsArePutOnRecord(t *testing.T) {
	var seen []approval.State
	var refuse error
	s := open(t, approval.Options{Policy: approval.PerVersion, Record: func(_ context.Context, by skill.Principal, a *approval.Approval, do func() error) error {
		if refuse != nil {
			return refuse
		}
		if by.ID == "" || a.Digest == "" {
			t.Errorf("by %+v: %+v", by, a)
		}
		seen = append(seen, a.State)
		return do()
	}})
	id := asks(t, s, ask(), "pending").ID
	refuse = &skill.Error{Code: skill.AuditUnavailable}
	if _, err := s.Decide(t.Context(), skill.Local(), id, true); skill.CodeOf(err) != skill.AuditUnavailable {
		t.Errorf("without a record: %v", err)
	}
	if a := get(t, s, id); a.State != approval.Pending {
		t.Errorf("it is %s", a.State)
	}
	refuse = nil
	decide(t, s, id, true)
	decide(t, s, id, true) // changes nothing
	decide(t, s, id, false)
	if !slices.Equal(seen, []approval.State{approval.Approved, approval.Denied}) {
		t.Errorf("on record: %v", seen)
	}
}
