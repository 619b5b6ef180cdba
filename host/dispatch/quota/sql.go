package quota

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"openskill/host/store"
)

// rows are the limits in the table quota_counters.
type rows struct{ db *store.DB }

// NewStore gives the rows of limits that the hosts of a database share.
func NewStore(db *store.DB) Store { return rows{db} }

const columns = "id, until_ns, calls, fuel, ends_at"

func scanRow(r *sql.Rows) (row Row, err error) {
	var ends store.Time
	err = r.Scan(&row.Key, &row.Until, &row.Calls, &row.Fuel, &ends)
	row.Ends = ends.Time
	return row, err
}

// Exchange implements Store.
func (s rows) Exchange(ctx context.Context, keys []string, do func(rows []Row)) error {
	if len(keys) == 0 {
		do(nil)
		return nil
	}
	for try := 0; ; try++ {
		var missing []string
		err := s.db.InTxOn(ctx, s.db.Records, func(tx *sql.Tx) (err error) {
			var list []Row
			if list, missing, err = s.locked(ctx, tx, keys); err != nil || missing != nil {
				return err
			}
			if do(list); len(list) == 0 {
				return nil
			}
			args := make([]any, 0, 5*len(list))
			for _, r := range list {
				args = append(args, r.Key, r.Until, r.Calls, r.Fuel, s.db.At(r.Ends))
			}
			_, err = tx.ExecContext(ctx, "INSERT INTO quota_counters ("+columns+") VALUES "+store.Values(5, len(list))+
				" ON CONFLICT (id) DO UPDATE SET until_ns = excluded.until_ns, calls = excluded.calls, fuel = excluded.fuel, ends_at = excluded.ends_at", args...)
			return err
		})
		switch {
		case err != nil || missing == nil:
			return err
		case try == 5:
			return errors.New("quota: rows are deleted as fast as they are made")
		}
		// In a transaction of its own: others wait for who makes the same rows.
		args := make([]any, 0, 5*len(missing))
		for _, key := range missing {
			args = append(args, key, int64(0), int64(0), int64(0), nil)
		}
		_, err = s.db.Records.ExecContext(ctx, "INSERT INTO quota_counters ("+columns+") VALUES "+store.Values(5, len(missing))+" ON CONFLICT (id) DO NOTHING", args...)
		if err != nil {
			return err
		}
	}
}

// Read implements Store.
func (s rows) Read(ctx context.Context, keys []string) ([]Row, error) {
	found, err := s.named(ctx, s.db.Read, keys, "")
	if err != nil {
		return nil, err
	}
	out := make([]Row, len(keys))
	for i, key := range keys {
		if out[i] = found[key]; out[i].Key == "" {
			out[i].Key = key
		}
	}
	return out, nil
}

// named reads the rows of keys that are there.
func (s rows) named(ctx context.Context, on store.Querier, keys []string, lock string) (map[string]Row, error) {
	list, err := store.All(ctx, on, scanRow, "SELECT "+columns+" FROM quota_counters WHERE id IN ("+store.List(1, len(keys))+") ORDER BY id"+lock, store.Args(keys)...)
	byKey := make(map[string]Row, len(list))
	for _, r := range list {
		byKey[r.Key] = r
	}
	return byKey, err
}

// locked reads rows that no other transaction changes before this one ends, in the order
// of keys. On SQLite that is so of everything. On PostgreSQL those that another one has are
// left out; a row that is not there cannot be locked, and is missing.
func (s rows) locked(ctx context.Context, tx *sql.Tx, keys []string) (all []Row, missing []string, err error) {
	mine, err := s.named(ctx, tx, keys, s.db.SkipLocked())
	if err != nil {
		return nil, nil, err
	}
	there := mine
	if len(mine) < len(keys) && s.db.Postgres() {
		if there, err = s.named(ctx, tx, keys, ""); err != nil {
			return nil, nil, err
		}
	}
	for _, key := range keys {
		r, ok := mine[key]
		_, held := there[key]
		switch {
		case ok:
			all = append(all, r)
		case held: // by another one
		case s.db.Postgres():
			missing = append(missing, key)
		default:
			all = append(all, Row{Key: key})
		}
	}
	return all, missing, nil
}

// Sweep implements Store.
func (s rows) Sweep(ctx context.Context, before time.Time, most int) (n int, err error) {
	ids, err := store.All(ctx, s.db.Read, store.Column[string], "SELECT id FROM quota_counters WHERE ends_at < $1 ORDER BY ends_at LIMIT $2", s.db.At(before), most)
	if err != nil {
		return 0, err
	}
	for part := range slices.Chunk(ids, 500) {
		res, err := s.db.Write.ExecContext(ctx, "DELETE FROM quota_counters WHERE id IN (SELECT id FROM quota_counters WHERE id IN ("+
			store.List(2, len(part))+") AND ends_at < $1"+s.db.SkipLocked()+")", append([]any{s.db.At(before)}, store.Args(part)...)...)
		if err != nil {
			return n, err
		}
		deleted, err := res.RowsAffected()
		if n += int(deleted); err != nil {
			return n, err
		}
	}
	return n, nil
}
