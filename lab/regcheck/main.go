// Command regcheck checks every allocation of registers that wazero's compilers make of
// modules, as openSkill hands them over: after all passes. It copies wazero, with the edits that
// the project builds with, or with -as-is from Go's module cache, lays a checker into the copy (_wazero), builds lab/regcheck/compile with it, and runs
// that with its arguments. Nothing of wazero is part of this project, and nothing of the
// product knows of this.
//
//	go -C lab run ./regcheck -trusted ../.openskill/runtimes/slim/python.wasm
//	go -C lab run ./regcheck -generate pressure -count 1000
//	go -C lab run ./regcheck -arch arm64 -generate pressure -count 1000
//	go -C lab run ./regcheck -few 3 -generate pressure -count 1000
//	go -C lab run ./regcheck -guarded -generate pressure -count 1000
//	go -C lab run ./regcheck -build PROGRAM
//
// With -guarded modules are compiled as for worker processes, without checks of addresses.
// With -few the allocator has so many registers of each kind to choose from, and takes that of
// the value that is needed soonest: what a sequence of instructions does not tell it is a fault
// then in many programs, and not in one of some ten thousand.
// The last one leaves the program, which takes the same arguments, to be run more than once.
//
// It exits with 1 if there is a fault, and with 2 if it could not check.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
)

func main() {
	status, err := run(context.Background(), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "regcheck:", err)
	}
	os.Exit(status)
}

func run(ctx context.Context, args []string) (int, error) {
	arch, args := option("arch", args)
	if arch == "" {
		arch = runtime.GOARCH
	}
	few, args := option("few", args)
	program, args := option("build", args)
	asIs := slices.Contains(args, "-as-is")
	args = slices.DeleteFunc(args, func(a string) bool { return a == "-as-is" })
	only := program != ""
	dir, err := os.MkdirTemp("", "regcheck")
	if err != nil {
		return 2, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if !only {
		program = filepath.Join(dir, "compile")
	}
	if err := build(ctx, dir, arch, few, asIs, program); err != nil {
		return 2, err
	}
	if only {
		return 0, nil
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	if exit := (&exec.ExitError{}); errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 2, err
	}
	return 0, nil
}

// option takes an option of this command out of the arguments of the other one.
func option(name string, args []string) (value string, rest []string) {
	if i := slices.Index(args, "-"+name); i >= 0 && i+1 < len(args) {
		return args[i+1], slices.Delete(slices.Clone(args), i, i+2)
	}
	return "", args
}
