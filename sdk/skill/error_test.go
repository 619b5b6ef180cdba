package skill_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"openskill/sdk/skill"
)

func TestCleanText(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "",
		"plain":                               "plain",
		strings.Repeat("x", 16):               strings.Repeat("x", 16),
		strings.Repeat("x", 17):               strings.Repeat("x", 13) + "…",
		strings.Repeat("x", 16) + "\n":        strings.Repeat("x", 16),
		strings.Repeat("x", 12) + "😀":         strings.Repeat("x", 12) + "😀",
		strings.Repeat("x", 13) + "😀":         strings.Repeat("x", 13) + "…",
		strings.Repeat("x", 11) + "😀😀":        strings.Repeat("x", 11) + "…",
		"a\r\nb\tc":                           "a  b c",
		"\x1b[31mred\x00":                     "[31mred",
		"a\u202eb\u200bc\u00add":              "abcd",
		"a\U000e0041\u3164\ufeff\u061cb":      "ab",
		"bad \xff\xfe":                        "bad \ufffd\ufffd",
		"  spaces around  ":                   "spaces around",
		"\u200b \u200b":                       "",
		strings.Repeat("\u200b", 100) + "end": "end",
	} {
		if got := skill.CleanText(text, 16); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// FuzzCleanText: what was cleaned is short enough, stays as it is, and is the whole
// text where that fits.
func FuzzCleanText(f *testing.F) {
	f.Add("a\u202eb\xff\n", 16)
	f.Add(strings.Repeat("😀", 9), 20)
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = 3 + int(uint(most)%600)
		got := skill.CleanText(s, most)
		if len(got) > most || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\t\r\x00\x1b\u202e") {
			t.Fatalf("%q", got)
		}
		if again := skill.CleanText(got, most); again != got {
			t.Fatalf("%q, and then %q", got, again)
		}
		if whole := skill.CleanText(s, len(s)*3+3); len(whole) <= most && got != whole {
			t.Fatalf("%q is cut to %q", whole, got)
		}
	})
}
