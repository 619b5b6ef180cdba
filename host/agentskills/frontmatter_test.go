package agentskills

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/manifest"
	"openskill/internal/safeyaml"
)

const good = "---\nname: demo\ndescription: Does things.\n---\n\nDo it.\n"

// lines shows problems as a person would read them.
func lines(list []manifest.Problem) []string {
	out := []string{}
	for _, p := range list {
		out = append(out, p.String())
	}
	return out
}

func TestFrontmatter(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", MaxDescription)
	for name, c := range map[string]struct {
		src  string
		want Frontmatter
		body string
	}{
		"the least": {good, Frontmatter{Name: "demo", Description: "Does things."}, "\nDo it.\n"},
		"byte order mark": {
			mark + good, Frontmatter{Name: "demo", Description: "Does things."}, "\nDo it.\n",
		},
		"lines of Windows": {
			strings.ReplaceAll(good, "\n", "\r\n"), Frontmatter{Name: "demo", Description: "Does things."}, "\r\nDo it.\r\n",
		},
		"no body":                    {"---\nname: demo\ndescription: D\n---", Frontmatter{Name: "demo", Description: "D"}, ""},
		"spaces behind the fence":    {"--- \nname: demo\ndescription: D\n---\t\nX", Frontmatter{Name: "demo", Description: "D"}, "X"},
		"a fence in the body":        {"---\nname: demo\ndescription: D\n---\na\n---\nb", Frontmatter{Name: "demo", Description: "D"}, "a\n---\nb"},
		"hyphens within a value":     {"---\nname: demo\ndescription: a --- b\n---\n", Frontmatter{Name: "demo", Description: "a --- b"}, ""},
		"1024 characters, not bytes": {"---\nname: demo\ndescription: " + long + "\n---\n", Frontmatter{Name: "demo", Description: long}, ""},
		"everything": {
			"---\nname: demo\ndescription: >\n  Two\n  lines.\nlicense: MIT\ncompatibility: Needs git.\nallowed-tools: Bash(git add:*) Read,Write\nmetadata:\n  author: \"ada\"\n  version: 1.0\n---\nX\n",
			Frontmatter{
				Name: "demo", Description: "Two lines.", License: "MIT", Compatibility: "Needs git.",
				AllowedTools: []string{"Bash(git add:*)", "Read", "Write"}, Metadata: map[string]string{"author": "ada", "version": "1.0"},
			},
			"X\n",
		},
		"another language": {
			"---\nname: demo\ndescription: 将中文古典诗词精确翻译成地道的英文\n---\n\n## 详细指令\n",
			Frontmatter{Name: "demo", Description: "将中文古典诗词精确翻译成地道的英文"},
			"\n## 详细指令\n",
		},
		"tools as a list": {
			"---\nname: demo\ndescription: D\nallowed-tools:\n  - Bash(git add:*)\n  - Read\n---\n",
			Frontmatter{Name: "demo", Description: "D", AllowedTools: []string{"Bash(git add:*)", "Read"}},
			"",
		},
	} {
		p := parse("SKILL.md", "demo", []byte(c.src))
		if len(p.problems) > 0 || len(p.remarks) > 0 {
			t.Errorf("%s: %v %v", name, p.problems, p.remarks)
			continue
		}
		if diff := cmp.Diff(c.want, p.front); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		if p.document.body != c.body {
			t.Errorf("%s: the body is %q, want %q", name, p.document.body, c.body)
		}
	}
}

