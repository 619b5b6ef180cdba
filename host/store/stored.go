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

// The kinds that are counted in the table stored, and the records.
const (
	Recordings    = "recordings"
	Conversations = "conversations"
	Tasks         = "tasks"
	AuditRecords  = "records"
)

// Stored is what a tenant has stored of one kind, and the most that it may have.
type Stored struct {
	Kind  string
	Has   Quota
	Quota Quota // zero of what has another bound; see docs/operations.md
}

// stored reads what a tenant has of a kind.
func (d *DB) stored(ctx context.Context, tenant, kind string) (has Quota, err error) {
	err = d.Read.QueryRowContext(ctx, "SELECT bytes, items FROM stored WHERE tenant = $1 AND kind = $2", Plain(tenant), kind).Scan(&has.Bytes, &has.Items)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return has, err
}

// Quota is the most that a tenant may have of a kind.
func (d *DB) Quota(kind string) Quota { return d.most[kind] }

// mostDropped is how many items one statement drops.
const mostDropped = 50

// Fit drops what is oldest of a kind of a tenant's until it is within the quota: by a
// statement whose arguments are the tenant, what is not dropped, and how many to drop. It
// runs after something was stored, in turn, so that a tenant has too much for a moment.
func (d *DB) Fit(ctx context.Context, tenant, kind, drop, spare string) error {
	most := d.most[kind]
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
		n, err := d.Exec(ctx, drop, Plain(tenant), spare, min(over, mostDropped))
		if err != nil || n == 0 {
			return err
		}
	}
}

// Stored lists what a tenant has stored in the database, by kind.
func (d *DB) Stored(ctx context.Context, tenant string) (list []Stored, err error) {
	for _, kind := range []string{Recordings, Conversations, Tasks} {
		of := Stored{Kind: kind, Quota: d.most[kind]}
		if of.Has, err = d.stored(ctx, tenant, kind); err != nil {
			return nil, err
		}
		list = append(list, of)
	}
	for _, one := range []struct{ kind, sums string }{
		{"results", "SELECT COALESCE(MAX(items), 0), COALESCE(MAX(bytes), 0) FROM result_sums WHERE tenant = $1"},
		{AuditRecords, "SELECT COALESCE(MAX(last - first + 1), 0), COALESCE(MAX(bytes), 0) FROM audit_heads WHERE tenant = $1"},
		{"keys", "SELECT COUNT(*), 0 FROM api_keys WHERE tenant = $1"},
		{"definitions", "SELECT COUNT(*), 0 FROM skill_definitions WHERE owner = $1 AND deleted_at IS NULL"},
	} {
		of := Stored{Kind: one.kind, Quota: d.most[one.kind]}
		if err := d.Read.QueryRowContext(ctx, one.sums, Plain(tenant)).Scan(&of.Has.Items, &of.Has.Bytes); err != nil {
			return nil, err
		}
		list = append(list, of)
	}
	return list, nil
}

// quotas are what a tenant may have of each kind; zero is never "any amount".
func (o Options) quotas() map[string]Quota {
	most := map[string]Quota{Recordings: o.Recordings, Conversations: o.Conversations, Tasks: {}, AuditRecords: o.Records}
	for kind, zero := range map[string]Quota{
		Recordings: {1 << 30, 100_000}, Conversations: {256 << 20, 20_000}, Tasks: {256 << 20, 100_000}, AuditRecords: {Bytes: 100 << 30},
	} {
		q := most[kind]
		if q.Bytes <= 0 {
			q.Bytes = zero.Bytes
		}
		if q.Items <= 0 {
			q.Items = zero.Items
		}
		most[kind] = q
	}
	return most
}
