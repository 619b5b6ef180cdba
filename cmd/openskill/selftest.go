package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/host/selftest"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

func (a *cli) selftestCommand() *cobra.Command {
	var asJSON, list bool
	var load cliflag.Duration
	var o selftest.Options
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Test the limits of this machine and its settings with hostile skills",
		Long: `Start a host with the settings of serve, run the hostile corpus against it, and print
for each case the promise, the case, the protection, the outcome, and whether the
promise held. A protection that is disabled or missing on this machine is a row that
fails. The report ends with the measured number of each promise.

It changes nothing: state and data are temporary, the host listens on a free loopback
port, and compiled modules of your host are only read. It takes about two minutes of two
processors. The exit code is 0 if every row passed. The report of a whole run is stored
in the database, for the console.`,
		Example: `  openskill selftest
  openskill selftest --filter E0 --json
  openskill selftest --filter load --load 1m`,
		Args: cobra.NoArgs,
	}
	flags := bindSettings(cmd)
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print one JSON object per row, then one with the promises")
	f.BoolVar(&list, "list", false, "print the names of the rows without running them")
	f.StringVar(&o.Filter, "filter", "", "only rows whose name contains this `TEXT`, ignoring case")
	f.Var(&load, "load", "duration of eight concurrent hostile calls; default: 15s, or 1m with --filter load")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		o.Memory = s.Defaults().Memory
		o.Load = load.Value
		if o.Load == 0 && o.Filter == "load" {
			o.Load = time.Minute
		}
		o.Durable = killHost
		o.Protections = func() []selftest.Protection { return app.Protections(s) }
		if list {
			return a.print("%s\n", strings.Join(selftest.Names(o), "\n"))
		}
		if len(selftest.Names(o)) == 0 {
			return usage("--filter %s: no row matches; see --list", quote(o.Filter))
		}
		var log *slog.Logger
		if s.Debug {
			log = a.logger(slog.LevelDebug)
		}
		return a.selftest(cmd.Context(), func(each func(selftest.Row)) (*selftest.Report, error) {
			o.Each = each
			report, err := app.SelfTest(cmd.Context(), s, o, log)
			if err == nil && o.Filter == "" && cmd.Context().Err() == nil {
				kept := &selftest.Kept{At: time.Now().UTC(), Version: app.Version, Report: *report}
				if err := keepReport(cmd.Context(), s, kept); err != nil {
					a.say("openskill: cannot store the report for the console: %v", err)
				}
			}
			return report, err
		}, len(selftest.Names(o)), asJSON)
	}
	return cmd
}

// keepReport stores a report where the console of a host with these settings reads it.
func keepReport(ctx context.Context, s *config.Settings, kept *selftest.Kept) error {
	db, err := app.OpenStore(ctx, s, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return errors.Join(selftest.Keep(ctx, db, kept), db.Close())
}

// selftest runs and prints.
func (a *cli) selftest(ctx context.Context, run func(each func(selftest.Row)) (*selftest.Report, error), rows int, asJSON bool) error {
	var unsaid error
	done := 0
	report, err := run(func(row selftest.Row) {
		done++
		switch {
		case asJSON:
			unsaid = errors.Join(unsaid, a.printJSON(row))
		case row.Verdict == selftest.Fail:
			a.say("openskill: %d of %d: %s fails: %s", done, rows, row.Case, skill.CleanText(strings.Join(row.Problems, "; "), 500))
		case done%20 == 0:
			a.say("openskill: %d of %d", done, rows)
		}
	})
	switch {
	case ctx.Err() != nil:
		return failed(skill.Cancelled, "interrupted after %d of %d rows", done, rows)
	case err != nil:
		return hostFailed(err)
	case asJSON:
		unsaid = errors.Join(unsaid, a.printJSON(struct {
			Promises []selftest.Row `json:"promises"`
			Passed   int            `json:"passed"`
			Failed   int            `json:"failed"`
			Skipped  int            `json:"skipped"`
		}{report.Promises, report.Passed, report.Failed, report.Skipped}))
	default:
		unsaid = a.print("%s", reportText(report))
	}
	if unsaid != nil {
		return unsaid
	}
	if !report.OK() {
		return exit(exitFailed)
	}
	return nil
}

// reportText is the report for a person.
func reportText(r *selftest.Report) string {
	t := newTable("PROMISE", "CASE", "LIMIT", "WHAT HAPPENED", "")
	t.wrap(2, 50)
	t.wrap(3, 34)
	t.wrap(4, 70)
	for _, row := range r.Rows {
		number := "-"
		if row.Promise > 0 {
			number = fmt.Sprint(row.Promise)
		}
		t.row(number, skill.CleanText(row.Case, 120), row.Limit, skill.CleanText(row.Happened, 300), row.Verdict)
		for _, p := range row.Problems {
			t.row("", "", "", "! "+skill.CleanText(p, 500), "")
		}
	}
	p := newTable("PROMISE", "", "MEASURED", "")
	p.wrap(2, 50)
	p.wrap(3, 90)
	for _, row := range r.Promises {
		p.row(row.Promise, row.Case, skill.CleanText(row.Happened, 300), row.Verdict)
	}
	return fmt.Sprintf("%s\n\n%s\n\n%d passed, %d failed, %d skipped\n", t, p, r.Passed, r.Failed, r.Skipped)
}
