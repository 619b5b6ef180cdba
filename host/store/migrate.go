package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/gofrs/flock"
	"github.com/pressly/goose/v3"

	"openskill/sdk/skill"
)

// migrations are the schema of the database, step by step, forward and back, once for each
// kind of database.
//
// A step is a file NNNN_name.sql in sqlite and one of the same name in postgres, each
// with an Up and a Down. A Down takes away what its Up made and touches nothing else.
// On PostgreSQL everything is in the schema agent, and is written with it; times are
// TIMESTAMPTZ there and INTEGER on SQLite, microseconds since 1970 in UTC. A step that
// was released is never changed: the next one mends it.
//
// While hosts are updated one after the other, those of the release before work with the new
// schema. So a step adds: tables, and columns with a default. What is not used any more goes a
// release later, in a step that sets schema_floor to its version.
//
//go:embed migrations/sqlite/*.sql migrations/postgres/*.sql
var migrations embed.FS

// migrationsFor gives what steps db, of one of the kinds, to a version. It does not own db.
func migrationsFor(db *sql.DB, kind Kind) (*goose.Provider, error) {
	dialect := goose.DialectSQLite3
	if kind == Postgres {
		dialect = goose.DialectPostgres
	}
	steps, err := fs.Sub(migrations, "migrations/"+string(kind))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, db, steps, goose.WithLogger(goose.NopLogger()), goose.WithDisableGlobalRegistry(true))
}

// Migration is one step of the schema.
type Migration struct {
	Version int64      `json:"version"`
	Name    string     `json:"name"`
	Applied *time.Time `json:"applied"` // nil: it is not
}

// Migrator changes the schema of a database as it is asked; [Open] alone brings it up to
// date.
type Migrator struct {
	place *place
	db    *DB
	steps *steps
}

// Migrate opens a database and leaves its schema as it is.
func Migrate(ctx context.Context, o Options) (*Migrator, error) {
	where, err := o.parse()
	if err != nil {
		return nil, err
	}
	d, err := where.connect(ctx)
	if err != nil {
		return nil, opening(err)
	}
	s, err := where.steps(d)
	if err != nil {
		return nil, errors.Join(opening(err), d.Close())
	}
	return &Migrator{place: where, db: d, steps: s}, nil
}

// Close closes the database. It may be called twice.
func (m *Migrator) Close() error { return errors.Join(m.steps.close(), m.db.Close()) }

// Status lists every step, in order.
func (m *Migrator) Status(ctx context.Context) ([]Migration, error) {
	unlock, err := m.place.lock(ctx, m.steps.db) // which makes the schema that goose's own table needs
	if err != nil {
		return nil, opening(err)
	}
	defer unlock()
	if _, err := m.steps.known(ctx); err != nil {
		return nil, opening(err)
	}
	return m.status(ctx)
}

func (m *Migrator) status(ctx context.Context) ([]Migration, error) {
	all, err := m.steps.Status(ctx)
	if err != nil {
		return nil, opening(err)
	}
	out := make([]Migration, 0, len(all))
	for _, s := range all {
		one := Migration{Version: s.Source.Version, Name: s.Source.Path}
		if s.State == goose.StateApplied {
			applied := s.AppliedAt.UTC()
			one.Applied = &applied
		}
		out = append(out, one)
	}
	return out, nil
}

// Latest is the version that this program needs.
func (m *Migrator) Latest() int64 { return m.steps.latest() }

