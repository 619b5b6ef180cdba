package app

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/host/app/config"
	"openskill/host/records"
	"openskill/internal/backup"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestBackupOfAHostAtWork: what is copied while calls and uploads go on is of one moment:
// a host that is made of it has a whole record, and every version that it names.
func TestBackupOfAHostAtWork(t *testing.T) {
	s := settings(t, nil)
	v := serve(t, s)
	of := func(version string) map[string][]byte {
		return map[string][]byte{"module": says(`{"v": "`+version+`"}`, 0), "manifest": []byte(manifestOf("up", version, wasiEntry))}
	}
	expect(t, "the upload", v.upload(t, "", of("1.0.0")), "201 1.0.0 disabled")
	expect(t, "enabling", v.act(t, "up", "enable", ""), "200 1.0.0 enabled")
	expect(t, "a call", v.call(t, "up"), `200 {"v":"1.0.0"}`)
	expect(t, "disabling the operator's", v.act(t, "quick", "disable", ""), "200 0.1.0 disabled")

	stop := make(chan struct{})
	var at sync.WaitGroup
	for _, work := range []func(n int){
		func(int) { v.call(t, "up") },
		func(n int) {
			version := fmt.Sprintf("1.%d.0", n+1)
			v.upload(t, "", of(version))
			v.do(t, "DELETE", "/skills/up/versions/"+version, "", nil)
		},
	} {
		at.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					work(n)
				}
			}
		})
	}
	var archives []*bytes.Buffer
	var answered []string // of the call before each: the journal may have its records
	for range 3 {
		r := v.host.Invoke(t.Context(), skill.Local(), skill.Request{SkillID: "up", Input: []byte("{}")})
		answered = append(answered, r.Meta.ExecutionID)
		var b bytes.Buffer
		musttest.Get(Backup(t.Context(), s, &b, slog.New(slog.DiscardHandler)))(t)
		archives = append(archives, &b)
	}
	close(stop)
	at.Wait()

	for n, archive := range archives {
		dir := filepath.Join(t.TempDir(), "state")
		x := musttest.Get(Restore(t.Context(), dir, archive))(t)
		if x.Database != "sqlite" || x.Schema == 0 || x.Program != Version {
			t.Errorf("%+v", x)
		}
		h := restored(t, s, dir)
		report, err := records.Verify(t.Context(), records.NewStore(h.kept.db), records.VerifyOptions{Rows: true})
		if err != nil || !report.Whole() {
			t.Errorf("the record: %+v, %v", report, err)
		}
		if e, err := h.Record().Store().Execution(t.Context(), "local", answered[n]); err != nil || e.Status() != records.Success {
			t.Errorf("the call before the backup is %+v on record, %v", e, err)
		}
		ask := func(id skill.ID) string {
			for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				r := h.Invoke(t.Context(), skill.Local(), skill.Request{SkillID: id, Input: []byte("{}")})
				switch {
				case r.Error == nil:
					return string(r.Data)
				case !strings.Contains(r.Error.Message, "still being fetched") || time.Now().After(end):
					return string(r.Error.Code)
				} // the files of uploads come from the restored database
			}
		}
		if got := ask("up"); got != `{"v": "1.0.0"}` {
			t.Errorf("the upload says %s", got)
		}
		if got := ask("quick"); got != string(skill.NotFound) {
			t.Errorf("what was disabled says %s", got)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// restored opens a host as s says, with another state folder.
func restored(t *testing.T, s *config.Settings, dir string) *Host {
	t.Helper()
	other := *s
	other.StateDir = dir
	h := musttest.Get(Open(&other, &Options{Mode: Serving, Log: slog.New(slog.DiscardHandler)}))(t)
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// What is no state, and what is none that this program can open, is refused.
func TestBackupsThatCannotBe(t *testing.T) {
	s := settings(t, nil)
	s.StateDir = filepath.Join(t.TempDir(), "none")
	var b bytes.Buffer
	if _, err := Backup(t.Context(), s, &b, nil); skill.CodeOf(err) != skill.NotFound || b.Len() > 0 || !missing(s.StateDir) {
		t.Errorf("without a state folder: %v", err)
	}
	if _, err := Restore(t.Context(), s.StateDir, &b); skill.CodeOf(err) != skill.InvalidArgument || !missing(s.StateDir) {
		t.Errorf("of nothing: %v", err)
	}
}

// What a backup left that was killed goes when a host starts, and what one makes does not.
func TestBackupsThatWereKilled(t *testing.T) {
	s := settings(t, nil)
	start := func() {
		t.Helper()
		h, err := Open(s, &Options{Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			err = h.Close()
		}
		musttest.Do(t, err)
	}
	start()
	temp := filepath.Join(s.StateDir, "tmp")
	for name, age := range map[string]time.Duration{"backup-locked": 0, "backup-new": 0, "backup-old": 2 * sweepAfter, "other": 2 * sweepAfter} {
		dir := filepath.Join(temp, name)
		musttest.Do(t, os.Mkdir(dir, 0o700))
		files := []string{"openskill.db"}
		if name == "backup-locked" {
			files = append(files, ".lock") // of a process that is gone
		}
		for _, file := range files {
			musttest.Do(t, os.WriteFile(filepath.Join(dir, file), nil, 0o600))
		}
		if then := time.Now().Add(-age); os.Chtimes(dir, then, then) != nil {
			t.Fatal(name)
		}
	}
	during := writing(func() {
		start()
		for name, want := range map[string]bool{"backup-locked": false, "backup-old": false, "backup-new": true, "other": true} {
			if missing(filepath.Join(temp, name)) == want {
				t.Errorf("%s: there %v, want %v", name, !want, want)
			}
		}
		if made, err := filepath.Glob(filepath.Join(temp, "backup-*")); err != nil || len(made) != 2 { // backup-new, and this one
			t.Errorf("while one is made: %q, %v", made, err)
		}
	})
	musttest.Get(Backup(t.Context(), s, &during, slog.New(slog.DiscardHandler)))(t)
	if made, err := filepath.Glob(filepath.Join(temp, "backup-*")); err != nil || len(made) != 1 {
		t.Errorf("after it: %q, %v", made, err)
	}
}

// writing does something when the first byte is written.
type writing func()

func (w *writing) Write(p []byte) (int, error) {
	if *w != nil {
		(*w)()
		*w = nil
	}
	return len(p), nil
}

// TestBackupsOfStrangers: an archive brings what a backup has, and nothing that a host would
// run as its own.
func TestBackupsOfStrangers(t *testing.T) {
	from := t.TempDir()
	file := filepath.Join(from, "file")
	musttest.Do(t, os.WriteFile(file, []byte("machine code"), 0o600))
	for _, name := range []string{
		"cache/wasm/v1/00-trusted/code", "runtimes/slim/python.wasm", "recording.key", "openskill.db-wal", "openskill.db/x", "skills", "approvals", ".env", "shared/x",
	} {
		var b bytes.Buffer
		x := &backup.Index{Program: Version, Database: "postgres"}
		musttest.Do(t, backup.Write(t.Context(), &b, x, []backup.Part{{Name: name, From: file}}))
		dir := filepath.Join(t.TempDir(), "state")
		if _, err := Restore(t.Context(), dir, &b); skill.CodeOf(err) != skill.InvalidArgument || !strings.Contains(err.Error(), "unexpected file") || !missing(dir) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
