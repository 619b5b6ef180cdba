//go:build !linux

package api

import "syscall"

// peerGone is not known here: a departed client's run ends at its own limits.
func peerGone(syscall.RawConn) bool { return false }
