package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"openskill/host/executions"
)

// Results keeps what runs left behind for a while.
func (d *DB) Results() executions.Results { return resultStore{d} }

// resultStore keeps items in the table results and the sum of each tenant's in
// result_bytes, whose row is what two writers of one tenant wait for. Large items are in
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
func (s resultStore) Put(ctx context.Context, k *executions.Kept, most int64) error {
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
func (s resultStore) put(ctx context.Context, tx bun.Tx, k *executions.Kept, ids []string, most int64) (gone []string, err error) {
	total, err := s.sum(ctx, tx, k.Tenant)
	if err != nil {
		return nil, err
	}
	for i, item := range k.Items {
		total += int64(len(item.Data))
		freed, parts, err := s.remove(ctx, tx, key{ExecutionID: k.ExecutionID, Name: item.Name})
		if err != nil {
			return nil, err
		}
		total -= freed
		gone = append(gone, parts)
		if err := s.insert(ctx, tx, k, item, ids[i]); err != nil {
			return nil, err
		}
	}
	total, more, err := s.makeRoom(ctx, tx, k, total, most)
	if err != nil {
		return nil, err
	}
	return append(gone, more...), s.setSum(ctx, tx, k.Tenant, total)
}

// sum gives the bytes of a tenant, and holds them until the transaction ends.
func (s resultStore) sum(ctx context.Context, tx bun.Tx, tenant string) (total int64, err error) {
	if _, err := tx.NewRaw("INSERT INTO result_bytes (tenant, bytes) VALUES (?, 0) ON CONFLICT (tenant) DO NOTHING", plain(tenant)).Exec(ctx); err != nil {
		return 0, err
	}
	err = tx.NewRaw("SELECT bytes FROM result_bytes WHERE tenant = ?"+s.db.forUpdate(), plain(tenant)).Scan(ctx, &total)
	return total, err
}

func (s resultStore) setSum(ctx context.Context, tx bun.Tx, tenant string, total int64) error {
	_, err := tx.NewRaw("UPDATE result_bytes SET bytes = ? WHERE tenant = ?", max(total, 0), plain(tenant)).Exec(ctx)
	return err
}

// insert hands the bytes to the driver as they are: bun would write them into the text of
// the statement, twice as long, which the database would have to read.
func (s resultStore) insert(ctx context.Context, tx bun.Tx, k *executions.Kept, item executions.Item, parts string) error {
	body := item.Data
	if body == nil || parts != "" {
		body = []byte{} // nil would be NULL
	}
	_, err := tx.Tx.ExecContext(ctx,
		s.db.marked("INSERT INTO results (execution_id, name, tenant, bytes, created_at, expires_at, body, parts) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"),
		k.ExecutionID, plain(item.Name), plain(k.Tenant), len(item.Data), at(k.At).of(s.db.kind), at(k.Until).of(s.db.kind), body, sql.NullString{String: parts, Valid: parts != ""})
	return err
}

// remove removes an item, if it is there, and says how many bytes it had and the id of its
// parts, which are still there.
func (s resultStore) remove(ctx context.Context, tx bun.Tx, k key) (bytes int64, parts string, err error) {
	err = tx.NewRaw("DELETE FROM results WHERE execution_id = ? AND name = ? RETURNING bytes, COALESCE(parts, '')", k.ExecutionID, plain(k.Name)).Scan(ctx, &bytes, &parts)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, "", nil
	}
	return bytes, parts, err
}

// oldest is how many items are looked at that may have to go.
const oldest = 100

// makeRoom removes what expires first of a tenant's until it has no more than most bytes,
// and gives what it has then, and the ids of the parts of what went.
func (s resultStore) makeRoom(ctx context.Context, tx bun.Tx, k *executions.Kept, total, most int64) (left int64, gone []string, err error) {
	for total > most {
		var first []key
		err := tx.NewRaw("SELECT CAST(execution_id AS TEXT) AS execution_id, name, tenant, bytes FROM results"+
			" WHERE tenant = ? AND execution_id <> ? ORDER BY expires_at, execution_id, name LIMIT ?",
			plain(k.Tenant), k.ExecutionID, oldest).Scan(ctx, &first)
		if err != nil {
			return 0, nil, err
		}
		if len(first) == 0 {
			break // all of it is this execution's
		}
		for _, one := range first {
			if total <= most {
				break
			}
			freed, parts, err := s.remove(ctx, tx, one)
			if err != nil {
				return 0, nil, err
			}
			total -= freed
			gone = append(gone, parts)
		}
	}
	return total, gone, nil
}

// Get implements [executions.Results].
func (s resultStore) Get(ctx context.Context, tenant, executionID, name string, now time.Time) ([]byte, error) {
	var (
		body  []byte
		size  int
		parts string
	)
	err := s.db.read.NewRaw("SELECT body, bytes, COALESCE(parts, '') FROM results WHERE execution_id = ? AND name = ? AND tenant = ? AND expires_at > ?",
		executionID, plain(name), plain(tenant), at(now)).Scan(ctx, &body, &size, &parts)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, executions.ErrNotKept
	case err == nil && parts != "":
		return s.readParts(ctx, parts, size)
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
		gone = nil
		total, err := s.sum(ctx, tx, tenant)
		if err != nil {
			return err
		}
		for _, k := range items {
			var (
				bytes int64
				parts string
			)
			err := tx.NewRaw("DELETE FROM results WHERE execution_id = ? AND name = ? AND expires_at <= ? RETURNING bytes, COALESCE(parts, '')", k.ExecutionID, k.Name, at(now)).Scan(ctx, &bytes, &parts)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			total -= bytes
			gone = append(gone, parts)
		}
		return s.setSum(ctx, tx, tenant, total)
	})
	if err != nil {
		return err
	}
	return s.dropParts(ctx, tenant, gone)
}
