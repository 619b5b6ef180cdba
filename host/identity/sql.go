package identity

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"openskill/host/store"
)

// keyRows are keys in the table api_keys.
type keyRows struct{ db *store.DB }

// NewKeyStore gives the keys of a database.
func NewKeyStore(db *store.DB) KeyStore { return keyRows{db} }

const keyColumns = "id, name, tenant, scopes, created_at, created_by, expires_at, rotated_at, revoked_at, last_used_at, hash, old_hash, old_until"

// scanKey reads keyColumns. A hash of another length is none: no key has it.
func scanKey(rows *sql.Rows) (*Key, error) {
	k := &Key{}
	var scopes string
	var created, expires, rotated, revoked, used, oldUntil store.Time
	var hash, oldHash []byte
	err := rows.Scan(&k.ID, &k.Name, &k.Tenant, &scopes, &created, &k.CreatedBy, &expires, &rotated, &revoked, &used, &hash, &oldHash, &oldUntil)
	k.Scopes = strings.Fields(scopes)
	k.CreatedAt, k.ExpiresAt, k.RotatedAt = created.Time, expires.Time, rotated.Time
	k.RevokedAt, k.LastUsedAt, k.OldUntil = revoked.Time, used.Time, oldUntil.Time
	if len(hash) == len(k.Hash) {
		copy(k.Hash[:], hash)
	}
	if len(oldHash) == len(k.OldHash) {
		copy(k.OldHash[:], oldHash)
	}
	return k, err
}

// Now implements KeyStore.
func (s keyRows) Now(ctx context.Context) (time.Time, error) { return s.db.Now(ctx, s.db.Read) }

// Key implements Lookup.
func (s keyRows) Key(ctx context.Context, id string) (*Key, error) {
	found, err := store.All(ctx, s.db.Urgent, scanKey, "SELECT "+keyColumns+" FROM api_keys WHERE id = $1", store.Plain(id))
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, ErrNoKey
	}
	return found[0], nil
}

// Changes implements Lookup. The revision is that of the last row: a later one of
// api_key_changes may be that of a transaction whose row cannot be seen yet.
func (s keyRows) Changes(ctx context.Context, after uint64, most int) (ids []string, now uint64, err error) {
	now = after
	ids, err = store.All(ctx, s.db.Urgent, func(rows *sql.Rows) (id string, err error) {
		var revision int64
		err = rows.Scan(&id, &revision)
		now = max(now, uint64(revision))
		return id, err
	}, "SELECT id, revision FROM api_keys WHERE revision > $1 ORDER BY revision DESC LIMIT $2", int64(min(after, 1<<62)), most)
	if err != nil {
		return nil, 0, err
	}
	return ids, now, nil
}

// touchedTogether is how many keys one transaction touches: a statement for each would
// take longer than there is time where many thousand are used, and SQLite's one
// connection as long.
const touchedTogether = 200

// Touch implements Lookup. It locks the keys in order, so that two hosts that touch
// the same ones do not wait for each other in a circle, and by one statement, in which no
// host can freeze that holds keys of all tenants.
func (s keyRows) Touch(ctx context.Context, used map[string]time.Time) error {
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(used)), touchedTogether) {
		args := make([]any, 0, 2*len(ids))
		rows := make([]string, len(ids))
		for i, id := range ids {
			args = append(args, store.Plain(id), s.db.At(used[id]))
			if rows[i] = fmt.Sprintf("($%d, $%d)", 2*i+1, 2*i+2); s.db.Postgres() {
				rows[i] = fmt.Sprintf("($%d, CAST($%d AS TIMESTAMPTZ))", 2*i+1, 2*i+2)
			}
		}
		statement := "UPDATE api_keys SET last_used_at = v.column2 FROM (VALUES " + strings.Join(rows, ", ") + ") AS v" +
			" WHERE id = v.column1 AND (last_used_at IS NULL OR last_used_at < v.column2)"
		if s.db.Postgres() {
			statement += " AND id IN (SELECT id FROM api_keys WHERE id IN (SELECT w.column1 FROM (VALUES " + strings.Join(rows, ", ") + ") AS w) ORDER BY id FOR UPDATE)"
		}
		if _, err := s.db.Exec(ctx, statement, args...); err != nil {
			return err
		}
	}
	return nil
}