func TestFrontmatterProblems(t *testing.T) {
	t.Parallel()
	const whole = "SKILL.md: "
	unusable := map[string]bool{}
	for _, name := range []string{
		"nothing", "no frontmatter", "text before it", "four hyphens", "not closed", "only a fence", "empty", "a list", "no description", "empty description", "no text but a comment mark",
		"a key twice", "several", "257 keys", "over 64 KiB", "over 256 KiB", "two documents",
	} {
		unusable[name] = true
	}
	for name, c := range map[string]struct {
		src  string
		want []string // beginnings
	}{
		"nothing":          {"", []string{"SKILL.md:1: must begin with a line of three hyphens"}},
		"no frontmatter":   {"# A skill\n", []string{"SKILL.md:1: must begin with a line of three hyphens"}},
		"four hyphens":     {"----\nname: demo\n", []string{"SKILL.md:1: must begin with a line of three hyphens"}},
		"a line before it": {"\n" + good, []string{"SKILL.md:1: lines are before the first line of three hyphens"}},
		"text before it":   {"# A skill\n" + good, []string{"SKILL.md:1: must begin with a line of three hyphens"}},
		"not closed":       {"---\nname: demo\ndescription: D\n", []string{"SKILL.md:1: the frontmatter that begins here does not end"}},
		"only a fence":     {"---", []string{"SKILL.md:1: the frontmatter that begins here does not end"}},
		"empty":            {"---\n---\n", []string{whole + "the frontmatter is empty"}},
		"a list":           {"---\n- name\n---\n", []string{"SKILL.md:2: the frontmatter must be keys and values"}},
		"not YAML":         {"---\nname: demo\ndescription: Use when: asked\n---\n", []string{"SKILL.md:3: description is read as text, as if in quotes: not valid YAML: mapping values are not allowed in this context; text with a colon in it needs quotes"}},
		"not UTF-8":        {"---\nname: demo\ndescription: \xff\n---\n", []string{"SKILL.md:3: the file is not valid UTF-8"}},
		"body not UTF-8":   {good + "\xff", []string{"SKILL.md:7: the file is not valid UTF-8"}},
		"no name":          {"---\ndescription: D\n---\n", []string{"SKILL.md:1: the frontmatter lacks the key name"}},
		"no description":   {"---\nname: demo\n---\n", []string{"SKILL.md:1: the frontmatter lacks the key description"}},
		"empty description": {
			"---\nname: demo\ndescription: \"  \"\n---\n", []string{"SKILL.md:3: description is empty"},
		},
		"name of another folder": {"---\nname: other\ndescription: D\n---\n", []string{`SKILL.md:2: the name "other" and the folder "demo"`}},
		"capitals":               {"---\nname: Demo\ndescription: D\n---\n", []string{`SKILL.md:2: "Demo" is not a valid skill name`}},
		"hyphen at the end":      {"---\nname: demo-\ndescription: D\n---\n", []string{`SKILL.md:2: "demo-" is not a valid skill name`}},
		"two hyphens":            {"---\nname: de--mo\ndescription: D\n---\n", []string{`SKILL.md:2: "de--mo" is not a valid skill name`}},
		"underscore":             {"---\nname: de_mo\ndescription: D\n---\n", []string{`SKILL.md:2: "de_mo" is not a valid skill name`}},
		"65 letters":             {"---\nname: " + strings.Repeat("a", 65) + "\ndescription: D\n---\n", []string{`SKILL.md:2: "aaa`}},
		"name as a number":       {"---\nname: 12\ndescription: D\n---\n", []string{"SKILL.md:2: name must be text; put it in quotes"}},
		"description as a list":  {"---\nname: demo\ndescription: [a]\n---\n", []string{"SKILL.md:3: description must be text"}},
		"1025 characters":        {"---\nname: demo\ndescription: " + strings.Repeat("x", 1025) + "\n---\n", []string{"SKILL.md:3: description is too long: 1025 characters"}},
		"compatibility, 501": {
			"---\nname: demo\ndescription: D\ncompatibility: " + strings.Repeat("x", 501) + "\n---\n", []string{"SKILL.md:4: compatibility is too long: 501 characters"},
		},
		"compatibility, empty": {"---\nname: demo\ndescription: D\ncompatibility: \"\"\n---\n", []string{"SKILL.md:4: compatibility is empty"}},
		"metadata as text":     {"---\nname: demo\ndescription: D\nmetadata: x\n---\n", []string{"SKILL.md:4: metadata must be keys with text"}},
		"tools as a map":       {"---\nname: demo\ndescription: D\nallowed-tools: {a: b}\n---\n", []string{"SKILL.md:4: allowed-tools must be text"}},
		"tools, a list of lists": {
			"---\nname: demo\ndescription: D\nallowed-tools:\n  - [a]\n---\n", []string{"SKILL.md:5: allowed-tools must be text"},
		},
		"a key twice":   {"---\nname: demo\nname: demo\ndescription: D\n---\n", []string{`SKILL.md:3: the key "name" appears twice; it is first set at line`}},
		"an alias":      {"---\nname: &n demo\ndescription: *n\n---\n", []string{"SKILL.md:2: name is read as text, as if in quotes: anchors", "SKILL.md:3: description is read as text"}},
		"invisible":     {"---\nname: demo\ndescription: \"a\u200bb\"\n---\n", []string{"SKILL.md:3: description is read as text, as if in quotes: the text has the invisible or control character U+200B"}},
		"the first key": {"---\ndescription: Use when: asked\nname: demo\n---\n", []string{"SKILL.md:2: description is read as text, as if in quotes"}},
		"a later key": {
			"---\nname: demo\ndescription: D\nargument-hint: [a] [b]\n---\n",
			[]string{"SKILL.md:4: argument-hint is read as text, as if in quotes", `SKILL.md:4: the key "argument-hint" is not of the specification`},
		},
		"two keys": {
			"---\nname: demo\nlicense: @x\ndescription: Use when: asked\n---\n",
			[]string{"SKILL.md:3: license is read as text", "SKILL.md:4: description is read as text"},
		},
		"tabs": {
			"---\nname: demo\ndescription: D\nmetadata:\n\tauthor: ada\n---\n",
			[]string{"SKILL.md:5: metadata has tabs or no-break spaces, which are read as spaces"},
		},
		"a comment": {"---\nname: demo\ndescription: # Chemistry\n---\n", []string{"SKILL.md:3: description begins with #"}},
		"no text but a comment mark": {
			"---\nname: demo\ndescription: #\n---\n", []string{"SKILL.md:3: description is empty", "SKILL.md:3: description begins with #"},
		},
		"metadata, a key twice": {
			"---\nname: demo\ndescription: D\nmetadata:\n  a: 1\n  b: 2\n  a: 3\n---\n",
			[]string{`SKILL.md:7: metadata is left out: the key "a" appears twice`},
		},
		"several": {
			"---\nname: Demo\ndescription: \"\"\ncompatibility: \"\"\n---\n",
			[]string{"SKILL.md:3: description is empty", "SKILL.md:4: compatibility is empty", `SKILL.md:2: "Demo" is not a valid skill name`},
		},
		"257 keys":      {"---\n" + manyKeys(257) + "---\n", []string{"SKILL.md:2: a map has too many keys: 257, the limit is 256"}},
		"over 64 KiB":   {"---\nname: demo\ndescription: " + strings.Repeat("x", safeyaml.MaxBytes) + "\n---\n", []string{whole + "the frontmatter is too large"}},
		"over 256 KiB":  {good + strings.Repeat("x", MaxContent), []string{whole + "is too large: 262"}},
		"two documents": {"---\nname: demo\n...\nname: demo\ndescription: D\n---\n", []string{""}},
	} {
		p := parse("SKILL.md", "demo", []byte(c.src))
		if f := p.front.Problems(); len(p.problems) > 0 != unusable[name] || len(p.problems) == 0 && len(f) > 0 {
			t.Errorf("%s: problems %q, remarks %q, and then %q", name, lines(p.problems), lines(p.remarks), f)
		}
		got := lines(append(p.problems, p.remarks...))
		if len(got) != len(c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], c.want[i]) {
				t.Errorf("%s: %q, want it to begin with %q", name, got[i], c.want[i])
			}
		}
	}
}

