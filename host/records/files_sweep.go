package records

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"openskill/host/store"
)

// Tend calls Sweep once a minute until ctx ends.
func (f *Files) Tend(ctx context.Context) {
	for {
		if err := f.Sweep(ctx); err != nil && ctx.Err() == nil {
			f.o.Log.LogAttrs(ctx, slog.LevelWarn, "cannot remove expired files", slog.String("reason", err.Error()))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Minute):
		}
	}
}

// Sweep removes expired workspaces and files, orphaned parts, and local copies that are no longer used.
func (f *Files) Sweep(ctx context.Context) error {
	now := f.o.Now()
	for _, table := range []string{"workspaces", "sessions"} {
		if _, err := f.o.DB.Exec(ctx, "DELETE FROM "+table+" WHERE expires_at <= $1", now.UnixMicro()); err != nil {
			return err
		}
	}
	for {
		n, err := f.o.DB.Exec(ctx, "DELETE FROM files WHERE (tenant, digest) IN (SELECT tenant, digest FROM files WHERE expires_at <= $1 LIMIT $2)", now.UnixMicro(), sweepStep)
		if err != nil {
			return err
		}
		if n < sweepStep {
			break
		}
	}
	contents, err := store.All(ctx, f.o.DB.Read, store.Column[string], "SELECT DISTINCT content FROM file_parts p WHERE created_at < $1 AND NOT EXISTS (SELECT 1 FROM files f WHERE f.content = p.content) LIMIT $2",
		now.Add(-abandoned).UnixMicro(), sweepStep)
	if err != nil {
		return err
	}
	for _, content := range contents {
		f.dropParts(ctx, "", content)
	}
	return f.sweepCopies(filepath.Dir(f.o.Dir("")), now)
}

// dropParts removes the parts of a file. Sweep removes the rest after an error.
func (f *Files) dropParts(ctx context.Context, tenant, content string) {
	for {
		n, err := f.o.DB.ExecInTurn(ctx, tenant, "DELETE FROM file_parts WHERE content = $1 AND part IN (SELECT part FROM file_parts WHERE content = $1 ORDER BY part DESC LIMIT $2)", content, partsAtOnce)
		if err != nil || n < partsAtOnce {
			return
		}
	}
}

// sweepCopies removes copies that have not been used for twice the retention time, and incomplete copies
// older than an hour.
func (f *Files) sweepCopies(root string, now time.Time) error {
	files := os.DirFS(root)
	copies, err := fs.Glob(files, "*/*")
	if err != nil {
		return err
	}
	for _, name := range copies {
		path := filepath.Join(root, filepath.FromSlash(name))
		age := max(2*f.o.Keep, time.Hour)
		if strings.HasPrefix(filepath.Base(path), incomingPrefix) {
			age = time.Hour
		}
		if info, err := os.Stat(path); err == nil && now.Sub(info.ModTime()) > age {
			_ = os.Remove(path) // the next sweep tries again
		}
	}
	return nil
}
