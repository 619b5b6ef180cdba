package table

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestKeepsValuesOfTheirRevision(t *testing.T) {
	c := NewCache(1 << 20)
	c.Put("acme", "list", 1, "one", 100)
	if v, ok := c.Get("acme", "list", 1); !ok || v != "one" {
		t.Errorf("%v %v", v, ok)
	}
	if v, ok := c.Get("acme", "list", 2); ok {
		t.Errorf("%v is of another revision", v)
	}
	if v, ok := c.Get("beta", "list", 1); ok {
		t.Errorf("%v is of another tenant", v)
	}
	c.Put("acme", "unknown", nil, "new", 100)
	if v, ok := c.Get("acme", "unknown", nil); ok {
		t.Errorf("%v is of no known revision", v)
	}
	c.Put("acme", "list", 2, "two", 100)
	if v, ok := c.Get("acme", "list", 2); !ok || v != "two" || len(c.tenants["acme"].byKey) != 1 {
		t.Errorf("%v %v, %d entries", v, ok, len(c.tenants["acme"].byKey))
	}
}

func TestEvictsTheLeastRecentlyUsed(t *testing.T) {
	const most = 100 << 10
	c := NewCache(most)
	c.Put("acme", "used", 0, 1, most/8)
	for i := range 100 {
		c.Put("acme", fmt.Sprint(i), 0, i, most/10)
		if _, ok := c.Get("acme", "used", 0); !ok {
			t.Fatal("an entry that is used is gone")
		}
		if c.used > most {
			t.Fatalf("%d bytes are kept", c.used)
		}
	}
	if _, ok := c.Get("acme", "0", 0); ok {
		t.Error("an entry that is not used is kept")
	}
	c.Put("acme", "used", 0, 2, most/4)
	if _, ok := c.Get("acme", "used", 0); ok {
		t.Error("an entry of more than a quarter is kept")
	}
}

// One tenant's lists evicted those of all others.
func TestNoTenantEvictsTheEntriesOfASmallerOne(t *testing.T) {
	const most = 100 << 10
	c := NewCache(most)
	c.Put("beta", "own", 0, 1, most/5)
	for i := range 1000 {
		c.Put("acme", fmt.Sprint(i), 0, i, most/20)
	}
	for i := range 1000 {
		c.Put(fmt.Sprint("tenant ", i%3), fmt.Sprint(i), 0, i, most/50)
	}
	if _, ok := c.Get("beta", "own", 0); !ok {
		t.Error("the entry of a tenant with a fifth is gone")
	}
	if n := len(c.tenants["acme"].byKey); n == 0 || n > 8 {
		t.Errorf("%d entries of the tenant that took all are left", n)
	}
}

func TestNeverHoldsMoreThanItsBound(t *testing.T) {
	const most = 50 << 10
	c := NewCache(most)
	chance := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		c.Put(fmt.Sprint(chance.IntN(6)), fmt.Sprint(chance.IntN(40)), chance.IntN(3), 0, chance.IntN(most/3))
		used := 0
		for name, of := range c.tenants {
			sum := 0
			for e := of.recent.Front(); e != nil; e = e.Next() {
				sum += e.Value.(*entry).size
			}
			if sum != of.used || sum == 0 || len(of.byKey) != of.recent.Len() {
				t.Fatalf("%s: %d bytes are counted, %d are there", name, of.used, sum)
			}
			used += sum
		}
		if used != c.used || used > most {
			t.Fatalf("%d bytes are counted, %d are there", c.used, used)
		}
	}
}
