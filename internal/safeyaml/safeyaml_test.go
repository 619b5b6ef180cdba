package safeyaml

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
)

// bombs are the documents that are too large for a file of their own; those that
// a person can read are in testdata/bombs.
func bombs() map[string]struct{ doc, want string } {
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "k%d: 1\n", i)
		}
		return b.String()
	}
	return map[string]struct{ doc, want string }{
		"50,000 keys in one map":      {keys(50_000), "the limit is 65536"},
		"257 keys in one map":         {keys(257), "the limit is 256"},
		"as many keys as fit":         {keys(7_000), "the limit is 256"},
		"a byte over the limit":       {"a: " + strings.Repeat("x", MaxBytes-2), "the limit is 65536"},
		"flow lists 30,000 deep":      {strings.Repeat("[", 30_000), ""},
		"closed flow lists, deep":     {strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000), "nested more than 64 deep"},
		"flow maps, deep":             {strings.Repeat("{a: ", 5_000) + "1" + strings.Repeat("}", 5_000), "nested more than 64 deep"},
		"block lists 20,000 deep":     {strings.Repeat("- ", 20_000) + "x", ""},
		"a key of 60,000 bytes":       {strings.Repeat("k", 60_000) + ": 1", ""},
		"60,000 question marks":       {strings.Repeat("? ", 30_000), ""},
		"a line of colons":            {strings.Repeat("a:", 30_000), ""},
		"30,000 quotes":               {strings.Repeat("\"\" ", 20_000), ""},
		"20,000 documents":            {strings.Repeat("---\n", 16_000), "second document"},
		"comments only":               {strings.Repeat("#\n", 30_000), "empty"},
		"anchors without use":         {strings.Repeat("- &a x\n", 9_000), "anchors"},
		"percent directives":          {strings.Repeat("%TAG ! x\n", 7_000) + "--- a", ""},
		"UTF-16":                      {"\xff\xfea\x00:\x00 \x001\x00", "not valid UTF-8"},
		"invalid UTF-8 in the middle": {"a: 1\nb: \xc3\x28\n", "not valid UTF-8"},
	}
}

// TestBombs is case U06 of the hostile uploads: each must be refused, with a
// reason, and at once.
func TestBombs(t *testing.T) {
	cases := bombs()
	files, err := filepath.Glob("testdata/bombs/*.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files of bombs, %v", len(files), err)
	}
	for _, f := range files {
		src := musttest.Get(os.ReadFile(f))(t)
		first, _, _ := strings.Cut(string(src), "\n")
		want, ok := strings.CutPrefix(first, "# refused: ")
		if !ok {
			t.Fatalf("%s does not begin with # refused:", f)
		}
		cases[filepath.Base(f)] = struct{ doc, want string }{string(src), want}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			root, problems := Parse([]byte(c.doc))
			// The worst of these takes about 20 ms; the old cost was 12 s.
			if took := time.Since(begun); took > 2*time.Second {
				t.Errorf("took %v", took)
			}
			if root != nil && len(problems) > 0 || root == nil && len(problems) == 0 {
				t.Fatalf("root %v with problems %v", root != nil, problems)
			}
			if c.want == "" {
				return // ending at once is what is asked
			}
			for _, p := range problems {
				if strings.Contains(p.Message, c.want) {
					return
				}
			}
			t.Errorf("problems %v, want one with %q", problems, c.want)
		})
	}
}

func TestAllProblemsWithTheirLines(t *testing.T) {
	_, problems := Parse([]byte("a: &x 1\nb: *x\nc: !!str 2\na: 3\n1: x\nd: \"\\u202e\"\n<<: {e: 1}\nf: 2020-01-01\n"))
	var lines []int
	for _, p := range problems {
		lines = append(lines, p.Line)
	}
	if got, want := fmt.Sprint(lines), "[1 2 3 4 5 6 7]"; got != want {
		t.Errorf("lines %s, want %s: %v", got, want, problems)
	}
}

