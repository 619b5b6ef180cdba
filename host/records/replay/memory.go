package replay

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Memory is a Store that ends with its process, for tests. The zero value is empty.
type Memory struct {
	mu   sync.Mutex
	rows map[string]Row
}

var _ Store = (*Memory)(nil)

// Keep implements [Store].
func (m *Memory) Keep(_ context.Context, r *Row) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil {
		m.rows = map[string]Row{}
	}
	if _, there := m.rows[r.ExecutionID]; !there {
		row := *r
		row.Body = slices.Clone(r.Body)
		m.rows[r.ExecutionID] = row
	}
	return nil
}

// Get implements [Store].
func (m *Memory) Get(_ context.Context, tenant, executionID string) (*Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, there := m.rows[executionID]
	if !there || r.Tenant != tenant {
		return nil, nil
	}
	r.Body = slices.Clone(r.Body)
	return &r, nil
}

// Prune implements [Store].
func (m *Memory) Prune(_ context.Context, before time.Time, limit int) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for id, r := range m.rows {
		if n < limit && r.Created.Before(before) {
			delete(m.rows, id)
			n++
		}
	}
	return n, nil
}
