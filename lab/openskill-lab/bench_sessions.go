package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"openskill/host/app/config"
	"openskill/internal/measure"
	"openskill/lab/skillbench"
	"openskill/sdk/client"
	"openskill/sdk/skill"
)

// keeps is code that leaves a variable of about n bytes that do not compress well.
func keeps(n int) string { return fmt.Sprintf("import os\nx = os.urandom(%d)\nlen(x)", n) }

// benchSessions measures sessions over HTTP: the next run of one of many, a fork, freezing and thawing, and what idle
// sessions take.
func (a *cli) benchSessions(ctx context.Context, s *config.Settings, o *benchOptions, _ *skillbench.Native) (rows []measure.Row, err error) {
	const next, moved, idle = "sessions, the next run", "sessions, freeze and thaw", "sessions, memory"
	if !o.wanted("http", next) && !o.wanted("http", moved) && !o.wanted("memory", idle) {
		return nil, nil
	}
	skills, err := pythonSkills()
	if err != nil {
		return nil, err
	}
	_, addr, stop, err := a.serveSkills(ctx, s, skills, map[skill.ID]string{skill.RunCode: `{"language":"python","code":"print(1)"}`})
	if err != nil {
		a.say("http: %v", err)
		return nil, nil
	}
	defer stop()
	c, err := client.New("http://"+addr, nil)
	if err != nil {
		return nil, err
	}
	run := func(ctx context.Context, session, code string) (string, time.Duration, error) {
		began := time.Now()
		r, err := c.RunCode(ctx, client.Code{Language: "python", Code: code, Session: session})
		took := time.Since(began)
		if err != nil {
			return "", 0, err
		}
		var of struct{ Session string }
		return of.Session, took, json.Unmarshal(r.Data, &of)
	}
	many := 1000
	if o.quick {
		many = 5
	}
	before, err := skillbench.Held(os.Getpid())
	if err != nil {
		return nil, err
	}
	ids := make([]string, many)
	for i := range ids {
		made, err := c.CreateCodeSession(ctx, "python")
		if err != nil {
			return nil, err
		}
		ids[i] = made.ID
		if _, _, err := run(ctx, made.ID, keeps(1_000_000)); err != nil {
			return nil, err
		}
	}
	after, err := skillbench.Held(os.Getpid())
	if err != nil {
		return nil, err
	}
	held := measure.Row{Suite: "memory", Case: idle, Variant: fmt.Sprintf("%d idle, 1 MB of variables each", many), Baseline: "openskill", Bytes: after - before, N: 1, Note: measure.Bytes((after-before)/int64(many)) + " each"}
	goal := measure.Size(2_000_000_000)
	held.Goals = append(held.Goals, goal.Of(&held, &held))
	rows = append(rows, held)
	if !o.wanted("http", next) && !o.wanted("http", moved) {
		return rows, nil
	}
	at := 0
	variant := func(name string, f func(ctx context.Context) (time.Duration, error), goals ...measure.Goal) measure.Variant {
		return measure.Variant{Name: name, Goals: goals, Note: func() string { return "one client" }, Run: f}
	}
	once := func(code string) func(ctx context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) {
			at = (at + 1) % many
			_, took, err := run(ctx, ids[at], code)
			return took, err
		}
	}
	large, err := c.CreateCodeSession(ctx, "python")
	if err != nil {
		return nil, err
	}
	if _, _, err := run(ctx, large.ID, keeps(20_000_000)); err != nil {
		return nil, err
	}
	more, err := a.measure(ctx, []measure.Case{
		{Suite: "http", Name: next, N: 41, Variants: []measure.Variant{
			variant("run_code", func(ctx context.Context) (time.Duration, error) {
				_, took, err := run(ctx, "", "1")
				return took, err
			}),
			variant("the next run of a session", once("len(x)"), measure.Median(time.Millisecond)),
			variant("fork", func(ctx context.Context) (time.Duration, error) {
				began := time.Now()
				made, err := c.ForkCodeSession(ctx, ids[0])
				took := time.Since(began)
				if err != nil {
					return 0, err
				}
				return took, c.DeleteCodeSession(ctx, made.ID)
			}, measure.Median(2*time.Millisecond)),
		}},
		{Suite: "http", Name: moved, N: 7, Variants: []measure.Variant{
			variant("a run, 20 MB", func(ctx context.Context) (time.Duration, error) {
				_, took, err := run(ctx, large.ID, "len(x)")
				return took, err
			}),
			variant("freeze, thaw and a run, 20 MB", func(ctx context.Context) (time.Duration, error) {
				began := time.Now()
				if _, err := c.FreezeCodeSession(ctx, large.ID); err != nil {
					return 0, err
				}
				_, _, err := run(ctx, large.ID, "len(x)")
				return time.Since(began), err
			}, measure.Median(100*time.Millisecond)),
		}},
	})
	return append(rows, more...), err
}
