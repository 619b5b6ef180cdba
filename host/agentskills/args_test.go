package agentskills

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/sdk/skill"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][]string{
		``:                                   nil,
		`null`:                               nil,
		`[]`:                                 {},
		`["--value", "1", ""]`:               {"--value", "1", ""},
		` [1, -2.50, 1e3, true, false] `:     {"1", "-2.50", "1e3", "true", "false"},
		`["a\tb", "é", "-x"]`:                {"a\tb", "é", "-x"},
		`{}`:                                 nil,
		`{"value": 26.2, "factor": 1.60934}`: {"--value", "26.2", "--factor", "1.60934"},
		`{"z": "1", "a": "2"}`:               {"--z", "1", "--a", "2"},
		`{"flag": true, "no": false, "nil": null}`: {"--flag"},
		`{"files": ["a", 2, true], "none": []}`:    {"--files", "a", "2", "true"},
		`{"n": -5, "m": -1.5e3, "o": -.5}`:         nil, // not JSON
		`{"n": -5, "m": -1.5e3}`:                   {"--n", "-5", "--m", "-1.5e3"},
		`{"title": "-x", "n": "-5", "e": ""}`:      {"--title=-x", "--n", "-5", "--e", ""},
		`{"-n": 5, "--long": "x", "_u": 1}`:        {"-n", "5", "--long", "x", "--_u", "1"},
	} {
		got, err := Arguments(json.RawMessage(raw))
		if strings.Contains(raw, "-.5") {
			if skill.CodeOf(err) != skill.InvalidArgument {
				t.Errorf("%s: %q, %v", raw, got, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", raw, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", raw, diff)
		}
	}
}

