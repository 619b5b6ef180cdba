package llm

import (
	"hash/maphash"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/maypok86/otter/v2"
)

const (
	mostExact = 128 << 10
	fewest    = 48     // bytes, from which on it is worth the while to look whether the count is known
	mostKnown = 16_384 // texts whose count is kept, about 100 bytes each
)

// CounterFor gives the way to count for a model, by its name: as OpenAI's models do, or
// [Rough] where that is not known.
//
// A vocabulary is loaded when the first text is counted with it, and kept: o200k_base, of
// the models since gpt-4o, takes 18 ms and 8 MiB; cl100k_base, of those before, 8 ms and
// 4 MiB. A text is split into words, and the bytes of each are merged into tokens, both in
// a time that grows with the text whatever is in it: 10 us a KiB of English, at most 400.
// Counts of texts are kept, since a conversation is counted anew with every question. What
// lies beyond 128 KiB is estimated from what lies before.
func CounterFor(model string) Counter {
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
	return Rough
}

var (
	newer = regexp.MustCompile(`^(gpt-(4o|4\.[0-9]+|[5-9](\.[0-9]+)?|oss)|chatgpt-4o|o[1-9])([-:]|$)`)
	older = regexp.MustCompile(`^gpt-(4|3\.5|35)([-:]|$)`)

	o200k  = &encoding{packed: o200kBase, size: 199_998, word: wordO200K}
	cl100k = &encoding{packed: cl100kBase, size: 100_256, word: wordCL100K}
)

// encoding counts with one vocabulary. It is safe for concurrent use.
type encoding struct {
	packed string
	size   int // tokens
	word   func(text string) int

	once  sync.Once
	ranks ranks
	known *otter.Cache[countKey, int] // nil: nothing is kept
	seeds [2]maphash.Seed
}

// countKey is a text's: two sums with secret seeds, so that nobody makes another text with it.
type countKey [2]uint64

func (e *encoding) load() {
	e.ranks = unpack(e.packed, e.size)
	e.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	if known, err := otter.New(&otter.Options[countKey, int]{MaximumSize: mostKnown}); err == nil {
		e.known = known
	}
}

// Exact implements [Counter].
func (e *encoding) Exact() bool { return true }

// Count implements [Counter].
func (e *encoding) Count(text string) int {
	e.once.Do(e.load)
	if len(text) < fewest || e.known == nil {
		return e.count(text)
	}
	k := countKey{maphash.String(e.seeds[0], text), maphash.String(e.seeds[1], text)}
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
	m := merger{ranks: e.ranks}
	rest := exact
	if !utf8.ValidString(rest) {
		rest = string([]rune(rest)) // as JSON has it: U+FFFD for each byte that is no UTF-8
	}
	for rest != "" {
		end := e.word(rest)
		n += m.count(rest[:end])
		rest = rest[end:]
	}
	if beyond := text[len(exact):]; beyond != "" {
		n += max(int(float64(n)*float64(len(beyond))/float64(len(exact))), Rough.Count(beyond))
	}
	return n
}

// edge is the last beginning of a character at or before a byte.
func edge(text string, at int) int {
	for i := at; i > at-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return at // it is no UTF-8
}
