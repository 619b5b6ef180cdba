package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"openskill/cmd/openskill/internal/parity"
	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

func (a *cli) skillsParityCommand() *cobra.Command {
	var asJSON bool
	var cases string
	cmd := &cobra.Command{
		Use:   "parity FOLDER --cases FILE",
		Short: "Compare runs of scripts on this machine and in the sandbox",
		Long: `Run each case twice, with this machine's own Python and in the sandbox, each time in a
copy of the folder, and compare standard output, exit code, and created or changed files
by SHA-256. Standard error is not compared.

Native runs have your rights and an empty environment: use it on your own machine, for
scripts that you trust.

FILE is YAML or JSON:

  cases:
    - script: scripts/convert.py
      args: [--value, 26.2]
      stdin: text             # of standard input
      files: {in.csv: "a,b"}  # created in the folder before
      ignore: [time]          # stdout, exit, files, file:GLOB, or of standard output
                              # order (of lines), folder (its own path), time
      timeout_ms: 10000

The exit code is 1 if a case differs, or if its native run did not end by itself.`,
		Example: `  openskill skills parity ./my-skill --cases ./my-skill.cases.yaml
  openskill skills parity ./my-skill --cases cases.json --json`,
		Args: takes(1, 1),
	}
	flags := bindSettings(cmd, "state", "python")
	cmd.Flags().Var(cliflag.Text(&cases, "FILE"), "cases", "cases file, in YAML or JSON")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
			return usage("%s is not a folder", quote(args[0]))
		}
		if cases == "" {
			return usage("parity needs --cases FILE")
		}
		text, err := readFile(cases, parity.MaxBytes)
		if err != nil {
			return usage("cannot read --cases %s: %v", quote(cases), plain(err))
		}
		list, err := parity.Parse(text)
		if err != nil {
			return usage("%s: %v", quote(cases), err)
		}
		return a.parity(cmd.Context(), flags, args[0], list, asJSON)
	}
	return cmd
}

func (a *cli) parity(ctx context.Context, flags *settingsFlags, folder string, cases []parity.Case, asJSON bool) error {
	s, err := a.load(flags)
	if err != nil {
		return err
	}
	native, err := parity.NewNative(ctx, s.Python)
	if err != nil {
		return &exitError{exitHost, err}
	}
	if folder, err = filepath.Abs(folder); err != nil { // its last part is the skill's name
		return hostFailed(err)
	}
	r, err := parity.Run(ctx, folder, cases, native, &parity.Sandbox{Script: a.sandboxed(s)})
	switch {
	case err != nil && ctx.Err() != nil:
		return failed(skill.Cancelled, "interrupted")
	case err != nil:
		return hostFailed(err)
	}
	r.Native = native.Version()
	if asJSON {
		err = a.printJSON(r)
	} else {
		err = a.compared(r)
	}
	if err == nil && r.Same < len(r.Cases) {
		err = exit(exitFailed)
	}
	return err
}

// compared prints a table of cases, and their differences below it.
func (a *cli) compared(r *parity.Report) error {
	t := newTable("CASE", "VERDICT", "EXIT", "STDOUT", "FILES", "NATIVE", "SANDBOX", "IGNORED")
	for i := range r.Cases {
		c := &r.Cases[i]
		t.row(
			skill.CleanText(c.Name, 60), verdictWords(c.Verdict), c.Exit, fmt.Sprintf("%d B", c.Stdout), c.Files,
			fmt.Sprintf("%d ms", c.NativeMS), fmt.Sprintf("%d ms", c.SandboxMS), strings.Join(c.Ignored, ", "),
		)
	}
	if err := a.print("%s\n", t); err != nil {
		return err
	}
	for i := range r.Cases {
		c := &r.Cases[i]
		for _, d := range c.Differences {
			if err := a.print("\n%s: %s: natively %s, in the sandbox %s\n", c.Name, d.What, d.Native, d.Sandbox); err != nil {
				return err
			}
			if d.Diff != "" {
				if err := a.print("%s\n", d.Diff); err != nil {
					return err
				}
			}
		}
		if c.Stderr != "" {
			if err := a.print("standard error: %s\n", c.Stderr); err != nil {
				return err
			}
		}
	}
	return a.print("\n%d of %d are the same as with Python %s on this machine\n", r.Same, len(r.Cases), r.Native)
}

func verdictWords(v parity.Verdict) string {
	if v == parity.NoNative {
		return "no native run"
	}
	return string(v)
}

// sandboxed runs scripts of a folder through the door of a host that has this folder
// alone, as openskill script does.
func (a *cli) sandboxed(s *config.Settings) func(context.Context, string, skill.ScriptRequest) (*skill.Reply, error) {
	return func(ctx context.Context, folder string, r skill.ScriptRequest) (*skill.Reply, error) {
		h, err := app.Open(s, &app.Options{Log: a.logger(level(s, slog.LevelError)), Roots: []string{}, AgentRoots: []string{folder}, Brief: true}) // nothing to wait for
		if err != nil {
			return nil, err
		}
		defer h.Close() // the answer is there
		if r.Skill, err = a.onlyAgentSkill(ctx, h, folder); err != nil {
			return nil, err
		}
		h.PrepareScript(ctx, r.Skill, r.Script)
		result, reply := h.RunScript(ctx, skill.Local(), r)
		if reply == nil {
			return &skill.Reply{Code: result.Error.Code, Message: result.Error.Message}, nil
		}
		return reply, nil
	}
}
