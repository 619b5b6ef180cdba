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

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"

	"openskill/host/approval"
	"openskill/sdk/skill"
)

func recordOf(dir string) string { return filepath.Join(dir, "approvals.jsonl") }

func appendTo(t *testing.T, dir, text string) {
	t.Helper()
	f, err := os.OpenFile(recordOf(dir), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTheRecordSurvives(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "approvals")
	clock := newClock()
	o := approval.Options{Dir: dir, Policy: approval.PerVersion, Now: clock.Now}
	s := open(t, o)
	id := asks(t, s, ask(), "pending").ID
	decide(t, s, id, true)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
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
	if diff := cmp.Diff([]string{"asked", "approved", "asked"}, lines(t, dir)); diff != "" {
		t.Error(diff)
	}
	// By another policy it counts for nothing.
	o.Policy = approval.PerCall
	asks(t, open(t, o), ask(), "pending")
	for _, name := range []string{"approvals.jsonl", ".lock"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm()&0o077 != 0 && name == "approvals.jsonl" {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// What one process decides, another one sees at its next look.
func TestTwoProcessesSeeEachOther(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "approvals")
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

// What one process withdraws in a record that it has begun anew, another one sees.
func TestWithdrawnInANewRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "approvals")
	clock := newClock()
	o := approval.Options{Dir: dir, Policy: approval.PerVersion, Now: clock.Now}
	host := open(t, o)
	id := asks(t, host, ask(), "pending").ID
	decide(t, host, id, true)
	runs(t, host, ask())
	before, err := os.ReadFile(recordOf(dir))
	if err != nil {
		t.Fatal(err)
	}
	// Another file of that name, which is longer than what the host has read.
	if err := os.Rename(recordOf(dir), recordOf(dir)+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(recordOf(dir), append(bytes.Repeat([]byte("\n"), 4096), before...), 0o600); err != nil {
		t.Fatal(err)
	}
	decide(t, open(t, o), id, false)
	asks(t, host, ask(), "denied")
}

func TestDamagedLines(t *testing.T) {
	for name, damage := range map[string]string{
		"torn":             `{"event":"approved","at":"2026-01-01T00:00:00Z","appro`,
		"whole but no end": ``, // filled in below
		"binary":           "\x00\xff\x00\n",
		"a list":           "[1]\n",
		"empty lines":      "\n\n  \n",
		"no approval":      `{"event":"approved"}` + "\n",
		"no digest":        `{"event":"approved","approval":{"id":"019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e02","state":"approved","policy":"version","skill":"unit-converter","call_hash":"y"}}` + "\n",
		"an unknown state": `{"event":"approved","approval":{"id":"019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e02","state":"granted","policy":"version","skill":"s","digest":"d","call_hash":"y"}}` + "\n",
		"an id of no kind": `{"event":"approved","approval":{"id":"\u001b[31m","state":"approved","policy":"version","skill":"s","digest":"d","call_hash":"y"}}` + "\n",
		"no policy":        `{"event":"approved","approval":{"id":"019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e02","state":"approved","policy":"never","skill":"s","digest":"d","call_hash":"y"}}` + "\n",
		"a huge line":      strings.Repeat("x", 1<<20) + "\n",
		"a huge torn line": strings.Repeat("x", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "approvals")
			var log bytes.Buffer
			o := approval.Options{Dir: dir, Policy: approval.PerVersion, Log: slog.New(slog.NewTextHandler(&log, nil))}
			s := open(t, o)
			id := asks(t, s, ask(), "pending").ID
			decide(t, s, id, true)
			changed := ask()
			changed.Digest = digestB
			pending := asks(t, s, changed, "pending").ID
			if name == "whole but no end" {
				b, err := os.ReadFile(recordOf(dir))
				if err != nil {
					t.Fatal(err)
				}
				last := strings.TrimSuffix(string(b[bytes.LastIndexByte(b[:len(b)-1], '\n')+1:]), "\n")
				damage = strings.Replace(strings.Replace(last, `"pending"`, `"approved"`, 1), `"asked"`, `"approved"`, 1)
			}
			appendTo(t, dir, damage)

			again := open(t, o)
			for _, s := range []*approval.Store{s, again} {
				runs(t, s, ask())
				asks(t, s, changed, "pending")
			}
			if name != "empty lines" && !strings.Contains(log.String(), "skipped") {
				t.Errorf("nothing is said: %s", log.String())
			}
			third := ask()
			third.Skill = "third"
			thirdID := asks(t, again, third, "pending").ID // goes behind it
			decide(t, s, thirdID, true)
			for _, s := range []*approval.Store{s, again, open(t, o)} {
				runs(t, s, ask())
				runs(t, s, third)
			}
			if name != "whole but no end" { // which was written, only its end was not
				asks(t, again, changed, "pending")
				decide(t, again, pending, true)
			}
			runs(t, open(t, o), changed)
		})
	}
}

// Without its record nothing runs.
func TestNoRecordNoRun(t *testing.T) {
	unavailable := func(t *testing.T, err error) {
		t.Helper()
		if skill.CodeOf(err) != skill.AuditUnavailable || strings.Contains(skill.Failure("", "t", skill.Meta{}, err).Error.Message, os.TempDir()) {
			t.Errorf("%v", err)
		}
	}
	t.Run("the folder cannot be made", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := approval.Open(approval.Options{Dir: filepath.Join(file, "approvals"), Policy: approval.PerVersion})
		unavailable(t, err)
	})
	t.Run("the record is a folder", func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, approval.Options{Dir: dir, Policy: approval.PerVersion})
		if err := os.Mkdir(recordOf(dir), 0o700); err != nil {
			t.Fatal(err)
		}
		unavailable(t, s.Check(t.Context(), ask()))
	})
	t.Run("it is taken away", func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, approval.Options{Dir: dir, Policy: approval.PerVersion})
		id := asks(t, s, ask(), "pending").ID
		decide(t, s, id, true)
		if err := os.Remove(recordOf(dir)); err != nil {
			t.Fatal(err)
		}
		if r := asks(t, s, ask(), "pending"); r.ID == id {
			t.Error("what is not on record counts")
		}
	})
	t.Run("it is cut", func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, approval.Options{Dir: dir, Policy: approval.PerVersion})
		id := asks(t, s, ask(), "pending").ID
		decide(t, s, id, true)
		if err := os.Truncate(recordOf(dir), 0); err != nil {
			t.Fatal(err)
		}
		asks(t, s, ask(), "pending")
	})
	t.Run("another process holds the lock", func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, approval.Options{Dir: dir, Policy: approval.PerVersion})
		lock := flock.New(filepath.Join(dir, ".lock"))
		if err := lock.Lock(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		at := time.Now()
		each(16, func(int) { unavailable(t, s.Check(ctx, ask())) })
		if d := time.Since(at); d > time.Second {
			t.Errorf("they waited for each other: %v", d)
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
		asks(t, s, ask(), "pending")
	})
	t.Run("an ask of nobody", func(t *testing.T) {
		s := open(t, approval.Options{Policy: approval.PerVersion})
		a := ask()
		a.Tenant = ""
		if err := s.Check(t.Context(), a); skill.CodeOf(err) != skill.Internal {
			t.Errorf("%v", err)
		}
	})
}

