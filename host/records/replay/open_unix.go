//go:build unix

package replay

import "syscall"

// nonblock is that a pipe which was put in the place of a file holds nobody up.
const nonblock = syscall.O_NONBLOCK
