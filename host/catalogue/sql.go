package catalogue

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"openskill/host/store"
	"openskill/sdk/skill"
)

// Topic is what changes of uploads are announced by.
const Topic = "uploads"

// selectRecords reads the records that where selects, in the order of their changes. It is
// one statement, so that a record and its versions are of one moment.
func selectRecords(ctx context.Context, on store.Querier, where string, args ...any) ([]*record, error) {
	rows, err := on.QueryContext(ctx, `SELECT u.tenant, u.id, u.current_version, u.history, u.revision, v.version, v.digest, v.bytes, v.position, v.uploaded_by, v.uploaded_at,
			v.enabled, v.was_enabled, v.approved_by, v.approved_at, v.approved_reason, v.quarantined_by, v.quarantined_at, v.quarantine_reason, v.deleted_at, v.gone,
			v.packages_lock, v.packages_set, v.packages_bytes
		FROM uploads u JOIN upload_versions v ON v.tenant = u.tenant AND v.id = u.id
		WHERE `+where+` ORDER BY u.revision, u.tenant, u.id, v.position`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []*record
	for rows.Next() {
		r, v, approved, quarantine := &record{}, &version{}, &Mark{}, &Mark{}
		var history string
		var uploaded, approvedAt, quarantinedAt, deleted int64
		err := rows.Scan(&r.key.tenant, &r.key.id, &r.current, &history, &r.revision, &v.version, &v.digest, &v.bytes, &v.position, &v.uploadedBy, &uploaded,
			&v.enabled, &v.wasEnabled, &approved.By, &approvedAt, &approved.Reason, &quarantine.By, &quarantinedAt, &quarantine.Reason, &deleted, &v.gone,
			&v.packages.lock, &v.packages.set, &v.packages.bytes)
		if err != nil {
			return nil, err
		}
		v.uploadedAt, v.deleted = instant(uploaded), instant(deleted)
		if approved.At = instant(approvedAt); approvedAt != 0 {
			v.approved = approved
		}
		if quarantine.At = instant(quarantinedAt); quarantinedAt != 0 {
			v.quarantine = quarantine
		}
		if n := len(list); n > 0 && list[n-1].key == r.key {
			r = list[n-1]
		} else {
			r.history = strings.Fields(history)
			list = append(list, r)
		}
		r.versions = append(r.versions, v)
	}
	return list, rows.Err()
}

// micros is a time as the columns have it: in microseconds since 1970, 0 for none.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func instant(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// columns is a decision as the columns have it. One that was made at no known time is one
// all the same.
func (d *Mark) columns() (Mark, int64) {
	if d == nil {
		return Mark{}, 0
	}
	return *d, max(d.At.UnixMicro(), 1)
}

// tx is one transaction that changes uploads. On all hosts they come one after the other.
type tx struct {
	*sql.Tx
	ctx      context.Context //nolint:containedctx // it lives as long as the call that has it
	revision uint64
}

// record returns what there is of a skill; nil if nothing is.
func (t *tx) record(k key) (*record, error) {
	list, err := selectRecords(t.ctx, t, "u.tenant = $1 AND u.id = $2", k.tenant, string(k.id))
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

func (t *tx) exec(statement string, args ...any) error {
	_, err := t.ExecContext(t.ctx, statement, args...)
	return err
}

// approvedOf is the tenant whose version of an id is approved for all; "" for none.
func (t *tx) approvedOf(id skill.ID) (tenant string, err error) {
	err = t.QueryRowContext(t.ctx, "SELECT tenant FROM uploads WHERE id = $1 AND approved", string(id)).Scan(&tenant)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return tenant, err
}

// usage is what a tenant has.
type usage struct {
	bytes      int64 // of all versions whose files are kept
	skills     int   // that have a version
	remembered int   // skills that there are or have been
}

func (t *tx) usage(tenant string) (u usage, err error) {
	return u, t.QueryRowContext(t.ctx, `SELECT CAST(COALESCE(SUM(CASE WHEN gone THEN 0 ELSE bytes + packages_bytes END), 0) AS BIGINT),
			COUNT(DISTINCT CASE WHEN deleted_at = 0 THEN id END), COUNT(DISTINCT id)
		FROM upload_versions WHERE tenant = $1`, tenant).Scan(&u.bytes, &u.skills, &u.remembered)
}

// save writes a record, and of its versions those that differ from before, which is nil of
// a new skill. A version is never removed: what it was is remembered.
func (t *tx) save(r, before *record) error {
	approved := slices.ContainsFunc(r.live(), func(v *version) bool { return v.approved != nil })
	err := t.exec(`INSERT INTO uploads (tenant, id, current_version, history, approved, revision) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (tenant, id) DO UPDATE SET current_version = excluded.current_version, history = excluded.history, approved = excluded.approved, revision = excluded.revision`,
		r.key.tenant, string(r.key.id), r.current, strings.Join(r.history, " "), approved, int64(t.revision))
	if err != nil {
		return err
	}
	for _, v := range r.versions {
		if before != nil && slices.ContainsFunc(before.versions, func(w *version) bool { return *v == *w }) {
			continue
		}
		a, approvedAt := v.approved.columns()
		q, quarantinedAt := v.quarantine.columns()
		err := t.exec(`INSERT INTO upload_versions (tenant, id, version, digest, bytes, position, uploaded_by, uploaded_at, enabled, was_enabled,
				approved_by, approved_at, approved_reason, quarantined_by, quarantined_at, quarantine_reason, deleted_at, gone,
				packages_lock, packages_set, packages_bytes)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
			ON CONFLICT (tenant, id, version) DO UPDATE SET digest = excluded.digest, bytes = excluded.bytes, position = excluded.position,
				uploaded_by = excluded.uploaded_by, uploaded_at = excluded.uploaded_at, enabled = excluded.enabled, was_enabled = excluded.was_enabled,
				approved_by = excluded.approved_by, approved_at = excluded.approved_at, approved_reason = excluded.approved_reason,
				quarantined_by = excluded.quarantined_by, quarantined_at = excluded.quarantined_at, quarantine_reason = excluded.quarantine_reason,
				deleted_at = excluded.deleted_at, gone = excluded.gone,
				packages_lock = excluded.packages_lock, packages_set = excluded.packages_set, packages_bytes = excluded.packages_bytes`,
			r.key.tenant, string(r.key.id), v.version, v.digest, v.bytes, v.position, v.uploadedBy, micros(v.uploadedAt), v.enabled, v.wasEnabled,
			a.By, approvedAt, a.Reason, q.By, quarantinedAt, q.Reason, micros(v.deleted), v.gone, v.packages.lock, v.packages.set, v.packages.bytes)
		if err != nil {
			return err
		}
	}
	return nil
}

// unneeded says of archives b that no version needs them, and that none was written of since $1.
const unneeded = "b.used_at < $1" +
	" AND NOT EXISTS (SELECT 1 FROM upload_versions v WHERE v.digest = b.digest AND NOT v.gone)" +
	" AND NOT EXISTS (SELECT 1 FROM upload_versions v WHERE v.packages_lock = b.digest AND NOT v.gone)" +
	" AND NOT EXISTS (SELECT 1 FROM upload_versions v WHERE v.packages_set = b.digest AND NOT v.gone)"

// dropUnneeded removes archives that nobody needs.
func (s *Store) dropUnneeded() error {
	since := s.o.DB.At(s.o.Now().Add(-unnamed))
	for {
		some, err := store.All(s.ctx, s.o.DB.Read, store.Column[string], "SELECT b.digest FROM skill_blobs b WHERE "+unneeded+" LIMIT $2", since, droppedTogether)
		if err != nil || len(some) == 0 { // mostly: without a transaction that writes
			return err
		}
		// One that a transaction is about to name is held by it until it is named, and was used since.
		_, err = s.o.DB.Exec(s.ctx, "DELETE FROM skill_blobs AS b WHERE "+unneeded+" AND b.digest IN ("+store.List(2, len(some))+")", append([]any{since}, store.Args(some)...)...)
		if err != nil || len(some) < droppedTogether {
			return err
		}
	}
}

// droppedTogether is how many archives are removed in one transaction: all that there may
// be would take longer than a statement has, and then none would ever go.
const droppedTogether = 10
