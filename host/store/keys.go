package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"openskill/host/identity"
)

// Keys is where API keys are kept.
func (d *DB) Keys() identity.KeyStore { return keyStore{d} }

type keyStore struct{ db *DB }

// keyRow is a row of api_keys.
type keyRow struct {
	bun.BaseModel `bun:"table:api_keys"`

	ID         string `bun:"id"`
	Name       string `bun:"name"`
	Tenant     string `bun:"tenant"`
	Scopes     string `bun:"scopes"`
	CreatedAt  stamp  `bun:"created_at"`
	CreatedBy  string `bun:"created_by"`
	ExpiresAt  stamp  `bun:"expires_at"`
	RotatedAt  stamp  `bun:"rotated_at"`
	RevokedAt  stamp  `bun:"revoked_at"`
	LastUsedAt stamp  `bun:"last_used_at"`
	Hash       []byte `bun:"hash"`
	OldHash    []byte `bun:"old_hash"`
	OldUntil   stamp  `bun:"old_until"`
	Revision   int64  `bun:"revision"`
}

// key makes the row what it stands for. A hash of another length is none: no key has it.
func (r *keyRow) key() *identity.Key {
	k := &identity.Key{
		ID: r.ID, Name: r.Name, Tenant: r.Tenant, Scopes: strings.Fields(r.Scopes), CreatedAt: r.CreatedAt.Time, CreatedBy: r.CreatedBy,
		ExpiresAt: r.ExpiresAt.Time, RotatedAt: r.RotatedAt.Time, RevokedAt: r.RevokedAt.Time, LastUsedAt: r.LastUsedAt.Time,
		OldUntil: r.OldUntil.Time,
	}
	if len(r.Hash) == len(k.Hash) {
		copy(k.Hash[:], r.Hash)
	}
	if len(r.OldHash) == len(k.OldHash) {
		copy(k.OldHash[:], r.OldHash)
	}
	return k
}

// Now implements identity.KeyStore.
func (s keyStore) Now(ctx context.Context) (time.Time, error) {
	now, err := s.db.clock(ctx, s.db.read)
	return now.Time, err
}

// Key implements identity.Lookup.
func (s keyStore) Key(ctx context.Context, id string) (*identity.Key, error) {
	r := &keyRow{}
	err := s.db.urgent.NewSelect().Model(r).Where("id = ?", plain(id)).Scan(ctx)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, identity.ErrNoKey
	case err != nil:
		return nil, err
	}
	return r.key(), nil
}

// Changes implements identity.Lookup. The revision is that of the last row: a later one of
// api_key_changes may be that of a transaction whose row cannot be seen yet.
func (s keyStore) Changes(ctx context.Context, after uint64, most int) (ids []string, now uint64, err error) {
	var rows []*keyRow
	err = s.db.urgent.NewSelect().Model(&rows).Column("id", "revision").
		Where("revision > ?", int64(min(after, 1<<62))).Order("revision DESC").Limit(int64(most)).Scan(ctx)
	if err != nil {
		return nil, 0, err
	}
	now = after
	for i, r := range rows {
		if i == 0 {
			now = uint64(r.Revision)
		}
		ids = append(ids, r.ID)
	}
	return ids, now, nil
}

// touchedTogether is how many keys one transaction touches: a statement for each would
// take longer than there is time where many thousand are used, and SQLite's one
// connection as long.
const touchedTogether = 200

// Touch implements identity.Lookup. It locks the keys in order, so that two hosts that touch
// the same ones do not wait for each other in a circle, and by one statement, in which no
// host can freeze that holds keys of all tenants.
func (s keyStore) Touch(ctx context.Context, used map[string]time.Time) error {
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(used)), touchedTogether) {
		names := make([]string, len(ids))
		args := make([]any, 0, 2*len(ids)+1)
		for i, id := range ids {
			names[i] = plain(id)
			args = append(args, names[i], at(used[id]))
		}
		statement := "UPDATE api_keys SET last_used_at = CAST(v.column2 AS TIMESTAMPTZ) FROM (VALUES (?, ?)" + strings.Repeat(", (?, ?)", len(ids)-1) + ") AS v" +
			" WHERE id = v.column1 AND (last_used_at IS NULL OR last_used_at < CAST(v.column2 AS TIMESTAMPTZ))"
		if s.db.postgres() {
			statement += " AND id IN (SELECT id FROM api_keys WHERE id IN (?) ORDER BY id FOR UPDATE)"
			args = append(args, bun.List(names))
		}
		if _, err := s.db.exec(ctx, statement, args...); err != nil {
			return err
		}
	}
	return nil
}

