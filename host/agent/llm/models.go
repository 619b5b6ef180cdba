package llm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"openskill/sdk/skill"
)

// Backend is one configured provider.
type Backend struct {
	Name     string // as callers name it, like openai
	Provider Provider
	Model    string                     // where a request names none
	Models   []string                   // that callers may name besides
	Counter  func(model string) Counter // nil: [Rough]
	Timeout  time.Duration              // of one question; 0: 60 s
	Free     bool                       // costs nothing, whatever the model, and takes no tokens
}

// Options of [Models].
type Options struct {
	Backends []Backend // the first one is the default; at least one
	// Slots say which model a slot has, as "provider" or "provider:model"; one that is not
	// named has the default.
	Slots  map[Slot]string
	Prices Prices
	// Priced says that a model without a price may not be used, because money is bounded.
	Priced bool
	// Spending bounds what the questions of each tenant come to, nil: nothing does. Those to
	// a provider that costs nothing are not counted.
	Spending Spending
	Pause    time.Duration // before the second attempt; 0: 1 s
	Log      *slog.Logger  // nil: slog.Default()
}

// Spending counts what tenants have models take; *quota.Quotas is one. Amounts of money are
// in billionths of a US dollar.
type Spending interface {
	// Reserve counts a question, and the most that it may take, before it is put. settle is
	// called once with what it took. The error is a *skill.Error, and ends the question.
	Reserve(ctx context.Context, tenant string, tokens, cost int64) (settle func(tokens, cost int64), err error)
}

// Models are the models of a host. They are safe for concurrent use.
type Models struct {
	o   Options
	now atomic.Pointer[priced]
}

// priced are the models of the slots, by a table of prices.
type priced struct {
	prices Prices
	slots  map[Slot]*Model
}

// Model is one that was chosen.
type Model struct {
	Provider string
	Name     string
	Price    Price

	backend *Backend
	spends  Spending
	slot    Slot
	counter Counter
	pause   time.Duration
	log     *slog.Logger
}

// mostPause is how long a vendor's own wish for a pause is followed.
const mostPause = 5 * time.Second

