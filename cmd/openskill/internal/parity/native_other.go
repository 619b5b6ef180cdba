//go:build !unix

package parity

import "os/exec"

// apart does nothing where there are no groups of processes: what a script starts may
// outlive it.
func apart(*exec.Cmd) {}
