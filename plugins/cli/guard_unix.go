//go:build unix && !linux

package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"syscall"
)

// guard holds processes by their process group; the system offers no more.
type guard struct{}

func (*guard) String() string { return "process group" }

func allGuards() []*guard { return []*guard{{}} }

func (j *job) execute(ctx context.Context, _ *guard) (*ending, error) {
	report, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer report.Close()
	defer w.Close()
	return j.wait(ctx, modeGroup, &exec.Cmd{
		Path: j.python.Path, Args: j.argv(asked{mode: modeGroup}), Env: j.environ(), Dir: "/",
		Stdin: bytes.NewReader(j.stdin), WaitDelay: pipeDelay(modeGroup), ExtraFiles: []*os.File{w},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}, report, w)
}

func killBelow(int)        {}
func peakBelow(int) uint64 { return 0 }

func (*guard) protections() []Protection {
	return []Protection{
		{"processes", false, "a process group: a process that leaves it (setsid) outlives the run"},
		{"host-death", false, "scripts continue when the host is killed"},
		{"process-limit", false, "the number of processes is not limited"},
		{"memory", false, "the system does not enforce memory limits of processes"},
		{"files", false, "scripts have the file access of the host's user"},
		{"network", false, "scripts reach the network"},
		{"user", false, "scripts run as the host's user"},
	}
}
