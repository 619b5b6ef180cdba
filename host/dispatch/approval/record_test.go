package approval_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/host/store/storetest"
	"openskill/internal/musttest"

	"openskill/host/dispatch/approval"
	"openskill/host/store"
	"openskill/sdk/skill"
)

func TestApprovalsSurvive(t *testing.T) {
	dir, clock := t.TempDir(), newClock()
	o := approval.Options{Dir: dir, Policy: approval.PerVersion, Now: clock.Now}
	s := open(t, o)
	id := asks(t, s, ask(), "pending").ID
	decide(t, s, id, true)
	musttest.Do(t, s.Close())
	if err := s.Check(t.Context(), ask()); skill.CodeOf(err) != skill.Cancelled {
		t.Errorf("Check after Close = %v", err)
	}
	if _, err := s.Decide(t.Context(), skill.Local(), id, false); skill.CodeOf(err) != skill.Cancelled {
		t.Errorf("Decide after Close = %v", err)
	}

	clock.pass(365 * 24 * time.Hour)
	s = open(t, o)
	runs(t, s, ask())
	changed := ask()
	changed.Digest = digestB
	if r := asks(t, s, changed, "pending"); r.Previous != digestA {
		t.Errorf("%+v", r)
	}
	// By another policy it counts for nothing.
	o.Policy = approval.PerCall
	asks(t, open(t, o), ask(), "pending")
}

// What one process decides, another one sees at its next look.
func TestTwoProcessesSeeEachOther(t *testing.T) {
	dir := t.TempDir()
	host := open(t, approval.Options{Dir: dir, Policy: approval.PerVersion})
	id := asks(t, host, ask(), "pending").ID
	other := open(t, approval.Options{Dir: dir})
	if a := get(t, other, id); a.State != approval.Pending {
		t.Errorf("the other sees %s", a.State)
	}
	decide(t, other, id, true)
	runs(t, host, ask())
	decide(t, host, id, false)
	if a := get(t, other, id); a.State != approval.Denied {
		t.Errorf("the other sees %s", a.State)
	}
}

// Without the database nothing runs.
func TestRefusesWithoutDatabase(t *testing.T) {
	db := storetest.SQLite(t)
	s := musttest.Get(approval.Open(t.Context(), approval.Options{DB: db, Policy: approval.PerVersion}))(t)
	decide(t, s, asks(t, s, ask(), "pending").ID, true)
	musttest.Do(t, db.Close())
	other := ask()
	other.Skill = "other"
	for _, a := range []approval.Ask{ask(), other} {
		if err := s.Check(t.Context(), a); skill.CodeOf(err) != skill.AuditUnavailable || strings.Contains(skill.Failure("", "t", skill.Meta{}, err).Error.Message, "sql") {
			t.Errorf("%v", err)
		}
	}
	if _, err := approval.Open(t.Context(), approval.Options{DB: db, Dir: oldRecord(t, oldLine+"\n")}); skill.CodeOf(err) != skill.AuditUnavailable {
		t.Errorf("import without a database: %v", err)
	}
}

func TestRefusesAnAskOfNobody(t *testing.T) {
	s := open(t, approval.Options{Policy: approval.PerVersion})
	a := ask()
	a.Tenant = ""
	if err := s.Check(t.Context(), a); skill.CodeOf(err) != skill.Internal {
		t.Errorf("%v", err)
	}
}

// Asks that are over go, but for the latest ones and what was approved last of each skill.
func TestForgetsOldAsks(t *testing.T) {
	dir, clock := t.TempDir(), newClock()
	o := approval.Options{Dir: dir, Policy: approval.PerVersion, Now: clock.Now, MaxPast: 2}
	s := open(t, o)
	old := asks(t, s, ask(), "pending").ID
	decide(t, s, old, true)
	gone := ask()
	gone.Skill = "withdrawn"
	goneID := asks(t, s, gone, "pending").ID
	decide(t, s, goneID, true)
	decide(t, s, goneID, false)
	foreign := ask()
	foreign.Tenant = "other"
	foreignID := asks(t, s, foreign, "pending").ID
	for i := range 10 {
		a := ask()
		a.Skill, a.Digest = fmt.Sprintf("skill-%d", i), digestB
		asks(t, s, a, "pending")
		clock.pass(20 * time.Minute)
	}
	s = open(t, o)
	list, _, err := s.List(t.Context(), skill.Local(), "", 100)
	musttest.Do(t, err)
	// Two that are over and one that was the latest ask, what holds, what was approved last
	// of a skill, and what is another tenant's.
	if len(list) != 6 {
		t.Errorf("%d are kept: %+v", len(list), list)
	}
	runs(t, s, ask())
	if a := get(t, s, old); a.State != approval.Approved || a.DecidedBy != "local" {
		t.Errorf("%+v", a)
	}
	if a := get(t, s, goneID); a.State != approval.Denied {
		t.Errorf("what was withdrawn is %s", a.State)
	}
	if a := get(t, s, foreignID); a.State != approval.Expired {
		t.Errorf("another tenant's is %s", a.State)
	}
	gone.Digest = digestB
	if r := asks(t, s, gone, "pending"); r.Previous != digestA {
		t.Errorf("%+v", r)
	}
}

