package main

import "github.com/spf13/cobra"

func (a *app) skillCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "skill",
		Short:   "Makes skills, for those who write them",
		Example: "  openskill skill build ./my-skill",
	}
	group(cmd)
	cmd.AddCommand(a.skillBuildCommand())
	return cmd
}
