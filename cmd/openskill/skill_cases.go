package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"openskill/host/app/config"
	"openskill/internal/cases"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

// caseReport is what skill test prints with --json.
type caseReport struct {
	SkillID  skill.ID        `json:"skill_id"`
	Version  string          `json:"version"`
	Digest   string          `json:"digest"`
	Runner   skill.Kind      `json:"runner"` // of the last call that ran
	Passed   int             `json:"passed"`
	Failed   int             `json:"failed"`
	Updated  int             `json:"updated"`            // of those that passed: were written anew
	Fallback *fallbackReport `json:"fallback,omitempty"` // nil: there is none, or it was not asked for
	Cases    []caseOutcome   `json:"cases"`
}

// fallbackReport is what came of the cases on the skill's fallback.
type fallbackReport struct {
	Runner   skill.Kind `json:"runner"`
	Compared int        `json:"compared"`
	Differ   int        `json:"differ"`
	Missing  string     `json:"missing,omitempty"` // why none was compared
}

// caseOutcome is one case and what came of it.
type caseOutcome struct {
	Name        string             `json:"name"`
	Passed      bool               `json:"passed"`
	LatencyMS   int64              `json:"latency_ms"`
	Differences []cases.Difference `json:"differences,omitempty"` // with Updated: what was expected before
	Updated     bool               `json:"updated,omitempty"`
	Kept        string             `json:"kept,omitempty"` // why --update has not written it
	Fallback    *fallbackOutcome   `json:"fallback,omitempty"`
	Stderr      string             `json:"stderr,omitempty"` // of a case that failed: the end of standard error, with its lines

	got *skill.Result
}

// fallbackOutcome is what the fallback made of a case.
type fallbackOutcome struct {
	LatencyMS   int64                `json:"latency_ms"`
	Differences []cases.Disagreement `json:"differences,omitempty"`
	LeftOut     string               `json:"left_out,omitempty"` // why it was not called
}

func (a *cli) skillTestCommand() *cobra.Command {
	var o testOptions
	cmd := &cobra.Command{
		Use:   "test FOLDER",
		Short: "Test a skill with its test cases",
		Long: `Call the skill in FOLDER, in the sandbox, as a host would, with each case of its
cases.yaml, and report every case whose result differs from the expected one:

  - name: greets by name
    input: {name: Ada}
    data: {greeting: "Hello, Ada!"}
  - name: wants a name
    input: {}
    error: INVALID_ARGUMENT            # or {code: …, message: …, details: {…}}
  - name: answers in little memory
    input: {name: Ada}
    limits: {memory_mb: 8}             # timeout_ms, memory_mb, fuel, output_kb, scratch_mb
    data: {greeting: "Hello, Ada!"}

Data must be the same value, with keys in any order. Of an error, the given parts must
match. A failed case shows the end of the skill's standard error. The exit code is 1 if
a case fails. Build the skill first.

A fallback is called too, and must give the same data, error code and details, and
files. Limits of a case apply to the sandbox; a case that one ended is skipped for the
fallback.

--update writes actual results into the cases file where they differ, and changes
nothing else. Results of the host, such as TIMEOUT, and unrepeatable ones are not
written; their cases fail.`,
		Example: "  openskill skill test ./my-skill\n  openskill skill test ./my-skill --junit report.xml\n  openskill skill test ./my-skill --update",
		Args:    takes(1, 1),
	}
	flags := bindSettings(cmd, "data", "state", "python", "debug")
	f := cmd.Flags()
	f.Var(cliflag.Text(&o.file, "FILE"), "cases", "cases file; default: "+cases.FileName+" in the folder")
	f.Var(cliflag.Text(&o.junit, "FILE"), "junit", "output file for a JUnit XML report")
	f.BoolVar(&o.update, "update", false, "update the cases file with the current results")
	f.BoolVar(&o.noFallback, "no-fallback", false, "omit the skill's fallback")
	f.BoolVar(&o.asJSON, "json", false, `print {"skill_id": …, "passed": …, "failed": …, "cases": [{"name": …, "passed": …, "differences": […]}]}`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		return a.testSkill(cmd.Context(), s, args[0], &o)
	}
	return cmd
}

// testOptions are the flags of skill test.
type testOptions struct {
	file, junit                string
	update, noFallback, asJSON bool
}

func (a *cli) testSkill(ctx context.Context, s *config.Settings, folder string, o *testOptions) error {
	file, err := a.readCases(folder, o.file)
	if err != nil {
		return err
	}
	t, err := a.openTrial(ctx, s, folder, !o.noFallback)
	if err != nil {
		return err
	}
	defer t.close()
	if o.update && t.second {
		return failed(skill.ToolInvocationError, "nothing was written: only the fallback runs here (%s)", t.missing)
	}
	r, err := t.callCases(ctx, file.list, !o.noFallback)
	if err != nil {
		return err
	}
	if o.update {
		if err := t.update(ctx, file, r); err != nil {
			return err
		}
	}
	if o.junit != "" {
		if err := writeJUnit(o.junit, r); err != nil {
			return hostFailed(fmt.Errorf("cannot write %s: %w", quote(o.junit), plain(err)))
		}
	}
	if o.asJSON {
		err = a.printJSON(r)
	} else {
		err = a.tellCases(r, file.name)
	}
	if err == nil && r.Failed > 0 {
		err = exit(exitFailed)
	}
	return err
}

