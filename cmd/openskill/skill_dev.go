package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"openskill/cmd/openskill/internal/watch"
	"openskill/host/app/config"
	"openskill/host/manifest"
	"openskill/internal/cases"
	"openskill/sdk/skill"
)

// looking is how often a folder is looked at: what was saved is built after two looks.
const looking = 150 * time.Millisecond

// devRun is what one round of skill dev came to; with --json, one line.
type devRun struct {
	Run     int          `json:"run"`
	Changed []string     `json:"changed"`         // files; of the first run none
	Built   *builtModule `json:"built,omitempty"` // nil: nothing had to be built
	Error   *devError    `json:"error,omitempty"` // why there is no report
	Report  *caseReport  `json:"report,omitempty"`
	Since   *caseChanges `json:"since,omitempty"` // the last run with a report
}

type devError struct {
	Code    skill.Code `json:"code"`
	Message string     `json:"message"`
}

// caseChanges is what a run's cases came to otherwise than those of the one before.
type caseChanges struct {
	Run     int            `json:"run"`
	Broken  []string       `json:"broken,omitempty"`
	Fixed   []string       `json:"fixed,omitempty"`
	Mended  []string       `json:"mended,omitempty"` // the same, by its former name, for one release
	Added   []string       `json:"added,omitempty"`
	Removed []string       `json:"removed,omitempty"`
	Answers []answerChange `json:"answers,omitempty"`
}

// answerChange is an answer that is another one.
type answerChange struct {
	Name        string         `json:"name"`
	Differences []cases.Change `json:"differences"`
}

type devOptions struct{ once, asJSON, noFallback bool }

func (a *cli) skillDevCommand() *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev FOLDER",
		Short: "Build and test a skill whenever its files change",
		Long: `Build the skill in FOLDER, call it with its cases, and report what differs from the last
run: broken cases, fixed cases, changed results. Then wait until files of the folder
change, and repeat. A change during a build restarts it. Ctrl-C ends it.

Hidden files, editor files and build output are ignored.`,
		Example: "  openskill skill dev ./my-skill\n  openskill skill dev ./my-skill --once --json",
		Args:    takes(1, 1),
	}
	flags := bindSettings(cmd, "data", "state", "python", "debug")
	f := cmd.Flags()
	f.BoolVar(&o.once, "once", false, "build and test once, and exit with the exit code of skill test")
	f.BoolVar(&o.noFallback, "no-fallback", false, "omit the skill's fallback")
	f.BoolVar(&o.asJSON, "json", false, `print a line for each run: {"run": …, "changed": […], "built": …, "report": …, "since": …}`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		if s.StateDir, err = filepath.Abs(s.StateDir); err != nil {
			return hostFailed(err)
		}
		return a.dev(cmd.Context(), s, args[0], &o)
	}
	return cmd
}

func (a *cli) dev(ctx context.Context, s *config.Settings, folder string, o *devOptions) error {
	d := &developing{app: a, settings: s, folder: folder, o: o}
	one, _, err := onlyOne(folder)
	if one == nil && exitCode(err) != exitFailed {
		return err
	}
	d.builds(one)
	if o.once {
		return d.once(ctx)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	tick := time.NewTicker(looking)
	defer tick.Stop()
	loop := &watch.Loop{
		Look: func() (watch.Files, error) { return watch.Look(folder, *d.module.Load()) },
		Work: func(ctx context.Context, changed []string) bool {
			ended, err := d.work(ctx, changed)
			if err != nil {
				stop(err)
			}
			return ended
		},
		Tick: tick.C,
	}
	if err := loop.Run(ctx); err != nil {
		return hostFailed(fmt.Errorf("cannot watch %s: %w", quote(folder), plain(err)))
	}
	var e *exitError
	if errors.As(context.Cause(ctx), &e) { // such as a standard output that nobody reads
		return e
	}
	return nil
}

func exitCode(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.exit
	}
	return exitFailed
}

// developing is a folder that somebody works in.
type developing struct {
	app      *cli
	settings *config.Settings
	folder   string
	o        *devOptions
	module   atomic.Pointer[string] // that a build writes, within the folder; "" for none
	runs     int                    // that came to their end
	last     *devRun                // the last one with a report
	built    bool                   // what was there at the last build is built
}

// builds notes which file a build of the skill writes, so that it triggers none.
func (d *developing) builds(s *manifest.Skill) {
	module := ""
	if s != nil && s.Language != "" && s.Language != "none" {
		module, _ = moduleOf(s) // what is wrong with it, the build says
	}
	d.module.Store(&module)
}

func (d *developing) once(ctx context.Context) error {
	r, problem := d.round(ctx, nil)
	if problem == nil || d.o.asJSON {
		if err := d.tell(r); err != nil {
			return err
		}
	}
	if problem == nil && r.Report.Failed > 0 {
		return exit(exitFailed)
	}
	return problem
}

