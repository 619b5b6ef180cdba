package main

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"openskill/host/agent/tools"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

func (a *cli) toolsCommand() *cobra.Command {
	var format string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "tools [FOLDER…]",
		Short: "Print the skills as tools for a model provider",
		Long: `Print the enabled skills of the catalogue, or of the named folders, as tools for models,
with the tools that load, read and run Agent Skills. Schemas that a vendor refuses are
rewritten or simplified; the host checks every call against the skill's own schema.`,
		Example: `  openskill tools
  openskill tools --format anthropic
  openskill tools ./skills --format mcp --json`,
	}
	flags := bindSettings(cmd, "skills", "cli-dir", "agent-skills", "state")
	cmd.Flags().Var(cliflag.Text(&format, "FORMAT"), "format", strings.Join(tools.Formats(), ", ")+"; default "+tools.Formats()[0])
	cmd.Flags().BoolVar(&asJSON, "json", false, "on one line")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("format") {
			format = tools.Formats()[0]
		}
		for _, folder := range args {
			if info, err := os.Stat(folder); err != nil || !info.IsDir() {
				return usage("%s is not a folder", quote(folder))
			}
		}
		r, err := a.catalogue(flags, args)
		if err != nil {
			return err
		}
		a.problems(r.Problems())
		agents, err := a.agentSkills(flags, args)
		if err != nil {
			return err
		}
		own, err := agents.Tools(cmd.Context(), skill.Local())
		if err != nil {
			return failure(err)
		}
		list, left := tools.Join(own, tools.All(every(r))) // a skill never takes the place of ours
		for _, name := range left {
			a.say("openskill: the skill %s is omitted: a tool for Agent Skills has its name", name)
		}
		v, err := tools.Write(format, list)
		if err != nil {
			return &exitError{exitUsage, err}
		}
		for _, w := range tools.Warnings(format, list) {
			a.say("openskill: %s", w)
		}
		if asJSON {
			return a.printJSON(v)
		}
		b, err := json.Marshal(v)
		if err != nil {
			return hostFailed(err)
		}
		return a.print("%s\n", indented(b))
	}
	return cmd
}