// changing runs do in a transaction that no other change of a key overtakes, with the
// revision that it makes.
func (s keyRows) changing(ctx context.Context, do func(tx *sql.Tx, revision int64) error) error {
	return s.db.InTx(ctx, func(tx *sql.Tx) error {
		var revision int64
		if err := tx.QueryRowContext(ctx, "UPDATE api_key_changes SET revision = revision + 1 RETURNING revision").Scan(&revision); err != nil {
			return err
		}
		return do(tx, revision)
	})
}

// Create implements KeyStore.
func (s keyRows) Create(ctx context.Context, k *Key) error {
	var oldHash []byte
	if !k.OldUntil.IsZero() {
		oldHash = k.OldHash[:]
	}
	return s.changing(ctx, func(tx *sql.Tx, revision int64) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO api_keys ("+keyColumns+", revision) VALUES ("+store.List(1, 14)+")",
			store.Plain(k.ID), store.Plain(k.Name), store.Plain(k.Tenant), store.Plain(strings.Join(k.Scopes, " ")),
			s.db.At(k.CreatedAt), store.Plain(k.CreatedBy), s.db.At(k.ExpiresAt), s.db.At(k.RotatedAt), s.db.At(k.RevokedAt), s.db.At(k.LastUsedAt),
			k.Hash[:], oldHash, s.db.At(k.OldUntil), revision)
		return err
	})
}

// Keys implements KeyStore. A cursor is the id of the last key of a page.
func (s keyRows) Keys(ctx context.Context, q KeyQuery) ([]*Key, string, error) {
	where, args := "true", []any{q.Limit + 1}
	if q.Tenant != "" {
		args = append(args, store.Plain(q.Tenant))
		where += " AND tenant = $2"
	}
	if q.Cursor != "" {
		var created store.Time
		err := s.db.Read.QueryRowContext(ctx, "SELECT created_at FROM api_keys WHERE id = $1", store.Plain(q.Cursor)).Scan(&created)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return nil, "", ErrNoKey
		case err != nil:
			return nil, "", err
		}
		where += " AND (created_at, id) < (" + store.List(len(args)+1, 2) + ")"
		args = append(args, s.db.At(created.Time), store.Plain(q.Cursor))
	}
	list, err := store.All(ctx, s.db.Read, scanKey, "SELECT "+keyColumns+" FROM api_keys WHERE "+where+" ORDER BY created_at DESC, id DESC LIMIT $1", args...)
	if err != nil || len(list) <= q.Limit {
		return list, "", err
	}
	return list[:q.Limit], list[q.Limit-1].ID, nil
}

// Rotate implements KeyStore.
func (s keyRows) Rotate(ctx context.Context, id string, hash [32]byte, oldUntil, now time.Time) (done bool, err error) {
	err = s.changing(ctx, func(tx *sql.Tx, revision int64) (err error) {
		done, err = changedOne(ctx, tx, id, "UPDATE api_keys SET old_hash = hash, old_until = $2, hash = $3, rotated_at = $4, revision = $5"+
			" WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $4)", s.db.At(oldUntil), hash[:], s.db.At(now), revision)
		return err
	})
	return done && err == nil, err
}

// Revoke implements KeyStore.
func (s keyRows) Revoke(ctx context.Context, id string, now time.Time) error {
	return s.changing(ctx, func(tx *sql.Tx, revision int64) error {
		_, err := changedOne(ctx, tx, id, "UPDATE api_keys SET revoked_at = $2, revision = $3 WHERE id = $1 AND revoked_at IS NULL", s.db.At(now), revision)
		return err
	})
}

// changedOne changes the key of an id. It tells one that is not as it would have to be from
// one that is not there.
func changedOne(ctx context.Context, tx *sql.Tx, id, statement string, args ...any) (bool, error) {
	id = store.Plain(id)
	res, err := tx.ExecContext(ctx, statement, append([]any{id}, args...)...)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	if err != nil || n > 0 {
		return n > 0, err
	}
	var there int
	if err = tx.QueryRowContext(ctx, "SELECT 1 FROM api_keys WHERE id = $1", id).Scan(&there); errors.Is(err, sql.ErrNoRows) {
		err = ErrNoKey
	}
	return false, err
}
