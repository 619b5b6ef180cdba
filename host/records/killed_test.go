package records_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/internal/musttest"
)

// childFile is set for a process that puts calls on record until it is killed; see
// TestKilledWhileRecording.
const childFile = "OPENSKILL_TEST_RECORD_INTO"

func TestMain(m *testing.M) {
	if file := os.Getenv(childFile); file != "" {
		fmt.Fprintln(os.Stderr, recordForever(file, os.Getenv("OPENSKILL_TEST_ROUND"), os.Getenv("OPENSKILL_TEST_JOURNAL")))
		os.Exit(1)
	}
	if dir := os.Getenv(smallDisk); dir != "" {
		os.Exit(onSmallDisk(dir))
	}
	os.Exit(m.Run())
}

// recordForever puts calls on record from several goroutines, and says on standard output
// what was acknowledged.
func recordForever(file, round, journal string) error {
	ctx := context.Background()
	db, err := store.Open(ctx, store.Options{URL: "sqlite:" + file})
	if err != nil {
		return err
	}
	l, err := records.Open(ctx, records.Options{Store: records.NewStore(db), Log: slog.New(slog.DiscardHandler), Journal: journal})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for w := range 8 {
		go func() {
			for i := 0; ; i++ {
				c := call([]string{"acme", "other"}[w%2])
				c.ExecutionID = fmt.Sprintf("0198c2f0-%s-7000-%04d-%012d", round, w, i)
				c.Session = c.ExecutionID
				if err := l.Started(ctx, c, []byte(`{"text":"hello"}`)); err != nil {
					failed <- err
					return
				}
				fmt.Println("started", c.ExecutionID)
				if err := l.Finished(ctx, c, success(), []byte(`{"echoed":"hello"}`)); err != nil {
					failed <- err
					return
				}
				fmt.Println("finished", c.ExecutionID)
			}
		}()
	}
	return <-failed
}

// TestKilledWhileRecording kills a process that puts calls on record, at random moments:
// whatever was acknowledged is there, by the database or the journal, the chain is whole, what
// ran is ended by the next host, and SQLite finds nothing wrong. OPENSKILL_KILLS says how often; 200 takes some
// minutes.
func TestKilledWhileRecording(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many processes")
	}
	t.Parallel()
	t.Run("database", func(t *testing.T) { killWhileRecording(t, "") })
	t.Run("journal", func(t *testing.T) { killWhileRecording(t, t.TempDir()) })
}

func killWhileRecording(t *testing.T, journal string) {
	t.Helper()
	t.Parallel()
	kills := 20
	if n, err := strconv.Atoi(os.Getenv("OPENSKILL_KILLS")); err == nil {
		kills = n
	}
	k := killing{file: filepath.Join(t.TempDir(), "test.db"), journal: journal, seen: map[string]uint64{}}
	for round := range kills {
		k.round(t, round, kills <= 20 || round%20 == 0)
		if t.Failed() {
			return
		}
	}
	db := database(t, "sqlite:"+k.file)
	wantWhole(t, records.NewStore(db))
	k.check(t)
	if k.ended < kills {
		t.Errorf("%d calls ended in %d rounds", k.ended, kills)
	}
	t.Logf("%d processes killed; %d calls begun, %d ended, %d ended on record for them", kills, k.begun, k.ended, k.terminated)
}

// killing is what is known of the database in the rounds.
type killing struct {
	file, journal            string
	seen                     map[string]uint64 // up to which record each chain was verified
	begun, ended, terminated int
}

func (k *killing) round(t *testing.T, round int, integrity bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childFile+"="+k.file, "OPENSKILL_TEST_JOURNAL="+k.journal, fmt.Sprintf("OPENSKILL_TEST_ROUND=%04d", round))
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out := musttest.Get(cmd.StdoutPipe())(t)
	musttest.Do(t, cmd.Start())
	said := map[string]string{}
	var kill *time.Timer
	for lines := bufio.NewScanner(out); lines.Scan(); {
		what, id, ok := strings.Cut(lines.Text(), " ")
		if !ok || len(id) != 36 {
			break // it was killed in the middle of a line
		}
		if kill == nil { // it has begun
			kill = time.AfterFunc(time.Duration(rand.IntN(100_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
			defer kill.Stop()
		}
		said[id] = what
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("round %d: it ended by itself: %v: %s", round, err, &complaint)
	}

	db := database(t, "sqlite:"+k.file)
	defer db.Close()
	s := records.NewStore(db)
	l := musttest.Get(records.Open(t.Context(), records.Options{Store: s, Log: slog.New(slog.DiscardHandler), Journal: k.journal}))(t)
	musttest.Do(t, l.Close(t.Context()))
	for id, what := range said {
		e, err := s.Execution(t.Context(), "", id)
		switch {
		case err != nil:
			t.Errorf("round %d: %s of %s was acknowledged: %v", round, what, id, err)
		case e.Status() == records.Success:
			k.ended++
		case what == "finished" || e.Status() != records.Terminated || e.Finished.Message != "the host exited before the call finished":
			t.Errorf("round %d: %s of %s was acknowledged, and it is %s %+v", round, what, id, e.Status(), e.Finished)
		default:
			k.terminated++
		}
		k.begun++
	}
	if left, _, err := s.Executions(t.Context(), records.Query{Status: records.Running, Limit: 1}); err != nil || len(left) > 0 {
		t.Errorf("round %d: executions go on running on record: %v, %v", round, left, err)
	}
	for _, tenant := range []string{"acme", "other"} {
		r, err := records.Verify(t.Context(), s, records.VerifyOptions{Tenant: tenant, From: k.seen[tenant]})
		if err != nil || !r.Whole() {
			t.Errorf("round %d: %+v, %v", round, r, err)
			return
		}
		k.seen[tenant] = r.Chains[0].Last
	}
	if integrity {
		k.check(t)
	}
}

// check has SQLite look at its file.
func (k *killing) check(t *testing.T) {
	t.Helper()
	db := musttest.Get(sql.Open("sqlite", k.file))(t)
	defer db.Close()
	var verdict string
	musttest.Do(t, db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict))
	if verdict != "ok" {
		t.Errorf("the database: %s", verdict)
	}
}
