package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"openskill/host/app"
)

func main() {
	if code, is := app.Child(os.Args[1:]); is {
		os.Exit(code)
	}
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals // asks to stop
		cancel()
		again := <-signals // does not ask
		os.Exit(killed(again))
	}()
	os.Exit(Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// killed is the exit code that shells have for a process that a signal ended.
func killed(s os.Signal) int {
	n, ok := s.(syscall.Signal)
	if !ok {
		return exitFailed
	}
	return 128 + int(n)
}

// Run executes one command line and gives its exit code. When ctx ends, the
// command stops what it does.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if code, is := app.Child(args); is { // it ends with its channel
		return code
	}
	a := &cli{stdin: stdin, stdout: stdout, stderr: stderr, environ: os.Environ()}
	root := a.rootCommand() // commands get theirs from ExecuteContextC
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return a.report(cmd, err)
}
