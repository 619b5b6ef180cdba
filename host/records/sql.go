package records

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"openskill/host/store"
)

// results keeps items in the table results and the sums of each tenant's in result_sums,
// whose row is what two writers of one tenant wait for. Large items are in result_parts.
type results struct{ db *store.DB }

// NewResults gives what the runs of a database left behind.
func NewResults(db *store.DB) Results { return results{db} }

// kept is an item that is kept, and its size.
type kept struct {
	executionID, name, tenant string
	bytes                     int64
	parts                     string // id of its parts; "": it has none
}

// Put implements [Results].
func (s results) Put(ctx context.Context, k *Kept, most Room) error {
	ids, err := s.writeParts(ctx, k)
	gone := ids
	if err == nil {
		err = s.db.InTurn(ctx, k.Tenant, func() error {
			return s.db.InTx(ctx, func(tx *sql.Tx) (err error) {
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
func (s results) put(ctx context.Context, tx *sql.Tx, k *Kept, ids []string, most Room) (gone []string, err error) {
	has, err := s.lock(ctx, tx, k.Tenant)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(k.Items))
	for i, item := range k.Items {
		names[i] = store.Plain(item.Name)
	}
	before, err := store.All(ctx, tx, scanRemoved, "DELETE FROM results WHERE execution_id = $1 AND name IN ("+store.List(2, len(names))+")"+returning,
		append([]any{k.ExecutionID}, store.Args(names)...)...)
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
		has.Bytes += Size(names[i], int64(len(item.Data)))
		has.Items++
	}
	more, err := s.makeRoom(ctx, tx, k, has, most)
	if err != nil {
		return nil, err
	}
	return append(gone, more...), s.count(ctx, tx, k.Tenant, has)
}

// subtract takes off what was removed, and gives the ids of its parts, which are still there.
func (has *Room) subtract(gone []kept) (parts []string) {
	for _, r := range gone {
		has.Bytes -= Size(r.name, r.bytes)
		has.Items--
		if r.parts != "" {
			parts = append(parts, r.parts)
		}
	}
	return parts
}

// returning ends a statement that deletes items, whose rows scanRemoved reads.
const returning = " RETURNING name, bytes, COALESCE(parts, '')"

func scanRemoved(rows *sql.Rows) (k kept, err error) {
	return k, rows.Scan(&k.name, &k.bytes, &k.parts)
}

// lock gives what a tenant has, and holds it until the transaction ends.
func (s results) lock(ctx context.Context, tx *sql.Tx, tenant string) (*Room, error) {
	tenant = store.Plain(tenant)
	_, err := tx.ExecContext(ctx, "INSERT INTO result_sums (tenant, bytes, items) VALUES ($1, 0, 0) ON CONFLICT (tenant) DO NOTHING", tenant)
	if err != nil {
		return nil, err
	}
	has := &Room{}
	err = tx.QueryRowContext(ctx, "SELECT bytes, items FROM result_sums WHERE tenant = $1"+s.db.ForUpdate(), tenant).Scan(&has.Bytes, &has.Items)
	return has, err
}

func (s results) count(ctx context.Context, tx *sql.Tx, tenant string, has *Room) error {
	_, err := tx.ExecContext(ctx, "UPDATE result_sums SET bytes = $1, items = $2 WHERE tenant = $3", max(has.Bytes, 0), max(has.Items, 0), store.Plain(tenant))
	return err
}

// insertedTogether is how many items one statement inserts.
const insertedTogether = 100

func (s results) insert(ctx context.Context, tx *sql.Tx, k *Kept, items []Item, ids []string) error {
	args := make([]any, 0, 8*len(items))
	for i, item := range items {
		body := item.Data
		if body == nil || ids[i] != "" {
			body = []byte{} // nil would be NULL
		}
		args = append(args, k.ExecutionID, store.Plain(item.Name), store.Plain(k.Tenant), len(item.Data), s.db.At(k.At), s.db.At(k.Until), body,
			sql.NullString{String: ids[i], Valid: ids[i] != ""})
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO results (execution_id, name, tenant, bytes, created_at, expires_at, body, parts) VALUES "+store.Values(8, len(items)), args...)
	return err
}

// oldest is how many items are looked at that may have to go.
const oldest = 100

// makeRoom removes what expires first of a tenant's until it has no more than most, and
// gives the ids of the parts of what went.
func (s results) makeRoom(ctx context.Context, tx *sql.Tx, k *Kept, has *Room, most Room) (gone []string, err error) {
	for has.Bytes > most.Bytes || has.Items > most.Items {
		first, err := store.All(ctx, tx, scanKept, "SELECT execution_id, name, tenant, bytes FROM results"+
			" WHERE tenant = $1 AND execution_id <> $2 ORDER BY expires_at, execution_id, name LIMIT $3",
			store.Plain(k.Tenant), k.ExecutionID, oldest)
		if err != nil {
			return nil, err
		}
		if len(first) == 0 {
			break // all of it is this execution's
		}
		left, n := *has, 0
		for n < len(first) && (left.Bytes > most.Bytes || left.Items > most.Items) {
			left.Bytes -= Size(first[n].name, first[n].bytes)
			left.Items--
			n++
		}
		parts, err := s.remove(ctx, tx, has, first[:n], nil)
		if err != nil {
			return nil, err
		}
		gone = append(gone, parts...)
	}
	return gone, nil
}

func scanKept(rows *sql.Rows) (k kept, err error) {
	return k, rows.Scan(&k.executionID, &k.name, &k.tenant, &k.bytes)
}

// remove removes items, as far as they are there and have expired by a time (nil: whenever
// they expire), and gives the ids of their parts.
func (s results) remove(ctx context.Context, tx *sql.Tx, has *Room, items []kept, expired any) ([]string, error) {
	args := make([]any, 0, 2*len(items)+1)
	rows := make([]string, len(items))
	for i, k := range items {
		args = append(args, k.executionID, k.name)
		if rows[i] = fmt.Sprintf("($%d, $%d)", 2*i+1, 2*i+2); s.db.Postgres() {
			rows[i] = fmt.Sprintf("(CAST($%d AS UUID), $%d)", 2*i+1, 2*i+2)
		}
	}
	and := ""
	if expired != nil {
		args = append(args, expired)
		and = " AND expires_at <= " + store.List(len(args), 1)
	}
	gone, err := store.All(ctx, tx, scanRemoved, "DELETE FROM results WHERE (execution_id, name) IN (VALUES "+strings.Join(rows, ", ")+")"+and+returning, args...)
	return has.subtract(gone), err
}

// Get implements [Results].
func (s results) Get(ctx context.Context, tenant, executionID, name string, most int, now time.Time) ([]byte, error) {
	var (
		body  []byte
		size  int
		parts string
	)
	err := s.db.Read.QueryRowContext(ctx, "SELECT substr(body, 1, $1), bytes, COALESCE(parts, '') FROM results WHERE execution_id = $2 AND name = $3 AND tenant = $4 AND expires_at > $5",
		min(most, math.MaxInt32), executionID, store.Plain(name), store.Plain(tenant), s.db.At(now)).Scan(&body, &size, &parts)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, ErrNotKept
	case err == nil && parts != "":
		return s.readParts(ctx, parts, min(size, most))
	}
	return body, err
}

// Sizes implements [Results].
func (s results) Sizes(ctx context.Context, tenant, executionID string, now time.Time) (map[string]int, error) {
	items, err := store.All(ctx, s.db.Read, scanKept, "SELECT execution_id, name, tenant, bytes FROM results WHERE execution_id = $1 AND tenant = $2 AND expires_at > $3",
		executionID, store.Plain(tenant), s.db.At(now))
	sizes := make(map[string]int, len(items))
	for _, k := range items {
		sizes[k.name] = int(k.bytes)
	}
	return sizes, err
}

// Ask implements [Results].
func (s results) Ask(ctx context.Context, executionID string, when time.Time) error {
	_, err := s.db.Exec(ctx, "INSERT INTO cancellations (execution_id, asked_at) VALUES ($1, $2) ON CONFLICT (execution_id) DO NOTHING", executionID, s.db.At(when))
	return err
}

// Asked implements [Results].
func (s results) Asked(ctx context.Context, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return store.All(ctx, s.db.Read, store.Column[string], "SELECT execution_id FROM cancellations WHERE execution_id IN ("+store.List(1, len(ids))+")", store.Args(ids)...)
}

// Sweep implements [Results].
func (s results) Sweep(ctx context.Context, now time.Time, limit int) (int, error) {
	_, err := s.db.Exec(ctx, "DELETE FROM cancellations WHERE execution_id IN (SELECT execution_id FROM cancellations WHERE asked_at <= $1 LIMIT $2)",
		s.db.At(now.Add(-24*time.Hour)), limit)
	if err != nil {
		return 0, err
	}
	gone, err := store.All(ctx, s.db.Read, scanKept, "SELECT execution_id, name, tenant, bytes FROM results WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2",
		s.db.At(now), limit)
	if err != nil {
		return 0, err
	}
	slices.SortFunc(gone, func(a, b kept) int { return cmp.Compare(a.tenant, b.tenant) })
	removed := 0
	for len(gone) > 0 {
		n := 1
		for n < len(gone) && gone[n].tenant == gone[0].tenant {
			n++
		}
		for _, part := range store.Portions(gone[:n], func(k kept) int64 { return k.bytes }) {
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
func (s results) sweepTenant(ctx context.Context, items []kept, now time.Time) error {
	tenant := items[0].tenant
	var gone []string
	err := s.db.InTx(ctx, func(tx *sql.Tx) error {
		has, err := s.lock(ctx, tx, tenant)
		if err != nil {
			return err
		}
		if gone, err = s.remove(ctx, tx, has, items, s.db.At(now)); err != nil {
			return err
		}
		return s.count(ctx, tx, tenant, has)
	})
	if err != nil {
		return err
	}
	return s.dropParts(ctx, tenant, gone)
}
