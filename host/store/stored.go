package store

import (
	"context"
	"database/sql"
	"errors"
)

// Quota bounds what a tenant has stored of one kind.
type Quota struct {
	Bytes int64
	Items int64
}

// The kinds that are counted in the table stored.
const (
	recordingsKind    = "recordings"
	conversationsKind = "conversations"
	tasksKind         = "tasks"
)

// Stored is what a tenant has stored of one kind, and the most that it may have.
type Stored struct {
	Kind  string
	Has   Quota
	Quota Quota // zero of what has another bound; see docs/operations.md
}

// stored reads what a tenant has of a kind.
func (d *DB) stored(ctx context.Context, tenant, kind string) (has Quota, err error) {
	err = d.read.NewRaw("SELECT bytes, items FROM stored WHERE tenant = ? AND kind = ?", plain(tenant), kind).Scan(ctx, &has.Bytes, &has.Items)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return has, err
}

// mostDropped is how many items one statement drops.
const mostDropped = 50

// fit drops what is oldest of a kind of a tenant's until it is within the quota: by a
// statement whose arguments are the tenant, what is not dropped, and how many to drop. It
// runs after something was stored, in turn, so that a tenant has too much for a moment.
func (d *DB) fit(ctx context.Context, tenant, kind string, most Quota, drop, spare string) error {
	for {
		has, err := d.stored(ctx, tenant, kind)
		if err != nil {
			return err
		}
		over := max(has.Items-most.Items, 0)
		if has.Bytes > most.Bytes { // about so many, if all were of one size
			over = max(over, (has.Bytes-most.Bytes)/max(has.Bytes/max(has.Items, 1), 1), 1)
		}
		if over == 0 {
			return nil
		}
		n, err := d.exec(ctx, drop, plain(tenant), spare, min(over, mostDropped))
		if err != nil || n == 0 {
			return err
		}
	}
}

// Stored lists what a tenant has stored in the database, by kind.
func (d *DB) Stored(ctx context.Context, tenant string) ([]Stored, error) {
	list := []Stored{
		{Kind: recordingsKind, Quota: d.most.recordings}, {Kind: conversationsKind, Quota: d.most.conversations}, {Kind: tasksKind, Quota: d.most.tasks},
	}
	var err error
	for i := range list {
		if list[i].Has, err = d.stored(ctx, tenant, list[i].Kind); err != nil {
			return nil, err
		}
	}
	for _, one := range []struct{ kind, sums string }{
		{"results", "SELECT COALESCE(MAX(items), 0), COALESCE(MAX(bytes), 0) FROM result_sums WHERE tenant = ?"},
		{"records", "SELECT COALESCE(MAX(last - first + 1), 0), COALESCE(MAX(bytes), 0) FROM audit_heads WHERE tenant = ?"},
		{"keys", "SELECT COUNT(*), 0 FROM api_keys WHERE tenant = ?"},
		{"definitions", "SELECT COUNT(*), 0 FROM skill_definitions WHERE owner = ? AND deleted_at IS NULL"},
	} {
		of := Stored{Kind: one.kind}
		if one.kind == "records" {
			of.Quota = d.most.records
		}
		if err := d.read.NewRaw(one.sums, plain(tenant)).Scan(ctx, &of.Has.Items, &of.Has.Bytes); err != nil {
			return nil, err
		}
		list = append(list, of)
	}
	return list, nil
}

// quotas are those of the kinds.
type quotas struct{ recordings, conversations, tasks, records Quota }

// withDefaults fills in what is zero, which is never "any amount".
func (q quotas) withDefaults() quotas {
	for _, one := range []struct{ q, zero *Quota }{
		{&q.recordings, &Quota{1 << 30, 100_000}},
		{&q.conversations, &Quota{256 << 20, 20_000}},
		{&q.tasks, &Quota{256 << 20, 100_000}},
		{&q.records, &Quota{Bytes: 100 << 30}},
	} {
		if one.q.Bytes <= 0 {
			one.q.Bytes = one.zero.Bytes
		}
		if one.q.Items <= 0 {
			one.q.Items = one.zero.Items
		}
	}
	return q
}
