//go:build unix

package parity

import (
	"os/exec"
	"syscall"
)

// apart gives a program a group of its own, which is ended as a whole.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
