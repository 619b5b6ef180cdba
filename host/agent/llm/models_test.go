package llm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// asked is a provider that answers as the function does.
type asked func(ctx context.Context, r *Request, text func(string)) (*Reply, error)

func (f asked) Chat(ctx context.Context, r *Request, text func(string)) (*Reply, error) {
	return f(ctx, r, text)
}

func says(s string) asked {
	return func(context.Context, *Request, func(string)) (*Reply, error) {
		return &Reply{Text: s, Stop: StopEnd}, nil
	}
}

func models(t *testing.T, o Options) *Models {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return musttest.Get(NewModels(o))(t)
}

var asking = &Request{System: "Be short.", Messages: []Message{{Role: User, Text: "hello there"}}, MaxTokens: 10}

func TestChoose(t *testing.T) {
	m := models(t, Options{
		Backends: []Backend{{Name: "one", Model: "a", Models: []string{"b"}}, {Name: "two", Model: "c"}},
		Slots:    map[Slot]string{Reasoning: "two:d"},
		Prices:   Prices{"b": {1, 2}, "two:c": {3, 4}},
	})
	caller := skill.Principal{ID: "x", Type: skill.Agent}
	for _, c := range []struct {
		who             skill.Principal
		provider, model string
		want            string // provider:model, or words of the error
		price           Price
	}{
		{caller, "", "", "one:a", Price{}},
		{caller, "", "fast", "one:a", Price{}},
		{caller, "", "reasoning", "two:d", Price{}},
		{caller, "two", "", "two:c", Price{3, 4}},
		{caller, "", "b", "one:b", Price{1, 2}},
		{caller, "", "e", `"e" of one is not offered; accepted are a, b`, Price{}},
		{caller, "two", "d", "accepted are c", Price{}},
		{caller, "three", "", `unknown provider "three"; accepted: one, two`, Price{}},
		{caller, "one", "reasoning", "is not offered", Price{}}, // a slot is the host's, not a provider's
		{skill.Local(), "one", "e", "one:e", Price{}},
		{skill.Local(), "one", "\x1b[31m", "plain text", Price{}},
		{skill.Local(), "one", strings.Repeat("x", 201), "at most 200 bytes", Price{}},
	} {
		got, err := m.Choose(c.who, c.provider, c.model)
		if err != nil {
			if skill.CodeOf(err) != skill.InvalidArgument || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q %q: %v, want %q", c.provider, c.model, err, c.want)
			}
			continue
		}
		if name := got.Provider + ":" + got.Name; name != c.want || got.Price != c.price {
			t.Errorf("%q %q: %s at %v, want %s at %v", c.provider, c.model, name, got.Price, c.want, c.price)
		}
	}
	if s := m.Slot(Reasoning); s.Provider != "two" || s.Name != "d" {
		t.Errorf("the slot has %s:%s", s.Provider, s.Name)
	}
}

