package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"openskill/sdk/skill"
)

// Snapshot writes the database, as it is at one moment and without sessions of the console, to a
// file that is not there yet.
// Hosts may go on working meanwhile. Of PostgreSQL there is none: its own tools make copies
// that can be restored while others write, and the kind says so.
func Snapshot(ctx context.Context, o Options, to string) (kind Kind, schema int64, err error) {
	where, err := o.parse()
	if err != nil {
		return "", 0, err
	}
	if where.kind == Postgres {
		return Postgres, 0, nil
	}
	if _, err := os.Stat(where.file.File); errors.Is(err, fs.ErrNotExist) {
		return SQLite, 0, &skill.Error{Op: "store.Snapshot", Code: skill.NotFound, Message: "no database yet: no host has used this state folder"}
	}
	m, err := Migrate(ctx, o)
	if err != nil {
		return SQLite, 0, err
	}
	defer m.Close()
	if schema, err = m.steps.known(ctx); err != nil {
		return SQLite, 0, opening(err)
	}
	// A transaction that reads: writers go on, and a copy without the pages that are free.
	if _, err := m.db.Write.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return SQLite, 0, fmt.Errorf("store.Snapshot: %w", err)
	}
	return SQLite, schema, errors.Join(os.Chmod(to, 0o600), leaveOut(ctx, to))
}

// SnapshotJournals copies the journals of a SQLite database to a folder. It comes before the
// Snapshot, which has what hosts delete meanwhile.
func SnapshotJournals(o Options, to string) error {
	where, err := o.parse()
	if err != nil || where.kind == Postgres {
		return err
	}
	files, err := os.ReadDir(where.journals)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err = errors.Join(err, os.Mkdir(to, 0o700)); err != nil {
		return err
	}
	for _, f := range slices.Backward(files) { // so that what hosts delete meanwhile is missing at the front
		if filepath.Ext(f.Name()) != ".journal" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(where.journals, f.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := errors.Join(err, os.WriteFile(filepath.Join(to, f.Name()), data, 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// leaveOut removes from a copy what must not come back: the sessions of the console, since somebody may have
// signed out, queued calls, which have run meanwhile, and messages, which were sent.
func leaveOut(ctx context.Context, file string) error {
	m, err := Migrate(ctx, Options{file: file})
	if err != nil {
		return err
	}
	defer m.Close()
	names, err := All(ctx, m.db.Write, Column[string], "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('console_sessions', 'queued_calls', 'queued_sums', 'deliveries')")
	for _, name := range names { // of older releases not all
		_, deleted := m.db.Write.ExecContext(ctx, "PRAGMA secure_delete = ON; DELETE FROM "+name)
		err = errors.Join(err, deleted)
	}
	return err
}

// Check looks whether a SQLite file is whole and of a release that this program can open.
func Check(ctx context.Context, file string) error {
	m, err := Migrate(ctx, Options{file: file})
	if err != nil {
		return err
	}
	defer m.Close()
	if _, err := m.steps.known(ctx); err != nil {
		return opening(err)
	}
	var said string
	if err := m.db.Write.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&said); err != nil {
		return opening(err)
	}
	if said != "ok" {
		return &skill.Error{Op: "store.Check", Code: skill.InvalidArgument, Message: "the database is damaged: " + skill.CleanText(said, 200)}
	}
	return nil
}
