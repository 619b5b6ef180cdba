// Package versionstest has in memory what hosts keep their uploads in together, for
// tests of those who use it.
package versionstest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"openskill/host/catalogue"
	"openskill/sdk/skill"
)

// Memory is a catalogue.Shared. The zero value is empty.
type Memory struct {
	// Before and After, where they are set, are called around each commit of a change;
	// an error of Before keeps it from being made, one of After only from being told.
	Before, After func() error

	mu       sync.Mutex
	revision uint64
	rows     map[key]row
	blobs    map[string]blob
	err      error
}

type key struct {
	tenant string
	id     skill.ID
}

type row struct {
	next     catalogue.Next
	revision uint64
}

type blob struct {
	bytes []byte
	used  time.Time
}

// Fail makes every use fail with err, until it is nil.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// Lose takes back everything since a copy was made, as a server does that comes back
// without its last transactions.
func (m *Memory) Lose(back *Memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revision, m.rows = back.revision, back.rows
}

// Copy is what there is now.
func (m *Memory) Copy() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Memory{revision: m.revision, rows: maps.Clone(m.rows)}
}

// Archives says how many there are.
func (m *Memory) Archives() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.blobs)
}

// Spoil changes the archive of a digest.
func (m *Memory) Spoil(digest string, change func([]byte) []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs[digest] = blob{change(slices.Clone(m.blobs[digest].bytes)), m.blobs[digest].used}
}

// Records implements catalogue.Shared.
func (m *Memory) Records(_ context.Context, after uint64) ([]catalogue.Record, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, 0, m.err
	}
	var list []catalogue.Record
	for k, r := range m.rows {
		if r.revision > after {
			list = append(list, catalogue.Record{Tenant: k.tenant, ID: k.id, Revision: r.revision, State: r.next.State})
		}
	}
	slices.SortFunc(list, func(a, b catalogue.Record) int { return cmp.Compare(a.Revision, b.Revision) })
	return list, m.revision, nil
}

// Change implements catalogue.Shared.
func (m *Memory) Change(_ context.Context, tenant string, id skill.ID, files *catalogue.Files, do func(catalogue.Now) (*catalogue.Next, error)) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return 0, m.err
	}
	k := key{tenant, id}
	now := catalogue.Now{State: m.rows[k].next.State}
	for other, r := range m.rows {
		if other.id == id && r.next.Approved {
			now.Approved = other.tenant
		}
		if other.tenant != tenant {
			continue
		}
		if r.next.Live {
			now.Skills++
		}
		for _, v := range r.next.Versions {
			now.Bytes += v.Bytes
		}
	}
	next, err := do(now)
	if err != nil {
		return 0, err
	}
	if next.Approved && now.Approved != "" && now.Approved != tenant {
		return 0, fmt.Errorf("a skill %s of another tenant is approved", id)
	}
	var archive []byte
	if files != nil && m.blobs[files.Digest].bytes == nil {
		if _, err := files.From.Seek(0, io.SeekStart); err != nil {
			return 0, err
		}
		if archive, err = io.ReadAll(files.From); err != nil {
			return 0, err
		}
	}
	if m.Before != nil {
		if err := m.Before(); err != nil {
			return 0, err
		}
	}
	if m.rows == nil {
		m.rows, m.blobs = map[key]row{}, map[string]blob{}
	}
	m.revision++
	if files != nil {
		if have, ok := m.blobs[files.Digest]; ok {
			archive = have.bytes
		}
		m.blobs[files.Digest] = blob{archive, time.Now()}
	}
	if next.State == nil {
		delete(m.rows, k)
	} else {
		m.rows[k] = row{*next, m.revision}
	}
	if m.After != nil {
		if err := m.After(); err != nil {
			return 0, err
		}
	}
	return m.revision, nil
}

// Archive implements catalogue.Shared.
func (m *Memory) Archive(_ context.Context, digest string, to io.Writer) error {
	m.mu.Lock()
	b, ok := m.blobs[digest]
	err := m.err
	m.mu.Unlock()
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("the files %s: %w", digest, fs.ErrNotExist)
	}
	_, err = to.Write(b.bytes)
	return err
}

// Tidy implements catalogue.Shared.
func (m *Memory) Tidy(_ context.Context, since time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	named := map[string]bool{}
	for _, r := range m.rows {
		for _, v := range r.next.Versions {
			named[v.Digest] = true
		}
	}
	for digest, b := range m.blobs {
		if !named[digest] && b.used.Before(since) {
			delete(m.blobs, digest)
		}
	}
	return nil
}
