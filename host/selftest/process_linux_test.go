package selftest

import (
	"os"
	"os/exec"
	"testing"

	"openskill/internal/musttest"
)

// What a process needs to start is not counted; what was started long ago, and what is not there, is not young.
func TestYoungProcesses(t *testing.T) {
	c := exec.CommandContext(t.Context(), "sleep", "60")
	musttest.Do(t, c.Start())
	t.Cleanup(func() { _ = c.Wait() })
	t.Cleanup(func() { _ = c.Process.Kill() })
	if !young(c.Process.Pid) {
		t.Error("one that was just started is not young")
	}
	if young(1) || young(-1) {
		t.Error("the first of all is young, or one that is not there")
	}
	tree := &Tree{PID: os.Getpid()}
	all, _ := resident(os.Getpid())
	if m := tree.Memory(); m < all/2 {
		t.Errorf("%d bytes, of which this process has %d", m, all)
	}
}
