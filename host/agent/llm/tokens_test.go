package llm

import (
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"openskill/internal/musttest"
)

// Counts that OpenAI publishes, and others that its own library gives.
func TestKnown(t *testing.T) {
	for _, c := range []struct {
		text        string
		older, newr int
	}{
		{"", 0, 0},
		{"hello world", 2, 2},
		{"tiktoken is great!", 6, 6},
		{"antidisestablishmentarianism", 6, 6},
		{"2 + 2 = 4", 7, 7},
		{"お誕生日おめでとう", 9, 8},
		{"\x7f\x7f\x7f", 3, 3},
	} {
		if n := CounterFor("gpt-4").Count(c.text); n != c.older {
			t.Errorf("%q: %d with cl100k, want %d", c.text, n, c.older)
		}
		if n := CounterFor("gpt-4o").Count(c.text); n != c.newr {
			t.Errorf("%q: %d with o200k, want %d", c.text, n, c.newr)
		}
	}
}

func TestModels(t *testing.T) {
	for model, want := range map[string]Counter{
		"gpt-4o": o200k, "gpt-4o-mini-2024-07-18": o200k, "GPT-4o": o200k, "openai/gpt-4.1-nano": o200k, "gpt-5": o200k,
		"gpt-5.1-codex": o200k, "o1": o200k, "o3-mini": o200k, "o4-mini-2025-04-16": o200k, "chatgpt-4o-latest": o200k,
		"ft:gpt-4o-mini:acme::id": o200k, "gpt-oss-120b": o200k, "gpt-4.5-preview": o200k,
		"gpt-4": cl100k, "gpt-4-turbo": cl100k, "gpt-4-0613": cl100k, "gpt-3.5-turbo": cl100k, "gpt-35-turbo": cl100k, "ft:gpt-3.5-turbo:x": cl100k,
		"": Rough, "qwen-plus": Rough, "claude-sonnet-4-5": Rough, "deepseek-chat": Rough, "gpt": Rough,
		"gpt-40": Rough, "o1x": Rough, "ollama": Rough, "/": Rough, "gpt-4all": Rough,
	} {
		if got := CounterFor(model); got != want {
			t.Errorf("%q: %v", model, got)
		}
	}
	if !CounterFor("gpt-4o").Exact() || CounterFor("qwen-plus").Exact() {
		t.Error("which counts are exact is said the wrong way round")
	}
}

var both = map[string]*encoding{"o200k": o200k, "cl100k": cl100k}

var tiktoken = flag.String("tiktoken", "", "write the vocabularies from the files NAME.tiktoken in this folder")

