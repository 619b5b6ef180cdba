// This file has what stands where the database and the door are, in tests of
// executions and of the edges.

package recordstest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"openskill/host/records"
)

// Results keeps in memory what runs left. Its zero value is empty and works.
type Results struct {
	mu     sync.Mutex
	items  map[key]item
	asked  map[string]time.Time
	failed error
}

type key struct{ id, name string }

type item struct {
	tenant string
	data   []byte
	until  time.Time
}

var _ records.Results = (*Results)(nil)

// Fail has every operation fail with err from now on; nil: they work again.
func (r *Results) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = err
}

// do runs an operation unless it is to fail.
func (r *Results) do(ctx context.Context, f func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return r.failed
	}
	if r.items == nil {
		r.items, r.asked = map[key]item{}, map[string]time.Time{}
	}
	f()
	return nil
}

// Put implements records.Results.
func (r *Results) Put(ctx context.Context, k *records.Kept, most records.Room) error {
	return r.do(ctx, func() {
		for _, i := range k.Items {
			r.items[key{k.ExecutionID, i.Name}] = item{k.Tenant, slices.Clone(i.Data), k.Until}
		}
		for {
			has := r.has(k.Tenant)
			if has.Bytes <= most.Bytes && has.Items <= most.Items || !r.drop(k.Tenant, k.ExecutionID) {
				return
			}
		}
	})
}

// has is what is kept of a tenant. r.mu is held.
func (r *Results) has(tenant string) (all records.Room) {
	for k, i := range r.items {
		if i.tenant == tenant {
			all.Bytes += records.Size(k.name, int64(len(i.data)))
			all.Items++
		}
	}
	return all
}

// drop removes what expires first of a tenant's; false if there is nothing but what
// belongs to one execution. r.mu is held.
func (r *Results) drop(tenant, but string) bool {
	var first key
	for k, i := range r.items {
		if i.tenant != tenant || k.id == but {
			continue
		}
		if first.id == "" || cmp.Or(i.until.Compare(r.items[first].until), cmp.Compare(k.id, first.id), cmp.Compare(k.name, first.name)) < 0 {
			first = k
		}
	}
	delete(r.items, first)
	return first.id != ""
}

// Get implements records.Results.
func (r *Results) Get(ctx context.Context, tenant, id, name string, most int, now time.Time) (data []byte, err error) {
	err = records.ErrNotKept
	if failed := r.do(ctx, func() {
		if i, ok := r.items[key{id, name}]; ok && i.tenant == tenant && i.until.After(now) {
			data, err = slices.Clone(i.data[:min(most, len(i.data))]), nil
		}
	}); failed != nil {
		return nil, failed
	}
	return data, err
}

// Sizes implements records.Results.
func (r *Results) Sizes(ctx context.Context, tenant, id string, now time.Time) (sizes map[string]int, err error) {
	sizes = map[string]int{}
	err = r.do(ctx, func() {
		for k, i := range r.items {
			if k.id == id && i.tenant == tenant && i.until.After(now) {
				sizes[k.name] = len(i.data)
			}
		}
	})
	return sizes, err
}

// Ask implements records.Results.
func (r *Results) Ask(ctx context.Context, id string, at time.Time) error {
	return r.do(ctx, func() {
		if _, twice := r.asked[id]; !twice {
			r.asked[id] = at
		}
	})
}

// Asked implements records.Results.
func (r *Results) Asked(ctx context.Context, ids []string) (asked []string, err error) {
	err = r.do(ctx, func() {
		for _, id := range ids {
			if _, ok := r.asked[id]; ok {
				asked = append(asked, id)
			}
		}
	})
	return asked, err
}

// Sweep implements records.Results.
func (r *Results) Sweep(ctx context.Context, now time.Time, limit int) (n int, err error) {
	err = r.do(ctx, func() {
		for k, i := range r.items {
			if n < limit && !i.until.After(now) {
				delete(r.items, k)
				n++
			}
		}
		for id, at := range r.asked {
			if !at.After(now.Add(-24 * time.Hour)) {
				delete(r.asked, id)
			}
		}
	})
	return n, err
}
