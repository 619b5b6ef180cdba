//go:build !unix

package main

import (
	"os/exec"
	"time"
)

// endTogether: there are no process groups here; what a tool started may outlive it.
func endTogether(cmd *exec.Cmd) { cmd.WaitDelay = 5 * time.Second }