// NewModels checks the options.
func NewModels(o Options) (*Models, error) {
	if len(o.Backends) == 0 {
		return nil, errors.New("llm.NewModels: there is no provider")
	}
	if o.Pause <= 0 {
		o.Pause = time.Second
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	m := &Models{o: o}
	use, err := m.Reprice(o.Prices)
	if err != nil {
		return nil, fmt.Errorf("llm.NewModels: %w", err)
	}
	use()
	return m, nil
}

// Reprice looks whether the models can be used at other prices, and gives what makes
// them hold for those that are chosen then.
func (m *Models) Reprice(prices Prices) (use func(), err error) {
	next := &priced{prices: prices, slots: map[Slot]*Model{}}
	for slot, name := range m.o.Slots {
		provider, model, _ := strings.Cut(name, ":")
		chosen, err := m.choose(next, provider, model, true)
		if err != nil {
			return nil, fmt.Errorf("the slot %s: %w", slot, err)
		}
		chosen.slot = slot
		next.slots[slot] = chosen
	}
	if _, err := m.choose(next, "", "", true); err != nil {
		return nil, err
	}
	return func() { m.now.Store(next) }, nil
}

// Providers names the providers, the default first.
func (m *Models) Providers() []string {
	var out []string
	for i := range m.o.Backends {
		out = append(out, m.o.Backends[i].Name)
	}
	return out
}

// Slot gives the model of a slot.
func (m *Models) Slot(s Slot) *Model {
	now := m.now.Load()
	if chosen := now.slots[s]; chosen != nil {
		return chosen
	}
	chosen, _ := m.choose(now, "", "", true) // Reprice has tried
	chosen.slot = s
	return chosen
}

// Choose gives the model that a caller asks for; "" is what the host has for that. A
// slot's name is taken for a model's. Callers other than the operator may name those
// models alone that are configured: the host pays. The error is a *skill.Error of
// INVALID_ARGUMENT, which says what is accepted.
func (m *Models) Choose(p skill.Principal, provider, model string) (*Model, error) {
	if provider == "" {
		switch s := Slot(model); s {
		case Fast, Reasoning:
			return m.Slot(s), nil
		case "":
			return m.Slot(Fast), nil
		}
	}
	return m.choose(m.now.Load(), provider, model, p.Type == skill.Operator)
}

func (m *Models) choose(now *priced, provider, model string, free bool) (*Model, error) {
	wrong := func(field, format string, args ...any) error {
		message := fmt.Sprintf(format, args...)
		return &skill.Error{
			Op: "llm.Choose", Code: skill.InvalidArgument, Subject: field, Message: message,
			Details: map[string]any{"fields": []map[string]string{{"field": field, "problem": message}}},
		}
	}
	b := &m.o.Backends[0]
	if provider != "" {
		i := slices.IndexFunc(m.o.Backends, func(b Backend) bool { return b.Name == provider })
		if i < 0 {
			return nil, wrong("provider", "unknown provider %q; accepted: %s", skill.CleanText(provider, 40), strings.Join(m.Providers(), ", "))
		}
		b = &m.o.Backends[i]
	}
	switch {
	case model == "" || model == b.Model:
		model = b.Model
	case !free && !slices.Contains(b.Models, model):
		return nil, wrong("model", "the model %q of %s is not offered; accepted are %s",
			skill.CleanText(model, 80), b.Name, strings.Join(append([]string{b.Model}, b.Models...), ", "))
	case len(model) > 200 || skill.CleanText(model, 200) != model:
		return nil, wrong("model", "the model's name must be at most 200 bytes of plain text")
	}
	price, known := now.prices.Of(b.Name, model)
	if m.o.Priced && !known && !b.Free {
		return nil, wrong("model", "the model %q of %s has no price, and a cost limit is set; the operator can add one to OPENSKILL_AGENT_PRICES", skill.CleanText(model, 80), b.Name)
	}
	chosen := &Model{Provider: b.Name, Name: model, Price: price, backend: b, spends: m.o.Spending, counter: Rough, pause: m.o.Pause, log: m.o.Log}
	if b.Counter != nil {
		chosen.counter = b.Counter(model)
	}
	return chosen, nil
}

// Count counts or estimates the tokens of a text.
func (m *Model) Count(text string) int { return m.counter.Count(text) }

// Chat asks the model, and once more after a pause where the vendor was busy and nothing
// of an answer has come. The reply's usage is the vendor's, or counted here.
func (m *Model) Chat(ctx context.Context, r *Request, text func(part string)) (*Reply, error) {
	ask := *r
	ask.Model, ask.Slot = m.Name, m.slot
	begun := false
	hear := text
	if text != nil {
		hear = func(part string) {
			begun = true
			text(part)
		}
	}
	reply, err := m.counted(ctx, &ask, hear)
	if busy, ok := errors.AsType[*BusyError](err); ok && !begun && ctx.Err() == nil {
		pause := m.pause
		if busy.After > 0 {
			pause = min(busy.After, mostPause)
		}
		m.log.LogAttrs(ctx, slog.LevelWarn, "the model provider is asked again",
			slog.String("trace_id", string(r.Trace)), slog.String("provider", m.Provider), slog.Int("status", busy.Status), slog.Duration("pause", pause))
		wait := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			wait.Stop()
			return nil, Ended(ctx)
		case <-wait.C:
		}
		reply, err = m.counted(ctx, &ask, hear)
	}
	return reply, err
}

// counted puts a question once, within what its tenant may spend, and fills in what the
// reply took. Of a question that failed the most that it may have taken stays counted, since
// vendors charge for what they wrote until the caller left; nothing of one that the vendor
// turned away before it said anything.
func (m *Model) counted(ctx context.Context, r *Request, text func(part string)) (*Reply, error) {
	settle := func(int64, int64) {}
	if m.spends != nil && !m.backend.Free {
		prompt := (&Model{counter: Rough}).Tokens(r) // a cheap estimate, and rather too high
		most := Usage{Prompt: prompt, Completion: max(r.MaxTokens, 1)}
		var err error
		if settle, err = m.spends.Reserve(ctx, r.Tenant, int64(most.Total()), int64(m.Price.Of(most))); err != nil {
			return nil, err
		}
	}
	said := false
	hear := text
	if text != nil {
		hear = func(part string) {
			said = true
			text(part)
		}
	}
	reply, err := m.once(ctx, r, hear)
	if err != nil {
		if !said && turnedAway(err) {
			settle(0, 0)
		}
		return nil, err
	}
	reply.Usage.Prompt, reply.Usage.Completion = credible(reply.Usage.Prompt), credible(reply.Usage.Completion)
	if reply.Usage.Total() == 0 && !m.backend.Free {
		reply.Usage = m.estimate(r, reply)
	}
	settle(int64(reply.Usage.Total()), int64(m.Price.Of(reply.Usage)))
	return reply, nil
}

