package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// A skill that was pulled into the operator's folder is no skill of the operator's, and is
// served only as it was pulled.
func TestPulledSkills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const native = "id: %s\nversion: 1.0.0\ndescription: d\ntype: cli\nruntime: python\nentry: a.py\n"
	const script = "id: %s\nversion: 1.0.0\ndescription: d\ntype: wasm\nruntime: javascript\nentry: a.mjs\n"
	f := &Lock{Lock: LockGeneration, Skills: map[skill.ID]*LockEntry{}}
	for _, s := range []struct {
		id, manifest string
		trust        skill.Trust // in the lock file
	}{{"own", native, -1}, {"stranger", script, skill.Community}, {"partner", native, skill.Trusted}, {"liar", native, skill.Community}, {"edited", script, skill.Community}} {
		folder := filepath.Join(dir, s.id)
		musttest.Write(t, filepath.Join(folder, ManifestFile), fmt.Sprintf(s.manifest, s.id))
		musttest.Write(t, filepath.Join(folder, "a.py"), "")
		musttest.Write(t, filepath.Join(folder, "a.mjs"), "")
		digest := musttest.Get(Digest(folder))(t)
		if s.trust >= 0 {
			f.Skills[skill.ID(s.id)] = &LockEntry{Version: "1.0.0", Digest: digest, Reference: "r", Manifest: digest, Trust: s.trust, Key: map[skill.Trust]string{skill.Trusted: "RW"}[s.trust]}
		}
	}
	musttest.Write(t, filepath.Join(dir, "edited", "more"), "")
	b := musttest.Get(f.Encode())(t)
	musttest.Write(t, filepath.Join(dir, LockName), string(b))
	one := skill.Limits{Timeout: 1, Memory: 1, Fuel: 1, Output: 1, Scratch: 1}
	trusts := func(paths ...string) (string, string) {
		o := Options{Defaults: one, Caps: one}
		for _, p := range paths {
			o.Roots = append(o.Roots, Root{Path: p, Trust: skill.Trusted})
		}
		r := musttest.Get(Open(o))(t)
		var all, problems []string
		for _, id := range r.IDs() {
			s := musttest.Get(r.Get(id, ""))(t)
			all = append(all, fmt.Sprintf("%s %s", id, s.Descriptor.Trust))
		}
		for _, p := range r.Problems() {
			problems = append(problems, p.String())
		}
		return strings.Join(all, ", "), strings.Join(problems, "\n")
	}
	got, problems := trusts(dir)
	if got != "own trusted, partner trusted, stranger community" || !strings.Contains(problems, "edited: changed since") || !strings.Contains(problems, "only for trusted skills") {
		t.Errorf("%s\n%s", got, problems)
	}
	if got, problems := trusts(filepath.Join(dir, "stranger"), filepath.Join(dir, "own")); got != "own trusted, stranger community" || problems != "" {
		t.Errorf("named by themselves: %s\n%s", got, problems)
	}
	musttest.Do(t, os.WriteFile(filepath.Join(dir, LockName), []byte("{"), 0o600))
	if got, problems := trusts(dir); got != "edited community, stranger community" || !strings.Contains(problems, "until it is fixed") {
		t.Errorf("with a damaged lock file: %s\n%s", got, problems)
	}
}

// trusting reads folders as an operator's own.
func trusting(t *testing.T, o Options, roots ...string) (skills, problems string) {
	t.Helper()
	one := skill.Limits{Timeout: 1, Memory: 1, Fuel: 1, Output: 1, Scratch: 1}
	o.Defaults, o.Caps = one, one
	for _, p := range roots {
		o.Roots = append(o.Roots, Root{Path: p, Trust: skill.Trusted})
	}
	r := musttest.Get(Open(o))(t)
	var all, wrong []string
	for _, id := range r.IDs() {
		s := musttest.Get(r.Get(id, ""))(t)
		all = append(all, fmt.Sprintf("%s %s %s", id, s.Descriptor.Version, s.Descriptor.Trust))
	}
	for _, p := range r.Problems() {
		wrong = append(wrong, p.String())
	}
	return strings.Join(all, ", "), strings.Join(wrong, "\n")
}

func scripted(t *testing.T, folder, id, version string) {
	t.Helper()
	musttest.Write(t, filepath.Join(folder, ManifestFile), fmt.Sprintf("id: %s\nversion: %s\ndescription: d\ntype: wasm\nruntime: javascript\nentry: a.mjs\n", id, version))
	musttest.Write(t, filepath.Join(folder, "a.mjs"), "")
}