// What money bounds must have a price; what costs nothing needs none.
func TestPriced(t *testing.T) {
	if _, err := NewModels(Options{Backends: []Backend{{Name: "one", Model: "a"}}, Priced: true}); err == nil || !strings.Contains(err.Error(), "has no price") {
		t.Errorf("a default without a price: %v", err)
	}
	m := models(t, Options{Backends: []Backend{{Name: "rules", Model: "rules", Free: true}, {Name: "one", Model: "a"}}, Priced: true, Prices: Prices{"a": {1, 1}}})
	for model, ok := range map[string]bool{"a": true, "b": false} {
		if _, err := m.Choose(skill.Local(), "one", model); (err == nil) != ok {
			t.Errorf("%s: %v", model, err)
		}
	}
	for _, o := range []Options{{}, {Backends: []Backend{{Name: "one"}}, Slots: map[Slot]string{Fast: "two"}}} {
		if _, err := NewModels(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// TestAskedAgain: once, after a pause, where the vendor is busy and has said nothing.
func TestAskedAgain(t *testing.T) {
	busy := func(status int, after time.Duration) error { return Unavailable("one", status, "busy", after, nil) }
	for name, c := range map[string]struct {
		answers []error // nil: an answer
		says    bool    // a part of the text before each failure
		asked   int
		took    time.Duration
		code    skill.Code
	}{
		"at once":            {[]error{nil}, false, 1, 0, ""},
		"503 once":           {[]error{busy(503, 0), nil}, false, 2, time.Second, ""},
		"503 for good":       {[]error{busy(503, 0), busy(503, 0), nil}, false, 2, time.Second, skill.AgentLLMUnavailable},
		"529":                {[]error{busy(529, 0), nil}, false, 2, time.Second, ""},
		"429 with a wish":    {[]error{busy(429, 3*time.Second), nil}, false, 2, 3 * time.Second, ""},
		"429 with a big one": {[]error{busy(429, time.Hour), nil}, false, 2, 5 * time.Second, ""},
		"not reached":        {[]error{busy(0, 0), nil}, false, 2, time.Second, ""},
		"500":                {[]error{busy(500, 0), nil}, false, 1, 0, skill.AgentLLMUnavailable},
		"401":                {[]error{busy(401, 0), nil}, false, 1, 0, skill.AgentLLMUnavailable},
		"unreadable":         {[]error{Unreadable("one", "no JSON", nil), nil}, false, 1, 0, skill.AgentLLMParseError},
		"after a part":       {[]error{busy(503, 0), nil}, true, 1, 0, skill.AgentLLMUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, begun := 0, time.Now()
				m := models(t, Options{Backends: []Backend{{Name: "one", Model: "a", Provider: asked(func(_ context.Context, r *Request, text func(string)) (*Reply, error) {
					if r.Model != "a" || r.MaxTokens != 10 {
						t.Errorf("asked with %+v", r)
					}
					err := c.answers[n]
					n++
					if c.says {
						text("a part")
					}
					return &Reply{Text: "hi"}, err
				})}}})
				reply, err := m.Slot(Fast).Chat(t.Context(), asking, func(string) {})
				if n != c.asked || time.Since(begun) != c.took || skill.CodeOf(err) != c.code || (reply == nil) != (err != nil) {
					t.Errorf("asked %d times in %v: %v, %v", n, time.Since(begun), reply, err)
				}
			})
		})
	}
}