// changing runs do in a transaction that no other change of a key overtakes, with the
// revision that it makes.
func (s keyStore) changing(ctx context.Context, do func(ctx context.Context, tx bun.Tx, revision int64) error) error {
	return s.db.inTx(ctx, func(ctx context.Context, tx bun.Tx) error {
		var revision int64
		if err := tx.NewRaw("UPDATE api_key_changes SET revision = revision + 1 RETURNING revision").Scan(ctx, &revision); err != nil {
			return err
		}
		return do(ctx, tx, revision)
	})
}

// Create implements identity.KeyStore.
func (s keyStore) Create(ctx context.Context, k *identity.Key) error {
	r := &keyRow{
		ID: plain(k.ID), Name: plain(k.Name), Tenant: plain(k.Tenant), Scopes: plain(strings.Join(k.Scopes, " ")),
		CreatedAt: at(k.CreatedAt), CreatedBy: plain(k.CreatedBy), ExpiresAt: at(k.ExpiresAt), RotatedAt: at(k.RotatedAt),
		RevokedAt: at(k.RevokedAt), LastUsedAt: at(k.LastUsedAt), Hash: k.Hash[:], OldUntil: at(k.OldUntil),
	}
	if !k.OldUntil.IsZero() {
		r.OldHash = k.OldHash[:]
	}
	return s.changing(ctx, func(ctx context.Context, tx bun.Tx, revision int64) error {
		r.Revision = revision
		_, err := tx.NewInsert().Model(r).Exec(ctx)
		return err
	})
}

// Keys implements identity.KeyStore. A cursor is the id of the last key of a page.
func (s keyStore) Keys(ctx context.Context, q identity.KeyQuery) ([]*identity.Key, string, error) {
	var rows []*keyRow
	ask := s.db.read.NewSelect().Model(&rows).OrderExpr("created_at DESC, id DESC").Limit(int64(q.Limit) + 1)
	if q.Tenant != "" {
		ask = ask.Where("tenant = ?", plain(q.Tenant))
	}
	if q.Cursor != "" {
		last := &keyRow{}
		err := s.db.read.NewSelect().Model(last).Column("id", "created_at").Where("id = ?", plain(q.Cursor)).Scan(ctx)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return nil, "", identity.ErrNoKey
		case err != nil:
			return nil, "", err
		}
		ask = ask.Where("(created_at, id) < (?, ?)", last.CreatedAt, last.ID)
	}
	if err := ask.Scan(ctx); err != nil {
		return nil, "", err
	}
	next := ""
	if len(rows) > q.Limit {
		rows = rows[:q.Limit]
		next = rows[q.Limit-1].ID
	}
	list := make([]*identity.Key, len(rows))
	for i, r := range rows {
		list[i] = r.key()
	}
	return list, next, nil
}

// Rotate implements identity.KeyStore.
func (s keyStore) Rotate(ctx context.Context, id string, hash [32]byte, oldUntil, now time.Time) (bool, error) {
	done := false
	err := s.changing(ctx, func(ctx context.Context, tx bun.Tx, revision int64) error {
		res, err := tx.NewUpdate().Table("api_keys").
			Set("old_hash = hash").Set("old_until = ?", at(oldUntil)).Set("hash = ?", hash[:]).Set("rotated_at = ?", at(now)).Set("revision = ?", revision).
			Where("id = ?", plain(id)).Where("revoked_at IS NULL").Where("expires_at IS NULL OR expires_at > ?", at(now)).Exec(ctx)
		done, err = changedOne(ctx, tx, id, res, err)
		return err
	})
	return done && err == nil, err
}

// Revoke implements identity.KeyStore.
func (s keyStore) Revoke(ctx context.Context, id string, now time.Time) error {
	return s.changing(ctx, func(ctx context.Context, tx bun.Tx, revision int64) error {
		res, err := tx.NewUpdate().Table("api_keys").Set("revoked_at = ?", at(now)).Set("revision = ?", revision).
			Where("id = ?", plain(id)).Where("revoked_at IS NULL").Exec(ctx)
		_, err = changedOne(ctx, tx, id, res, err)
		return err
	})
}

// changedOne tells a key that is not as it would have to be from one that is not there.
func changedOne(ctx context.Context, tx bun.Tx, id string, res sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	switch {
	case err != nil:
		return false, err
	case n == 1:
		return true, nil
	case n > 1:
		return false, fmt.Errorf("store: %d keys of the id %s", n, id)
	}
	there, err := tx.NewSelect().Table("api_keys").Where("id = ?", plain(id)).Exists(ctx)
	if err == nil && !there {
		err = identity.ErrNoKey
	}
	return false, err
}
