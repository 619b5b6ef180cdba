//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps what a terminal says to this program from a process that it starts.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