// A model that does not answer is not waited for longer than its time, and a caller that
// leaves not at all.
func TestNoAnswer(t *testing.T) {
	never := asked(func(ctx context.Context, _ *Request, _ func(string)) (*Reply, error) {
		<-ctx.Done()
		return nil, Ended(ctx)
	})
	synctest.Test(t, func(t *testing.T) {
		m := models(t, Options{Backends: []Backend{{Name: "one", Model: "a", Provider: never, Timeout: 7 * time.Second}}}).Slot(Fast)
		begun := time.Now()
		if _, err := m.Chat(t.Context(), asking, nil); skill.CodeOf(err) != skill.AgentLLMUnavailable || time.Since(begun) != 7*time.Second || !strings.Contains(err.Error(), "within 7s") {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if _, err := m.Chat(ctx, asking, nil); skill.CodeOf(err) != skill.Cancelled {
			t.Errorf("the caller left: %v", err)
		}
		ctx, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		if _, err := m.Chat(ctx, asking, nil); skill.CodeOf(err) != skill.AgentExecutionTimeout {
			t.Errorf("the caller's time is over: %v", err)
		}
		// And in the pause before the second attempt.
		m = models(t, Options{Pause: time.Hour, Backends: []Backend{{Name: "one", Model: "a", Provider: asked(func(context.Context, *Request, func(string)) (*Reply, error) {
			return nil, Unavailable("one", 503, "", 0, nil)
		})}}}).Slot(Fast)
		ctx, leave = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if _, err := m.Chat(ctx, asking, nil); skill.CodeOf(err) != skill.Cancelled {
			t.Errorf("left in the pause: %v", err)
		}
	})
}

// Usage is what the vendor says; where it says nothing it is counted, and labelled.
func TestUsage(t *testing.T) {
	m := models(t, Options{Backends: []Backend{{Name: "one", Model: "a", Provider: says("four letters")}}}).Slot(Fast)
	reply, err := m.Chat(t.Context(), asking, nil)
	if want := (Usage{Prompt: m.Tokens(asking), Completion: 3, Estimated: true}); err != nil || reply.Usage != want || want.Prompt < 8 {
		t.Errorf("%+v, %v; want %+v", reply.Usage, err, want)
	}
	m = models(t, Options{Backends: []Backend{{Name: "one", Model: "a", Provider: asked(func(context.Context, *Request, func(string)) (*Reply, error) {
		return &Reply{Text: "x", Usage: Usage{Prompt: 5, Completion: 6}}, nil
	})}}}).Slot(Fast)
	if reply, err := m.Chat(t.Context(), asking, nil); err != nil || reply.Usage != (Usage{Prompt: 5, Completion: 6}) {
		t.Errorf("%+v, %v", reply.Usage, err)
	}
	// What cannot be true makes no room in a budget: neither below zero, nor over its end.
	m = models(t, Options{Backends: []Backend{{Name: "one", Model: "a", Provider: asked(func(context.Context, *Request, func(string)) (*Reply, error) {
		return &Reply{Text: "x", Usage: Usage{Prompt: math.MaxInt, Completion: math.MinInt}}, nil
	})}}}).Slot(Fast)
	reply, err = m.Chat(t.Context(), asking, nil)
	if err != nil || reply.Usage != (Usage{Prompt: 1 << 30}) {
		t.Errorf("%+v, %v", reply.Usage, err)
	}
	if cost := (Price{maxPrice * Dollar / 1e6, maxPrice * Dollar / 1e6}).Of(Usage{Prompt: 1 << 30, Completion: 1 << 30}); cost <= 0 {
		t.Errorf("it costs %d", cost)
	}
}

// What vendors say of themselves is shown, but for what may repeat the key.
func TestUnavailable(t *testing.T) {
	const secret = "sk-123"
	for status, want := range map[int]string{
		0: "cannot be reached: said", 401: "refuses the host's key (status 401)", 403: "refuses the host's key (status 403)", 500: "answered with status 500: said",
	} {
		said := "said"
		if status == 401 || status == 403 {
			said = "Incorrect API key provided: " + secret
		}
		var e *skill.Error
		if !errors.As(Unavailable("one", status, said, 0, nil), &e) || !strings.HasSuffix(e.Message, want) || strings.Contains(e.Message+fmt.Sprint(e.Details), secret) {
			t.Errorf("%d: %q", status, e.Message)
		}
	}
	if e := Unavailable("one", 500, "\x1b[31m"+strings.Repeat("x", 1000), 0, nil); len(e.Error()) > 400 || strings.Contains(e.Error(), "\x1b") {
		t.Errorf("%q", e.Error())
	}
}

func TestPrices(t *testing.T) {
	p, err := ParsePrices(" gpt-4o=2.5/10;\nanthropic:claude = 3/15 ;; ")
	if err != nil || len(p) != 2 {
		t.Fatal(p, err)
	}
	if price, ok := p.Of("anthropic", "claude"); !ok || price != (Price{3000, 15000}) {
		t.Errorf("%+v", price)
	}
	if _, ok := p.Of("openai", "claude"); ok {
		t.Error("another provider's price is taken")
	}
	price, _ := p.Of("openai", "gpt-4o")
	if cost := price.Of(Usage{Prompt: 1000, Completion: 100}); cost.Dollars() != 0.0035 {
		t.Errorf("%v", cost.Dollars())
	}
	for _, wrong := range []string{"x", "x=", "x=1", "=1/2", "x=1/b", "x=-1/2", "x=1/1e9", "x=NaN/1", "x=Inf/1"} {
		if _, err := ParsePrices(wrong); skill.CodeOf(err) != skill.InvalidArgument {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// Rough is about right for English, and not below for Chinese.
func TestRough(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "The quick brown fox jumps over it": 9, "今天天气很好": 4, "\xff\xfe": 2} {
		if got := Rough.Count(text); got != want {
			t.Errorf("%q has about %d tokens, want %d", text, got, want)
		}
	}
	if Rough.Exact() {
		t.Error("it is exact")
	}
}

// TestReprice changes the table of prices; one by which a slot has no model is refused,
// and changes nothing.
func TestReprice(t *testing.T) {
	m := models(t, Options{Backends: []Backend{{Name: "one", Model: "a"}}, Prices: Prices{"a": {1, 2}}, Priced: true})
	if _, err := m.Reprice(Prices{"b": {1, 2}}); err == nil {
		t.Error("the default model has no price, and that is accepted")
	}
	if got := m.Slot(Fast).Price; got != (Price{1, 2}) {
		t.Errorf("price %v", got)
	}
	use := musttest.Get(m.Reprice(Prices{"a": {3, 4}}))(t)
	before := m.Slot(Fast)
	use()
	if before.Price != (Price{1, 2}) || m.Slot(Fast).Price != (Price{3, 4}) {
		t.Errorf("prices %v and %v", before.Price, m.Slot(Fast).Price)
	}
}
