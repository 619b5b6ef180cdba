package llm

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// lower makes ASCII letters small and leaves all else, so that places stay where they are.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// find gives the first place of a word in a text of small letters, -1 for none.
//
// The documents say "contains". Taken literally a blog is a log, a minimum is a min, and a
// meaning is a mean; so an English word counts as a whole word alone. Chinese is written
// without spaces: there its words count anywhere, and English ones between its characters
// are whole.
func find(low, word string) int {
	for from := 0; ; {
		i := strings.Index(low[from:], word)
		if i < 0 {
			return -1
		}
		i += from
		if word[0] >= utf8.RuneSelf || whole(low, i, i+len(word)) {
			return i
		}
		from = i + len(word)
	}
}

// whole reports whether nothing goes on with the word at [i, j).
func whole(s string, i, j int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[j:])
	return (i == 0 || !joins(before)) && (j == len(s) || !joins(after))
}

// joins reports whether r beside a letter makes one word with it.
func joins(r rune) bool {
	return r == '_' || unicode.IsDigit(r) || unicode.IsMark(r) ||
		unicode.IsLetter(r) && !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// quotes are the signs around a phrase, by the one that opens it.
var quotes = map[rune]rune{
	'"': '"', '\'': '\'', '`': '`', '“': '”', '‘': '’', '「': '」', '『': '』', '«': '»', '《': '》',
}

// quoted gives the first phrase in quotes, without them. What opens one stands at the
// beginning of a word, and what closes it at the end of one: don't is no quote.
func quoted(s string) (phrase string, ok bool) {
	before := ' '
	for i, r := range s {
		closing, opens := quotes[r]
		if opens && !joins(before) {
			rest := s[i+utf8.RuneLen(r):]
			for from := 0; ; {
				j := strings.IndexRune(rest[from:], closing)
				if j < 0 {
					break
				}
				j += from
				after, n := utf8.DecodeRuneInString(rest[j+utf8.RuneLen(closing):])
				if n == 0 || !joins(after) {
					if phrase = strings.TrimSpace(rest[:j]); phrase != "" {
						return phrase, true
					}
					break
				}
				from = j + utf8.RuneLen(closing)
			}
		}
		before = r
	}
	return "", false
}
