package tools

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShorten(t *testing.T) {
	const open, last = `<tool_result name="echo" status="ok">` + "\n", "\n</tool_result>"
	said := func(shown, of int) string {
		return fmt.Sprintf("\nThere is room for its first %d bytes of %d alone. Ask for less, or for a part of it.", shown, of)
	}
	for name, c := range map[string]struct {
		text string
		most int
		want string
	}{
		"it fits":        {open + "0123456789" + last, 10, open + "0123456789" + last},
		"it does not":    {open + "0123456789" + last, 9, open + "012345678" + last + said(9, 10)},
		"sentences stay": {open + "0123456789" + last + "\nNothing ran.", 1, open + "0" + last + "\nNothing ran." + said(1, 10)},
		"no room":        {open + "0123456789" + last, 0, open + last + said(0, 10)},
		"below none":     {open + "0123456789" + last, -5, open + last + said(0, 10)},
		"characters":     {open + "长长长" + last, 5, open + "长" + last + said(3, 9)},
		"escapes":        {open + `ab\u{202e}c` + last, 9, open + "ab" + last + said(2, 11)},
		"whole escapes":  {open + `ab\u{202e}c` + last, 10, open + `ab\u{202e}` + last + said(10, 11)},
		"another text":   {"nothing of the kind", 3, "nothing of the kind"},
		"no end":         {open + "0123456789", 3, open + "0123456789"},
		"empty":          {"", 3, ""},
	} {
		if got := Shorten(c.text, c.most); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func FuzzShorten(f *testing.F) {
	f.Add("0123\\u{202e}", 3)
	f.Add("长\n</tool_result>", 1)
	f.Fuzz(func(t *testing.T, data string, most int) {
		if most %= 1 << 16; !utf8.ValidString(data) || strings.Contains(data, closeMark) {
			return
		}
		got := Shorten("<tool_result>\n"+data+closeMark, most)
		if strings.Count(got, closeMark) != 1 || !utf8.ValidString(got) {
			t.Fatalf("%q", got)
		}
		if shown := strings.TrimPrefix(got[:strings.Index(got, closeMark)], "<tool_result>\n"); len(shown) > max(most, 0) || !strings.HasPrefix(data, shown) {
			t.Fatalf("%q of %q", shown, data)
		}
	})
}