// The embedded vocabularies are those that OpenAI publishes: the sums are of its files
// o200k_base.tiktoken and cl100k_base.tiktoken, as tiktoken 0.14.0 names them.
func TestRanks(t *testing.T) {
	for _, v := range []struct {
		name, sum string
		e         *encoding
	}{
		{"o200k_base", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d", o200k},
		{"cl100k_base", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7", cl100k},
	} {
		if *tiktoken != "" {
			v.e = &encoding{packed: pack(t, filepath.Join(*tiktoken, v.name+".tiktoken")), size: v.e.size}
			musttest.Do(t, os.WriteFile(v.name+".flate", []byte(v.e.packed), 0o644))
		}
		all := unpack(v.e.packed, v.e.size)
		list := make([]string, v.e.size)
		for token, rank := range all {
			list[rank] = token
			if len(token) > longest {
				t.Errorf("%s: the token %q is longer than %d bytes", v.name, token, longest)
			}
		}
		sum := sha256.New()
		for rank, token := range list {
			fmt.Fprintf(sum, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(token)), rank)
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != v.sum || len(all) != v.e.size {
			t.Errorf("%s: %d tokens with the sum %s, want %d with %s", v.name, len(all), got, v.e.size, v.sum)
		}
	}
}

// pack reads a file of OpenAI's, whose lines are a token in base64 and its rank.
func pack(t *testing.T, file string) string {
	t.Helper()
	text := musttest.Get(os.ReadFile(file))(t)
	var out strings.Builder
	w := musttest.Get(flate.NewWriter(&out, flate.BestCompression))(t)
	var lengths, tokens []byte
	for line := range strings.Lines(string(text)) {
		word, _, _ := strings.Cut(line, " ")
		token := musttest.Get(base64.StdEncoding.DecodeString(word))(t)
		lengths, tokens = append(lengths, byte(len(token))), append(tokens, token...)
	}
	_, _ = w.Write(append(lengths, tokens...))
	musttest.Do(t, w.Close())
	return out.String()
}

// Counts are those of OpenAI's own library: testdata/counts.py wrote them into the file.
func TestCountsAreThoseOfOpenAI(t *testing.T) {
	file := musttest.Get(os.Open("testdata/counts.jsonl"))(t)
	defer file.Close()
	texts := 0
	for in := json.NewDecoder(file); in.More(); texts++ {
		var c struct {
			Text   string
			Times  int
			O200K  int `json:"o200k_base"`
			CL100K int `json:"cl100k_base"`
		}
		musttest.Do(t, in.Decode(&c))
		text := strings.Repeat(c.Text, max(c.Times, 1))
		if got := o200k.Count(text); got != c.O200K {
			t.Errorf("%.60q of %d bytes: %d with o200k, want %d", text, len(text), got, c.O200K)
		}
		if got := cl100k.Count(text); got != c.CL100K {
			t.Errorf("%.60q of %d bytes: %d with cl100k, want %d", text, len(text), got, c.CL100K)
		}
	}
	if texts < 500 {
		t.Errorf("%d texts", texts)
	}
}

// The patterns of the vocabularies as the standard library takes them: its \s knows ASCII
// alone, and it cannot look ahead. What \s+(?!\S) would leave is taken off by byTheBook.
var patterns = map[string]*regexp.Regexp{
	"o200k": regexp.MustCompile(`^(?:[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|\p{N}{1,3}| ?[^\s\v\x{85}\p{Z}\p{L}\p{N}]+[\r\n/]*|[\s\v\x{85}\p{Z}]*[\r\n]+|([\s\v\x{85}\p{Z}]+))`),
	"cl100k": regexp.MustCompile(`^(?:(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+` +
		`|\p{N}{1,3}| ?[^\s\v\x{85}\p{Z}\p{L}\p{N}]+[\r\n]*|[\s\v\x{85}\p{Z}]*[\r\n]+|([\s\v\x{85}\p{Z}]+))`),
}

func byTheBook(pattern *regexp.Regexp, text string) int {
	m := pattern.FindStringSubmatchIndex(text)
	if m == nil {
		return 0
	}
	end := m[1]
	if _, size := utf8.DecodeLastRuneInString(text[:end]); m[2] >= 0 && end < len(text) && end > size {
		end -= size
	}
	return end
}

// slowly merges the pair of the lowest rank, the first one of these, until there is none.
func slowly(all ranks, word string) int {
	var parts []string
	for i := range len(word) {
		parts = append(parts, word[i:i+1])
	}
	for {
		at, best := -1, uint32(none)
		for i := range len(parts) - 1 {
			if rank, ok := all[parts[i]+parts[i+1]]; ok && rank < best {
				at, best = i, rank
			}
		}
		if at < 0 {
			return len(parts)
		}
		parts = slices.Replace(parts, at, at+2, parts[at]+parts[at+1])
	}
}

// hold compares words and tokens of a text with those of the slow ways.
func hold(t *testing.T, text string) {
	t.Helper()
	for which, e := range both {
		e.Count("") // loads it
		m := merger{ranks: e.ranks}
		for rest := text; rest != ""; {
			end, want := e.word(rest), byTheBook(patterns[which], rest)
			if end != want {
				t.Fatalf("%s: of %q the first word is %q, want %q", which, rest, rest[:end], rest[:want])
			}
			if got, want := m.count(rest[:end]), slowly(e.ranks, rest[:end]); got != want {
				t.Fatalf("%s: %d tokens in the word %q, want %d", which, got, rest[:end], want)
			}
			rest = rest[end:]
		}
	}
}

// Random text of what the patterns tell apart.
func TestWordsAndMerges(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	parts := []string{
		"a", "B", "word", " ", "  ", ".", "'s", "'LL", "'rE", "'ſ", "'", "1", "234", "Ⅷ", "١", "\n", "\t", "\r", "\r\n", "\v", "\u0085", "\u00a0", "\u2028", "\u3000",
		"é", "界", "ǅ", "ʰ", "ß", "\u0301", "ि", "אב", "ก", "_", "-", "/", "\"", "!", "<|endoftext|>", "😀", "\u200d", "Camel", " The", "\x7f", "\xff", "\xe7\x95",
	}
	for range 3000 {
		var b strings.Builder
		for range rnd.IntN(25) {
			b.WriteString(strings.Repeat(parts[rnd.IntN(len(parts))], 1+rnd.IntN(3)*rnd.IntN(3)))
		}
		hold(t, b.String())
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// Every character, beside those of other kinds.
func TestEveryCharacter(t *testing.T) {
	step := rune(1)
	if testing.Short() {
		step = 31
	}
	for r := rune(0); r < 0x20000; r += step {
		if c := string(r); utf8.ValidRune(r) {
			text := "a" + c + "b" + c + c + " " + c + "\n" + c + "A" + c + "B'" + c + "1" + c
			for which, e := range both {
				for rest := text; rest != ""; {
					end := e.word(rest)
					if want := byTheBook(patterns[which], rest); end != want {
						t.Fatalf("%s: of %q the first word is %q, want %q", which, rest, rest[:end], rest[:want])
					}
					rest = rest[end:]
				}
			}
		}
	}
}

// Of a megabyte without an end of a word the beginning alone is counted, at once: it would
// take minutes if the time grew with the square.
func TestHostileText(t *testing.T) {
	for _, unit := range []string{"a", "A", "中", "中A", "\u0301A", " ", "\n ", " \n", "\n", "\t", "!", "'", "1", "\u0301", "\xff", "\xe7\x95", "😀", "ab", "\x00"} {
		text := strings.Repeat(unit, (1<<20)/len(unit))
		for which, e := range both {
			e.Count("") // loads it
			counted := 0
			spied := &encoding{ranks: e.ranks, word: func(rest string) int {
				end := e.word(rest)
				counted += end
				return end
			}}
			if n := spied.count(text); n < len(text)/200 || n > 3*len(text) || counted > 3*mostExact {
				t.Errorf("%s: %d tokens in %d bytes of %q, of which %d were counted", which, n, len(text), unit, counted)
			}
			word := text[:e.word(text[:mostExact])]
			m := merger{ranks: e.ranks}
			if m.count(word); cap(m.heap) > 8*max(len(word), 64) {
				t.Errorf("%s: %d places for a word of %d bytes of %q", which, cap(m.heap), len(word), unit)
			}
		}
	}
}

// What is estimated goes on as what was counted.
func TestBeyondTheExact(t *testing.T) {
	text := strings.Repeat("words ", 100_000)
	if n, begun := o200k.Count(text), o200k.Count(text[:mostExact]); n < begun*4 || n > begun*7 {
		t.Errorf("%d tokens, and %d in a fifth of it", n, begun)
	}
}

// What is no UTF-8 is counted as it is sent.
func TestNoUTF8(t *testing.T) {
	for in, sent := range map[string]string{"a\xffb": "a\ufffdb", "\xe7\x95": "\ufffd\ufffd", strings.Repeat("\xff", 1000): strings.Repeat("\ufffd", 1000)} {
		for which, e := range both {
			if got, want := e.Count(in), e.Count(sent); got != want {
				t.Errorf("%s: %.20q: %d, want %d", which, in, got, want)
			}
		}
	}
}

func TestConcurrent(t *testing.T) {
	e := &encoding{packed: o200k.packed, size: o200k.size, word: o200k.word}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				text := fmt.Sprintf("%s %d", strings.Repeat("some words ", 10), j)
				if n := e.Count(text); n != e.count(text) {
					t.Errorf("%d of %d: %d", i, j, n)
				}
			}
		})
	}
	all.Wait()
}

func FuzzCount(f *testing.F) {
	f.Add("hello \xff world", 3)
	f.Fuzz(func(t *testing.T, unit string, times int) {
		if len(unit) > 4096 {
			return
		}
		hold(t, unit[:min(len(unit), 200)])
		text := strings.Repeat(unit, 1+int(uint(times)%50))
		for _, e := range both {
			n := e.Count(text)
			if n < 0 || n > 3*len(text) || n == 0 && text != "" {
				t.Fatalf("%d tokens in %d bytes", n, len(text))
			}
			if again := e.Count(text); again != n {
				t.Fatalf("%d, and then %d", n, again)
			}
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	for which, e := range both {
		b.Run(which, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				unpack(e.packed, e.size)
			}
		})
	}
}

func BenchmarkCount(b *testing.B) {
	prose := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 200)
	o200k.Count(prose)
	b.Run("new", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			o200k.count(prose)
		}
	})
	b.Run("known", func(b *testing.B) {
		for b.Loop() {
			o200k.Count(prose)
		}
	})
	b.Run("blank", func(b *testing.B) {
		blank := strings.Repeat("\n ", 128<<10)
		for b.Loop() {
			o200k.count(blank)
		}
	})
}
