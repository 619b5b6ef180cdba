package store_test

import (
	"path/filepath"
	"testing"

	"openskill/host/records/replay"
	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
)

func TestRecordings(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), store.File) },
		"postgres": func(t *testing.T) string { return pgtest.Start(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Recordings(t, func(t *testing.T) (replay.Store, replay.Store) {
				t.Helper()
				at := url(t)
				return recordingsAt(t, at), recordingsAt(t, at)
			})
		})
	}
}

func recordingsAt(t *testing.T, url string) replay.Store {
	t.Helper()
	d := musttest.Get(store.Open(t.Context(), store.Options{URL: url}))(t)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return replay.NewStore(d)
}
