package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"openskill/internal/measure"

	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/host/store"
	"openskill/sdk/skill"
)

// mostTokens is the goal of the list of tools in the form code.
const mostTokens = 1500

// copies is a catalogue of n skills, made of the skills of a host, and run_code.
type copies []skill.Descriptor

func copiesOf(of []skill.Descriptor, n int) (all copies) {
	for i := 0; len(all) < n; i++ {
		d := of[i%len(of)]
		switch {
		case d.ID != skill.RunCode:
			d.ID = skill.ID(fmt.Sprintf("%s-%04d", d.ID, i))
		case i >= len(of):
			continue
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b skill.Descriptor) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return all
}

func (c copies) List(_ skill.Principal, cursor string, limit int) ([]skill.Descriptor, string, error) {
	from, _ := strconv.Atoi(cursor) // "" is 0
	to := min(from+limit, len(c))
	if to == len(c) {
		return c[from:], "", nil
	}
	return c[from:to], strconv.Itoa(to), nil
}

// benchTools measures the tools of a model: the tokens of their list, and a search among a thousand skills.
func (a *cli) benchTools(ctx context.Context, s *config.Settings, o *benchOptions) (rows []measure.Row, err error) {
	const listed, searched = "the list of tools", "a search among 1,000 skills"
	if !o.wanted("tools", listed) && !o.wanted("tools", searched) {
		return nil, nil
	}
	own := *s
	if err := ownDatabase(&own); err != nil {
		return nil, err
	}
	h, err := app.Open(&own, &app.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	skills, _, err := h.Catalogue().List(skill.Local(), "", 100)
	if err != nil {
		return nil, err
	}
	if len(skills) < 2 {
		a.say("tools: there are no skills in %s", quote(s.SkillsDir))
		return nil, nil
	}
	var cases []measure.Case
	if o.wanted("tools", listed) {
		c := measure.Case{Suite: "tools", Name: listed, N: 5}
		for _, n := range []int{10, 100, 1000} {
			for _, form := range []tools.Form{tools.FormAll, tools.FormCode, tools.FormBoth} {
				v, err := a.listOfTools(h, copiesOf(skills, n), form)
				if err != nil {
					return nil, err
				}
				c.Variants = append(c.Variants, v)
			}
		}
		cases = append(cases, c)
	}
	if o.wanted("tools", searched) {
		var docs []store.Document
		all := copiesOf(skills, 1000)
		for i := range all {
			t := tools.Of(&all[i])
			docs = append(docs, store.Document{Name: t.Name, Description: t.Description, Text: string(t.InputSchema)})
		}
		x, err := store.NewTextIndex(ctx, docs)
		if err != nil {
			return nil, err
		}
		cases = append(cases, measure.Case{Suite: "tools", Name: searched, N: 20, Variants: []measure.Variant{
			{Name: "index built", Run: timed(func(ctx context.Context) error {
				_, err := store.NewTextIndex(ctx, docs)
				return err
			}), Note: func() string {
				return fmt.Sprintf("once for each change of the catalogue; it holds %s", measure.Bytes(int64(x.Size())))
			}},
			{Name: "search", Run: timed(func(ctx context.Context) error {
				_, err := x.Search(ctx, "convert log lines to json", tools.DefaultFound, func(int) bool { return true })
				return err
			})},
		}})
	}
	return a.measure(ctx, cases)
}

// listOfTools measures how long a list takes to make, and says how many tokens it has.
func (a *cli) listOfTools(h *app.Host, all copies, form tools.Form) (measure.Variant, error) {
	box, err := tools.New(tools.Options{
		Door: h, Catalogue: all, AgentSkills: h.AgentSkills(), Search: h.Search, MaxTools: 2 * len(all), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return measure.Variant{}, err
	}
	tokens, offered := 0, 0
	v := measure.Variant{
		Name: fmt.Sprintf("%d skills, %s", len(all), form),
		Note: func() string {
			return fmt.Sprintf("%d tools of %d tokens (o200k, as JSON for OpenAI)", offered, tokens)
		},
		Run: func(ctx context.Context) (time.Duration, error) {
			began := time.Now()
			set, err := box.For(ctx, skill.Local(), nil, form)
			took := time.Since(began)
			if err != nil {
				return 0, err
			}
			written, err := tools.Write(tools.FormatOpenAI, set.List())
			if err != nil {
				return 0, err
			}
			b, err := json.Marshal(written)
			tokens, offered = llm.CounterFor("gpt-4o").Count(string(b)), len(set.List())
			return took, err
		},
	}
	if form == tools.FormCode {
		v.Goals = []measure.Goal{{Text: fmt.Sprintf("at most %d tokens", mostTokens), Got: func(_, _ *measure.Row) (string, bool) {
			return fmt.Sprintf("%d tokens", tokens), tokens > 0 && tokens <= mostTokens
		}}}
	}
	return v, nil
}

// timed measures one call of a function.
func timed(do func(ctx context.Context) error) func(ctx context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		err := do(ctx)
		return time.Since(began), err
	}
}
