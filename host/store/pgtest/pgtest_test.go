package pgtest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"openskill/host/store/pgtest"
	"openskill/internal/musttest"
)

func answers(t *testing.T, url string) string {
	t.Helper()
	c := musttest.Get(pgx.Connect(t.Context(), url))(t)
	defer c.Close(t.Context())
	var folder string
	musttest.Do(t, c.QueryRow(t.Context(), "SELECT current_setting('data_directory')").Scan(&folder))
	return folder
}

func TestEachGetsADatabase(t *testing.T) {
	a, b := pgtest.Start(t), pgtest.Start(t)
	if a == b {
		t.Errorf("two got the same database: %s", a)
	}
	if answers(t, a) != answers(t, b) {
		t.Error("two servers were started for one process")
	}
}

func TestStoppedAndStarted(t *testing.T) {
	s := pgtest.New(t, "max_connections = 7")
	url := s.Database(t)
	folder := answers(t, url)
	musttest.Do(t, s.Stop())
	if c, err := pgx.Connect(t.Context(), url); err == nil {
		t.Errorf("a server that was stopped answers: %v", c.Close(t.Context()))
	}
	musttest.Do(t, s.Start())
	if again := answers(t, url); again != folder {
		t.Errorf("another server answers: %s, not %s", again, folder)
	}
}

// A process that is killed leaves no server and no files.
func TestEndsWithItsProcess(t *testing.T) {
	if os.Getenv("PGTEST_CHILD") != "" {
		folder := answers(t, pgtest.Start(t))
		musttest.Get(os.Stdout.WriteString("folder " + folder + "\n"))(t)
		select {} // until it is killed
	}
	pgtest.Start(t) // skips where there is none
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestEndsWithItsProcess$")
	child.Env = append(os.Environ(), "PGTEST_CHILD=1")
	out := musttest.Get(child.StdoutPipe())(t)
	musttest.Do(t, child.Start())
	b := make([]byte, 4096)
	n, err := out.Read(b)
	folder, ok := strings.CutPrefix(strings.TrimSpace(string(b[:n])), "folder ")
	if err != nil || !ok {
		t.Fatalf("the child said %q, %v", b[:n], err)
	}
	musttest.Do(t, child.Process.Kill())
	_ = child.Wait()
	for {
		if _, err := os.Stat(folder); os.IsNotExist(err) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s is still there", folder)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// What initdb made is kept for the next server, which answers as well where that is damaged.
func TestKept(t *testing.T) {
	pgtest.Need(t) // skips where there is none
	state := t.TempDir()
	t.Setenv("OPENSKILL_STATE_DIR", state)
	answers(t, pgtest.New(t).Database(t))
	control, err := filepath.Glob(filepath.Join(state, "testing", "postgres-*", "data", "global", "pg_control"))
	if err != nil || len(control) != 1 {
		t.Fatalf("kept: %v, %v", control, err)
	}
	before := musttest.Get(os.Stat(control[0]))(t)
	answers(t, pgtest.New(t).Database(t))
	after, err := os.Stat(control[0])
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("it was made again, though it was kept: %v", err)
	}
	for _, damage := range []func() error{
		func() error { return os.Truncate(control[0], 100) },
		func() error { return os.Remove(control[0]) },
		func() error { return os.Remove(filepath.Join(filepath.Dir(control[0]), "..", "..", "password")) },
	} {
		musttest.Do(t, damage())
		answers(t, pgtest.New(t).Database(t))
		if info, err := os.Stat(control[0]); err != nil || info.Size() != before.Size() {
			t.Errorf("what is damaged was not made again: %v", err)
		}
	}
}
