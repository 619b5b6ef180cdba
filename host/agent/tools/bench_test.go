package tools

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"openskill/sdk/skill"
)

// store is a catalogue of many skills, as cheap as one can be.
func store(n int) *catalogue {
	c := &catalogue{}
	for i := range n {
		c.all = append(c.all, described(fmt.Sprintf("s%04d", i), "Does one thing, and does it well.",
			`{"type":"object","properties":{"text":{"type":"string","description":"A text."},"n":{"type":"integer"}},"required":["text"]}`))
	}
	return c
}

// BenchmarkFor is what a turn costs before it begins. Of 1,000 skills 128 are offered.
func BenchmarkFor(b *testing.B) {
	for _, n := range []int{4, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := box(b, Options{Catalogue: store(n), Log: slog.New(slog.DiscardHandler)})
			b.ReportAllocs()
			for b.Loop() {
				if k := toolsOf(b, x); len(k.List()) != min(n, DefaultMaxTools) {
					b.Fatal(len(k.List()))
				}
			}
		})
	}
}

// BenchmarkMake is what a skill costs that was not seen before.
func BenchmarkMake(b *testing.B) {
	d := described("convert", "Converts.", converts)
	for b.Loop() {
		toolOf(&d)
	}
}

// BenchmarkCall is what a call costs beside the door: of a small answer, of a wrong call,
// and of answers that are cut.
func BenchmarkCall(b *testing.B) {
	text := func(s string, n int) json.RawMessage {
		data, err := json.Marshal(map[string]string{"text": strings.Repeat(s, n)})
		if err != nil {
			b.Fatal(err)
		}
		return data
	}
	for name, data := range map[string]json.RawMessage{
		"small": json.RawMessage(`{"echoed":"hello"}`), "1MB": text("word ", 200_000), "1MBChinese": text("支付体验", 90_000),
	} {
		b.Run(name, func(b *testing.B) { benchmarkCall(b, &instant{data}, `{"text":"hello","n":3}`) })
	}
	b.Run("wrong", func(b *testing.B) {
		d := &door{schemas: map[skill.ID]string{"s0001": converts}}
		wrong := d.Invoke(b.Context(), skill.Local(), skill.Request{SkillID: "s0001", Input: json.RawMessage(`{"count":"3"}`)})
		benchmarkCall(b, &refuses{wrong}, `{"count":"3"}`)
	})
}

func benchmarkCall(b *testing.B, d Door, args string) {
	b.Helper()
	k := toolsOf(b, box(b, Options{Door: d, Catalogue: store(100)}))
	b.ReportAllocs()
	for b.Loop() {
		if out := k.Call(b.Context(), Call{Name: "s0099", Arguments: args, Trace: "t-1"}); out.Text == "" {
			b.Fatal(out)
		}
	}
}
