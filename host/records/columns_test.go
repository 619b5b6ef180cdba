package records

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFit(t *testing.T) {
	const most = 100
	seen := map[string]string{}
	for _, s := range []string{
		"", "a", strings.Repeat("a", most), strings.Repeat("€", most), strings.Repeat("a", most+1), strings.Repeat("a", most+2),
		strings.Repeat("€", most+1), "a\x00", "a\uFFFD", "a\xff", "a\xfe", "\x00", "\x00\x00", strings.Repeat("\x00", most), strings.Repeat("\xff", most+1),
	} {
		f := fit(s, most)
		if !utf8.ValidString(f) || strings.Contains(f, "\x00") || utf8.RuneCountInString(f) > most {
			t.Errorf("%.20q became %q", s, f)
		}
		if other, ok := seen[f]; ok {
			t.Errorf("%.20q and %.20q became the same", s, other)
		}
		seen[f] = s
		if fit(f, most) != f {
			t.Errorf("%q is not fit for its own column", f)
		}
	}
}
