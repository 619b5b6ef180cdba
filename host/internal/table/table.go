// Package table bounds what callers keep open on a host (connections, sessions, counters), and
// what is kept for them in caches. A full table makes room at the cost of the caller that needs it, then of its tenant, and
// otherwise of the tenant that has most. No caller ends what others have by opening many.
package table

import (
	"math"
	"sync"
)

// Owner is the caller that an entry belongs to. An empty Tenant stands for callers that are
// not authenticated; their entries go before all others when the table is full. An empty
// Principal has no limit of its own.
type Owner struct{ Tenant, Principal string }

// Limits are numbers of entries.
type Limits struct {
	Total, Tenant, Principal int
	// Newcomers is how many of Total tenants together leave to callers that are not
	// authenticated. Where tenants have all, those have only each other to make room. They
	// share what is theirs by principal: the one with most makes room first.
	Newcomers int
}

// least is the smallest share: in a table of few, shares would refuse what there is room for.
const least = 16

// Share is a part of a total, at least 16 where the total allows it.
func Share(total, part int) int { return max(total/part, min(least, total)) }

// Table holds entries by their owners. It is safe for concurrent use.
type Table[V comparable] struct {
	limits Limits
	idle   func(V) (since uint64, ok bool)

	mu         sync.Mutex
	owners     map[V]Owner
	tenants    map[string]int
	principals map[Owner]int
}

// New makes a table. idle reports since when an entry has been idle, on any clock, and
// false for one that must not go. It is called with the table locked.
func New[V comparable](l Limits, idle func(V) (since uint64, ok bool)) *Table[V] {
	return &Table[V]{limits: l, idle: idle, owners: map[V]Owner{}, tenants: map[string]int{}, principals: map[Owner]int{}}
}

// Add takes v in. gone are the entries that made room for it, which the caller must end.
// Where there is no room, v is not in the table and ok is false.
func (t *Table[V]) Add(v V, o Owner) (gone []V, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	gone, ok = t.room(o)
	if ok {
		t.put(v, o)
	}
	return gone, ok
}

// Move gives v another owner, as Add does. Where that one has no room, v stays as it was.
func (t *Table[V]) Move(v V, o Owner) (gone []V, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, known := t.owners[v]
	if known && before == o {
		return nil, true
	}
	if !known {
		return nil, false // it has made room itself
	}
	t.take(v)
	if gone, ok = t.room(o); !ok {
		o = before
	}
	t.put(v, o)
	return gone, ok
}

// Remove takes v out, and reports whether it was there.
func (t *Table[V]) Remove(v V) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.take(v)
}

// Has reports whether v is in the table.
func (t *Table[V]) Has(v V) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.owners[v]
	return ok
}

// All lists the entries.
func (t *Table[V]) All() []V {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]V, 0, len(t.owners))
	for v := range t.owners {
		all = append(all, v)
	}
	return all
}

func (t *Table[V]) put(v V, o Owner) {
	t.owners[v] = o
	t.tenants[o.Tenant]++
	t.principals[o]++
}

func (t *Table[V]) take(v V) bool {
	o, ok := t.owners[v]
	if !ok {
		return false
	}
	delete(t.owners, v)
	if t.tenants[o.Tenant]--; t.tenants[o.Tenant] == 0 {
		delete(t.tenants, o.Tenant)
	}
	if t.principals[o]--; t.principals[o] == 0 {
		delete(t.principals, o)
	}
	return true
}

// room takes entries out until there is room for one more of o.
func (t *Table[V]) room(o Owner) (gone []V, ok bool) {
	for {
		var victim V
		var found bool
		switch {
		case o.Principal != "" && t.principals[o] >= t.limits.Principal:
			victim, found = t.oldest(func(of Owner) int { return one(of == o) })
		case t.tenants[o.Tenant] >= t.limits.Tenant:
			victim, found = t.oldest(func(of Owner) int { return one(of.Tenant == o.Tenant) + one(of == o) })
		case o.Tenant != "" && len(t.owners)-t.tenants[""] >= t.limits.Total-t.limits.Newcomers:
			victim, found = t.oldest(func(of Owner) int { return t.surplus(of, o) * one(of.Tenant != "") })
		case len(t.owners) >= t.limits.Total:
			victim, found = t.oldest(func(of Owner) int { return t.surplus(of, o) })
		default:
			return gone, true
		}
		if !found {
			return gone, false
		}
		t.take(victim)
		gone = append(gone, victim)
	}
}

// surplus ranks the owners whose entries may go for one of o: callers that are not
// authenticated, those with many first; then tenants with at least as many as o's.
func (t *Table[V]) surplus(of, o Owner) int {
	has := t.tenants[of.Tenant]
	switch {
	case of.Tenant == "":
		return math.MaxInt/2 + t.principals[of]
	case of.Tenant == o.Tenant:
		return 2*has + one(of == o) // before others that have as many
	case has > t.tenants[o.Tenant]:
		return 2 * has
	}
	return 0
}

// oldest gives the idle entry of the highest rank that has been idle longest. Owners of
// rank 0 are left alone.
func (t *Table[V]) oldest(rank func(Owner) int) (victim V, found bool) {
	best, oldest := 0, uint64(0)
	for v, o := range t.owners {
		r := rank(o)
		if r == 0 || r < best {
			continue
		}
		since, ok := t.idle(v)
		if !ok || found && r == best && since >= oldest {
			continue
		}
		victim, found, best, oldest = v, true, r, since
	}
	return victim, found
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