// work is a round that is told, unless it is interrupted. The error is one of telling.
func (d *developing) work(ctx context.Context, changed []string) (ended bool, err error) {
	r, problem := d.round(ctx, changed)
	if ctx.Err() != nil {
		return false, nil
	}
	if err := d.tell(r); err != nil {
		return true, err
	}
	if problem != nil && !d.o.asJSON {
		d.app.say("openskill: %s", skill.CleanText(reason(problem), 1000))
	}
	if !d.o.asJSON {
		d.app.say("openskill: waiting for changes of %s; Ctrl-C ends it", quote(d.folder))
	}
	d.runs = r.Run
	if r.Report != nil {
		d.last = r
	}
	return true, nil
}

// round builds and tests once. The run is there with an error, too, which it has.
func (d *developing) round(ctx context.Context, changed []string) (*devRun, error) {
	r := &devRun{Run: d.runs + 1, Changed: changed}
	if changed == nil {
		r.Changed = []string{}
	}
	if err := d.fill(ctx, r, changed); err != nil {
		code := skill.CodeOf(err)
		r.Error = &devError{code, skill.CleanText(reason(err), 1000)}
		return r, err
	}
	if d.last != nil {
		r.Since = changesOf(d.last, r.Report)
	}
	return r, nil
}

func (d *developing) fill(ctx context.Context, r *devRun, changed []string) (err error) {
	s, err := d.app.buildable(d.folder)
	if err != nil {
		return err
	}
	d.builds(s)
	if *d.module.Load() != "" && (!d.built || needsBuild(changed)) {
		d.built = false
		if r.Built, err = d.app.build(ctx, d.folder, d.settings.StateDir); err != nil {
			return err
		}
		d.built = true
	}
	file, err := d.app.readCases(d.folder, "")
	if err != nil {
		return err
	}
	t, err := d.app.openTrial(ctx, d.settings, d.folder, !d.o.noFallback)
	if err != nil {
		return err
	}
	defer t.close()
	r.Report, err = t.callCases(ctx, file.list, !d.o.noFallback)
	return err
}

// needsBuild reports whether a module may be another one after these files have changed;
// nil stands for all.
func needsBuild(changed []string) bool {
	for _, name := range changed {
		if name != cases.FileName && filepath.Ext(name) != ".md" {
			return true
		}
	}
	return changed == nil
}

// changesOf compares a report with that of an earlier run.
func changesOf(before *devRun, now *caseReport) *caseChanges {
	c := &caseChanges{Run: before.Run}
	old := map[string]*caseOutcome{}
	for i := range before.Report.Cases {
		old[before.Report.Cases[i].Name] = &before.Report.Cases[i]
	}
	for i := range now.Cases {
		o := &now.Cases[i]
		was := old[o.Name]
		delete(old, o.Name)
		switch {
		case was == nil:
			c.Added = append(c.Added, o.Name)
			continue
		case was.Passed && !o.Passed:
			c.Broken = append(c.Broken, o.Name)
		case !was.Passed && o.Passed:
			c.Fixed = append(c.Fixed, o.Name)
			c.Mended = c.Fixed
		}
		if list := cases.Changes(was.got, o.got); len(list) > 0 {
			c.Answers = append(c.Answers, answerChange{o.Name, list})
		}
	}
	c.Removed = slices.Sorted(maps.Keys(old))
	return c
}

// tell prints a run: what changed, what was built, the cases, and what is another than
// in the run before.
func (d *developing) tell(r *devRun) error {
	a := d.app
	if d.o.asJSON {
		return a.printJSON(r)
	}
	var b strings.Builder
	p := a.colours()
	if len(r.Changed) > 0 {
		fmt.Fprintf(&b, "%s\n", p.in(nameStyle, fmt.Sprintf("%d: %s", r.Run, skill.CleanText(strings.Join(r.Changed, ", "), 300))))
	}
	if r.Built != nil {
		fmt.Fprintf(&b, "%s  %s  %d bytes\n", r.Built.Path, r.Built.Digest, r.Built.Size)
	}
	if err := a.print("%s", b.String()); err != nil || r.Report == nil {
		return err
	}
	if err := a.tellCases(r.Report, cases.FileName); err != nil || r.Since == nil {
		return err
	}
	return a.print("%s", p.since(r.Since))
}

func (p paint) since(c *caseChanges) string {
	var b strings.Builder
	names := func(style, word string, list []string) {
		for _, name := range list {
			fmt.Fprintf(&b, "  %s  %s\n", p.in(style, fmt.Sprintf("%-7s", word)), name)
		}
	}
	names(badStyle, "broke", c.Broken)
	names(goodStyle, "fixed", c.Fixed)
	names(plainStyle, "new", c.Added)
	names(plainStyle, "gone", c.Removed)
	for _, x := range c.Answers {
		if slices.Contains(c.Broken, x.Name) { // which stands above, against what was expected
			continue
		}
		names(askStyle, "answers", []string{x.Name})
		for _, d := range x.Differences {
			p.difference(&b, d.At, "was", d.Was, "is", d.Is)
		}
	}
	if b.Len() == 0 {
		return fmt.Sprintf("the same as in run %d\n", c.Run)
	}
	return fmt.Sprintf("since run %d:\n%s", c.Run, b.String())
}
