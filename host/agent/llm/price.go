package llm

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"openskill/sdk/skill"
)

// Money is an amount in billionths of a US dollar.
type Money int64

// Dollar is one.
const Dollar Money = 1_000_000_000

// Dollars is m as a number for people and JSON.
func (m Money) Dollars() float64 { return float64(m) / float64(Dollar) }

// Price is what one token costs.
type Price struct{ Prompt, Completion Money }

// Of is what a reply costs.
func (p Price) Of(u Usage) Money {
	return p.Prompt*Money(u.Prompt) + p.Completion*Money(u.Completion)
}

// Prices are by "provider:model", or by "model" for those of every provider.
type Prices map[string]Price

// Of finds a model's price.
func (p Prices) Of(provider, model string) (Price, bool) {
	if price, ok := p[provider+":"+model]; ok {
		return price, true
	}
	price, ok := p[model]
	return price, ok
}

// maxPrice is the highest price of a million tokens, in dollars. A budget of tokens
// times that stays far from the end of Money.
const maxPrice = 100_000

// ParsePrices reads a table like "gpt-4o=2.5/10; anthropic:claude=3/15": dollars for a
// million tokens of the prompt, and of the reply.
func ParsePrices(s string) (Prices, error) {
	out := Prices{}
	for _, entry := range strings.FieldsFunc(s, func(r rune) bool { return r == ';' || r == '\n' }) {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		name, price, _ := strings.Cut(entry, "=")
		prompt, completion, ok := strings.Cut(price, "/")
		in, inErr := dollars(prompt)
		o, outErr := dollars(completion)
		if name = strings.TrimSpace(name); !ok || name == "" || inErr != nil || outErr != nil {
			return nil, &skill.Error{
				Op: "llm.ParsePrices", Code: skill.InvalidArgument, Subject: skill.CleanText(entry, 80),
				Message: fmt.Sprintf("the price %q cannot be read; want MODEL=PROMPT/REPLY, in dollars for a million tokens, like gpt-4o=2.5/10", skill.CleanText(entry, 80)),
			}
		}
		out[name] = Price{in, o}
	}
	return out, nil
}

// dollars reads a price of a million tokens as that of one.
func dollars(s string) (Money, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || !(f >= 0 && f <= maxPrice) {
		return 0, fmt.Errorf("no price: %q", s)
	}
	return Money(math.Round(f * float64(Dollar) / 1e6)), nil
}