// A long record is begun anew with what still holds, and other processes follow.
func TestALongRecordIsBegunAnew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "approvals")
	clock := newClock()
	o := approval.Options{Dir: dir, Policy: approval.PerVersion, Now: clock.Now, MaxBytes: 8 << 10, MaxPast: 2}
	s := open(t, o)
	other := open(t, o)
	old := asks(t, s, ask(), "pending").ID
	decide(t, s, old, true)
	gone := ask()
	gone.Skill = "withdrawn"
	goneID := asks(t, s, gone, "pending").ID
	decide(t, s, goneID, true)
	decide(t, s, goneID, false)

	for i := range 200 {
		a := ask()
		a.Skill, a.Digest = fmt.Sprintf("skill-%d", i), digestB
		asks(t, s, a, "pending")
		clock.pass(20 * time.Minute)
		info, err := os.Stat(recordOf(dir))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 10<<10 {
			t.Fatalf("the record has %d bytes", info.Size())
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "approvals.1.jsonl")); err != nil || info.Size() < 8<<10 || info.Size() > 10<<10 {
		t.Errorf("the record before: %v, %v", info, err)
	}
	if b, err := os.ReadFile(recordOf(dir)); err != nil || !bytes.Contains(b, []byte(`"event":"kept"`)) {
		t.Errorf("%v: %s", err, b)
	}
	for name, s := range map[string]*approval.Store{"the one": s, "the other": other, "a new one": open(t, o)} {
		runs(t, s, ask())
		if a := get(t, s, old); a.State != approval.Approved || a.DecidedBy != "local" {
			t.Errorf("%s: %+v", name, a)
		}
		if _, err := s.Get(skill.Local(), goneID); err == nil {
			if a := get(t, s, goneID); a.State != approval.Denied {
				t.Errorf("%s: what was withdrawn is %s", name, a.State)
			}
		}
		asks(t, s, gone, "pending")
		changed := ask()
		changed.Digest = digestB
		if r := asks(t, s, changed, "pending"); r.Previous != digestA {
			t.Errorf("%s: %+v", name, r)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".anew-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestKilled: what a process that was killed had answered is on record.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("OPENSKILL_TEST_APPROVALS"); dir != "" {
		approveOnAndOn(dir)
		return
	}
	dir := filepath.Join(t.TempDir(), "approvals")
	for round := range 3 {
		child := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		child.Env = append(os.Environ(), "OPENSKILL_TEST_APPROVALS="+dir, fmt.Sprintf("OPENSKILL_TEST_ROUND=%d", round))
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
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
		s := open(t, approval.Options{Dir: dir, Policy: approval.PerVersion, MaxBytes: 16 << 10})
		for _, name := range answered {
			a := ask()
			a.Skill = name
			runs(t, s, a)
		}
	}
}

// approveOnAndOn asks and approves until it is killed.
func approveOnAndOn(dir string) {
	s, err := approval.Open(approval.Options{Dir: dir, Policy: approval.PerVersion, MaxBytes: 16 << 10})
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		a := ask()
		a.Skill = fmt.Sprintf("skill-%s-%d", os.Getenv("OPENSKILL_TEST_ROUND"), i)
		if err := s.Check(context.Background(), a); err == nil {
			panic("it may run before anybody was asked")
		}
		list, _, err := s.ListState(skill.Local(), approval.Pending, "", 1)
		if err != nil || len(list) != 1 {
			panic(fmt.Sprint(list, err))
		}
		if _, err := s.Decide(context.Background(), skill.Local(), list[0].ID, true); err != nil {
			panic(err)
		}
		_, _ = io.WriteString(os.Stdout, "approved "+a.Skill+"\n")
	}
}