func marked(t *testing.T, folder string) {
	t.Helper()
	musttest.Write(t, filepath.Join(folder, MarkFile), Mark)
}

// Of one id the operator's own skill is served, whatever is found first and wherever it is.
func TestOwnSkillsWinOverPulledOnes(t *testing.T) {
	t.Parallel()
	first, second, tools := t.TempDir(), t.TempDir(), t.TempDir()
	scripted(t, filepath.Join(first, "a"), "calc", "9.0.0")
	marked(t, filepath.Join(first, "a"))
	scripted(t, filepath.Join(first, "b"), "calc", "1.0.0")
	scripted(t, filepath.Join(first, "c"), "echo", "9.0.0")
	marked(t, filepath.Join(first, "c"))
	scripted(t, filepath.Join(second, "echo"), "echo", "1.0.0")
	scripted(t, filepath.Join(first, "d"), "tool", "9.0.0")
	marked(t, filepath.Join(first, "d"))
	musttest.Write(t, filepath.Join(tools, "tool.py"), "")
	scripted(t, filepath.Join(first, "e"), "only", "9.0.0")
	marked(t, filepath.Join(first, "e"))
	got, problems := trusting(t, Options{CLIDir: tools}, first, second)
	if want := "calc 1.0.0 trusted, echo 1.0.0 trusted, only 9.0.0 community, tool 0.0.0 trusted"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if n := strings.Count(problems, "this pulled skill is skipped"); n != 3 {
		t.Errorf("%d are told of:\n%s", n, problems)
	}
	if got, _ := trusting(t, Options{}, second, first); got != "calc 1.0.0 trusted, echo 1.0.0 trusted, only 9.0.0 community, tool 9.0.0 community" {
		t.Errorf("the other way round: %s", got)
	}
}

// What was pulled is no code of what the operator defines, in a list, in a definition from
// elsewhere, or as the CLI folder.
func TestPulledFoldersAreNoCodeOfTheOperators(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	native := filepath.Join(dir, "stranger")
	musttest.Write(t, filepath.Join(native, "a.py"), "")
	musttest.Write(t, filepath.Join(native, "a.mjs"), "")
	marked(t, native)
	const entry = `{"name":"stranger","description":"d","type":"cli","runtime":"python","entry":"a.py","input_schema":{"type":"object"},"output_schema":{"type":"object"}}`
	script := strings.NewReplacer("cli", "wasm", "python", "javascript", "a.py", "a.mjs").Replace(entry) // native code is none's
	musttest.Write(t, filepath.Join(dir, ListFile), "skills:\n- "+entry+"\n")
	got, problems := trusting(t, Options{}, dir)
	if got != "" || !strings.Contains(problems, "cannot be code of the operator's list") {
		t.Errorf("in a list: %s\n%s", got, problems)
	}
	one := skill.Limits{Timeout: 1, Memory: 1, Fuel: 1, Output: 1, Scratch: 1}
	o := Options{Roots: []Root{{Path: dir, Trust: skill.Trusted}}, Defaults: one, Caps: one}
	if s, missing, problems := Define([]byte(script), o); s == nil || s.Folder != "" || missing == "" {
		t.Errorf("as a definition: %+v, %q, %v", s, missing, problems)
	}
	if got, problems := trusting(t, Options{CLIDir: native}); got != "" || !strings.Contains(problems, "it was pulled") {
		t.Errorf("as the CLI folder: %s\n%s", got, problems)
	}
	// Named by the operator it is.
	state := t.TempDir()
	digest, err := Digest(native)
	if err == nil {
		err = Trust(t.Context(), state, "stranger", digest)
	}
	musttest.Do(t, err)
	if got, problems := trusting(t, Options{StateDir: state}, dir); !strings.HasPrefix(got, "stranger ") {
		t.Errorf("trusted, in a list: %s\n%s", got, problems)
	}
	o.StateDir = state
	if s, missing, problems := Define([]byte(script), o); s == nil || s.Folder == "" {
		t.Errorf("trusted, as a definition: %+v, %q, %v", s, missing, problems)
	}
}

