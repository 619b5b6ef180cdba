package main

import (
	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

func (a *cli) doctorCommand() *cobra.Command {
	var asJSON bool
	var bundle, log string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Report what this machine supports and what is missing",
		Long: `Check this machine with the settings of a host: the engine, the runners, the tools that
build skills, the protections of scripts outside the sandbox, and the runner of each
skill. The exit code is 1 only if the engine does not work.

With --bundle it also writes a tar.gz for support: this report, the version, the
settings without secrets, sizes of the state folder, and the last lines of --log,
without inputs and results of callers. Check it before you share it.`,
		Example: "  openskill doctor --json\n  openskill doctor --bundle support.tar.gz --log openskill.log",
		Args:    takes(0, 0),
	}
	flags := bindSettings(cmd, "skills", "cli-dir", "data", "state", "python")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().Var(cliflag.Text(&bundle, "FILE"), "bundle", "output file for a support bundle of this host")
	cmd.Flags().Var(cliflag.Text(&log, "FILE"), "log", "log file of the host; the bundle gets its last lines")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if log != "" && bundle == "" {
			return usage("--log needs --bundle")
		}
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		x := app.Examine(cmd.Context(), s)
		if bundle != "" {
			if err := writeSupport(bundle, log, s, x); err != nil {
				return err
			}
		}
		if asJSON {
			err = a.printJSON(x)
		} else {
			err = a.print("%s\n", examination(x))
		}
		if err == nil && !x.Engine.OK {
			err = exit(exitFailed)
		}
		return err
	}
	return cmd
}

func examination(x *app.Examination) string {
	t := newTable("WHAT", "NAME", "", "DETAIL")
	t.wrap(4, 90)
	row := func(what, name string, ok bool, detail string) {
		mark := "ok"
		if !ok {
			mark = "-"
		}
		t.row(what, skill.CleanText(name, 80), mark, skill.CleanText(detail, 400))
	}
	row("platform", x.OS+"/"+x.Arch, x.Strength == "full", x.Strength+" strength: "+x.Detail)
	rows := func(what string, list ...app.Finding) {
		for _, f := range list {
			row(what, f.Name, f.OK, f.Detail)
		}
	}
	rows("engine", x.Engine)
	rows("engine", x.Cache)
	rows("runner", x.Runners...)
	rows("worker", x.Workers...)
	for _, p := range x.Protections {
		row("scripts", p.Name, p.Holds, p.Detail)
	}
	rows("tool", x.Tools...)
	rows("skill", x.Skills...)
	rows("model", x.Models...)
	rows("warning", x.Warnings...)
	return t.String()
}
