// Package definitionstest has a store of definitions in memory, for tests of those who
// use one.
package definitionstest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"openskill/host/catalogue/definitions"
	"openskill/sdk/skill"
)

// Memory is a definitions.Store. The zero value is empty.
type Memory struct {
	mu       sync.Mutex
	rows     map[key]definitions.Definition
	revision uint64
	err      error
	changes  int
}

type key struct {
	owner string
	name  skill.ID
}

// Fail makes every use fail with err, until it is nil.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// Changes says how often something was written.
func (m *Memory) Changes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes
}

// Definitions implements definitions.Store.
func (m *Memory) Definitions(_ context.Context, owner string) ([]*definitions.Definition, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, m.err
	}
	list := []*definitions.Definition{}
	for k, d := range m.rows {
		if k.owner == owner {
			list = append(list, &d)
		}
	}
	slices.SortFunc(list, func(a, b *definitions.Definition) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// Change implements definitions.Store.
func (m *Memory) Change(_ context.Context, owner string, name skill.ID, do func(*definitions.Definition) (*definitions.Definition, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	k := key{owner, name}
	var now *definitions.Definition
	if d, ok := m.rows[k]; ok {
		now = &d
	}
	next, err := do(now)
	switch {
	case errors.Is(err, definitions.ErrUnchanged), err == nil && now == nil && next == nil:
		return nil
	case err != nil:
		return err
	}
	m.revision++
	m.changes++
	if m.rows == nil {
		m.rows = map[key]definitions.Definition{}
	}
	if next == nil {
		delete(m.rows, k)
		return nil
	}
	written := *next
	written.Owner, written.Name, written.Revision = owner, name, m.revision
	m.rows[k] = written
	return nil
}
