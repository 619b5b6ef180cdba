package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/internal/musttest"
)

// runMigrate runs openskill db migrate, which must end with an exit code.
func runMigrate(t *testing.T, exit int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	args = append([]string{"db", "migrate"}, args...)
	if code := Run(t.Context(), args, strings.NewReader(""), &out, &err); code != exit {
		t.Fatalf("%q: exit code %d, want %d: %s%s", args, code, exit, &out, &err)
	}
	return out.String(), err.String()
}

// wentThrough migrates a database up and down by every flag.
func wentThrough(t *testing.T, state string) {
	t.Helper()
	var latest int64
	for _, c := range []struct {
		args []string
		want func(latest int64) int64
	}{
		{[]string{"--status"}, func(int64) int64 { return 0 }},
		{nil, func(l int64) int64 { return l }},
		{nil, func(l int64) int64 { return l }},
		{[]string{"--down"}, func(l int64) int64 { return l - 1 }},
		{[]string{"--to", "0"}, func(int64) int64 { return 0 }},
		{[]string{"--down"}, func(int64) int64 { return 0 }},
		{[]string{"--to", "1"}, func(int64) int64 { return 1 }},
		{[]string{"--status"}, func(int64) int64 { return 1 }},
	} {
		out, stderr := runMigrate(t, 0, append(c.args, "--json", "--state", state)...)
		var got struct {
			Version, Latest int64
			Migrations      []store.Migration
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || stderr != "" {
			t.Fatalf("%q: %v: %s%s", c.args, err, out, stderr)
		}
		latest = got.Latest
		if got.Version != c.want(latest) || len(got.Migrations) < int(latest) {
			t.Errorf("%q: version %d of %d, want %d", c.args, got.Version, latest, c.want(latest))
		}
	}
	out, _ := runMigrate(t, 0, "--state", state)
	if !strings.Contains(out, "0001_audit.sql") || !strings.Contains(out, "version ") {
		t.Errorf("got %s", out)
	}
}

func TestMigrateSQLite(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	runMigrate(t, 1, "--status", "--state", state) // which only reads
	musttest.Do(t, os.WriteFile(filepath.Join(state, store.File), nil, 0o600))
	wentThrough(t, state)
}

func TestMigratePostgres(t *testing.T) {
	t.Setenv("OPENSKILL_DATABASE_URL", pgtest.Start(t))
	wentThrough(t, t.TempDir())
}

func TestMigrateWrongUse(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	for _, args := range [][]string{
		{"--to", "1", "--down"}, {"--down", "--status"}, {"--to", "0", "--status"}, {"--to", "-1"}, {"--to", "x"}, {"--to", "1000"}, {"up"},
	} {
		runMigrate(t, 2, append(args, "--state", state)...)
	}
	musttest.Do(t, os.WriteFile(filepath.Join(state, store.File), bytes.Repeat([]byte("no database "), 1000), 0o600))
	if _, stderr := runMigrate(t, 3, "--state", state); !strings.Contains(stderr, "damaged") {
		t.Errorf("a file that is no database: %s", stderr)
	}
}
