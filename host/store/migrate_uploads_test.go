package store_test

import (
	"strings"
	"testing"

	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
)

// Releases before schema 14 had an upload in PostgreSQL as one JSON object. What had been
// decided about its versions holds afterwards: states, approval, quarantine, and names that
// are taken for good.
func TestUploadsOfOlderReleases(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, fresh func(*testing.T) string) {
		url := fresh(t)
		if !strings.HasPrefix(url, "postgres:") {
			t.Skip("SQLite had no such rows: hosts import files instead")
		}
		m := musttest.Get(store.Migrate(t.Context(), store.Options{URL: url}))(t)
		defer m.Close()
		musttest.Get(m.To(t.Context(), 13))(t)
		r := rawOf(t, url)
		digest := func(of string) string { return "sha256:" + strings.Repeat(of, 64) }
		r.exec(t, "INSERT INTO skill_uploads (tenant, id, state, approved, live, revision) VALUES ($1, $2, $3, $4, $5, $6), ($7, $8, $9, $10, $11, $12)",
			"acme", "up", `{"format":1,"tenant":"acme","id":"up","current":"1.2.0","history":["1.0.0","1.1.0"],"versions":[
				{"version":"1.0.0","digest":"`+digest("a")+`","size":8192,"uploaded_by":"ann","uploaded_at":"2026-11-01T10:00:00.000001Z","enabled":false,"was_enabled":true,"deleted":"2026-11-02T10:00:00Z","gone":true},
				{"version":"1.1.0","digest":"`+digest("b")+`","size":4096,"uploaded_by":"ann","uploaded_at":"2026-11-03T10:00:00Z","enabled":false,"was_enabled":true,
					"quarantine":{"by":"host","at":"0001-01-01T00:00:00Z","word":"it crashed"},"released":[{"by":"ops","at":"2026-11-03T11:00:00Z"}]},
				{"version":"1.2.0","digest":"`+digest("c")+`","size":4096,"uploaded_by":"bob","uploaded_at":"2026-11-04T10:00:00+02:00","enabled":true,"was_enabled":true,
					"approved":{"by":"ops","at":"2026-11-05T10:00:00Z","word":"read"}}]}`, true, true, 7,
			"other", "up", `{"format":1,"tenant":"other","id":"up","current":"","versions":null}`, false, false, 8)
		musttest.Get(m.To(t.Context(), 14))(t)
		for query, want := range map[string]string{
			"SELECT tenant, id, current_version, history, approved, revision FROM uploads ORDER BY revision": "acme up 1.2.0 1.0.0 1.1.0 true 7; other up   false 8",
			"SELECT version, left(digest, 8), bytes, position, uploaded_by, uploaded_at, enabled, bytes, was_enabled FROM upload_versions ORDER BY position": "1.0.0 sha256:a 8192 1 ann 1793527200000001 false 8192 true; " +
				"1.1.0 sha256:b 4096 2 ann 1793700000000000 false 4096 true; 1.2.0 sha256:c 4096 3 bob 1793779200000000 true 4096 true",
			"SELECT approved_by, approved_at, approved_reason, quarantined_by, quarantined_at, quarantine_reason, deleted_at, gone FROM upload_versions ORDER BY position": " 0   0  1793613600000000 true; " +
				" 0  host 1 it crashed 0 false; ops 1793872800000000 read  0  0 false",
		} {
			var got []string
			for _, row := range r.rows(t, query) {
				got = append(got, strings.Join(row, " "))
			}
			if strings.Join(got, "; ") != want {
				t.Errorf("%s:\ngot  %q\nwant %q", query, strings.Join(got, "; "), want)
			}
		}
	})
}