// What people write and YAML does not know is read as what they meant.
func TestFrontmatterAsWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		front string
		want  Frontmatter
	}{
		"a colon":             {"name: demo\ndescription: Use when: asked\n", Frontmatter{Description: "Use when: asked"}},
		"a colon, two lines":  {"name: demo\ndescription: Use when: asked\n  and: else\nlicense: MIT\n", Frontmatter{Description: "Use when: asked and: else", License: "MIT"}},
		"an at sign":          {"name: demo\ndescription: @x does it\n", Frontmatter{Description: "@x does it"}},
		"brackets":            {"name: demo\ndescription: D\nargument-hint: [a] - x\n", Frontmatter{Description: "D"}},
		"a quote in quotes":   {"name: demo\ndescription: 'it's for this'\n", Frontmatter{Description: "it's for this"}},
		"text behind a quote": {"name: demo\ndescription: \"Do\" it\n", Frontmatter{Description: `Do" it`}},
		"a percent sign":      {"name: demo\ndescription: %d is a number\n", Frontmatter{Description: "%d is a number"}},
		"a tab":               {"name: demo\ndescription: D\nmetadata:\n\tauthor: ada\n", Frontmatter{Description: "D", Metadata: map[string]string{"author": "ada"}}},
		"a space that breaks": {"name: demo\ndescription:\u00a0D\n", Frontmatter{Description: "D"}},
		"an empty license":    {"name: demo\ndescription: D\nlicense:\n", Frontmatter{Description: "D"}},
		"a number":            {"name: demo\ndescription: 12\n", Frontmatter{Description: "12"}},
		"a list":              {"name: demo\ndescription: [a, b]\n", Frontmatter{Description: "a, b"}},
		"lines of Windows":    {"name: demo\r\ndescription: a: b\r\nlicense: MIT\r\n", Frontmatter{Description: "a: b", License: "MIT"}},
		"an anchor":           {"name: demo\ndescription: &x is not one\n", Frontmatter{Description: "&x is not one"}},
		"invisible":           {"name: demo\ndescription: a\u200bb\n", Frontmatter{Description: "ab"}},
		"a block":             {"name: demo\ndescription: |\n  a: b\n  c\nlicense: a: b\n", Frontmatter{Description: "a: b\nc", License: "a: b"}},
		"a comment":           {"name: demo\ndescription: # Chemistry & drugs\nlicense: MIT\n", Frontmatter{Description: "Chemistry & drugs", License: "MIT"}},
		"JSON that YAML refuses": {
			`metadata: {"openclaw": {"emoji": "\ud83d\udd2d", "n": [1]}}` + "\nname: demo\ndescription: D\n",
			Frontmatter{Description: "D", Metadata: map[string]string{"openclaw": `{"emoji":"🔭","n":[1]}`}},
		},
		"metadata that cannot be read": {"name: demo\ndescription: D\nmetadata:\n  a: b: c\n", Frontmatter{Description: "D"}},
		"tools that are none":          {"name: demo\ndescription: D\nallowed-tools: {a: b}\n", Frontmatter{Description: "D"}},
	} {
		c.want.Name = "demo"
		p := parse("SKILL.md", "demo", []byte("---\n"+c.front+"---\nDo it.\n"))
		if len(p.problems) > 0 || len(p.remarks) == 0 {
			t.Errorf("%s: problems %q, remarks %q", name, lines(p.problems), lines(p.remarks))
			continue
		}
		if diff := cmp.Diff(c.want, p.front); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	// A name that is none becomes one.
	for name, want := range map[string]string{"My Skill": "my-skill", "de--mo": "de-mo", "Demo_2": "demo-2", "漢": "skill", strings.Repeat("a", 70): strings.Repeat("a", 64)} {
		if p := parse("SKILL.md", "x", []byte("---\nname: "+name+"\ndescription: D\n---\n")); p.front.Name != want || len(p.problems) > 0 || len(p.remarks) == 0 {
			t.Errorf("%q: %q %q", name, p.front.Name, lines(p.problems))
		}
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: x\n", i)
	}
	return b.String()
}

