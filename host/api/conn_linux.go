package api

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// peerGone reports whether the other side has closed, or has closed its sending
// half; net/http takes the two for the same as well, since nothing tells them
// apart until something is sent. It asks the kernel for the state of the socket
// and reads nothing, so that a pipelined request behind the running one stays
// where it is, and it does not mind that one is waiting there.
//
// Control rather than Read: Read would wait for the worker's own read and fail
// when a deadline has passed.
func peerGone(raw syscall.RawConn) bool {
	gone := false
	err := raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		gone = err == nil && n > 0 && p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return gone || err != nil // an error: it is closed on our side
}
