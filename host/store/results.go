package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"openskill/host/records/executions"
)

// Results keeps what runs left behind for a while.
func (d *DB) Results() executions.Results { return resultStore{d} }

// resultStore keeps items in the table results and the sums of each tenant's in
// result_sums, whose row is what two writers of one tenant wait for. Large items are in
// result_parts.
type resultStore struct{ db *DB }

var _ executions.Results = resultStore{}

// key is an item and its size.
type key struct {
	ExecutionID string `bun:"execution_id"`
	Name        string `bun:"name"`
	Tenant      string `bun:"tenant"`
	Bytes       int64  `bun:"bytes"`
}

// Put implements [executions.Results].
func (s resultStore) Put(ctx context.Context, k *executions.Kept, most executions.Room) error {
	ids, err := s.writeParts(ctx, k)
	gone := ids
	if err == nil {
		err = s.db.inTurn(ctx, k.Tenant, func() error {
			return s.db.inTx(ctx, func(ctx context.Context, tx bun.Tx) (err error) {
				gone, err = s.put(ctx, tx, k, ids, most)
				return err
			})
		})
		if err != nil {
			gone = ids
		}
	}
	_ = s.dropParts(ctx, k.Tenant, gone) // or Sweep does
	return err
}

// put gives the ids of the parts that nothing names any more.
func (s resultStore) put(ctx context.Context, tx bun.Tx, k *executions.Kept, ids []string, most executions.Room) (gone []string, err error) {
	has, err := s.lock(ctx, tx, k.Tenant)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(k.Items))
	for i, item := range k.Items {
		names[i] = plain(item.Name)
	}
	var before []removed
	err = tx.NewRaw("DELETE FROM results WHERE execution_id = ? AND name IN (?)"+returning, k.ExecutionID, bun.List(names)).Scan(ctx, &before)
	if err != nil {
		return nil, err
	}
	gone = has.subtract(before)
	for first := 0; first < len(k.Items); first += insertedTogether {
		end := min(first+insertedTogether, len(k.Items))
		if err := s.insert(ctx, tx, k, k.Items[first:end], ids[first:end]); err != nil {
			return nil, err
		}
	}
	for i, item := range k.Items {
		has.Bytes += executions.Size(names[i], int64(len(item.Data)))
		has.Items++
	}
	more, err := s.makeRoom(ctx, tx, k, has, most)
	if err != nil {
		return nil, err
	}
	return append(gone, more...), s.count(ctx, tx, k.Tenant, has)
}

// sums are what a tenant has.
type sums Quota

// subtract takes off what was removed, and gives the ids of its parts, which are still there.
func (has *sums) subtract(gone []removed) (parts []string) {
	for _, r := range gone {
		has.Bytes -= executions.Size(r.Name, r.Bytes)
		has.Items--
		if r.Parts != "" {
			parts = append(parts, r.Parts)
		}
	}
	return parts
}

// removed is an item that a statement deleted.
type removed struct {
	Name  string `bun:"name"`
	Bytes int64  `bun:"bytes"`
	Parts string `bun:"parts"`
}

// returning ends a statement that deletes items.
const returning = " RETURNING name, bytes, COALESCE(parts, '') AS parts"

// lock gives what a tenant has, and holds it until the transaction ends.
func (s resultStore) lock(ctx context.Context, tx bun.Tx, tenant string) (*sums, error) {
	_, err := tx.NewRaw("INSERT INTO result_sums (tenant, bytes, items) VALUES (?, 0, 0) ON CONFLICT (tenant) DO NOTHING", plain(tenant)).Exec(ctx)
	if err != nil {
		return nil, err
	}
	has := &sums{}
	err = tx.NewRaw("SELECT bytes, items FROM result_sums WHERE tenant = ?"+s.db.forUpdate(), plain(tenant)).Scan(ctx, &has.Bytes, &has.Items)
	return has, err
}

func (s resultStore) count(ctx context.Context, tx bun.Tx, tenant string, has *sums) error {
	_, err := tx.NewRaw("UPDATE result_sums SET bytes = ?, items = ? WHERE tenant = ?", max(has.Bytes, 0), max(has.Items, 0), plain(tenant)).Exec(ctx)
	return err
}

// insertedTogether is how many items one statement inserts.
const insertedTogether = 100

// insert hands the bytes to the driver as they are: bun would write them into the text of
// the statement, twice as long, which the database would have to read.
func (s resultStore) insert(ctx context.Context, tx bun.Tx, k *executions.Kept, items []executions.Item, ids []string) error {
	args := make([]any, 0, 8*len(items))
	for i, item := range items {
		body := item.Data
		if body == nil || ids[i] != "" {
			body = []byte{} // nil would be NULL
		}
		args = append(args, k.ExecutionID, plain(item.Name), plain(k.Tenant), len(item.Data), at(k.At).of(s.db.kind), at(k.Until).of(s.db.kind), body,
			sql.NullString{String: ids[i], Valid: ids[i] != ""})
	}
	_, err := tx.Tx.ExecContext(ctx, s.db.marked("INSERT INTO results (execution_id, name, tenant, bytes, created_at, expires_at, body, parts) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"+
		strings.Repeat(", (?, ?, ?, ?, ?, ?, ?, ?)", len(items)-1)), args...)
	return err
}

// oldest is how many items are looked at that may have to go.
const oldest = 100

