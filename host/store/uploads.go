package store

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"time"

	"github.com/uptrace/bun"

	"openskill/host/catalogue"
	"openskill/sdk/skill"
)

// Uploads is where several hosts keep uploaded skills together. One that is alone, with
// SQLite, has no need of it: its files are enough.
func (d *DB) Uploads() catalogue.Shared { return uploadStore{d} }

type uploadStore struct{ db *DB }

// Records implements catalogue.Shared. Changes are committed in the order of their
// revisions, so that whoever sees one sees all before it.
func (s uploadStore) Records(ctx context.Context, after uint64) ([]catalogue.Record, uint64, error) {
	var upTo int64
	if err := s.db.urgent.NewRaw("SELECT revision FROM revisions WHERE topic = ?", catalogue.Topic).Scan(ctx, &upTo); err != nil {
		return nil, 0, err
	}
	var rows []struct {
		Tenant   string
		ID       string `bun:"id"`
		Revision int64
		State    string
	}
	err := s.db.urgent.NewRaw("SELECT tenant, id, revision, state FROM skill_uploads WHERE revision > ? ORDER BY revision", int64(after)).Scan(ctx, &rows)
	if err != nil {
		return nil, 0, err
	}
	list := make([]catalogue.Record, len(rows))
	for i, r := range rows {
		list[i] = catalogue.Record{Tenant: r.Tenant, ID: skill.ID(r.ID), Revision: uint64(r.Revision), State: []byte(r.State)}
		upTo = max(upTo, r.Revision)
	}
	return list, uint64(upTo), nil
}

// Change implements catalogue.Shared. The files are written before the turn of this
// transaction among all changes is taken, which is short then.
func (s uploadStore) Change(ctx context.Context, tenant string, id skill.ID, files *catalogue.Files, do func(catalogue.Now) (*catalogue.Next, error)) (uint64, error) {
	if plain(tenant) != tenant {
		return 0, &skill.Error{Op: "store.Uploads", Code: skill.InvalidArgument, Subject: "tenant", Message: "the name of the tenant is not text that the database can hold"}
	}
	var revision uint64
	change := func(ctx context.Context, tx bun.Tx) error {
		if files != nil {
			if err := s.db.WriteBlob(ctx, tx.Tx, files.Digest, files.From); err != nil {
				return err
			}
		}
		var err error
		if revision, err = s.db.Raise(ctx, tx.Tx, catalogue.Topic); err != nil {
			return err
		}
		now, err := s.now(ctx, tx, tenant, id)
		if err != nil {
			return err
		}
		next, err := do(now)
		if err != nil {
			return err
		}
		return s.record(ctx, tx, tenant, id, next, revision)
	}
	err := s.db.inTopic(ctx, catalogue.Topic, tenant, func() error { return s.db.inTx(ctx, change) })
	return revision, err
}

func (s uploadStore) now(ctx context.Context, tx bun.Tx, tenant string, id skill.ID) (now catalogue.Now, err error) {
	var state string
	switch err := tx.NewRaw("SELECT state FROM skill_uploads WHERE tenant = ? AND id = ?", tenant, string(id)).Scan(ctx, &state); {
	case err == nil:
		now.State = []byte(state)
	case !errors.Is(err, sql.ErrNoRows):
		return now, err
	}
	if err := tx.NewRaw("SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM skill_upload_versions WHERE tenant = ?", tenant).Scan(ctx, &now.Bytes); err != nil {
		return now, err
	}
	if err := tx.NewRaw("SELECT COUNT(*) FROM skill_uploads WHERE tenant = ? AND live", tenant).Scan(ctx, &now.Skills); err != nil {
		return now, err
	}
	err = tx.NewRaw("SELECT tenant FROM skill_uploads WHERE id = ? AND approved", string(id)).Scan(ctx, &now.Approved)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return now, err
}

// record writes what is so of a skill from now on.
func (s uploadStore) record(ctx context.Context, tx bun.Tx, tenant string, id skill.ID, next *catalogue.Next, revision uint64) error {
	if _, err := tx.NewRaw("DELETE FROM skill_upload_versions WHERE tenant = ? AND id = ?", tenant, string(id)).Exec(ctx); err != nil {
		return err
	}
	if next.State == nil {
		_, err := tx.NewRaw("DELETE FROM skill_uploads WHERE tenant = ? AND id = ?", tenant, string(id)).Exec(ctx)
		return err
	}
	_, err := tx.NewRaw(`INSERT INTO skill_uploads (tenant, id, state, approved, live, revision) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (tenant, id) DO UPDATE SET state = EXCLUDED.state, approved = EXCLUDED.approved, live = EXCLUDED.live, revision = EXCLUDED.revision`,
		tenant, string(id), string(next.State), next.Approved, next.Live, int64(revision)).Exec(ctx)
	if err != nil {
		return err
	}
	for _, v := range next.Versions {
		_, err := tx.NewRaw("INSERT INTO skill_upload_versions (tenant, id, version, digest, bytes) VALUES (?, ?, ?, ?, ?)", tenant, string(id), v.Version, v.Digest, v.Bytes).Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// tidiedTogether is how many archives are removed in one transaction: all that there may
// be would take longer than a statement has, and then none would ever go.
const tidiedTogether = 10

// Tidy implements catalogue.Shared. An archive that a transaction is about to name is
// held by it until it is named, and was used since.
func (s uploadStore) Tidy(ctx context.Context, since time.Time) error {
	const unused = "used_at < ? AND NOT EXISTS (SELECT 1 FROM skill_upload_versions v WHERE v.digest = skill_blobs.digest)"
	for {
		var some []string
		err := s.db.read.NewRaw("SELECT digest FROM skill_blobs WHERE "+unused+" LIMIT ?", at(since), tidiedTogether).Scan(ctx, &some)
		if err != nil || len(some) == 0 { // mostly: without a transaction that writes
			return err
		}
		if _, err := s.db.exec(ctx, "DELETE FROM skill_blobs WHERE digest IN (?) AND "+unused, bun.List(some), at(since)); err != nil {
			return err
		}
		if len(some) < tidiedTogether {
			return nil
		}
	}
}

// Archive implements catalogue.Shared.
func (s uploadStore) Archive(ctx context.Context, digest string, to io.Writer) error {
	return s.db.ReadBlob(ctx, digest, to)
}