// Text that nobody sees is refused, and what belongs to an emoji or a word is not.
func TestHiddenText(t *testing.T) {
	for text, refused := range map[string]bool{
		"a red heart \u2764\ufe0f, a key 1\ufe0f\u20e3":     false,
		"on fire \u2764\ufe0f\u200d\U0001f525":              false,
		"\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645":  false,
		"selectors a\ufe00\ufe01\ufe02":                     true,
		"a selector \ufe0f of nothing":                      true,
		"two \u2764\ufe0f\ufe0e":                            true,
		"of ideographs \u4e2d\U000e0100":                    true,
		"Mongolian \u180b\u180f":                            true,
		"fillers \u3164\u115f\u1160\uffa0":                  true,
		"Braille without a dot \u2800, and a joiner \u034f": true,
		"a joiner\u200d of nothing":                         true,
	} {
		_, problems := Parse([]byte("a: " + strconv.QuoteToASCII(text) + "\n"))
		is := len(problems) == 1 && problems[0].Line == 1 && strings.Contains(problems[0].Message, "invisible")
		if is != refused || !refused && len(problems) > 0 {
			t.Errorf("%+q: %v", text, problems)
		}
	}
}

func TestReportsAreCapped(t *testing.T) {
	_, problems := Parse([]byte(strings.Repeat("- !!str x\n", 200)))
	if len(problems) != MaxReports+1 || problems[MaxReports].Message != "and 150 more problems" {
		t.Errorf("%d problems, the last %v", len(problems), problems[len(problems)-1])
	}
}

func TestJSON(t *testing.T) {
	root, problems := Parse([]byte("z: 1\na: [true, null, 1.5, -0.25, 1e3, 0x10, 0o17, .5, \"q\\\"<\", 2020-01-01]\nm: {}\n"))
	if root == nil {
		t.Fatal(problems)
	}
	got, problems := JSON(root)
	want := `{"z":1,"a":[true,null,1.5,-0.25,1e3,16,15,0.5,"q\"<","2020-01-01"],"m":{}}`
	if string(got) != want || len(problems) > 0 {
		t.Errorf("got  %s %v\nwant %s", got, problems, want)
	}
	for _, doc := range []string{"- .inf\n", "- .nan\n", "- -.inf\n"} {
		root, _ := Parse([]byte(doc))
		if root == nil {
			t.Fatalf("%q is refused", doc)
		}
		if out, problems := JSON(root); len(problems) != 1 || problems[0].Line != 1 {
			t.Errorf("%q gives %s and %v", doc, out, problems)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/bombs/*.yaml")
	for _, name := range files {
		src := musttest.Get(os.ReadFile(name))(f)
		f.Add(src)
	}
	f.Add([]byte("id: a\nlimits: {fuel: 1}\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		root, problems := Parse(src)
		if (root == nil) == (len(problems) == 0) {
			t.Fatalf("root %v, problems %v", root, problems)
		}
		if root != nil {
			if out, problems := JSON(root); (out == nil) == (len(problems) == 0) {
				t.Fatalf("JSON %q, problems %v", out, problems)
			}
		}
	})
}

// JSON is read as JSON, whatever YAML would make of it.
func TestParseJSON(t *testing.T) {
	src := "\ufeff{\n\t\"a\": \"\\ud83d\\ude00 \\/ \\\\ud83d \\u00e9\",\r\n\t\"b\":\t[1e3, -2, null, true], \"c\": \"x: y # z\"}"
	n, problems := ParseJSON([]byte(src))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got, _ := JSON(n)
	if want := `{"a":"😀 / \\ud83d é","b":[1e3,-2,null,true],"c":"x: y # z"}`; string(got) != want {
		t.Errorf("%s", got)
	}
	for src, want := range map[string]string{
		"{\n\"a\": 1,\n}":   "not valid JSON",
		"a: 1":              "not valid JSON",
		"{} {}":             "not valid JSON",
		`{"a": 1, "a": 2}`:  "appears twice",
		`{"a": "\u202e"}`:   "invisible or control",
		`{"a": "\ud800"}`:   "not valid YAML",
		"{\"a\": \"\xff\"}": "not valid UTF-8",
		strings.Repeat("[", 5000) + strings.Repeat("]", 5000): "nested",
		`"` + strings.Repeat("x", MaxBytes) + `"`:             "the limit is",
	} {
		if n, problems := ParseJSON([]byte(src)); n != nil || len(problems) == 0 || !strings.Contains(problems[0].Message, want) {
			t.Errorf("%.30q: %v", src, problems)
		}
	}
}