// What the specification does not know keeps nobody from using a skill.
func TestRemarks(t *testing.T) {
	t.Parallel()
	p := parse("SKILL.md", "demo", []byte("---\nname: demo\ndescription: D\nversion: 1.2\nmetadata:\n  openclaw: {emoji: x, n: 1}\n---\n"))
	if len(p.problems) > 0 {
		t.Fatal(p.problems)
	}
	want := []string{
		`SKILL.md:4: the key "version" is not of the specification and is ignored; it knows allowed-tools, compatibility, description, license, metadata, name, and metadata has room for others`,
		`SKILL.md:6: metadata "openclaw" is not text as the specification requires; it is stored as JSON`,
	}
	if diff := cmp.Diff(want, lines(p.remarks)); diff != "" {
		t.Error(diff)
	}
	if got := p.front.Metadata["openclaw"]; got != `{"emoji":"x","n":1}` {
		t.Errorf("kept as %s", got)
	}
}

// What is written for a skill without a file is a SKILL.md that reads as the same.
func TestRender(t *testing.T) {
	t.Parallel()
	f := Frontmatter{
		Name: "demo", Description: "Quotes \" and: colons, <tags>, # marks,\nlines and 漢字.", License: "MIT", Compatibility: "Needs: git",
		AllowedTools: []string{"Bash(git add:*)", "Read"}, Metadata: map[string]string{"a key": "yes", "version": "1.0"},
	}
	p := parse("SKILL.md", "demo", []byte(render(&f, "Do it.")))
	if len(p.problems)+len(p.remarks) > 0 {
		t.Fatal(p.problems, p.remarks)
	}
	if diff := cmp.Diff(f, p.front); diff != "" {
		t.Error(diff)
	}
	if p.document.body != "\nDo it.\n" {
		t.Errorf("body %q", p.document.body)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{good, mark + good, strings.ReplaceAll(good, "\n", "\r\n"), "---\n---", "---\n- a\n---\n", "---\nmetadata: {a: [1, {b: c}]}\n---"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := parse("SKILL.md", "demo", []byte(s))
		if len(p.problems) > 0 {
			return
		}
		if list := p.front.Problems(); len(list) > 0 {
			t.Errorf("accepted with %q", list)
		}
		again := parse("SKILL.md", p.front.Name, []byte(render(&p.front, p.document.body)))
		if diff := cmp.Diff(p.front, again.front); diff != "" || len(again.problems) > 0 {
			t.Errorf("written and read again it is another: %s %v", diff, again.problems)
		}
	})
}
