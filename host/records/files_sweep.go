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

// Tend removes what has expired, once a minute until ctx ends.
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

// Sweep removes files that have expired, parts that no file names, and copies that were not used for long.
func (f *Files) Sweep(ctx context.Context) error {
	now := f.o.Now()
	if _, err := f.o.DB.Exec(ctx, "DELETE FROM workspaces WHERE expires_at <= $1", now.UnixMicro()); err != nil {
		return err
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

// dropParts removes the parts of a file; what is left is swept.
func (f *Files) dropParts(ctx context.Context, tenant, content string) {
	for {
		n, err := f.o.DB.ExecInTurn(ctx, tenant, "DELETE FROM file_parts WHERE content = $1 AND part IN (SELECT part FROM file_parts WHERE content = $1 ORDER BY part DESC LIMIT $2)", content, partsAtOnce)
		if err != nil || n < partsAtOnce {
			return
		}
	}
}

// sweepCopies removes copies below a folder that were not used since files of that age expired, and
// what came in and was left behind.
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
