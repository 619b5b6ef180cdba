//go:build !unix

package cli

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"
)

// Without fork and process groups a script could not be ended with all that it
// started; there the runner says that it is not ready.

const (
	sigXCPU     = syscall.Signal(-1)
	openFlags   = 0
	folderFlags = 0
)

var errSystem = errors.New("cli:python needs a Unix system")

type guard struct{}

func allGuards() []*guard { return nil }

func (r *machine) firstGuard(context.Context, *python, []*guard) (*guard, error) {
	return nil, errSystem
}

func (j *job) execute(context.Context, *guard) (*ending, error) { return nil, errSystem }

func hold(string) func() { return func() {} }

func sweep(string, time.Time) {}

func links(fs.FileInfo) uint64 { return 1 }

func taken(info fs.FileInfo) uint64 { return counted(uint64(info.Size()), 0) } // never negative

func (*guard) protections() []Protection { return nil }
