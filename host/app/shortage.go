package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"openskill/host/app/config"
	"openskill/host/store"
)

// shortDisk is how many free bytes of the disk of the state folder are too few.
const shortDisk = 1 << 30

// Shortages returns what will soon have calls refused, since they cannot be put on record:
// a disk that is nearly full, and a database that outgrows it. Name is the setting's.
func Shortages(s *config.Settings) []Finding {
	free, _, ok := disk(s.StateDir)
	if !ok {
		return nil
	}
	records := uint64(0)
	if s.DatabaseURL == "" {
		for _, suffix := range []string{"", "-wal"} {
			if info, err := os.Stat(filepath.Join(s.StateDir, store.File+suffix)); err == nil {
				records += uint64(info.Size()) // not negative
			}
		}
	}
	return shortages(free, records)
}

// shortages judges free bytes and those of the database.
func shortages(free, database uint64) (list []Finding) {
	if free < shortDisk {
		list = append(list, Finding{Name: "OPENSKILL_STATE_DIR", Detail: fmt.Sprintf("%d MiB are free on the disk of the state folder, and calls are refused when it is full: free some, or move the folder to a larger disk", free>>20)})
	}
	if database > free {
		list = append(list, Finding{Name: "OPENSKILL_RETENTION_DAYS", Detail: fmt.Sprintf("the database takes %d MiB, more than the %d MiB that are free, and calls are refused when the disk is full: lower records of OPENSKILL_RETENTION_DAYS or executions of OPENSKILL_DAILY, or move the state folder to a larger disk", database>>20, free>>20)})
	}
	return list
}

// watchStorage logs each shortage when it begins, until ctx ends.
func watchStorage(ctx context.Context, log *slog.Logger, tick <-chan time.Time, look func() []Finding) {
	short := map[string]bool{}
	for {
		now := map[string]bool{}
		for _, f := range look() {
			if now[f.Name] = true; !short[f.Name] {
				log.LogAttrs(ctx, slog.LevelWarn, "storage is running out", slog.String("setting", f.Name), slog.String("detail", f.Detail))
			}
		}
		short = now
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}
