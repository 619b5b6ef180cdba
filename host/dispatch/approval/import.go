package approval

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// Older releases kept approvals in this file of Dir, one change a line, with all of what it
// changed: the last line of an approval is its state.
const (
	oldFile  = "approvals.jsonl"
	imported = oldFile + ".imported"
)

// The bounds of what is read of it, in bytes.
const (
	maxLine = 64 << 10
	maxOld  = 64 << 20
)

// importOld adds the approvals of an older release and renames their file, so that this is
// done once. What is there already is newer and stays.
func (s *Store) importOld(ctx context.Context) error {
	if s.o.Dir == "" {
		return nil
	}
	path := filepath.Join(s.o.Dir, oldFile)
	all, err := readOld(path, s.o.Log)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return unreadable(err)
	}
	tenants := map[string]bool{}
	err = s.change(ctx, "", func(tx *changing, now time.Time) error {
		for _, a := range all {
			is, err := tx.first(query{ID: a.ID})
			if err == nil && is == nil {
				err = tx.put(a)
			}
			if err != nil {
				return err
			}
			tenants[a.Tenant] = true
		}
		for tenant := range tenants {
			if err := tx.prune(tenant, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := os.Rename(path, filepath.Join(s.o.Dir, imported)); err != nil && !errors.Is(err, fs.ErrNotExist) { // another host may have been faster
		return unwritable(err)
	}
	s.o.Log.Info("imported the approvals of an older release", slog.Int("count", len(all)))
	return nil
}

// readOld returns the approvals of the file, as they were last.
func readOld(path string, log *slog.Logger) (map[string]*Approval, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := map[string]*Approval{}
	in := bufio.NewReaderSize(io.LimitReader(f, maxOld), maxLine)
	for {
		text, long, err := in.ReadLine()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		damaged := long
		for long && err == nil {
			_, long, err = in.ReadLine()
		}
		var l struct {
			Approval *Approval `json:"approval"`
		}
		if len(text) == 0 {
			continue
		}
		if damaged || json.Unmarshal(text, &l) != nil || l.Approval == nil || !l.Approval.valid() {
			log.Warn("skipped a damaged line of the approvals of an older release", slog.String("file", oldFile))
			continue
		}
		all[l.Approval.ID] = l.Approval
	}
}
