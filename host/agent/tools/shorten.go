package tools

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Shorten cuts what is between the marks of an [Outcome.Text] to most bytes, for who has
// less room than Options.MaxText, and says so behind them. The marks stay; another text
// than that of an outcome is given back as it is.
func Shorten(text string, most int) string {
	begin, end := strings.IndexByte(text, '\n')+1, strings.LastIndex(text, closeMark)
	if begin == 0 || end < begin || end-begin <= max(most, 0) {
		return text
	}
	cut := begin + max(most, 0)
	for cut > begin && !utf8.RuneStart(text[cut]) {
		cut--
	}
	// An escape of a character that cannot be seen is shown whole or not at all.
	const longest = len(`\u{10ffff}`)
	if i := strings.LastIndex(text[max(begin, cut-longest):cut], `\u{`); i >= 0 {
		if i += max(begin, cut-longest); !strings.Contains(text[i:cut], "}") {
			cut = i
		}
	}
	return text[:cut] + text[end:] + fmt.Sprintf("\nThere is room for its first %d bytes of %d alone. Ask for less, or for a part of it.", cut-begin, end-begin)
}
