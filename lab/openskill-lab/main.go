// Command openskill-lab measures openskill: benchmarks, load and soak tests. It also
// serves a scripted model and an OCI registry for tests and demonstrations. It is a
// program of its own, so that openskill has nothing of it; openskill bench runs it.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"openskill/host/app"
)

func main() {
	if code, is := app.Child(os.Args[1:]); is { // a worker of a host that is measured
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	a := &cli{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ()}
	code := a.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// run executes one command line and returns its exit code.
func (a *cli) run(ctx context.Context, args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	code := exitUsage // of cobra's own errors
	if e := (*exitError)(nil); errors.As(err, &e) {
		code = e.exit
	}
	a.say("openskill: %v", err)
	return code
}
