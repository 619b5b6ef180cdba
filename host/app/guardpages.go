package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"openskill/host/workers"
)

// guardedFlag makes a process compile guests for guard pages, or run such guests.
const guardedFlag = "guard-pages"

// guest returns the command line of this program that compiles or runs guests.
func guest(command string) ([]string, error) {
	args, err := self(command)
	if err == nil && guardPages() == nil {
		args = append(args, "--"+guardedFlag)
	}
	return args, err
}

// guardPages reports why worker processes do not use guard pages; nil if they do. It tests them
// once, in a child process, since a failed test may crash.
var guardPages = sync.OnceValue(func() error {
	if !hasWorkers {
		return errors.New("there are no worker processes here")
	}
	if slices.Contains(os.Args[1:], guardCommand) {
		return errors.New("this program does not call Child, and would start itself without end")
	}
	command, err := self(guardCommand)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), guardTrial)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Args[0], cmd.Env, cmd.Dir = workers.ProgramName, []string{}, "/" // as for workers
	if out, err := cmd.CombinedOutput(); err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%w: %s", err, line)
	}
	return nil
})

// guardTrial is the time limit of the test, which takes some hundredths of a second.
const guardTrial = 10 * time.Second
