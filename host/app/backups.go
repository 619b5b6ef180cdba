package app

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"openskill/host/app/config"
	"openskill/host/dispatch/approval"
	"openskill/host/manifest"
	"openskill/host/store"
	"openskill/internal/backup"
	"openskill/sdk/skill"
)

// Backup writes what a host with these settings must not lose: the database with uploads and
// approvals, the journals of records, and the names of trusted skills. It leaves out runtimes and
// compiled modules, which can be fetched and compiled again, and a PostgreSQL database. Hosts
// may run meanwhile; what begins after the call may be missing.
func Backup(ctx context.Context, s *config.Settings, w io.Writer, log *slog.Logger) (*backup.Index, error) {
	if missing(s.StateDir) {
		return nil, &skill.Error{Op: "host.Backup", Code: skill.NotFound, Message: "state folder not found: no host has run with these settings"}
	}
	d, err := stateDirs(s.StateDir)
	if err != nil {
		return nil, err
	}
	staging, err := os.MkdirTemp(d.temp, backupPrefix)
	if err != nil {
		return nil, fmt.Errorf("host.Backup: %w", err)
	}
	defer os.RemoveAll(staging)
	held := lockOf(staging)
	_, _ = held.TryLock() // where there are no locks, sweepBackups removes nothing
	defer held.Close()
	from := store.Options{URL: s.DatabaseURL, StateDir: d.root, Log: log}
	journals := backup.Part{Name: store.Journals, From: filepath.Join(staging, store.Journals)}
	if err := store.SnapshotJournals(from, journals.From); err != nil {
		return nil, fmt.Errorf("host.Backup: %w", err)
	}
	database := backup.Part{Name: store.File, From: filepath.Join(staging, store.File)}
	kind, schema, err := store.Snapshot(ctx, from, database.From)
	if err != nil {
		return nil, err
	}
	parts := []backup.Part{database, journals}
	// Beside the names of trusted skills, what older releases kept in files, and no host of
	// this one has imported yet.
	for _, name := range []string{manifest.NamedFile, oldUploads, filepath.Base(approval.Dir(d.root))} {
		parts = append(parts, backup.Part{Name: name, From: filepath.Join(d.root, name)})
	}
	x := &backup.Index{Program: Version, Made: time.Now().UTC(), Database: string(kind), Schema: schema}
	if err := backup.Write(ctx, w, x, parts); err != nil {
		return nil, err
	}
	return x, nil
}

const backupPrefix = "backup-"

// lockOf is the file in the folder of a backup that is locked while it is made. The lock
// goes with its process, which a number in the name would not say of another container's.
func lockOf(staging string) *flock.Flock { return flock.New(filepath.Join(staging, ".lock")) }

// sweepAfter spares folders of backups that have no lock yet.
const sweepAfter = time.Minute

// sweepBackups removes what backups left that were killed: each is a copy of the database.
func sweepBackups(d state) {
	now := time.Now()
	left, _ := fs.Glob(os.DirFS(d.temp), backupPrefix+"*") // the pattern is a good one
	for _, name := range left {
		dir := filepath.Join(d.temp, name)
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() {
			continue
		}
		held := lockOf(dir)
		if missing(held.Path()) && now.Sub(info.ModTime()) < sweepAfter {
			continue
		}
		if free, err := held.TryLock(); err != nil || !free {
			continue // it is being made, or another user's
		}
		_ = held.Close()      // some systems remove no file that is open
		_ = os.RemoveAll(dir) // it is tried again at the next start
	}
}

// Restore makes a state folder of a backup. There must be none yet; it appears whole, and
// with a database that this program can open, or not at all.
func Restore(ctx context.Context, stateDir string, r io.Reader) (*backup.Index, error) {
	return backup.Restore(ctx, r, stateDir, func(ctx context.Context, dir string, x *backup.Index) error {
		for _, f := range x.Files {
			if !backedUp(f.Path) {
				return &skill.Error{
					Op: "host.Restore", Code: skill.InvalidArgument,
					Message: "invalid backup: unexpected file " + skill.CleanText(f.Path, 100),
				}
			}
		}
		if x.Database != string(store.SQLite) {
			return nil
		}
		file := filepath.Join(dir, store.File)
		if missing(file) {
			return &skill.Error{Op: "host.Restore", Code: skill.InvalidArgument, Message: "invalid backup: the database is missing"}
		}
		return store.Check(ctx, file)
	})
}

// backedUp reports whether a file is of what Backup writes. A state folder has more, such
// as compiled modules, which a host trusts as it does itself: machine code in an archive of
// somebody else's would be that of every call.
func backedUp(name string) bool {
	top, _, below := strings.Cut(name, "/")
	switch top {
	case store.File, manifest.NamedFile:
		return !below
	case oldUploads, store.Journals, filepath.Base(approval.Dir("")):
		return below
	}
	return false
}
