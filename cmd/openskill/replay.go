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
	"openskill/host/records/replay"
	"openskill/sdk/skill"
)

func (a *cli) replayCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "replay ID",
		Short: "Replay an execution and compare the results",
		Long: `Replay the run of an execution from its recording, and report whether status, data,
artifacts and fuel are the same. Clocks, randomness and network responses come from the
recording; nothing is sent.

Runs are recorded while OPENSKILL_RECORD is on. A replay needs the same version of the
skill and unchanged files that it read; if they changed, the changes are named and
nothing runs. ID is meta.execution_id in the result of a call.

The exit code is 0 if both are identical, else 1.`,
		Example: `  OPENSKILL_RECORD=on openskill run echo --set text=hello
  openskill replay 019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e0f`,
		Args: takes(1, 1),
	}
	flags := bindSettings(cmd, "skills", "agent-skills", "cli-dir", "data", "state", "python", "debug")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.replay(cmd.Context(), flags, args[0], asJSON)
	}
	return cmd
}

func (a *cli) replay(ctx context.Context, flags *settingsFlags, id string, asJSON bool) error {
	s, err := a.load(flags)
	if err != nil {
		return err
	}
	h, err := app.Open(s, &app.Options{Log: a.logger(level(s, slog.LevelError)), Brief: true}) // nothing to wait for
	if err != nil {
		return hostFailed(err)
	}
	defer h.Close() // the answer is there; the process ends
	stop := a.after(3*time.Second, "openskill: getting the skill's runtime ready; the first time takes some seconds")
	r, err := h.Replay(ctx, skill.Local(), id)
	stop()
	if err != nil {
		return replayFailed(err)
	}
	if asJSON {
		err = a.printJSON(r)
	} else {
		err = a.print("%s", replayText(r))
	}
	if err == nil && !r.Identical {
		err = exit(exitFailed)
	}
	return err
}

// replayFailed tells what the host could not do from what cannot be.
func replayFailed(err error) error {
	var e *skill.Error
	switch {
	case !errors.As(err, &e):
		return hostFailed(err)
	case e.Code == skill.Internal || e.Code == skill.AuditUnavailable:
		return hostFailed(cause(err))
	}
	return failed(e.Code, "%s", e.Message)
}

// replayText is a report for people: the verdict, and then a line for each difference.
func replayText(r *replay.Report) string {
	var b strings.Builder
	switch {
	case r.Identical:
		fmt.Fprintf(&b, "identical: %s %s\n", r.Skill, r.Version)
	case r.ReplayID == "":
		fmt.Fprintf(&b, "differs: %s %s was not run, because its files are missing or changed\n", r.Skill, r.Version)
	default:
		fmt.Fprintf(&b, "differs: %s %s\n", r.Skill, r.Version)
	}
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "  %s\n", d)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	if r.ReplayID != "" {
		fmt.Fprintf(&b, "  the replay is on record as %s\n", r.ReplayID)
	}
	return b.String()
}