func TestArgumentsRefused(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	list := func(n int, s string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%q,", s), n), ",") + "]"
	}
	for name, c := range map[string]struct {
		raw  string
		code skill.Code
		want string
	}{
		"text":                  {`"--value 1"`, skill.InvalidArgument, "must be a list of texts"},
		"a number":              {`1`, skill.InvalidArgument, "must be a list of texts"},
		"broken list":           {`["a"`, skill.InvalidArgument, "not valid JSON"},
		"broken object":         {`{"a": 1`, skill.InvalidArgument, "not an object that can be read"},
		"a key twice":           {`{"a": 1, "a": 2}`, skill.InvalidArgument, "not an object that can be read"},
		"list in a list":        {`["a", ["b"]]`, skill.InvalidArgument, "args[1] must be text"},
		"object in a list":      {`[{}]`, skill.InvalidArgument, "args[0] must be text"},
		"null in a list":        {`[null]`, skill.InvalidArgument, "args[0] must be text"},
		"object in an object":   {`{"a": {"b": 1}}`, skill.InvalidArgument, "args.a is an object"},
		"list of lists":         {`{"a": [[1]]}`, skill.InvalidArgument, "args.a must be a list"},
		"name with a space":     {`{"a b": 1}`, skill.InvalidArgument, "has the name"},
		"name with an =":        {`{"a=b": 1}`, skill.InvalidArgument, "has the name"},
		"no name":               {`{"": 1}`, skill.InvalidArgument, "has the name"},
		"hyphens alone":         {`{"--": 1}`, skill.InvalidArgument, "has the name"},
		"NUL":                   {`["a\u0000b"]`, skill.InvalidArgument, "argument 1 holds a NUL"},
		"the end of a line":     {`["a", "a\nb"]`, skill.InvalidArgument, "argument 2 holds the end of a line"},
		"in an object":          {`{"a": "x\r\ny"}`, skill.InvalidArgument, "argument 2 holds the end of a line"},
		"257 arguments":         {list(257, "a"), skill.InvalidArgument, "more than 256"},
		"one of 128 KiB and 1":  {list(1, long(MaxArg+1)), skill.PayloadTooLarge, "at most 131072 bytes each"},
		"one of a megabyte":     {`{"a": "` + long(1<<20) + `"}`, skill.PayloadTooLarge, "at most 131072 bytes each"},
		"a megabyte and more":   {list(9, long(MaxArg)), skill.PayloadTooLarge, "1048576 in all"},
		"many in an object":     {`{"a": ` + list(300, "a") + `}`, skill.InvalidArgument, "more than 256"},
		"deeply nested":         {strings.Repeat("[", 100_000), skill.InvalidArgument, "not valid JSON"},
		"deeply nested objects": {strings.Repeat(`{"a":`, 100_000), skill.InvalidArgument, ""},
	} {
		got, err := Arguments(json.RawMessage(c.raw))
		if got != nil || skill.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %d arguments, %v; want %s and %q", name, len(got), err, c.code, c.want)
		}
		if len(err.Error()) > 1000 {
			t.Errorf("%s: a message of %d bytes", name, len(err.Error()))
		}
	}
	// What is at the limits is accepted.
	for name, raw := range map[string]string{"256 arguments": list(256, "a"), "a megabyte": list(8, long(MaxArg))} {
		if _, err := Arguments(json.RawMessage(raw)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{`["a", 1]`, `{"a": [1, "b"], "c": true}`, `null`, `{"a": "\ud800"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		args, err := Arguments(json.RawMessage(s))
		if err != nil {
			if c := skill.CodeOf(err); c != skill.InvalidArgument && c != skill.PayloadTooLarge {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if checkArgs(args) != nil {
			t.Errorf("%q gives %q", s, args)
		}
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]skill.Code{
		"scripts/a.py":             "",
		"a":                        "",
		"./a":                      "",
		"..a/b..":                  "",
		"漢字.md":                    "",
		"":                         skill.InvalidArgument,
		"/etc/passwd":              skill.ForbiddenPath,
		"../../etc/passwd":         skill.ForbiddenPath,
		"references/../../x":       skill.ForbiddenPath,
		"..":                       skill.ForbiddenPath,
		`..\..\etc`:                skill.ForbiddenPath,
		`C:\x`:                     skill.ForbiddenPath,
		"C:/x":                     skill.ForbiddenPath,
		"~/.ssh/id":                skill.ForbiddenPath,
		"a\x00.py":                 skill.InvalidArgument,
		"a\nb":                     skill.InvalidArgument,
		"a\x1b[31m":                skill.InvalidArgument,
		"\xff":                     skill.InvalidArgument,
		strings.Repeat("a", 1025):  skill.InvalidArgument,
		strings.Repeat("a", 1<<20): skill.InvalidArgument,
	} {
		err := checkName("script", name)
		if skill.CodeOf(err) != code {
			t.Errorf("%.60q: %v, want %q", name, err, code)
		}
	}
}

func TestNear(t *testing.T) {
	t.Parallel()
	all := []string{"references/conversion-table.md", "references/units.md", "notes.txt", "scripts/convert.py"}
	for name, want := range map[string]string{
		"conversion-table.md":         "did you mean references/conversion-table.md?",
		"references/conversion-table": "did you mean references/conversion-table.md?",
		"refs/conversion-tabel.md":    "did you mean references/conversion-table.md?",
		"convert":                     "did you mean scripts/convert.py?",
		"unit.md":                     "did you mean references/units.md?",
		"zzzzzzzzzz":                  "there are references/conversion-table.md, references/units.md, notes.txt, scripts/convert.py",
		strings.Repeat("z", 1000):     "there are references/conversion-table.md, references/units.md, notes.txt, scripts/convert.py",
	} {
		if got := offer(name, all, "none"); got != want {
			t.Errorf("%.40s: %s; want %s", name, got, want)
		}
	}
	if got := offer("x", nil, "it has none"); got != "it has none" {
		t.Error(got)
	}
	many := []string{"a1", "b2", "c3", "d4", "e5", "f6", "g7"}
	if got := offer("zzzz", many, ""); got != "there are a1, b2, c3, d4, e5 and others" {
		t.Error(got)
	}
}
