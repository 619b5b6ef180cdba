package app

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A disk that is nearly full, and a database that outgrows it, are told of.
func TestShortages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		free, database uint64
		want           string
	}{
		{shortDisk, shortDisk, ""},
		{shortDisk - 1, 10, "OPENSKILL_STATE_DIR"},
		{2 * shortDisk, 2*shortDisk + 1, "OPENSKILL_RETENTION_DAYS"},
		{0, 1, "OPENSKILL_STATE_DIR OPENSKILL_RETENTION_DAYS"},
	} {
		var names []string
		for _, f := range shortages(c.free, c.database) {
			names = append(names, f.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%d free, %d of the database: %q, want %q", c.free, c.database, got, c.want)
		}
	}
}

// A shortage is logged when it begins, once, and again after it was over.
func TestShortagesAreLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	tick := make(chan time.Time)
	free := []uint64{5, 4, shortDisk, 3}
	looked := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		watchStorage(ctx, slog.New(slog.NewTextHandler(&log, nil)), tick, func() []Finding {
			looked++
			return shortages(free[looked-1], 0)
		})
	}()
	for range free[1:] {
		tick <- time.Time{}
	}
	stop()
	<-done
	if n := strings.Count(log.String(), "storage is running out"); n != 2 || looked != len(free) {
		t.Errorf("logged %d times in %d looks, want 2: %s", n, looked, &log)
	}
}
