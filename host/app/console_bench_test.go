package app

import (
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"openskill/host/app/config"
)

// BenchmarkConsole asks for the pages of a host with a thousand skills and a million
// executions, as the operator: the time until the page is whole, over a connection, and what
// a first visit takes with its styles and scripts.
//
//	go test ./host/app -run '^$' -bench Console -benchtime 1x
func BenchmarkConsole(b *testing.B) {
	dir := b.TempDir()
	for i := range 1000 {
		folder := filepath.Join(dir, "skills", fmt.Sprintf("skill-%d", i))
		manifest := fmt.Sprintf("id: skill-%d\nversion: 0.1.0\ndescription: The skill of number %d, which says what number it has.\n%s", i, i, wasiEntry)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			b.Fatal(err)
		}
		for name, text := range map[string]string{"skill.yaml": manifest, "m.wasm": answering} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	s := load(b, config.Sources{Dir: dir, Flags: map[string]string{"listen": "127.0.0.1:0", "workers": "off"}})
	db, err := OpenStore(b.Context(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	fillExecutions(b, s.StateDir)
	v := serve(b, s)
	go func() {
		for v.log.Scan() { // nobody reads it
		}
	}()
	client := &http.Client{}
	get := func(path string) (time.Duration, int) {
		began := time.Now()
		res, err := client.Get(v.url + path)
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != 200 {
			b.Fatalf("%s: %d %v", path, res.StatusCode, err)
		}
		return time.Since(began), int(n)
	}
	for _, p := range []struct{ name, path string }{
		{"skills", "/console/skills"},
		{"search", "/console/skills?q=number+777"},
		{"search-nothing", "/console/skills?q=nothing"},
		{"skill", "/console/skills/skill-7"},
		{"executions", "/console/executions"},
		{"executions-of-skill", "/console/executions?skill=s3"},
		{"executions-failed", "/console/executions?status=timeout"},
		{"execution", "/console/executions/00000000-0000-7000-8000-000000000500"},
		{"overview", "/console/overview"},
		{"settings", "/console/settings"},
	} {
		b.Run(p.name, func(b *testing.B) {
			var took []time.Duration
			size := 0
			for b.Loop() {
				took = took[:0]
				for range 41 {
					var t time.Duration
					t, size = get(p.path)
					took = append(took, t)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[0].Microseconds())/1000, "min-ms")
			b.ReportMetric(float64(size), "B")
			b.ReportMetric(0, "ns/op")
		})
	}
	b.Run("first-visit", func(b *testing.B) {
		all := 0
		for b.Loop() {
			all = 0
			for _, path := range []string{"/console/skills", "/console/assets/console.css", "/console/assets/console.js", "/console/assets/icon.svg", "/console/assets/htmx.min.js"} {
				if _, err := os.Stat("console/assets/htmx.min.js"); err != nil && filepath.Base(path) == "htmx.min.js" {
					continue
				}
				_, n := get(path)
				all += n
			}
		}
		b.ReportMetric(float64(all), "B")
		b.ReportMetric(0, "ns/op")
	})
}

// fillExecutions makes a million of them, a second after each other.
func fillExecutions(b *testing.B, state string) {
	b.Helper()
	files, err := filepath.Glob(filepath.Join(state, "*.db"))
	if err != nil || len(files) != 1 {
		b.Fatalf("the database is %v, %v", files, err)
	}
	db, err := sql.Open("sqlite", files[0])
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	from := time.Now().Add(-1_000_000 * time.Second).UnixMicro()
	_, err = db.ExecContext(b.Context(), fmt.Sprintf(`INSERT INTO execution_logs (id, principal_id, principal_type, session_id, skill_name, token_usage, duration_ms, status, error_message,
			created_at, tenant, trace_id, version, digest, runner, code, input_sha256, output_sha256, finished_at)
		WITH RECURSIVE g (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM g WHERE n < 999999)
		SELECT printf('00000000-0000-7000-8000-%%012d', n), 'p' || (n / 7 %% 50), 'agent', printf('00000000-0000-4000-8000-%%012d', n / 4), 's' || (n %% 20), 0, 3,
			CASE WHEN n %% 100 = 3 THEN 'timeout' WHEN n %% 10 = 1 THEN 'failed' ELSE 'success' END, '',
			%[1]d + n * 1000000, 'big', 'trace-' || n, '0.1.0', 'sha256:' || n, 'wasm:wasi', CASE WHEN n %% 100 = 3 THEN 'TIMEOUT' ELSE '' END, 'b' || n, 'c' || n,
			%[1]d + n * 1000000 FROM g`, from))
	if err != nil {
		b.Fatal(err)
	}
}