// TestKilled: what a process that was killed had answered is kept.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("OPENSKILL_TEST_APPROVALS"); dir != "" {
		approveOnAndOn(dir)
		return
	}
	dir := t.TempDir()
	for round := range 3 {
		child := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		child.Env = append(os.Environ(), "OPENSKILL_TEST_APPROVALS="+dir, fmt.Sprintf("OPENSKILL_TEST_ROUND=%d", round))
		out := musttest.Get(child.StdoutPipe())(t)
		musttest.Do(t, child.Start())
		var answered []string
		for in := bufio.NewScanner(out); in.Scan(); {
			if word, ok := strings.CutPrefix(in.Text(), "approved "); ok {
				answered = append(answered, word)
			}
			if len(answered) == 25 {
				_ = child.Process.Kill()
			}
		}
		_ = child.Wait() // it was killed
		if len(answered) < 25 {
			t.Fatalf("only %d were answered", len(answered))
		}
		s := open(t, approval.Options{Dir: dir, Policy: approval.PerVersion})
		for _, name := range answered {
			a := ask()
			a.Skill = name
			runs(t, s, a)
		}
	}
}

// approveOnAndOn asks and approves until it is killed.
func approveOnAndOn(dir string) {
	db, err := store.Open(context.Background(), store.Options{StateDir: dir})
	if err != nil {
		panic(err)
	}
	s, err := approval.Open(context.Background(), approval.Options{DB: db, Policy: approval.PerVersion})
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		a := ask()
		a.Skill = fmt.Sprintf("skill-%s-%d", os.Getenv("OPENSKILL_TEST_ROUND"), i)
		if err := s.Check(context.Background(), a); err == nil {
			panic("it may run before anybody was asked")
		}
		list, _, err := s.ListState(context.Background(), skill.Local(), approval.Pending, "", 1)
		if err != nil || len(list) != 1 {
			panic(fmt.Sprint(list, err))
		}
		if _, err := s.Decide(context.Background(), skill.Local(), list[0].ID, true); err != nil {
			panic(err)
		}
		_, _ = io.WriteString(os.Stdout, "approved "+a.Skill+"\n")
	}
}

// oldLine is a line of the file in which older releases kept approvals.
const oldLine = `{"event":"asked","at":"2026-01-02T00:00:00Z","by":"c","approval":{"id":"019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e02","state":"pending","policy":"version",` +
	`"skill":"unit-converter","script":"s","digest":"sha256:aaaa","trust":"trusted","arguments":["--value"],"call_hash":"x","tenant":"acme","caller":"c","asked_at":"2026-01-02T00:00:00Z","expires_at":"2999-01-01T00:00:00Z"}}`

// oldRecord returns a folder with such a file.
func oldRecord(t testing.TB, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	musttest.Do(t, os.WriteFile(filepath.Join(dir, "approvals.jsonl"), []byte(text), 0o600))
	return dir
}

// TestImportsOlderReleases: the last line of an approval counts, once.
func TestImportsOlderReleases(t *testing.T) {
	approved := strings.NewReplacer(`"pending"`, `"approved"`, `"expires_at"`, `"decided_by":"boss","decided_at":"2026-01-02T00:01:00Z","was"`).Replace(oldLine)
	dir := oldRecord(t, oldLine+"\n"+approved+"\n")
	s := open(t, approval.Options{Dir: dir, Policy: approval.PerVersion})
	runs(t, s, ask())
	const id = "019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e02"
	if a := get(t, s, id); a.DecidedBy != "boss" || len(a.Arguments) != 1 {
		t.Errorf("%+v", a)
	}
	decide(t, s, id, false)
	if _, err := os.Stat(filepath.Join(dir, "approvals.jsonl")); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	// The file of a host that was killed before it renamed it is read again, and what was
	// decided meanwhile stays.
	musttest.Do(t, os.Rename(filepath.Join(dir, "approvals.jsonl.imported"), filepath.Join(dir, "approvals.jsonl")))
	s = open(t, approval.Options{Dir: dir, Policy: approval.PerVersion})
	asks(t, s, ask(), "denied")
	changed := ask()
	changed.Digest = digestB
	if r := asks(t, s, changed, "pending"); r.Previous != digestA {
		t.Errorf("%+v", r)
	}
}

func TestImportSkipsDamagedLines(t *testing.T) {
	for name, damage := range map[string]string{
		"torn":             oldLine[:100],
		"binary":           "\x00\xff\x00\n",
		"a list":           "[1]\n",
		"no approval":      `{"event":"approved"}` + "\n",
		"no digest":        `{"event":"approved","approval":{"id":"019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e02","state":"approved","policy":"version","skill":"unit-converter","call_hash":"y"}}` + "\n",
		"an unknown state": `{"event":"approved","approval":{"id":"019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e02","state":"granted","policy":"version","skill":"s","digest":"d","call_hash":"y"}}` + "\n",
		"an id of no kind": `{"event":"approved","approval":{"id":"\u001b[31m","state":"approved","policy":"version","skill":"s","digest":"d","call_hash":"y"}}` + "\n",
		"no policy":        `{"event":"approved","approval":{"id":"019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e02","state":"approved","policy":"never","skill":"s","digest":"d","call_hash":"y"}}` + "\n",
		"a huge line":      strings.Repeat("x", 1<<20) + "\n",
		"a huge torn line": strings.Repeat("x", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			dir := oldRecord(t, damage+"\n"+oldLine+"\n"+damage)
			s := open(t, approval.Options{Dir: dir, Policy: approval.PerVersion, Log: slog.New(slog.NewTextHandler(&log, nil))})
			asks(t, s, ask(), "pending")
			if !strings.Contains(log.String(), "skipped") {
				t.Errorf("nothing is said: %s", log.String())
			}
		})
	}
}
