package workers

import (
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// RefuseNamespaces makes the kernel refuse a process a namespace of its own during a test.
func RefuseNamespaces(t *testing.T) {
	t.Helper()
	before := ofItsOwn
	ofItsOwn = unix.CLONE_NEWNS | unix.CLONE_FS // which contradict each other
	t.Cleanup(func() { ofItsOwn = before })
}

// Fitting and Machine are what the number of workers follows.
var (
	Fitting = fitting
	Machine = machine
)

// MayMount reports whether a process of a namespace of its own can mount, as a shell finds it.
func MayMount() bool {
	s := newSpawner()
	defer s.close()
	cmd := exec.Command("sh", "-c", "mount -t tmpfs none /proc")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	return s.apart(cmd) == nil && cmd.Wait() == nil && !s.together
}
