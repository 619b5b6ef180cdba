package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

const (
	// compileTime bounds a compilation, which takes one to two minutes of the largest
	// runtime on two cores that nothing else uses.
	compileTime = 15 * time.Minute
	// compileMemory bounds its memory, in bytes; the largest runtime takes 2.5 GB.
	compileMemory = 6 << 30
)

// runtimeCompileCommand is the child of runtime install: compiling takes memory that
// is to be given back, and cannot be interrupted but by ending the process.
func (a *cli) runtimeCompileCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "compile NAME",
		Short:   "Compile an installed runtime into the cache, as runtime install does",
		Example: "  openskill runtime compile slim",
		Args:    takes(1, 1),
		Hidden:  true,
	}
	flags := bindSettings(cmd, "state")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		if err := limitMemory(compileMemory); err != nil {
			return hostFailed(err)
		}
		return a.compileRuntime(cmd.Context(), s.StateDir, args[0])
	}
	return cmd
}

// compileRuntime leaves the module of a runtime compiled in the state folder, where hosts
// look for it.
func (a *cli) compileRuntime(ctx context.Context, stateDir, name string) error {
	r, err := runtimes.New(stateDir).Open(name)
	if err != nil {
		return runtimeFailed(err)
	}
	if err := app.CompileRuntime(ctx, stateDir, r.Module.Path, r.Module.Digest); err != nil {
		return hostFailed(err)
	}
	return nil
}

// compileAhead runs runtime compile as a process of its own, and shows how long it
// takes. What fails costs the first call time, not its answer.
func (a *cli) compileAhead(ctx context.Context, stateDir, name string) error {
	self, err := os.Executable()
	if err != nil {
		return hostFailed(err)
	}
	bounded, stop := context.WithTimeout(ctx, compileTime)
	defer stop()
	cmd := exec.CommandContext(bounded, self, "runtime", "compile", name, "--state", stateDir)
	cmd.Args[0] = "openskill" // whatever the file is called
	endTogether(cmd)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	finish := a.elapsed(ctx, name, "compiling, the first time only")
	err = cmd.Run()
	finish()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &exitError{exitFailed, context.Cause(ctx)}
	case bounded.Err() != nil:
		return failed(skill.CompileTimeout, "%s is installed, but compiling it took more than %s; the first call does it", name, compileTime)
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	return failed(skill.Internal, "%s is installed but not compiled; the first call tries again: %s", name, skill.CleanText(lines[0], 300))
}

// elapsed shows what is being done and for how long, where a person reads standard
// error, and a line about it where none does. The function that it gives ends that.
func (a *cli) elapsed(ctx context.Context, name, what string) (finish func()) {
	if f, ok := a.stderr.(*os.File); !ok || !terminal(f) {
		a.say("openskill: %s: %s", name, what)
		return func() {}
	}
	began := time.Now()
	return a.progress(ctx, func() string {
		return fmt.Sprintf("%s %s: %d s", name, what, int(time.Since(began).Seconds()))
	})
}
