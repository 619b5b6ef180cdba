package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestCleaned(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                 "",
		"plain\n\ttext":                    "plain\n\ttext",
		"ends of lines\r\nand\n":           "ends of lines\nand\n",
		"over\rwritten":                    `over\u{d}written`,
		"\r":                               `\u{d}`,
		"\r\r\n":                           `\u{d}` + "\n",
		"\x1b[31mred\x1b[0m":               `\u{1b}[31mred\u{1b}[0m`,
		"\x1b]52;c;aGk=\x07":               `\u{1b}]52;c;aGk=\u{7}`, // the clipboard
		"\x1b]0;title\x1b\\":               `\u{1b}]0;title\u{1b}\`,
		"\u009b2J\u0090x\u009c":            `\u{9b}2J\u{90}x\u{9c}`, // C1
		"a\x00b\x08c\x7f":                  `a\u{0}b\u{8}c\u{7f}`,
		"\u202eabc\u2066d\u2069":           `\u{202e}abc\u{2066}d\u{2069}`,
		"a\u200bb\ufeffc\u00add":           `a\u{200b}b\u{feff}c\u{ad}d`,
		"\u2028\u2029":                     `\u{2028}\u{2029}`,
		"\U000e0041\U000e0100\ufe00":       `\u{e0041}\u{e0100}\u{fe00}`, // text hidden in tags and selectors
		"平均值是 4。":                          "平均值是 4。",
		"👩\u200d🚀 ❤\ufe0f":                 "👩\u200d🚀 ❤\ufe0f",
		"می\u200cخواهم":                    "می\u200cخواهم",
		"a\u200db":                         `a\u{200d}b`,
		"中\u200d\u200d\u200c":              "中\u200d" + `\u{200d}\u{200c}`,
		"e\u0301":                          "e\u0301",
		"z" + strings.Repeat("\u0301", 50): "z" + strings.Repeat("\u0301", maxMarks),
		"bad \xff\xc3 bytes":               "bad \ufffd\ufffd bytes",
		"cut \xe5\xb9":                     "cut \ufffd",
		"ㅤ\u115f\uffa0":                    `\u{3164}\u{115f}\u{ffa0}`,
	} {
		if got := cleaned(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		for cut := range len(in) + 1 { // in parts, cut anywhere
			var c cleaner
			if got := c.part(in[:cut]) + c.part(in[cut:]) + c.end(); got != want {
				t.Errorf("%q cut at %d: %q, want %q", in, cut, got, want)
			}
		}
	}
}

// Every character is either shown as it is or by its number, and of those that the
// messages of the host leave out none is shown as it is.
func TestCleanedEveryCharacter(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		s := string(r)
		kept := cleaned(s) == s
		if kept && skill.CleanText("a"+s+"b", 20) == "ab" {
			t.Errorf("%U is let through", r)
		}
		if !kept && r != '\r' && !strings.HasPrefix(cleaned(s), `\u{`) {
			t.Errorf("%U became %q", r, cleaned(s))
		}
	}
}

func FuzzCleaned(f *testing.F) {
	f.Add("\x1b]52;c;", "aGk=\x07\r", "\n\u202e\xe5")
	f.Add("👩\u200d", "\u200d\ufe0f", "\xff")
	f.Fuzz(func(t *testing.T, a, b, d string) {
		var c cleaner
		got := c.part(a) + c.part(b) + c.part(d) + c.end()
		if whole := cleaned(a + b + d); got != whole {
			t.Fatalf("in parts %q, as a whole %q", got, whole)
		}
		if !utf8.ValidString(got) {
			t.Fatalf("%q is no UTF-8", got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && r != '\t' && !joins(r) && skill.Hidden(r) }); i >= 0 {
			t.Fatalf("%q lets %q through", got, got[i:])
		}
		if strings.ContainsAny(oneLine(a+b+d, 20), "\n\r\x1b") {
			t.Fatal("oneLine has several")
		}
	})
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in      string
		columns int
		want    string
	}{
		{"short", 10, "short"},
		{"a\nb\tc\x1b[2J", 0, "a b c[2J"},
		{"abcdefghij", 5, "abcd…"},
		{"中文中文中文", 7, "中文中…"},
		{strings.Repeat("a", 1<<20), 6, "aaaaa…"},
	} {
		if got := oneLine(tt.in, tt.columns); got != tt.want {
			t.Errorf("%.40q in %d: %q, want %q", tt.in, tt.columns, got, tt.want)
		}
	}
}

// Escaped JSON is the same JSON, without what a terminal would obey.
func TestCleanJSON(t *testing.T) {
	t.Parallel()
	in := map[string]string{"text": "a\u009b2J\u202e\U000e0041\x1b<中>\u2028\x7f"}
	s := musttest.Get(cleanJSON(in))(t)
	if i := strings.IndexFunc(strings.TrimSuffix(s, "\n"), skill.Hidden); i >= 0 || !strings.Contains(s, "<中>") {
		t.Errorf("%q", s)
	}
	var out map[string]string
	if err := json.Unmarshal([]byte(s), &out); err != nil || out["text"] != in["text"] {
		t.Errorf("%q, %v", out, err)
	}
}

func TestCleanWriter(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	const line = "{\"a\":\"\u009b2J\u202e\"}\n"
	n, err := cleanWriter{&b}.Write([]byte(line))
	if n != len(line) || err != nil || b.String() != `{"a":"\u{9b}2J\u{202e}"}`+"\n" {
		t.Errorf("%d, %v, %q", n, err, b.String())
	}
}
