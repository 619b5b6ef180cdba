package workers

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// ofProcessor are the calls that only this processor has.
var ofProcessor = []uintptr{
	unix.SYS_ARCH_PRCTL, unix.SYS_EPOLL_WAIT, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS, unix.SYS_READLINK, unix.SYS_POLL, unix.SYS_TIME,
}
