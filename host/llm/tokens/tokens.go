// Package tokens counts the tokens of a text as OpenAI's models do, and says of other
// models that it estimates.
//
// A vocabulary is loaded when the first text is counted with it, and kept: o200k_base, of
// the models since gpt-4o, takes 18 ms and 6 MiB; cl100k_base, of those before, 6 ms and
// 3 MiB. Counting takes about 70 us a KiB of English, so counts of texts are kept: a
// conversation is counted anew with every question.
//
// The vocabulary's library takes time that grows with the square of a run that nothing
// divides (5 s for 100 KB of blank lines). So text goes to it in pieces of a KiB, cut
// where a token ends if there is such a place, which leaves the count as it is; a run that
// is longer may count a token more for each KiB. What lies beyond 128 KiB is estimated from
// what lies before.
package tokens

import (
	"hash/maphash"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/maypok86/otter/v2"
	"github.com/tiktoken-go/tokenizer/codec"

	"openskill/host/llm"
)

const (
	piece     = 1 << 10
	mostExact = 128 << 10
	fewest    = 48     // bytes, from which on it is worth the while to look whether the count is known
	mostKnown = 16_384 // texts whose count is kept, about 100 bytes each
)

// Counter gives the way to count for a model, by its name. Where that is not known, it is
// [llm.Rough].
func Counter(model string) llm.Counter {
	model = strings.ToLower(model)
	if i := strings.LastIndexByte(model, '/'); i >= 0 { // as brokers of models write it
		model = model[i+1:]
	}
	model = strings.TrimPrefix(model, "ft:")
	switch {
	case newer.MatchString(model):
		return o200k
	case older.MatchString(model):
		return cl100k
	}
	return llm.Rough
}

var (
	newer = regexp.MustCompile(`^(gpt-(4o|4\.[0-9]+|[5-9](\.[0-9]+)?|oss)|chatgpt-4o|o[1-9])([-:]|$)`)
	older = regexp.MustCompile(`^gpt-(4|3\.5|35)([-:]|$)`)

	// By their own functions: what finds them by name has every other vocabulary in its wake.
	o200k  = &encoding{open: func() vocabulary { return codec.NewO200kBase() }}
	cl100k = &encoding{open: func() vocabulary { return codec.NewCl100kBase() }}
)

// vocabulary is what a [codec.Codec] does here.
type vocabulary interface {
	Count(text string) (int, error)
}

// encoding counts with one vocabulary. It is safe for concurrent use.
type encoding struct {
	open  func() vocabulary
	once  sync.Once
	words vocabulary
	known *otter.Cache[key, int] // nil: nothing is kept
	seeds [2]maphash.Seed
}

// key is a text's: two sums with secret seeds, so that nobody makes another text with it.
type key [2]uint64

func (e *encoding) load() {
	e.words = e.open()
	e.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	if known, err := otter.New(&otter.Options[key, int]{MaximumSize: mostKnown}); err == nil {
		e.known = known
	}
}

// Exact implements [llm.Counter].
func (e *encoding) Exact() bool { return true }

// Count implements [llm.Counter].
func (e *encoding) Count(text string) int {
	e.once.Do(e.load)
	if len(text) < fewest || e.known == nil {
		return e.count(text)
	}
	k := key{maphash.String(e.seeds[0], text), maphash.String(e.seeds[1], text)}
	if n, ok := e.known.GetIfPresent(k); ok {
		return n
	}
	n := e.count(text)
	e.known.Set(k, n)
	return n
}

func (e *encoding) count(text string) int {
	exact := text
	if len(text) > mostExact {
		exact = text[:edge(text, mostExact)]
	}
	n := 0
	for rest := exact; rest != ""; {
		cut := len(rest)
		if cut > piece {
			cut = divide(rest)
		}
		n += e.part(rest[:cut])
		rest = rest[cut:]
	}
	if beyond := text[len(exact):]; beyond != "" {
		n += max(int(float64(n)*float64(len(beyond))/float64(len(exact))), llm.Rough.Count(beyond))
	}
	return n
}

func (e *encoding) part(text string) int {
	// The library's compiled pattern passes over the character DEL, as if it were free.
	if strings.IndexByte(text, 0x7f) >= 0 {
		text = strings.ReplaceAll(text, "\x7f", "\x01")
	}
	n, err := e.words.Count(text)
	if err != nil {
		return llm.Rough.Count(text)
	}
	return n
}

// divide finds where the first piece of a text ends: at the last place within it where
// all vocabularies begin a token, or else wherever a character does.
func divide(text string) int {
	end := edge(text, piece)
	for i := end; i > piece/2; i-- {
		if utf8.RuneStart(text[i]) && begins(text, i) {
			return i
		}
	}
	return end
}

// begins reports whether a token begins at a place, whatever stands around it. There are
// two kinds of places for which that is sure. One is before a space or sign that stands
// alone between a letter or digit and a letter: words end there, and the sign belongs to
// the next one. The other is after two signs, before a letter or digit: signs that follow
// each other stay together. An apostrophe may belong to the word before it; ends of lines,
// and a slash after one, are matters of their own.
func begins(text string, i int) bool {
	here, size := utf8.DecodeRuneInString(text[i:])
	before, width := utf8.DecodeLastRuneInString(text[:i])
	switch {
	case wordy(here):
		third, _ := utf8.DecodeLastRuneInString(text[:i-width])
		return signs(before) && signs(third) && third != '/'
	case signs(here) && here != '\'', unicode.IsSpace(here) && here != '\r' && here != '\n':
		after, _ := utf8.DecodeRuneInString(text[i+size:])
		return wordy(before) && unicode.IsLetter(after)
	}
	return false
}

func wordy(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

func signs(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }

// edge is the last beginning of a character at or before a byte.
func edge(text string, at int) int {
	for i := at; i > at-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return at // it is no UTF-8
}
