package app

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"openskill/host/workers"
)

// guardedFlag has a process compile guests for guard pages, or run such.
const guardedFlag = "guard-pages"

// guest is this program as a command that compiles guests, or runs them.
func guest(command string) ([]string, error) {
	args, err := self(command)
	if err == nil && guardPages() == nil {
		args = append(args, "--"+guardedFlag)
	}
	return args, err
}

// guardPages tells why guests do not trap by faults in guard pages, in worker processes: it is
// tried in a process of its own, which ends where it fails badly.
var guardPages = sync.OnceValue(func() error {
	if !hasWorkers {
		return errors.New("there are no worker processes here")
	}
	command, err := self(guardCommand)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), guardTrial)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Args[0], cmd.Env, cmd.Dir = workers.ProgramName, []string{}, "/" // as those that are like it
	if out, err := cmd.CombinedOutput(); err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%w: %s", err, line)
	}
	return nil
})

// guardTrial is how long that may take, which is a few hundredths of a second.
const guardTrial = 10 * time.Second
