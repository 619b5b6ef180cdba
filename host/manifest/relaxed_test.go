package manifest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// files writes files below a new folder.
func seedFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		musttest.Write(t, at, text)
	}
	return dir
}

const seedManifest = "id: calculator\ntype: cli\nruntime: python\nentry: ./skills_cli/calculator.py\ntimeout_ms: 12000\nallowed_root: ./data\n"

const seedScript = "#!/usr/bin/env python3\n# a remark\n\"\"\"Statistics over numbers.\n\nMore.\n\"\"\"\nprint('{}')\n"

func openSeed(t *testing.T, dir string, trust skill.Trust) *Registry {
	t.Helper()
	r, err := Open(Options{
		Roots: []Root{{Path: filepath.Join(dir, "skills"), Trust: trust}}, CLIDir: filepath.Join(dir, "skills_cli"),
		Defaults: limits(10), Caps: limits(100),
	})
	musttest.Do(t, err)
	return r
}

// The manifest of a skill host with a folder of scripts is served as it is, in each of the
// places where it may be.
func TestReadsSeedManifest(t *testing.T) {
	asJSON := `{` + "\n\t" + `"id": "calculator", "type": "cli", "runtime": "python",
		"entry": "./skills_cli\/calculator.py", "timeout_ms": 12000, "allowed_root": "./data"}`
	for place, text := range map[string]string{
		"skills/calculator.yaml":                seedManifest,
		"skills/calculator.json":                asJSON,
		"skills/calculator/skill.yaml":          seedManifest,
		"skills/calculator/skill.json":          asJSON,
		"skills/other/skill.yaml":               seedManifest,
		"skills/calculator/cli/skill.yaml":      "", // deeper than is looked
		"skills/calculator/sub/calculator.json": "",
	} {
		t.Run(place, func(t *testing.T) {
			dir := seedFiles(t, map[string]string{place: text, "skills_cli/calculator.py": seedScript, "skills/package.json": `{"name": "x"}`})
			r := openSeed(t, dir, skill.Trusted)
			s, err := r.Get("calculator", "")
			if err != nil || len(r.Problems()) > 0 {
				t.Fatalf("%v, %v", err, r.Problems())
			}
			if text == "" {
				if s.Descriptor.Limits.TimeoutMS == 12000 {
					t.Error("it was read")
				}
				return
			}
			d := s.Descriptor
			if d.Runner != skill.CLIPython || d.Version != "0.0.0" || d.Description != "Statistics over numbers." || d.Limits.TimeoutMS != 12000 {
				t.Errorf("%+v", d)
			}
			if s.Primary.Entry != "calculator.py" || filepath.Base(s.Folder) != "skills_cli" || !s.Permissions.Data || !s.Permissions.Scratch || s.Permissions.AllowedRoot != "" {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Of strangers nothing is read that is not written out.
func TestStrangersManifestsStayStrict(t *testing.T) {
	wasm := strings.Replace(strings.Replace(seedManifest, "type: cli", "type: wasm", 1), "./skills_cli/calculator.py", "main.py", 1)
	dir := seedFiles(t, map[string]string{
		"skills/calculator.yaml": seedManifest, "skills/a/skill.yaml": wasm, "skills/a/main.py": "", "skills/b/skill.json": "{}",
		"skills/c.yaml": "id: c\nversion: 1.0.0\ndescription: d\ntype: wasm\nruntime: python\nentry: main.py\n", "skills/c/main.py": "",
		"skills_cli/other.py": "", "skills_cli/calculator.py": seedScript,
	})
	r := openSeed(t, dir, skill.Community)
	var told []string
	for _, p := range r.Problems() {
		told = append(told, p.Message)
	}
	all := strings.Join(told, "\n")
	for _, want := range []string{`unknown key "timeout_ms"`, `unknown key "allowed_root"`, "has no key version", "has no key description", "is read only in trusted folders"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
	if s, err := r.Get("calculator", ""); err != nil || s.Descriptor.Limits.TimeoutMS == 12000 {
		t.Errorf("a flat manifest of strangers was read: %+v, %v", s, err)
	}
	if s, err := r.Get("c", ""); err == nil {
		t.Errorf("a flat manifest of strangers was read: %+v", s)
	}
	if _, problems := ReadFolder(filepath.Join(dir, "skills", "a"), Options{Defaults: limits(10), Caps: limits(100)}); len(problems) != 4 {
		t.Errorf("%v", problems)
	}
	if s, problems := ReadFolder(filepath.Join(dir, "skills", "b"), Options{Defaults: limits(10), Caps: limits(100)}); s != nil || len(problems) == 0 {
		t.Errorf("%v", problems)
	}
}

func TestSeedManifestProblems(t *testing.T) {
	for name, tc := range map[string]struct{ add, want string }{
		"out of the data folder":  {"allowed_root: ./data/../..\n", "must be ./data or a folder below it"},
		"another folder":          {"allowed_root: /etc\n", "must be ./data or a folder below it"},
		"two timeouts":            {"timeout_ms: 5\nlimits: {timeout_ms: 6}\n", "differ; keep one"},
		"too long":                {"timeout_ms: 99999999999\n", "timeout_ms must be a whole number"},
		"without data":            {"allowed_root: ./data/logs\npermissions: {scratch: true}\n", "allowed_root needs permissions.data: read"},
		"empty version":           {"version: ''\n", "invalid version"},
		"empty description":       {"description: ''\n", "description must have 1 to"},
		"a name of another skill": {"id: b\n", "appears twice"},
	} {
		t.Run(name, func(t *testing.T) {
			text := "id: calculator\ntype: cli\nruntime: python\nentry: ./skills_cli/calculator.py\n" + tc.add
			dir := seedFiles(t, map[string]string{"skills/calculator.yaml": text, "skills_cli/calculator.py": seedScript})
			problems, _ := Validate(filepath.Join(dir, "skills"), Options{})
			if len(problems) == 0 || !strings.Contains(problems[0].Message, tc.want) {
				t.Errorf("%v", problems)
			}
		})
	}
	dir := seedFiles(t, map[string]string{"skills/calculator.json": "{\n\"id\": \"calculator\",\n}", "skills/sum.yaml": seedManifest})
	problems, _ := Validate(filepath.Join(dir, "skills"), Options{})
	if len(problems) != 2 || problems[0].Line != 3 || !strings.Contains(problems[1].Message, "rename the file to calculator.yaml") {
		t.Errorf("%v", problems)
	}
}

func TestValidateWarnsOfDefaults(t *testing.T) {
	dir := seedFiles(t, map[string]string{"skills/calculator.yaml": seedManifest, "skills_cli/calculator.py": seedScript})
	problems, warnings := Validate(filepath.Join(dir, "skills"), Options{CLIDir: filepath.Join(dir, "skills_cli")})
	if len(problems) > 0 || len(warnings) != 2 || !strings.Contains(warnings[0].Message, "version is missing; 0.0.0 is assumed") ||
		!strings.Contains(warnings[1].Message, `description is missing; "Statistics over numbers." is assumed`) {
		t.Errorf("%v, %v", problems, warnings)
	}
}

func TestDocLine(t *testing.T) {
	for src, want := range map[string]string{
		"":           "",
		"'''One.'''": "One.",
		"# a\n\n  # b\nr\"\"\"\n  Two  words\n  more\"\"\"": "Two words",
		"\"Three\"\nx = 1":                        "Three",
		"\"\"\"never closed":                      "",
		"import os\n\"\"\"late\"\"\"":             "",
		"b'''bytes'''":                            "",
		"# \"\"\"no\"\"\"":                        "",
		"'''a\u202eb'''":                          "",
		"'''" + strings.Repeat("x", 2000) + "'''": "",
	} {
		if got := docLine(src); got != want {
			t.Errorf("%.40q: %q", src, got)
		}
	}
}

// A root that was pulled brings no manifests for the operator's scripts, and code in the
// sandbox sees only the folder of its own skill.
func TestPulledRootBringsNoManifests(t *testing.T) {
	dir := seedFiles(t, map[string]string{
		"skills/calculator.yaml": seedManifest, "skills/skills.yaml": "skills: [{name: sum, description: d, input_schema: {}, output_schema: {}}]\n",
		"skills/" + MarkFile: Mark, "skills_cli/calculator.py": seedScript, "skills_cli/sum.py": seedScript,
	})
	r := openSeed(t, dir, skill.Trusted)
	for _, id := range []skill.ID{"calculator", "sum"} {
		if s, err := r.Get(id, ""); err != nil || s.Descriptor.Description != "The script "+string(id)+".py of the CLI folder; it has no manifest." {
			t.Errorf("%+v, %v", s, err)
		}
	}
}

func TestOnlyNativeCodeIsInTheCLIFolder(t *testing.T) {
	for _, text := range []string{
		strings.Replace(seedManifest, "type: cli", "type: wasm", 1),
		strings.Replace(seedManifest, "./skills_cli/calculator.py", "./other_cli/calculator.py", 1),
		strings.Replace(seedManifest, "./skills_cli/calculator.py", "calculator.py", 1),
		strings.Replace(seedManifest, "./skills_cli/calculator.py", "cli/calculator.py", 1),
	} {
		dir := seedFiles(t, map[string]string{"skills/calculator.yaml": text, "skills/calculator/README": "", "skills_cli/calculator.py": seedScript})
		if s, err := openSeed(t, dir, skill.Trusted).Get("calculator", ""); err != nil || filepath.Base(s.Folder) != "calculator" {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
	}
}

// What a manifest says of the cost besides is kept for who asks the catalogue; of strangers it
// is refused.
func TestKeepsOtherKeysOfCost(t *testing.T) {
	text := "id: a\nversion: 1.0.0\ndescription: d\ntype: wasm\nruntime: python\nentry: main.py\ncost_metadata: {estimated_tokens: 5, tier: gold, per: {unit: [1, 2.5]}}\n"
	m, problems := parseManifest("skill.yaml", []byte(text), skill.Trusted, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	b, err := json.Marshal(m.cost)
	if want := `{"estimated_tokens":5,"estimated_duration_ms":0,"rate_limit_per_minute":0,"per":{"unit":[1,2.5]},"tier":"gold"}`; err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
	var back skill.Cost
	if err := json.Unmarshal(b, &back); err != nil || back != *m.cost {
		t.Errorf("%+v, %v", back, err)
	}
	if _, problems := parseManifest("skill.yaml", []byte(text), skill.Community, nil); len(problems) != 2 || !strings.Contains(problems[0].Message, `unknown key "tier"`) {
		t.Errorf("of strangers: %v", problems)
	}
	large := strings.Replace(text, "gold", strings.Repeat("g", maxOtherCost), 1)
	if _, problems := parseManifest("skill.yaml", []byte(large), skill.Trusted, nil); len(problems) != 1 || !strings.Contains(problems[0].Message, "the limit is 4096") {
		t.Errorf("large: %v", problems)
	}
}

// A list in a file of its own is read as one in a folder of skills, whose folders have its code.
func TestReadsConfiguredList(t *testing.T) {
	const entry = "input_schema: {}, output_schema: {}"
	dir := seedFiles(t, map[string]string{
		"configs/skills.yaml": "skills:\n- {name: mean, description: d, " + entry + "}\n" +
			"- {name: box, description: d, type: wasm, runtime: python, entry: main.py, " + entry + "}\n- {name: none, description: d, " + entry + "}\n",
		"skills/box/main.py": "", "skills_cli/mean.py": seedScript,
	})
	open := func(list string) *Registry {
		r, err := Open(Options{
			Roots: []Root{{Path: filepath.Join(dir, "skills"), Trust: skill.Trusted}}, CLIDir: filepath.Join(dir, "skills_cli"), List: list,
			Defaults: limits(10), Caps: limits(100),
		})
		musttest.Do(t, err)
		return r
	}
	r := open(filepath.Join(dir, "configs", "skills.yaml"))
	for id, folder := range map[skill.ID]string{"mean": "skills_cli", "box": "box"} {
		if s, err := r.Get(id, ""); err != nil || s.Descriptor.Description != "d" || filepath.Base(s.Folder) != folder {
			t.Errorf("%s: %+v, %v", id, s, err)
		}
	}
	if len(r.Defined()) != 1 || len(r.Problems()) != 1 {
		t.Errorf("%v, %v", r.Defined(), r.Problems())
	}
	if p := open(filepath.Join(dir, "none", "skills.yaml")).Problems(); len(p) != 1 || !strings.Contains(p[0].Message, "cannot read the list of skills") {
		t.Errorf("%v", p)
	}
	musttest.Do(t, os.WriteFile(filepath.Join(dir, "configs", MarkFile), []byte(Mark), 0o600))
	if s, err := open(filepath.Join(dir, "configs", "skills.yaml")).Get("mean", ""); err != nil || s.Descriptor.Description == "d" {
		t.Errorf("the list of a pulled folder: %+v, %v", s, err)
	}
}
