package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func digestNumber(n int) string { return fmt.Sprintf("sha256:%064x", n) }

func TestTrustIsForOneDigestOfAName(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	for _, n := range []int{1, 2} {
		musttest.Do(t, Trust(t.Context(), dir, "a", digestNumber(n)))
	}
	musttest.Do(t, Trust(t.Context(), dir, "b", digestNumber(3)))
	n, err := ReadNamed(dir)
	if err != nil || n.Has(digestNumber(1)) || !n.Has(digestNumber(2)) || !n.Has(digestNumber(3)) || n.Has("") {
		t.Errorf("%+v, %v", n, err)
	}
	for i, want := range []bool{true, false} {
		if was, err := Untrust(t.Context(), dir, "a"); err != nil || was != want {
			t.Errorf("untrust, time %d: %t, %v", i+1, was, err)
		}
	}
	if n, err := ReadNamed(dir); err != nil || n.Has(digestNumber(2)) || !n.Has(digestNumber(3)) {
		t.Errorf("%+v, %v", n, err)
	}
	if info, err := os.Stat(filepath.Join(dir, NamedFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// Commands that run at once lose nothing that another one has written.
func TestTrustAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	musttest.Do(t, Trust(t.Context(), dir, "gone", digestNumber(99)))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if err := Trust(t.Context(), dir, skill.ID(fmt.Sprintf("s%d", i)), digestNumber(i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Go(func() {
		if _, err := Untrust(t.Context(), dir, "gone"); err != nil {
			t.Error(err)
		}
	})
	all.Wait()
	n, err := ReadNamed(dir)
	if err != nil || n.Has(digestNumber(99)) {
		t.Errorf("%+v, %v", n, err)
	}
	for i := range 8 {
		if !n.Has(digestNumber(i)) {
			t.Errorf("s%d is lost", i)
		}
	}
}

// A record that cannot be believed trusts nothing, and is not written over.
func TestDamagedRecordsTrustNothing(t *testing.T) {
	t.Parallel()
	good := `{"trusted":1,"skills":{"` + zeros + `":"a"}}`
	for what, text := range map[string]string{
		"nothing":             "",
		"cut off":             good[:len(good)-3],
		"not JSON":            "x",
		"another generation":  strings.Replace(good, ":1", ":2", 1),
		"no digest":           strings.Replace(good, "sha256", "sha1", 1),
		"no name":             strings.Replace(good, `"a"`, `"../a"`, 1),
		"a name of no text":   strings.Replace(good, `"a"`, `1`, 1),
		"an unknown key":      strings.Replace(good, `"skills"`, `"skill"`, 1),
		"the same twice":      strings.Replace(good, `{"s`, `{"`+zeros+`":"b","s`, 1),
		"more than is read":   good + strings.Repeat(" ", maxLock),
		"more than one value": good + good,
	} {
		dir := t.TempDir()
		musttest.Do(t, os.WriteFile(filepath.Join(dir, NamedFile), []byte(text), 0o600))
		if n, err := ReadNamed(dir); err == nil || n.Has(zeros) {
			t.Errorf("%s: %+v, %v", what, n, err)
		}
		if err := Trust(t.Context(), dir, "b", digestNumber(1)); err == nil {
			t.Errorf("%s: it was written over", what)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, NamedFile)
	musttest.Do(t, os.WriteFile(file, []byte(good), 0o600))
	if n, err := ReadNamed(dir); err != nil || !n.Has(zeros) {
		t.Fatalf("%+v, %v", n, err)
	}
	musttest.Do(t, os.Chmod(file, 0o620))
	if n, err := ReadNamed(dir); err == nil || n.Has(zeros) || !strings.Contains(err.Error(), "writable by other users") {
		t.Errorf("others may write it: %+v, %v", n, err)
	}
	musttest.Do(t, os.Rename(file, file+".real"))
	musttest.Do(t, os.Symlink(file+".real", file))
	if n, err := ReadNamed(dir); err == nil || n.Has(zeros) {
		t.Errorf("a link: %+v, %v", n, err)
	}
}

func TestMarkedIsClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if Marked(dir) {
		t.Error("an empty folder is marked")
	}
	musttest.Do(t, os.Mkdir(filepath.Join(dir, MarkFile), 0o700))
	if !Marked(dir) {
		t.Error("a folder of that name is no mark")
	}
	if !Marked(filepath.Join(dir, strings.Repeat("x", 300))) {
		t.Error("where nobody can tell there is no mark")
	}
	if !Marked(filepath.Join(dir, "moved away")) {
		t.Error("a folder that is gone has no mark")
	}
}