// A folder in a pulled one is a stranger's, as is all beside and below a damaged lock file;
// an entry without a folder is none's.
func TestOriginsOfFoldersAbove(t *testing.T) {
	t.Parallel()
	dir := musttest.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	top := filepath.Join(dir, "top")
	scripted(t, filepath.Join(top, "in", "deep"), "deep", "1.0.0")
	digest := musttest.Get(Digest(top))(t)
	entries := func(all map[skill.ID]*LockEntry) {
		if all == nil {
			all = map[skill.ID]*LockEntry{}
		}
		b := musttest.Get((&Lock{Lock: LockGeneration, Skills: all}).Encode())(t)
		musttest.Write(t, filepath.Join(dir, LockName), string(b))
	}
	entry := func(digest, key string, trust skill.Trust) *LockEntry {
		return &LockEntry{Version: "1.0.0", Digest: digest, Reference: "r", Manifest: digest, Key: key, Trust: trust}
	}
	other := "sha256:" + strings.Repeat("0", 64)
	for what, c := range map[string]struct {
		all  map[skill.ID]*LockEntry
		want string
	}{
		"no entry":                {nil, "deep 1.0.0 trusted"},
		"one without a folder":    {map[skill.ID]*LockEntry{"gone": entry(other, "", skill.Community)}, "deep 1.0.0 trusted"},
		"a stranger":              {map[skill.ID]*LockEntry{"top": entry(digest, "RW", skill.Community)}, "deep 1.0.0 community"},
		"vouched for":             {map[skill.ID]*LockEntry{"top": entry(digest, "RW", skill.Trusted)}, "deep 1.0.0 trusted"},
		"trusted without a key":   {map[skill.ID]*LockEntry{"top": entry(digest, "", skill.Trusted)}, "deep 1.0.0 community"},
		"vouched for other files": {map[skill.ID]*LockEntry{"top": entry(other, "RW", skill.Trusted)}, ""},
	} {
		entries(c.all)
		if got, problems := trusting(t, Options{}, filepath.Join(top, "in", "deep")); got != c.want {
			t.Errorf("%s: %q, want %q\n%s", what, got, c.want, problems)
		}
	}
	entries(nil)
	marked(t, top)
	if got, _ := trusting(t, Options{}, filepath.Join(top, "in")); got != "deep 1.0.0 community" {
		t.Errorf("below a mark: %s", got)
	}
	musttest.Do(t, os.Remove(filepath.Join(top, MarkFile)))
	musttest.Write(t, filepath.Join(dir, LockName), "{")
	if got, _ := trusting(t, Options{}, filepath.Join(top, "in")); got != "deep 1.0.0 community" {
		t.Errorf("below a damaged lock file: %s", got)
	}
}

// The digest leaves out the mark as pulls write it, at the top, and nothing else.
func TestDigestLeavesOutTheMarkAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	musttest.Write(t, filepath.Join(dir, "a"), "1")
	digest := func() string {
		t.Helper()
		return musttest.Get(Digest(dir))(t)
	}
	want := digest()
	marked(t, dir)
	if digest() != want {
		t.Error("the mark counts")
	}
	for what, text := range map[string]string{"more": Mark + "x", "less": Mark[1:], "nothing": ""} {
		musttest.Write(t, filepath.Join(dir, MarkFile), text)
		if digest() == want {
			t.Errorf("a file in place of the mark that has %s does not count", what)
		}
	}
	marked(t, dir)
	marked(t, filepath.Join(dir, "below"))
	if digest() == want {
		t.Error("a mark below does not count")
	}
}

// A list in a stranger's folder names no script of the operator's CLI folder.
func TestListsOfStrangersHaveNoNativeCode(t *testing.T) {
	dir, scripts := t.TempDir(), t.TempDir()
	musttest.Write(t, filepath.Join(dir, ListFile), "skills:\n- {name: tool, description: d, input_schema: {type: object}, output_schema: {type: object}}\n")
	musttest.Write(t, filepath.Join(scripts, "tool.py"), "")
	r := musttest.Get(Open(Options{Roots: []Root{{Path: dir}}, CLIDir: scripts, Defaults: limits(1), Caps: limits(1)}))(t)
	if s, err := r.Get("tool", ""); err != nil || s.Descriptor.Description == "d" {
		t.Errorf("the operator's own script is %+v, %v", s, err)
	}
	if got := fmt.Sprint(r.Problems()); !strings.Contains(got, "only for trusted skills") {
		t.Errorf("problems %v", got)
	}
}

// Hidden folders are no skills: pulls unpack in them what is not accepted yet.
func TestHiddenFoldersAreNoSkills(t *testing.T) {
	dir := t.TempDir()
	musttest.Write(t, filepath.Join(dir, ".openskill-pull-1", ManifestFile), fmt.Sprintf(small, "half"))
	musttest.Write(t, filepath.Join(dir, "whole", ManifestFile), fmt.Sprintf(small, "whole"))
	if r := open(t, Root{dir, skill.Trusted}); fmt.Sprint(r.IDs()) != "[whole]" {
		t.Errorf("%v is served", r.IDs())
	}
}