// turnedAway reports whether a vendor was not reached, or answered with a status that says
// that it did nothing.
func turnedAway(err error) bool {
	if _, ok := errors.AsType[*BusyError](err); ok {
		return true
	}
	var known *skill.Error
	return errors.As(err, &known) && known.Code == skill.AgentLLMUnavailable && known.Details["provider_status"] != nil
}

// credible is a number of tokens that a vendor says an answer took: one below zero, or so
// high that sums and prices run over, would make room in a budget.
func credible(tokens int) int { return min(max(tokens, 0), 1<<30) }

func (m *Model) once(ctx context.Context, r *Request, text func(part string)) (*Reply, error) {
	limit := m.backend.Timeout
	if limit <= 0 {
		limit = time.Minute
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	reply, err := m.backend.Provider.Chat(within, r, text)
	if err != nil && within.Err() != nil && ctx.Err() == nil { // the vendor's time, not the caller's
		return nil, &skill.Error{ // and not BusyError: it would take as long again
			Op: "llm", Code: skill.AgentLLMUnavailable, Details: map[string]any{"provider": m.Provider}, Err: err,
			Message: fmt.Sprintf("the model provider %s has not answered within %s", m.Provider, limit),
		}
	}
	return reply, err
}

func (m *Model) estimate(r *Request, reply *Reply) Usage {
	u := Usage{Prompt: m.Tokens(r), Completion: m.counter.Count(reply.Text), Estimated: true}
	for _, c := range reply.Calls {
		u.Completion += m.counter.Count(c.Name) + m.counter.Count(c.Arguments)
	}
	return u
}

// perMessage is what a message takes beside its text, with every vendor about.
const perMessage = 4

// Tokens counts or estimates what a request takes before it is answered.
func (m *Model) Tokens(r *Request) int {
	n := m.counter.Count(r.System)
	for i := range r.Messages {
		n += m.TokensOf(&r.Messages[i])
	}
	for i := range r.Tools {
		n += m.TokensOfTool(&r.Tools[i])
	}
	return n
}

// TokensOf is what one message takes.
func (m *Model) TokensOf(msg *Message) int {
	n := perMessage + m.counter.Count(msg.Text)
	for _, c := range msg.Calls {
		n += m.counter.Count(c.Name) + m.counter.Count(c.Arguments)
	}
	return n
}

// TokensOfTool is what one tool takes.
func (m *Model) TokensOfTool(t *skill.Tool) int {
	return perMessage + m.counter.Count(t.Name) + m.counter.Count(t.Description) + m.counter.Count(string(t.InputSchema))
}

// Exact reports whether [Model.Count] counts as the model does.
func (m *Model) Exact() bool { return m.counter.Exact() }

// Nothing is the counter of what is no model, and reads no tokens.
var Nothing Counter = nothing{}

type nothing struct{}

// Count implements Counter.
func (nothing) Count(string) int { return 0 }

// Exact implements Counter.
func (nothing) Exact() bool { return true }

// Rough estimates tokens from the length of a text: four bytes of ASCII a token, and one
// and a half characters of everything else. It is meant to be too high rather than too low.
var Rough Counter = rough{}

type rough struct{}

// Count implements Counter.
func (rough) Count(text string) int {
	ascii, other := 0, 0
	for _, r := range text {
		if r < 0x80 {
			ascii++
		} else {
			other++
		}
	}
	return (ascii+3)/4 + (2*other+2)/3
}

// Exact implements Counter.
func (rough) Exact() bool { return false }
