package table

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// item is idle since its number, unless it is busy.
type item struct {
	since uint64
	busy  bool
}

func newTable(l Limits) *Table[*item] {
	return New(l, func(e *item) (uint64, bool) { return e.since, !e.busy })
}

// fill adds n entries of an owner, and gives them.
func fill(t *testing.T, in *Table[*item], o Owner, n int, clock *uint64) (all []*item) {
	t.Helper()
	for range n {
		*clock++
		e := &item{since: *clock}
		if _, ok := in.Add(e, o); !ok {
			t.Fatalf("no room for %v", o)
		}
		all = append(all, e)
	}
	return all
}

func TestNoTenantEndsAnothersEntries(t *testing.T) {
	in := newTable(Limits{Total: 64, Tenant: 16, Principal: 8})
	var clock uint64
	quiet := fill(t, in, Owner{"beta", "b"}, 1, &clock)[0]
	for key := range 9 {
		fill(t, in, Owner{"acme", fmt.Sprint(key)}, 100, &clock)
	}
	if !in.Has(quiet) {
		t.Error("another tenant's entry is gone")
	}
	if n := len(in.All()); n != 17 {
		t.Errorf("%d entries; the tenant has a share of 16", n)
	}
}

func TestPrincipalLosesItsOwnOldestFirst(t *testing.T) {
	in := newTable(Limits{Total: 64, Tenant: 16, Principal: 8})
	var clock uint64
	colleague := fill(t, in, Owner{"acme", "ann"}, 8, &clock)
	own := fill(t, in, Owner{"acme", "ben"}, 8, &clock)
	fill(t, in, Owner{"acme", "ben"}, 1, &clock)
	if in.Has(own[0]) || !in.Has(own[1]) || !in.Has(colleague[0]) {
		t.Error("it is not the principal's own oldest that went")
	}
	fill(t, in, Owner{"acme", "cid"}, 1, &clock) // the tenant's share is full, and cid has nothing
	if in.Has(colleague[0]) || !in.Has(colleague[1]) || !in.Has(own[1]) {
		t.Error("it is not the tenant's oldest that went")
	}
}

func TestFullTableTakesFromTheTenantThatHasMost(t *testing.T) {
	in := newTable(Limits{Total: 40, Tenant: 20, Principal: 20})
	var clock uint64
	small := fill(t, in, Owner{"small", "x"}, 5, &clock) // the oldest of all
	large := fill(t, in, Owner{"large", "x"}, 20, &clock)
	middle := fill(t, in, Owner{"middle", "x"}, 15, &clock)
	fill(t, in, Owner{"new", "x"}, 1, &clock)
	if !in.Has(small[0]) || !in.Has(middle[0]) || in.Has(large[0]) {
		t.Error("it is not the largest tenant's oldest that went")
	}
	fill(t, in, Owner{"large", "x"}, 1, &clock)
	if !in.Has(small[0]) || !in.Has(middle[0]) || in.Has(large[1]) {
		t.Error("the largest tenant did not make room for itself")
	}
}

func TestEntriesOfUnauthenticatedCallersGoFirst(t *testing.T) {
	in := newTable(Limits{Total: 40, Tenant: 20, Principal: 20})
	var clock uint64
	known := fill(t, in, Owner{"acme", "x"}, 20, &clock)
	one := fill(t, in, Owner{"", "192.0.2.1"}, 1, &clock)
	many := fill(t, in, Owner{"", "192.0.2.2"}, 16, &clock)
	fill(t, in, Owner{"beta", "x"}, 3, &clock)
	fill(t, in, Owner{"beta", "x"}, 1, &clock)
	if !in.Has(known[0]) || !in.Has(one[0]) || in.Has(many[0]) {
		t.Error("it is not the oldest of the address with most that went")
	}
}

