package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"openskill/host/dispatch/quota"
)

// Quotas is where hosts count together what is used of limits.
func (d *DB) Quotas() quota.Store { return quotaStore{d} }

type quotaStore struct{ db *DB }

// quotaRow is a row of quota_counters.
type quotaRow struct {
	bun.BaseModel `bun:"table:quota_counters"`

	ID      string `bun:"id"`
	UntilNS int64  `bun:"until_ns"`
	Calls   int64  `bun:"calls"`
	Fuel    int64  `bun:"fuel"`
	EndsAt  stamp  `bun:"ends_at"`
}

// Exchange implements quota.Store.
func (s quotaStore) Exchange(ctx context.Context, keys []string, do func(rows []quota.Row)) error {
	if len(keys) == 0 {
		do(nil)
		return nil
	}
	for try := 0; ; try++ {
		var missing []*quotaRow
		err := s.db.inTxOn(ctx, s.db.records, func(ctx context.Context, tx bun.Tx) (err error) {
			var rows []*quotaRow
			if rows, missing, err = s.locked(ctx, tx, keys); err != nil || missing != nil {
				return err
			}
			out := make([]quota.Row, len(rows))
			for i, r := range rows {
				out[i] = r.row()
			}
			if do(out); len(out) == 0 {
				return nil
			}
			for i, r := range out {
				rows[i] = &quotaRow{ID: r.Key, UntilNS: r.Until, Calls: r.Calls, Fuel: r.Fuel, EndsAt: at(r.Ends)}
			}
			_, err = tx.NewInsert().Model(&rows).On("CONFLICT (id) DO UPDATE").
				Set("until_ns = EXCLUDED.until_ns").Set("calls = EXCLUDED.calls").Set("fuel = EXCLUDED.fuel").Set("ends_at = EXCLUDED.ends_at").Exec(ctx)
			return err
		})
		switch {
		case err != nil || missing == nil:
			return err
		case try == 5:
			return errors.New("store: rows of quotas are deleted as fast as they are made")
		}
		// In a transaction of its own: others wait for who makes the same rows.
		if _, err := s.db.records.NewInsert().Model(&missing).On("CONFLICT (id) DO NOTHING").Exec(ctx); err != nil {
			return err
		}
	}
}

func (r *quotaRow) row() quota.Row {
	return quota.Row{Key: r.ID, Until: r.UntilNS, Calls: r.Calls, Fuel: r.Fuel, Ends: r.EndsAt.Time}
}

// Read implements quota.Store.
func (s quotaStore) Read(ctx context.Context, keys []string) ([]quota.Row, error) {
	var found []*quotaRow
	if err := s.db.read.NewSelect().Model(&found).Where("id IN (?)", bun.List(keys)).Scan(ctx); err != nil {
		return nil, err
	}
	out := make([]quota.Row, len(keys))
	for i, key := range keys {
		out[i].Key = key
		for _, r := range found {
			if r.ID == key {
				out[i] = r.row()
			}
		}
	}
	return out, nil
}

// locked reads rows that no other transaction changes before this one ends, in the order
// of keys. On SQLite that is so of everything. On PostgreSQL those that another one has are
// left out; a row that is not there cannot be locked, and is missing.
func (s quotaStore) locked(ctx context.Context, tx bun.Tx, keys []string) (all, missing []*quotaRow, err error) {
	rows := make([]*quotaRow, 0, len(keys))
	ask := tx.NewSelect().Model(&rows).Where("id IN (?)", bun.List(keys)).OrderExpr("id")
	if s.db.postgres() {
		ask = ask.For("UPDATE SKIP LOCKED")
	}
	if err := ask.Scan(ctx); err != nil {
		return nil, nil, err
	}
	byID, there := make(map[string]*quotaRow, len(rows)), map[string]bool{}
	for _, r := range rows {
		byID[r.ID] = r
	}
	if len(rows) < len(keys) && s.db.postgres() {
		var ids []string
		if err := tx.NewSelect().Table("quota_counters").Column("id").Where("id IN (?)", bun.List(keys)).Scan(ctx, &ids); err != nil {
			return nil, nil, err
		}
		for _, id := range ids {
			there[id] = true
		}
	}
	for _, key := range keys {
		r := byID[key]
		switch {
		case r != nil:
		case there[key]: // another one has it
			continue
		default:
			if r = (&quotaRow{ID: key}); s.db.postgres() {
				missing = append(missing, r)
			}
		}
		all = append(all, r)
	}
	return all, missing, nil
}

// Sweep implements quota.Store.
func (s quotaStore) Sweep(ctx context.Context, before time.Time, most int) (int, error) {
	var ids []string
	err := s.db.read.NewSelect().Table("quota_counters").Column("id").Where("ends_at < ?", at(before)).OrderExpr("ends_at").Limit(int64(most)).Scan(ctx, &ids)
	if err != nil {
		return 0, err
	}
	n := 0
	for part := range slices.Chunk(ids, 500) {
		res, err := s.db.write.ExecContext(ctx, "DELETE FROM quota_counters WHERE id IN (SELECT id FROM quota_counters WHERE id IN (?) AND ends_at < ?"+s.db.unlocked()+")", bun.List(part), at(before))
		if err != nil {
			return n, err
		}
		deleted, err := res.RowsAffected()
		if err != nil {
			return n, err
		}
		n += int(deleted)
	}
	return n, nil
}
