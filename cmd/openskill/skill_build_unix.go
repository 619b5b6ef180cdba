//go:build unix

package main

import (
	"os/exec"
	"syscall"
	"time"
)

// endTogether puts a tool into a process group of its own, all of which ends when the
// command's context does: compilers start others.
func endTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
}