// makeRoom removes what expires first of a tenant's until it has no more than most, and
// gives the ids of the parts of what went.
func (s resultStore) makeRoom(ctx context.Context, tx bun.Tx, k *executions.Kept, has *sums, most executions.Room) (gone []string, err error) {
	for has.Bytes > most.Bytes || has.Items > most.Items {
		var first []key
		err := tx.NewRaw("SELECT CAST(execution_id AS TEXT) AS execution_id, name, bytes FROM results"+
			" WHERE tenant = ? AND execution_id <> ? ORDER BY expires_at, execution_id, name LIMIT ?",
			plain(k.Tenant), k.ExecutionID, oldest).Scan(ctx, &first)
		if err != nil {
			return nil, err
		}
		if len(first) == 0 {
			break // all of it is this execution's
		}
		left, n := *has, 0
		for n < len(first) && (left.Bytes > most.Bytes || left.Items > most.Items) {
			left.Bytes -= executions.Size(first[n].Name, first[n].Bytes)
			left.Items--
			n++
		}
		parts, err := s.remove(ctx, tx, has, first[:n], "")
		if err != nil {
			return nil, err
		}
		gone = append(gone, parts...)
	}
	return gone, nil
}

// remove removes items, as far as they are there and fit the condition, and gives the ids of
// their parts.
func (s resultStore) remove(ctx context.Context, tx bun.Tx, has *sums, items []key, and string, args ...any) ([]string, error) {
	which := make([]any, 0, 2*len(items)+len(args))
	for _, k := range items {
		which = append(which, k.ExecutionID, k.Name)
	}
	id := "?"
	if s.db.postgres() {
		id = "CAST(? AS UUID)"
	}
	var gone []removed
	err := tx.NewRaw("DELETE FROM results WHERE (execution_id, name) IN (VALUES ("+id+", ?)"+strings.Repeat(", ("+id+", ?)", len(items)-1)+")"+and+returning,
		append(which, args...)...).Scan(ctx, &gone)
	return has.subtract(gone), err
}

// Get implements [executions.Results].
func (s resultStore) Get(ctx context.Context, tenant, executionID, name string, most int, now time.Time) ([]byte, error) {
	var (
		body  []byte
		size  int
		parts string
	)
	err := s.db.read.NewRaw("SELECT substr(body, 1, ?), bytes, COALESCE(parts, '') FROM results WHERE execution_id = ? AND name = ? AND tenant = ? AND expires_at > ?",
		min(most, math.MaxInt32), executionID, plain(name), plain(tenant), at(now)).Scan(ctx, &body, &size, &parts)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, executions.ErrNotKept
	case err == nil && parts != "":
		return s.readParts(ctx, parts, min(size, most))
	}
	return body, err
}

// Sizes implements [executions.Results].
func (s resultStore) Sizes(ctx context.Context, tenant, executionID string, now time.Time) (map[string]int, error) {
	var items []key
	err := s.db.read.NewRaw("SELECT name, bytes FROM results WHERE execution_id = ? AND tenant = ? AND expires_at > ?",
		executionID, plain(tenant), at(now)).Scan(ctx, &items)
	sizes := make(map[string]int, len(items))
	for _, k := range items {
		sizes[k.Name] = int(k.Bytes)
	}
	return sizes, err
}

// Ask implements [executions.Results].
func (s resultStore) Ask(ctx context.Context, executionID string, when time.Time) error {
	return again(ctx, func() error {
		_, err := s.db.write.NewRaw("INSERT INTO cancellations (execution_id, asked_at) VALUES (?, ?) ON CONFLICT (execution_id) DO NOTHING",
			executionID, at(when)).Exec(ctx)
		return err
	})
}

// Asked implements [executions.Results].
func (s resultStore) Asked(ctx context.Context, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var asked []string
	err := s.db.read.NewRaw("SELECT CAST(execution_id AS TEXT) FROM cancellations WHERE execution_id IN (?)", bun.List(ids)).Scan(ctx, &asked)
	return asked, err
}

// Sweep implements [executions.Results].
func (s resultStore) Sweep(ctx context.Context, now time.Time, limit int) (int, error) {
	err := again(ctx, func() error {
		_, err := s.db.write.NewRaw("DELETE FROM cancellations WHERE execution_id IN (SELECT execution_id FROM cancellations WHERE asked_at <= ? LIMIT ?)",
			at(now.Add(-24*time.Hour)), limit).Exec(ctx)
		return err
	})
	if err != nil {
		return 0, err
	}
	var gone []key
	err = s.db.read.NewRaw("SELECT CAST(execution_id AS TEXT) AS execution_id, name, tenant, bytes FROM results WHERE expires_at <= ? ORDER BY expires_at LIMIT ?",
		at(now), limit).Scan(ctx, &gone)
	if err != nil {
		return 0, err
	}
	slices.SortFunc(gone, func(a, b key) int { return cmp.Compare(a.Tenant, b.Tenant) })
	removed := 0
	for len(gone) > 0 {
		n := 1
		for n < len(gone) && gone[n].Tenant == gone[0].Tenant {
			n++
		}
		for _, part := range portions(gone[:n], func(k key) int64 { return k.Bytes }) {
			if err := s.sweepTenant(ctx, part, now); err != nil {
				return removed, err
			}
			removed += len(part)
		}
		gone = gone[n:]
	}
	return removed, s.dropAbandoned(ctx, now, limit)
}

// sweepTenant removes items of one tenant, unless they were kept anew meanwhile.
func (s resultStore) sweepTenant(ctx context.Context, items []key, now time.Time) error {
	tenant := items[0].Tenant
	var gone []string
	err := s.db.inTx(ctx, func(ctx context.Context, tx bun.Tx) error {
		has, err := s.lock(ctx, tx, tenant)
		if err != nil {
			return err
		}
		if gone, err = s.remove(ctx, tx, has, items, " AND expires_at <= ?", at(now)); err != nil {
			return err
		}
		return s.count(ctx, tx, tenant, has)
	})
	if err != nil {
		return err
	}
	return s.dropParts(ctx, tenant, gone)
}
