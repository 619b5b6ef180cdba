package skill

import (
	"unicode"
	"unicode/utf8"
)

// Hidden reports whether a character shows nothing, or changes how others are shown: text
// in such characters is seen by nobody who approves it, and read by models.
func Hidden(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0, r == 0xad:
		return true
	case r < 0x300, r >= 0x3041 && r <= 0x9fff && r != 0x3164, r >= 0xac00 && r <= 0xd7a3: // Latin; Japanese, Chinese, Korean
		return false
	case r == 0x2800, // the pattern of Braille without a dot
		r >= 0xe0000 && r <= 0xe0fff: // tags and selectors, also those that are none yet
		return true
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r): // signs before numbers, which are seen
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// Belongs reports whether a hidden character is part of what is seen between before, 0 for
// nothing, and after: a selector of the form of the one before it, as in most emoji, or a
// joiner between two letters of scripts that have them or between two emoji. Each of them
// alone, so that no text hides in a row.
func Belongs(before, r rune, after string) bool {
	switch r {
	case 0xfe0e, 0xfe0f:
		return visible(before)
	case 0x200c, 0x200d:
		next, _ := utf8.DecodeRuneInString(after)
		joined := func(r rune) bool { return r >= 0x80 && r != utf8.RuneError && visible(r) }
		return (before == 0xfe0f || joined(before)) && joined(next)
	}
	return false
}

func visible(r rune) bool { return unicode.IsGraphic(r) && !Hidden(r) && !unicode.IsSpace(r) }

// Unseen gives the first character of a text that is hidden and does not belong there,
// tabs and ends of lines left aside: what [CleanText] takes out.
func Unseen(s string) (r rune, found bool) {
	var before rune
	for i, r := range s {
		if r == '\n' || r == '\t' || r == '\r' {
			before = ' '
			continue
		}
		if Hidden(r) && !Belongs(before, r, s[i+utf8.RuneLen(r):]) {
			return r, true
		}
		before = r
	}
	return 0, false
}