// To brings the schema to a version, up or down, and lists every step as it is then.
// Version 0 is a database without tables of openSkill.
func (m *Migrator) To(ctx context.Context, version int64) ([]Migration, error) {
	if version < 0 || version > m.steps.latest() {
		return nil, &skill.Error{
			Op: "store.To", Code: skill.InvalidArgument, Subject: "version",
			Message: fmt.Sprintf("unknown schema version %d; use 0 to %d", version, m.steps.latest()),
		}
	}
	unlock, err := m.place.lock(ctx, m.steps.db)
	if err != nil {
		return nil, opening(err)
	}
	defer unlock()
	now, err := m.steps.known(ctx)
	if err != nil {
		return nil, opening(err)
	}
	switch {
	case now < version:
		_, err = m.steps.UpTo(ctx, version)
	case now > version:
		_, err = m.steps.DownTo(ctx, version)
	}
	if err != nil {
		return nil, opening(err)
	}
	return m.status(ctx)
}

// current brings the schema of d up to date.
func (p *place) current(ctx context.Context, d *DB) error {
	s, err := p.steps(d)
	if err != nil {
		return err
	}
	defer s.close() //nolint:errcheck // what it did is committed
	if s.upToDate(ctx, d) {
		return nil
	}
	unlock, err := p.lock(ctx, s.db)
	if err != nil {
		return err
	}
	defer unlock()
	now, err := s.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	if now > s.latest() && s.works(ctx) {
		return nil
	}
	if _, err := s.known(ctx); err != nil {
		return err
	}
	_, err = s.Up(ctx)
	return err
}

// works reports whether this program can work with a later schema, which has only more than the one it knows.
func (s *steps) works(ctx context.Context) bool {
	var floor int64
	err := s.db.QueryRowContext(ctx, "SELECT version FROM schema_floor").Scan(&floor)
	return err == nil && floor <= s.latest()
}

// steps are the migrations of one database.
type steps struct {
	*goose.Provider
	db    *sql.DB
	close func() error
}

func (p *place) steps(d *DB) (*steps, error) {
	db, closing := d.Write, func() error { return nil }
	if p.kind == Postgres {
		patient := p.net
		patient.Patient, patient.Conns = true, 3
		var err error
		if db, err = openServer(patient); err != nil {
			return nil, p.wrongURL(err)
		}
		closing = db.Close
	}
	provider, err := migrationsFor(db, p.kind)
	if err != nil {
		return nil, errors.Join(err, closing())
	}
	return &steps{Provider: provider, db: db, close: closing}, nil
}

func (s *steps) latest() int64 {
	all := s.ListSources()
	return all[len(all)-1].Version
}

// upToDate looks, without a lock, whether every step was applied and no other one: so
// that what opens the database often does not wait for others.
func (s *steps) upToDate(ctx context.Context, d *DB) bool {
	rows, err := d.Read.QueryContext(ctx, "SELECT version_id FROM goose_db_version WHERE version_id > 0 ORDER BY version_id")
	if err != nil {
		return false // it is new
	}
	defer rows.Close()
	all := s.ListSources()
	n := 0
	for ; rows.Next(); n++ {
		var version int64
		if rows.Scan(&version) != nil || n >= len(all) || all[n].Version != version {
			return false
		}
	}
	return rows.Err() == nil && n == len(all)
}

// known gives the version of the database, which must not be later than this program.
func (s *steps) known(ctx context.Context) (int64, error) {
	now, err := s.GetDBVersion(ctx)
	if err != nil {
		return 0, err
	}
	if now > s.latest() {
		return 0, &skill.Error{
			Op: "store.Open", Code: skill.Conflict, Subject: "schema",
			Message: fmt.Sprintf("the database has schema %d and this program knows %d: use the release that created it, or a newer one", now, s.latest()),
		}
	}
	return now, nil
}

// lock waits until no other process changes the schema.
func (p *place) lock(ctx context.Context, db *sql.DB) (unlock func(), err error) {
	if p.kind == Postgres {
		return lockSchema(ctx, db)
	}
	l := flock.New(p.file.File+".lock", flock.SetPermissions(0o600))
	if ok, err := l.TryLockContext(ctx, 10*time.Millisecond); err != nil || !ok {
		return nil, fmt.Errorf("store: the lock of the database's schema cannot be had: %w", err)
	}
	return func() { _ = l.Unlock() }, nil
}
