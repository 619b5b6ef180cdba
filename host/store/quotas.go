package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"openskill/host/quota"
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
	return s.db.inTxOn(ctx, s.db.records, func(ctx context.Context, tx bun.Tx) error {
		rows, err := s.locked(ctx, tx, keys)
		if err != nil {
			return err
		}
		out := make([]quota.Row, len(rows))
		for i, r := range rows {
			out[i] = r.row()
		}
		do(out)
		for i, r := range out {
			rows[i] = &quotaRow{ID: r.Key, UntilNS: r.Until, Calls: r.Calls, Fuel: r.Fuel, EndsAt: at(r.Ends)}
		}
		_, err = tx.NewInsert().Model(&rows).On("CONFLICT (id) DO UPDATE").
			Set("until_ns = EXCLUDED.until_ns").Set("calls = EXCLUDED.calls").Set("fuel = EXCLUDED.fuel").Set("ends_at = EXCLUDED.ends_at").Exec(ctx)
		return err
	})
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
// of keys. On SQLite that is so of everything; on PostgreSQL a row that is not there
// cannot be locked, and is made first.
func (s quotaStore) locked(ctx context.Context, tx bun.Tx, keys []string) ([]*quotaRow, error) {
	for try := 0; ; try++ {
		rows := make([]*quotaRow, 0, len(keys))
		ask := tx.NewSelect().Model(&rows).Where("id IN (?)", bun.List(keys)).OrderExpr("id")
		if s.db.postgres() {
			ask = ask.For("UPDATE")
		}
		if err := ask.Scan(ctx); err != nil {
			return nil, err
		}
		byID := make(map[string]*quotaRow, len(rows))
		for _, r := range rows {
			byID[r.ID] = r
		}
		all, missing := make([]*quotaRow, len(keys)), []*quotaRow(nil)
		for i, key := range keys {
			if all[i] = byID[key]; all[i] == nil {
				all[i] = &quotaRow{ID: key}
				missing = append(missing, all[i])
			}
		}
		switch {
		case len(missing) == 0 || !s.db.postgres():
			return all, nil
		case try == 5:
			return nil, errors.New("store: rows of quotas are deleted as fast as they are made")
		}
		if _, err := tx.NewInsert().Model(&missing).On("CONFLICT (id) DO NOTHING").Exec(ctx); err != nil {
			return nil, err
		}
	}
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
		res, err := s.db.write.NewDelete().Table("quota_counters").Where("id IN (?)", bun.List(part)).Where("ends_at < ?", at(before)).Exec(ctx)
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
