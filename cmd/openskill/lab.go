package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"
)

// labProgram measures hosts and serves what tests need. It is built by make build, and is
// not part of a release: openskill has none of its code.
const labProgram = "openskill-lab"

// labCommand returns a command that runs the command of the same name in labProgram, with
// the same arguments and streams.
func (a *cli) labCommand(name, short, example string) *cobra.Command {
	return &cobra.Command{
		Use:                name,
		Short:              short,
		Long:               short + ".\n\nRuns " + labProgram + ", which make build puts beside openskill.",
		Example:            "  openskill " + example,
		DisableFlagParsing: true, // they are the other program's
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runLab(cmd.Context(), append([]string{name}, args...))
		},
	}
}

// runLab runs labProgram to its end. It is looked for beside this program, then in PATH.
func (a *cli) runLab(ctx context.Context, args []string) error {
	name := labProgram
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	path := name
	if self, err := os.Executable(); err == nil {
		path = filepath.Join(filepath.Dir(self), name)
	}
	if _, err := os.Stat(path); err != nil {
		if path, err = exec.LookPath(name); err != nil {
			return usage("openskill %s needs %s, which was not found beside openskill or in PATH; build it in a checkout with make build", args[0], labProgram)
		}
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = a.stdin, a.stdout, a.stderr, a.environ
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	err := cmd.Run()
	if s := cmd.ProcessState; s != nil && s.Exited() { // also where ctx ended first
		return exit(s.ExitCode())
	}
	return hostFailed(plain(err))
}
