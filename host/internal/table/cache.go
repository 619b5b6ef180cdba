package table

import (
	"container/list"
	"sync"
)

// overhead is the size in bytes of an entry without its key and value.
const overhead = 256

// Cache keeps values that are slow to make, in a bounded number of bytes that tenants share. A
// full cache evicts entries of the tenant that has most, the least recently used first, so no
// tenant evicts the entries of a smaller one. It is safe for concurrent use.
type Cache struct {
	most int

	mu      sync.Mutex
	used    int
	tenants map[string]*tenant
}

// tenant holds the entries of one tenant, the most recently used first.
type tenant struct {
	used   int
	byKey  map[string]*list.Element
	recent list.List // of *entry
}

type entry struct {
	key   string
	at    any
	value any
	size  int
}

// NewCache makes a cache of at most so many bytes.
func NewCache(most int) *Cache { return &Cache{most: most, tenants: map[string]*tenant{}} }

// Get returns the value that was made for a key at a revision.
func (c *Cache) Get(of, key string, at any) (value any, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tenants[of]
	if t == nil {
		return nil, false
	}
	found := t.byKey[key]
	if found == nil {
		return nil, false
	}
	e, _ := found.Value.(*entry) // the list holds nothing else
	if e.at != at {
		return nil, false
	}
	t.recent.MoveToFront(found)
	return e.value, true
}

// Put keeps a value of size bytes that was made at a revision, which must be comparable. It
// replaces the one of another revision. A value is not kept if its revision is nil, for not
// known, or if it needs more than a quarter of the cache.
func (c *Cache) Put(of, key string, at, value any, size int) {
	if at == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.tenants[of]; t != nil && t.byKey[key] != nil {
		c.remove(of, t.byKey[key])
	}
	if size += len(key) + overhead; size > c.most/4 {
		return
	}
	for c.used+size > c.most {
		largest := c.largest(of, size)
		c.remove(largest, c.tenants[largest].recent.Back())
	}
	t := c.tenants[of]
	if t == nil {
		t = &tenant{byKey: map[string]*list.Element{}}
		c.tenants[of] = t
	}
	t.byKey[key] = t.recent.PushFront(&entry{key, at, value, size})
	t.used += size
	c.used += size
}

// largest returns the tenant with the most bytes that has entries. The tenant that needs size
// bytes counts as if it had them, and goes before another one of the same size.
func (c *Cache) largest(of string, size int) (name string) {
	most := 0
	if t := c.tenants[of]; t != nil {
		name, most = of, t.used+size
	}
	for other, t := range c.tenants {
		if other != of && t.used > most {
			name, most = other, t.used
		}
	}
	return name
}

func (c *Cache) remove(of string, found *list.Element) {
	t := c.tenants[of]
	e, _ := t.recent.Remove(found).(*entry) // the list holds nothing else
	delete(t.byKey, e.key)
	t.used -= e.size
	c.used -= e.size
	if len(t.byKey) == 0 {
		delete(c.tenants, of)
	}
}
