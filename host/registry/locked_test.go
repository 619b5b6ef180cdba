package registry

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/share/lock"
	"openskill/sdk/skill"
)

// A skill that was pulled into the operator's folder is no skill of the operator's, and is
// served only as it was pulled.
func TestPulledSkills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const native = "id: %s\nversion: 1.0.0\ndescription: d\ntype: cli\nruntime: python\nentry: a.py\n"
	const script = "id: %s\nversion: 1.0.0\ndescription: d\ntype: wasm\nruntime: javascript\nentry: a.mjs\n"
	f := &lock.File{Lock: lock.Generation, Skills: map[skill.ID]*lock.Entry{}}
	for _, s := range []struct {
		id, manifest string
		trust        skill.Trust // in the lock file
	}{{"own", native, -1}, {"stranger", script, skill.Community}, {"partner", native, skill.Trusted}, {"liar", native, skill.Community}, {"edited", script, skill.Community}} {
		folder := filepath.Join(dir, s.id)
		write(t, filepath.Join(folder, ManifestFile), fmt.Sprintf(s.manifest, s.id))
		write(t, filepath.Join(folder, "a.py"), "")
		write(t, filepath.Join(folder, "a.mjs"), "")
		digest, err := Digest(folder)
		if err != nil {
			t.Fatal(err)
		}
		if s.trust >= 0 {
			f.Skills[skill.ID(s.id)] = &lock.Entry{Version: "1.0.0", Digest: digest, Reference: "r", Manifest: digest, Trust: s.trust}
		}
	}
	write(t, filepath.Join(dir, "edited", "more"), "")
	b, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, lock.FileName), string(b))
	one := skill.Limits{Timeout: 1, Memory: 1, Fuel: 1, Output: 1, Scratch: 1}
	trusts := func(paths ...string) (string, string) {
		o := Options{Defaults: one, Caps: one}
		for _, p := range paths {
			o.Roots = append(o.Roots, Root{Path: p, Trust: skill.Trusted})
		}
		r, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		var all, problems []string
		for _, id := range r.IDs() {
			s, err := r.Get(id, "")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprintf("%s %s", id, s.Descriptor.Trust))
		}
		for _, p := range r.Problems() {
			problems = append(problems, p.String())
		}
		return strings.Join(all, ", "), strings.Join(problems, "\n")
	}
	got, problems := trusts(dir)
	if got != "own trusted, partner trusted, stranger community" || !strings.Contains(problems, "edited: was changed since") || !strings.Contains(problems, "trusted skills only") {
		t.Errorf("%s\n%s", got, problems)
	}
	if got, problems := trusts(filepath.Join(dir, "stranger"), filepath.Join(dir, "own")); got != "own trusted, stranger community" || problems != "" {
		t.Errorf("named by themselves: %s\n%s", got, problems)
	}
	if err := os.WriteFile(filepath.Join(dir, lock.FileName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, problems := trusts(dir); got != "edited community, stranger community" || !strings.Contains(problems, "until it is mended") {
		t.Errorf("with a damaged lock file: %s\n%s", got, problems)
	}
}
