package workers

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// ofProcessor are the calls that only this processor has.
var ofProcessor []uintptr