// Tenants that have all that they can have leave some to callers that are not known yet: a
// flood of one address has itself make room.
func TestTenantsLeaveRoomForNewcomers(t *testing.T) {
	in := newTable(Limits{Total: 64, Tenant: 32, Principal: 32, Newcomers: 8})
	var clock uint64
	large := fill(t, in, Owner{"large", "x"}, 32, &clock)
	small := fill(t, in, Owner{"small", "x"}, 28, &clock)
	if in.Has(large[3]) || !in.Has(large[4]) {
		t.Error("it is not the tenant with most that left room")
	}
	came := fill(t, in, Owner{"", "192.0.2.1"}, 1, &clock)[0]
	for range 100 {
		fill(t, in, Owner{"", "192.0.2.2"}, 1, &clock)
	}
	if n := len(in.All()); n != 64 || !in.Has(came) {
		t.Errorf("%d entries; the one that came first is there: %v", n, in.Has(came))
	}
	if gone, ok := in.Move(came, Owner{"new", "x"}); !ok || len(gone) != 1 || gone[0] != large[4] && gone[0] != small[0] {
		t.Errorf("%v, %v: it is not a tenant with most that made room", gone, ok)
	}
	for _, e := range append(append(large, small...), came) {
		e.busy = true
	}
	came = fill(t, in, Owner{"", "192.0.2.1"}, 1, &clock)[0]
	if _, ok := in.Move(came, Owner{"other", "x"}); ok {
		t.Error("a tenant has what is for newcomers")
	}
}

func TestBusyEntriesStay(t *testing.T) {
	in := newTable(Limits{Total: 20, Tenant: 18, Principal: 17})
	var clock uint64
	for _, e := range fill(t, in, Owner{"acme", "x"}, 17, &clock) {
		e.busy = true
	}
	if _, ok := in.Add(&item{}, Owner{"acme", "x"}); ok {
		t.Error("the principal is over its limit")
	}
	fill(t, in, Owner{"acme", "y"}, 1, &clock)[0].busy = true
	if _, ok := in.Add(&item{}, Owner{"acme", "z"}); ok {
		t.Error("the tenant is over its limit")
	}
	fill(t, in, Owner{"beta", "x"}, 3, &clock) // one of its own makes room
	if n := len(in.All()); n != 20 {
		t.Errorf("%d entries", n)
	}
}

func TestMoveCountsForTheNewOwner(t *testing.T) {
	in := newTable(Limits{Total: 64, Tenant: 32, Principal: 16})
	var clock uint64
	acme := Owner{"acme", "x"}
	own := fill(t, in, acme, 16, &clock)
	came := fill(t, in, Owner{"", "192.0.2.1"}, 2, &clock)
	gone, ok := in.Move(came[0], acme)
	if !ok || !slices.Equal(gone, own[:1]) {
		t.Errorf("%v goes for it, %v", gone, ok)
	}
	for _, e := range in.All() {
		e.busy = true
	}
	if gone, ok := in.Move(came[1], acme); ok || len(gone) > 0 || !in.Has(came[1]) {
		t.Error("there was no room")
	}
	if _, ok := in.Move(own[0], acme); ok {
		t.Error("an entry that is gone has moved")
	}
}

// Whatever happens, limits hold, counts are right, and the entries of a tenant with less
// than its part of the table are not touched by others.
func TestLimitsHold(t *testing.T) {
	limits := Limits{Total: 60, Tenant: 20, Principal: 16}
	in := newTable(limits)
	chance := rand.New(rand.NewPCG(1, 2))
	victim := &item{}
	if _, ok := in.Add(victim, Owner{"victim", "v"}); !ok {
		t.Fatal("no room")
	}
	for i := range 20_000 {
		o := Owner{string(rune('a' + chance.IntN(6))), string(rune('a' + chance.IntN(3)))}
		if chance.IntN(4) == 0 {
			o = Owner{"", fmt.Sprint(chance.IntN(9))}
		}
		e := &item{since: uint64(i), busy: chance.IntN(3) == 0} // not negative
		switch all := in.All(); chance.IntN(5) {
		case 0:
			if e := all[chance.IntN(len(all))]; e != victim {
				in.Move(e, o)
			}
		case 1:
			if out := all[chance.IntN(len(all))]; out != victim {
				in.Remove(out)
			}
		default:
			in.Add(e, o)
		}
		if len(in.owners) > limits.Total {
			t.Fatalf("%d entries", len(in.owners))
		}
		tenants, principals := map[string]int{}, map[Owner]int{}
		for _, o := range in.owners {
			tenants[o.Tenant]++
			principals[o]++
		}
		for name, n := range tenants {
			if n > limits.Tenant || n != in.tenants[name] {
				t.Fatalf("%q has %d, counted as %d", name, n, in.tenants[name])
			}
		}
		for o, n := range principals {
			if n > limits.Principal || n != in.principals[o] {
				t.Fatalf("%v has %d, counted as %d", o, n, in.principals[o])
			}
		}
		if !in.Has(victim) {
			t.Fatal("the entry of a small tenant is gone")
		}
	}
}
