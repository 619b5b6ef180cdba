package llm

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A charClass is a set of kinds of characters, as the patterns of the vocabularies tell them
// apart.
type charClass uint8

const (
	isSign   charClass = 1 << iota // none of the others
	isUpper                        // \p{Lu} \p{Lt}
	isLower                        // \p{Ll}
	isLetter                       // \p{Lm} \p{Lo}
	isMark                         // \p{M}
	isNumber                       // \p{N}
	isBlank                        // \s but line
	isLine                         // \r \n

	isLetters = isUpper | isLower | isLetter // \p{L}
)

// at returns the kind and size of the character of text at i; 0, 0 at the end. A byte that
// is no UTF-8 is a sign.
func at(text string, i int) (charClass, int) {
	if i >= len(text) {
		return 0, 0
	}
	r, size := utf8.DecodeRuneInString(text[i:])
	switch {
	case 'a' <= r && r <= 'z':
		return isLower, size
	case r == '\r' || r == '\n':
		return isLine, size
	case unicode.IsSpace(r):
		return isBlank, size
	case unicode.Is(unicode.Lo, r):
		return isLetter, size
	case unicode.Is(unicode.Lu, r), unicode.Is(unicode.Lt, r):
		return isUpper, size
	case unicode.Is(unicode.Ll, r):
		return isLower, size
	case unicode.Is(unicode.N, r):
		return isNumber, size
	case unicode.Is(unicode.M, r):
		return isMark, size
	case unicode.Is(unicode.Lm, r):
		return isLetter, size
	}
	return isSign, size
}

// run returns where the characters of these kinds from i on end.
func run(text string, i int, of charClass) int {
	for {
		k, size := at(text, i)
		if k&of == 0 {
			return i
		}
		i += size
	}
}

// The functions below return the length of the first word of a text that is not empty: the
// match of a vocabulary's pattern. No token crosses the ends of a word. They take time
// that grows with the text alone; a backtracking engine takes its square.

// wordCL100K matches cl100k_base:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}
//	| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func wordCL100K(text string) int {
	if end := contraction(text, 0); end > 0 {
		return end
	}
	first, size := at(text, 0)
	if first&(isSign|isMark|isBlank) == 0 {
		size = 0
	}
	if end := run(text, size, isLetters); end > size {
		return end
	}
	return otherWord(text, "\r\n")
}

// wordO200K matches o200k_base, where U is [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], L is
// [\p{Ll}\p{Lm}\p{Lo}\p{M}], and S is (?i:'s|'t|'re|'ve|'m|'ll|'d):
//
//	[^\r\n\p{L}\p{N}]?U*L+S?|[^\r\n\p{L}\p{N}]?U+L*S?|\p{N}{1,3}
//	| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
func wordO200K(text string) int {
	first, size := at(text, 0)
	if first&(isSign|isMark|isBlank) != 0 {
		if end := lowerWord(text, size); end > 0 {
			return contraction(text, end)
		}
	}
	if end := lowerWord(text, 0); end > 0 {
		return contraction(text, end)
	}
	if first&(isSign|isBlank) == 0 {
		size = 0
	}
	if end := run(text, size, isUpper); end > size { // with any other of U or L, the one before matches
		return contraction(text, end)
	}
	return otherWord(text, "\r\n/")
}

// lowerWord returns where U*L+ ends, which begins at i; 0 if it does not match.
func lowerWord(text string, i int) int {
	last := 0 // where L+ can end at the latest, if it has only what U* has, too
	for {
		k, size := at(text, i)
		if k&(isUpper|isLetter|isMark) == 0 {
			break
		}
		if i += size; k != isUpper {
			last = i
		}
	}
	if end := run(text, i, isLower|isLetter|isMark); end > i {
		return end
	}
	return last
}

// contraction returns where an English ending that may stand at i ends, or else i.
func contraction(text string, i int) int {
	if i >= len(text) || text[i] != '\'' {
		return i
	}
	for _, ending := range []string{"s", "ſ", "t", "re", "ve", "m", "ll", "d"} {
		if end := i + 1 + len(ending); end <= len(text) && strings.EqualFold(text[i+1:end], ending) {
			return end
		}
	}
	return i
}

// otherWord matches what is no word: numbers, signs with the characters after that may
// follow them, and space.
func otherWord(text, after string) int {
	end := 0
	for range 3 {
		if k, size := at(text, end); k == isNumber {
			end += size
		}
	}
	if end > 0 {
		return end
	}
	begin := len(text) - len(strings.TrimPrefix(text, " "))
	if end = run(text, begin, isSign|isMark); end > begin {
		return len(text) - len(strings.TrimLeft(text[end:], after))
	}
	end = run(text, 0, isBlank|isLine)
	if i := strings.LastIndexAny(text[:end], "\r\n"); i >= 0 {
		return i + 1
	}
	if _, size := utf8.DecodeLastRuneInString(text[:end]); end < len(text) && end > size {
		end -= size // which belongs to the next word
	}
	return end
}
