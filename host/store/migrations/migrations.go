// Package migrations holds the schema of the database, step by step, forward and back,
// once for each kind of database.
//
// A step is a file NNNN_name.sql in sqlite and one of the same name in postgres, each
// with an Up and a Down. A Down takes away what its Up made and touches nothing else.
// On PostgreSQL everything is in the schema agent, and is written with it; times are
// TIMESTAMPTZ there and INTEGER on SQLite, microseconds since 1970 in UTC. A step that
// was released is never changed: the next one mends it.
package migrations

import (
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// The kinds of databases, which are the folders here.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// New gives what steps db, of one of the kinds, to a version. It does not own db.
func New(db *sql.DB, kind string) (*goose.Provider, error) {
	dialect, ok := map[string]goose.Dialect{SQLite: goose.DialectSQLite3, Postgres: goose.DialectPostgres}[kind]
	if !ok {
		return nil, fmt.Errorf("migrations: there is no kind %q of database", kind)
	}
	steps, err := fs.Sub(files, kind)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, db, steps, goose.WithLogger(goose.NopLogger()), goose.WithDisableGlobalRegistry(true))
}
