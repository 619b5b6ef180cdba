package tokens

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"openskill/host/llm"
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
		if n := Counter("gpt-4").Count(c.text); n != c.older {
			t.Errorf("%q: %d with cl100k, want %d", c.text, n, c.older)
		}
		if n := Counter("gpt-4o").Count(c.text); n != c.newr {
			t.Errorf("%q: %d with o200k, want %d", c.text, n, c.newr)
		}
	}
}

func TestModels(t *testing.T) {
	for model, want := range map[string]llm.Counter{
		"gpt-4o": o200k, "gpt-4o-mini-2024-07-18": o200k, "GPT-4o": o200k, "openai/gpt-4.1-nano": o200k, "gpt-5": o200k,
		"gpt-5.1-codex": o200k, "o1": o200k, "o3-mini": o200k, "o4-mini-2025-04-16": o200k, "chatgpt-4o-latest": o200k,
		"ft:gpt-4o-mini:acme::id": o200k, "gpt-oss-120b": o200k, "gpt-4.5-preview": o200k,
		"gpt-4": cl100k, "gpt-4-turbo": cl100k, "gpt-4-0613": cl100k, "gpt-3.5-turbo": cl100k, "gpt-35-turbo": cl100k, "ft:gpt-3.5-turbo:x": cl100k,
		"": llm.Rough, "qwen-plus": llm.Rough, "claude-sonnet-4-5": llm.Rough, "deepseek-chat": llm.Rough, "gpt": llm.Rough,
		"gpt-40": llm.Rough, "o1x": llm.Rough, "ollama": llm.Rough, "/": llm.Rough, "gpt-4all": llm.Rough,
	} {
		if got := Counter(model); got != want {
			t.Errorf("%q: %v", model, got)
		}
	}
	if !Counter("gpt-4o").Exact() || Counter("qwen-plus").Exact() {
		t.Error("which counts are exact is said the wrong way round")
	}
}

var both = map[string]*encoding{"o200k": o200k, "cl100k": cl100k}

// Text in pieces has as many tokens as in one.
func TestPieces(t *testing.T) {
	source, err := os.ReadFile("tokens.go")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"prose":   strings.Repeat("The quick brown fox doesn't jump over 3 lazy dogs; it's late, isn't it? \"No,\" she said. ", 100),
		"code":    strings.Repeat(string(source), 2),
		"chinese": strings.Repeat("支付体验卡顿，转圈很久；用户抱怨“无法支付”。请分析三月份的数据，并给出建议！", 150),
		"json":    strings.Repeat(`{"name":"calculator","arguments":{"op":"mean","numbers":[1,2.5,30000]},"ok":true},`, 120),
		"mixed":   strings.Repeat("Größe: 12 µm — naïve café №7 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 données/été_abc $x=y&z ", 120),
	} {
		for which, e := range both {
			if got, want := e.Count(text), e.part(text); got != want {
				t.Errorf("%s of %d bytes with %s: %d, in one piece %d", name, len(text), which, got, want)
			}
		}
	}
}

// Random text of what divides words and what does not.
func TestPiecesRandom(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	parts := []string{"a", "B", "word", " ", "  ", ".", "'s", "'", "1", "234", "\n", "\t", "é", "界", "_", "-", "/", "\"", "\r", "!", "\u0301", "😀", "Camel", " The"}
	for range 100 {
		var b strings.Builder
		for b.Len() < 3*piece {
			b.WriteString(parts[rnd.IntN(len(parts))])
		}
		text := b.String()
		cut := divide(text)
		for which, e := range both {
			e.Count("") // loads it
			if got, want := e.part(text[:cut])+e.part(text[cut:]), e.part(text); got != want {
				t.Errorf("seed %d, %s: divided between %q and %q: %d, in one piece %d", seed, which, text[cut-10:cut], text[cut:cut+10], got, want)
			}
		}
	}
}

// The places where a token begins for sure, and those where it only might.
func TestBegins(t *testing.T) {
	for _, c := range []struct {
		before, after string
		want          bool
	}{
		{"word", " next", true},
		{"word", "_next", true},
		{"123", "-next", true},
		{"界", "，界", true},
		{`"":`, "next", true},
		{"])", "7", true},
		{"word", "'s", false}, // belongs to the word
		{"word", " 1", false}, // a space stands alone before digits
		{"word", "  next", false},
		{"word", "\nnext", false},
		{"wo", "rd", false},
		{"12", "34", false},
		{"word ", "\"next", false},
		{"word.", "next", false}, // the sign belongs to it
		{"!\n/", "\"next", false},
		{"!\n/\"", "next", false}, // a slash after the end of a line belongs to what is before
	} {
		if got := begins(c.before+c.after, len(c.before)); got != c.want {
			t.Errorf("between %q and %q: %v", c.before, c.after, got)
		}
	}
}

// longest is a vocabulary that remembers the longest text that it was given.
type longest struct{ bytes, times int }

func (l *longest) Count(text string) (int, error) {
	l.bytes = max(l.bytes, len(text))
	l.times++
	return 1, nil
}

// Hostile text costs no more than its length: the library gets it in pieces, and only what
// is at its beginning.
func TestBounded(t *testing.T) {
	for name, unit := range map[string]string{
		"letter": "a", "blank lines": "\n ", "spaces": " ", "marks": "\u0301", "no UTF-8": "\xff", "half": "\xe7\x95", "emoji": "😀", "tails": "\x80",
	} {
		l := &longest{}
		e := &encoding{words: l}
		e.count(strings.Repeat(unit, (1<<20)/len(unit)))
		if l.bytes > piece || l.times > 2*mostExact/piece {
			t.Errorf("%s: %d pieces, the longest one of %d bytes", name, l.times, l.bytes)
		}
	}
	text := strings.Repeat("words ", 100_000)
	if n, begun := o200k.Count(text), o200k.Count(text[:mostExact]); n < begun*4 || n > begun*7 {
		t.Errorf("%d tokens, and %d in a fifth of it", n, begun)
	}
}

func TestConcurrent(t *testing.T) {
	e := &encoding{open: o200k.open}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				text := fmt.Sprintf("%s %d", strings.Repeat("some words ", 10), j)
				if n := e.Count(text); n != e.part(text) {
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
