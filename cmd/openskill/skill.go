package main

import "github.com/spf13/cobra"

func (a *cli) skillCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "skill",
		Short:   "Create, test, sign and share skills",
		Example: "  openskill skill new my-skill --lang go\n  openskill skill build ./my-skill\n  openskill skill test ./my-skill\n  openskill skill pull registry.example.com/acme/greeter --key acme.pub",
	}
	group(cmd)
	cmd.AddCommand(
		a.skillNewCommand(), a.skillBuildCommand(), a.skillTestCommand(), a.skillDevCommand(), a.skillBenchCommand(),
		a.skillKeygenCommand(), a.skillSignCommand(), a.skillVerifyCommand(),
		a.skillAddCommand(), a.skillPushCommand(), a.skillPullCommand(), a.skillSearchCommand(),
		a.skillExportCommand(), a.skillImportCommand(), a.labCommand("registry", "Serve an OCI registry on this machine, for trying out", "skill registry"),
	)
	return cmd
}
