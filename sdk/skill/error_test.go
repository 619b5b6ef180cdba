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
		"a\ufe00\ufe01\ufe0e\ufe0fb":          "ab", // selectors in a row, in which bytes can be hidden
		"a\U000e0100\U000e01efb":              "ab",
		"a\u034f\u180b\u180d\u180e\u180fb":    "ab",
		"a\u2800\u115f\u1160\uffa0\u17b4b":    "ab",
		"\ufe0f \ufe0fa":                      "a",
		"a \u200c\u200db":                     "a b",
		"\u2764\ufe0f 1\ufe0f\u20e3":          "\u2764\ufe0f 1\ufe0f\u20e3", // a red heart, a key
		"\u2764\ufe0f\ufe0f\ufe0e!":           "\u2764\ufe0f!",
		"\u2764\ufe0f\u200d\U0001f525":        "\u2764\ufe0f\u200d\U0001f525",   // a heart on fire
		"\u0645\u06cc\u200c\u062e\u0648":      "\u0645\u06cc\u200c\u062e\u0648", // Persian
		"\u4e2d\u200d\u200d\u6587":            "\u4e2d\u6587",
		"\u0600\u0661":                        "\u0600\u0661", // a sign before a number, which is seen
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

// FuzzCleanText: what was cleaned is short enough, hides nothing, stays as it is, and is
// the whole text where that fits.
func FuzzCleanText(f *testing.F) {
	f.Add("a\u202eb\xff\n", 16)
	f.Add(strings.Repeat("😀", 9), 20)
	f.Add("\u2764\ufe0f\ufe0f\u200d\U0001f525\u200d", 12)
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = 3 + int(uint(most)%600)
		got := skill.CleanText(s, most)
		if len(got) > most || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\t\r\x00\x1b\u202e") {
			t.Fatalf("%q", got)
		}
		if r, found := skill.Unseen(got); found {
			t.Fatalf("%q has %q, which nobody sees", got, r)
		}
		if again := skill.CleanText(got, most); again != got {
			t.Fatalf("%q, and then %q", got, again)
		}
		if whole := skill.CleanText(s, len(s)*3+3); len(whole) <= most && got != whole {
			t.Fatalf("%q is cut to %q", whole, got)
		}
	})
}