// caseFile is a file of cases as it was read.
type caseFile struct {
	name string
	text []byte
	list []cases.Case
}

// readCases reads the cases of the skill in folder.
func (a *cli) readCases(folder, file string) (*caseFile, error) {
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return nil, usage("%s is not a folder", quote(folder))
	}
	name := firstOf(file, filepath.Join(folder, cases.FileName))
	b, err := readFile(name, cases.MaxFile)
	switch {
	case errors.Is(err, os.ErrNotExist) && file == "":
		return nil, usage("%s has no %s; openskill skill test --help shows its form", quote(folder), cases.FileName)
	case err != nil:
		return nil, usage("cannot read %s: %v", quote(name), plain(err))
	}
	list, problems := cases.Parse(b)
	if len(problems) == 0 {
		return &caseFile{name, b, list}, nil
	}
	for _, p := range problems {
		a.say("%s:%s", skill.CleanText(name, 500), skill.CleanText(p.String(), 500))
	}
	return nil, usage("%s has %d problems", quote(name), len(problems))
}

// callCases calls the skill with each case, and its fallback where that is wanted.
func (t *trial) callCases(ctx context.Context, list []cases.Case, fallback bool) (*caseReport, error) {
	r := &caseReport{SkillID: t.id, Cases: make([]caseOutcome, 0, len(list))}
	if t.skill.Fallback != nil && fallback {
		r.Fallback = &fallbackReport{Runner: t.skill.Fallback.Kind, Missing: t.missing}
	}
	for i := range list {
		c := &list[i]
		got := t.call(ctx, t.main, c.Input, c.Limits)
		o := caseOutcome{Name: c.Name, LatencyMS: got.Meta.LatencyMS, Differences: c.Compare(got), got: got}
		if o.Passed = len(o.Differences) == 0; !o.Passed {
			o.Stderr = t.said.of(got.Meta.ExecutionID)
		}
		if t.fallback != nil && ctx.Err() == nil {
			o.Fallback = t.compare(ctx, c, got)
			if o.Fallback.LeftOut == "" {
				r.Fallback.Compared++
			}
			if len(o.Fallback.Differences) > 0 {
				o.Passed = false
				r.Fallback.Differ++
			}
		}
		if ctx.Err() != nil {
			return nil, failed(skill.Cancelled, "interrupted in the case %s", quote(c.Name))
		}
		r.Version, r.Digest = firstOf(got.Meta.Version, r.Version), firstOf(got.Meta.Digest, r.Digest)
		if got.Meta.Ran {
			r.Runner = got.Meta.Runner
		}
		r.Cases = append(r.Cases, o)
	}
	r.count()
	return r, nil
}

func (r *caseReport) count() {
	r.Passed, r.Failed, r.Updated = 0, 0, 0
	for i := range r.Cases {
		if r.Cases[i].Updated {
			r.Updated++
		}
		if r.Cases[i].Passed {
			r.Passed++
		} else {
			r.Failed++
		}
	}
}

// compare calls the fallback with a case that was answered.
func (t *trial) compare(ctx context.Context, c *cases.Case, got *skill.Result) *fallbackOutcome {
	if !cases.Comparable(got) {
		return &fallbackOutcome{LeftOut: "the call ended as " + string(got.Error.Code)}
	}
	second := t.call(ctx, t.fallback, c.Input, skill.Limits{})
	return &fallbackOutcome{LatencyMS: second.Meta.LatencyMS, Differences: cases.Parity(got, second)}
}

// update writes the answers of failed cases into their file, all of them at once.
func (t *trial) update(ctx context.Context, file *caseFile, r *caseReport) error {
	text := file.text
	for i := range r.Cases {
		o, c := &r.Cases[i], file.list[i]
		if len(o.Differences) == 0 {
			continue
		}
		if !cases.Own(o.got) {
			o.Kept = "the call ended as " + string(o.got.Error.Code) + ", which is no answer of the skill's"
			continue
		}
		now, err := c.Expecting(o.got)
		if err != nil {
			return hostFailed(err)
		}
		if again := t.call(ctx, t.main, c.Input, c.Limits); len(now.Compare(again)) > 0 {
			o.Kept = "its answer is not repeatable"
			continue
		}
		if now, err := cases.Write(text, now); err != nil {
			o.Kept = skill.CleanText("cannot write it: "+err.Error(), 300)
		} else {
			text, o.Updated, o.Stderr = now, true, ""
			o.Passed = o.Fallback == nil || len(o.Fallback.Differences) == 0
		}
	}
	if ctx.Err() != nil {
		return failed(skill.Cancelled, "interrupted; nothing was written")
	}
	r.count()
	if r.Updated == 0 {
		return nil
	}
	// What a link leads to is written, and keeps who may read it.
	name, err := filepath.EvalSymlinks(file.name)
	if err != nil {
		return hostFailed(fmt.Errorf("cannot write %s: %w", quote(file.name), plain(err)))
	}
	info, err := os.Stat(name)
	if err != nil {
		return hostFailed(fmt.Errorf("cannot write %s: %w", quote(file.name), plain(err)))
	}
	if there, err := readFile(name, cases.MaxFile); err != nil || !bytes.Equal(there, file.text) {
		return failed(skill.Conflict, "nothing was written: %s changed in the meantime", quote(file.name))
	}
	return place(text, name, info.Mode().Perm())
}
