package catalogue

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
)

// oldFolderOf unpacks a state folder of an older release.
func oldFolderOf(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "xzf", "testdata/state-of-6d205ee.tar.gz", "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

const (
	acmes = "1.1.0 true: 1.0.0=enabled+shared 1.1.0=enabled 1.2.0=quarantined"
	betas = "1.0.0 false: 1.0.0=disabled"
)

// The uploads of an older release are taken over once: what is decided afterwards stays.
func TestImportsOldUploads(t *testing.T) {
	dir := oldFolderOf(t)
	s := open(t, dir, nil)
	if got := seen(s, "acme", "greeter"); got != acmes {
		t.Errorf("acme finds %s, want %s", got, acmes)
	}
	if got := seen(s, "beta", "greeter"); got != betas {
		t.Errorf("beta finds %s, want %s", got, betas)
	}
	if got, want := seen(s, "other", "greeter"), "1.0.0 true: 1.0.0=enabled+shared"; got != want {
		t.Errorf("another tenant finds %s, want %s", got, want)
	}
	r := s.skills[key{"acme", "greeter"}]
	if len(r.versions) != 3 || strings.Join(r.history, " ") != "1.0.0 1.1.0 1.2.0" {
		t.Errorf("%+v, %q", r.versions, r.history)
	}
	if a := r.versions[0].approved; a.Reason != "read and tried" || a.At.IsZero() || !strings.HasPrefix(a.By, "key:") {
		t.Errorf("approved by %+v", a)
	}
	if q := r.versions[2].quarantine; q.By != byHost || !strings.Contains(q.Reason, "2 runs in a row") || q.At.IsZero() {
		t.Errorf("quarantined by %+v", q)
	}
	if n := archives(t, s); n != 3 {
		t.Errorf("%d archives of three digests", n)
	}
	musttest.Get(s.decide(to(Disable, "acme", "greeter", "1.1.0")))(t)
	for _, again := range []bool{false, true} {
		musttest.Do(t, s.Close())
		if again { // as after a crash at the very end
			musttest.Do(t, os.Rename(filepath.Join(dir, "skills.imported"), filepath.Join(dir, "skills")))
		}
		s = open(t, dir, nil)
		if got, want := seen(s, "acme", "greeter"), "1.1.0 false: 1.0.0=enabled+shared 1.1.0=disabled 1.2.0=quarantined"; got != want {
			t.Errorf("after a restart: %s, want %s", got, want)
		}
	}
}

// An import that ended halfway is repeated whole.
func TestImportIsRepeatedWhole(t *testing.T) {
	for name, table := range map[string]string{"files": "skill_blob_parts", "records": "uploads", "versions": "upload_versions"} {
		t.Run(name, func(t *testing.T) {
			dir := oldFolderOf(t)
			db := storetest.Open(t, "sqlite:"+filepath.Join(dir, store.File))
			when := ""
			if table != "skill_blob_parts" {
				when = "WHEN new.tenant = 'beta'" // the last one
			}
			execute(t, db, "CREATE TRIGGER failing BEFORE INSERT ON "+table+" "+when+" BEGIN SELECT RAISE(ABORT, 'gone'); END")
			if s, err := Open(options(db, dir, nil)); err == nil {
				_ = s.Close()
				t.Fatal("an import that failed is not told")
			}
			var n int
			if err := db.Read.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM uploads").Scan(&n); err != nil || n != 0 {
				t.Errorf("%d records of half an import, %v", n, err)
			}
			execute(t, db, "DROP TRIGGER failing")
			s := openOn(t, db, dir, nil)
			if a, b := seen(s, "acme", "greeter"), seen(s, "beta", "greeter"); a != acmes || b != betas {
				t.Errorf("the second time: %s; %s", a, b)
			}
		})
	}
}

// What is damaged is not trusted: a record is left out, and files are quarantined.
func TestDamagedOldUploadsAreNotTrusted(t *testing.T) {
	dir := oldFolderOf(t)
	folder := must(filepath.Glob(filepath.Join(dir, "skills", "t-acme", "greeter", "1.1.0@*")))[0]
	overwrite(t, filepath.Join(folder, "main.mjs"), "console.log('bad')")
	overwrite(t, filepath.Join(dir, "skills", "t-beta", "greeter", "state.json"), `{"tenant": "beta", "id": "gree`)
	s := open(t, dir, nil)
	(&host{t: t, store: s}).learns("acme", "greeter", "1.1.0 false: 1.0.0=enabled 1.1.0=quarantined 1.2.0=quarantined")
	if got, want := seen(s, "beta", "greeter"), "1.0.0 true: 1.0.0=enabled+shared"; got != want {
		t.Errorf("beta finds %s, want %s", got, want)
	}
}
