package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

const zeros = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	f := &Lock{Lock: LockGeneration, Skills: map[skill.ID]*LockEntry{
		"b": {Version: "0.1.0", Digest: zeros, Reference: "localhost:5000/b:0.1.0", Manifest: zeros, Publisher: "acme", Key: "RW", Trust: skill.Trusted},
		"a": {Version: "1.0.0", Digest: zeros, Reference: "bundle", Manifest: zeros},
	}}
	b := musttest.Get(f.Encode())(t)
	got := musttest.Get(ParseLock(b))(t)
	if diff := cmp.Diff(f, got); diff != "" {
		t.Error(diff)
	}
	if again, err := got.Encode(); err != nil || string(again) != string(b) || strings.Index(string(b), `"a"`) > strings.Index(string(b), `"b"`) {
		t.Errorf("%v\n%s", err, again)
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	entry := `{"version":"1.0.0","digest":"` + zeros + `","reference":"r","manifest":"` + zeros + `","publisher":"","key":"","trust":"community"}`
	with := func(old, next string) string {
		return `{"lock":1,"skills":{"a":` + strings.ReplaceAll(entry, old, next) + `}}`
	}
	musttest.Get(ParseLock([]byte(with("", ""))))(t)
	for src, want := range map[string]string{
		"":                         "cannot read",
		"[]":                       "cannot read",
		`{"lock":2,"skills":{}}`:   "the format 2",
		`{"skills":{}}`:            "the format 0",
		`{"lock":"1","skills":{}}`: "cannot read",
		`{"lock":1,"lock":1}`:      "cannot read",
		`{"lock":1,"skill":{}}`:    `unknown key "skill"`,
		`{"lock":1,"skills":[]}`:   "cannot read",
		`{"lock":1,"skills":{"../a":` + entry + `}}`: "invalid skill id",
		with("community", "builtin"):                 "trust must be",
		with("community", "2"):                       "trust must be",
		with("1.0.0", ""):                            "needs a version",
		with(zeros, "sha256:0"):                      "two digests",
		with(`"key"`, `"more"`):                      `unknown key "more"`,
		with(`"key":""`, `"key":1`):                  "cannot read",
		strings.Repeat(" ", maxLock+1):               "more than",
	} {
		if f, err := ParseLock([]byte(src)); err == nil || !strings.Contains(err.Error(), want) || f != nil {
			t.Errorf("%.80q: %v, want %q", src, err, want)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if f, err := ReadLock(dir); err != nil || len(f.Skills) != 0 {
		t.Errorf("where there is none: %v, %v", f, err)
	}
	good := filepath.Join(dir, "elsewhere")
	musttest.Do(t, os.WriteFile(good, []byte(`{"lock":1,"skills":{}}`), 0o600))
	musttest.Do(t, os.Symlink(good, filepath.Join(dir, LockName)))
	if _, err := ReadLock(dir); err == nil || strings.Contains(err.Error(), dir) {
		t.Errorf("a link: %v", err)
	}
}
