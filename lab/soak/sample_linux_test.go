package soak

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestLook(t *testing.T) {
	t.Parallel()
	child := exec.CommandContext(t.Context(), "cat")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = child.Wait() })
	var s Sample
	if err := look(os.Getpid(), &s); err != nil {
		t.Fatal(err)
	}
	if s.HostRSS < 1e6 || s.HostFDs < 3 || s.Threads < 2 || s.Workers < 1 || s.WorkersRSS < 1e4 || s.WorkerFDs < 1 || s.WorkerThr < 1 {
		t.Errorf("%+v", s)
	}
	if err := look(1<<30, &s); err == nil {
		t.Error("no such process: want an error")
	}
	all, err := processes()
	if err != nil || all[child.Process.Pid] == nil || all[child.Process.Pid].parent != os.Getpid() {
		t.Errorf("the child is %+v, %v", all[child.Process.Pid], err)
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	tail := strings.Repeat(" 0", 15) + " 9 0 0 1000 3 0"
	if p, ok := parseStat("42 (a) S 1) R 7" + tail); !ok || p.pid != 42 || p.parent != 7 || p.threads != 9 || p.rss != 3*int64(os.Getpagesize()) {
		t.Errorf("%+v, %v", p, ok)
	}
	for _, line := range []string{"", "42", "42 (a", "42 (a) R", "x (a) R 7" + tail, "42 (a) Z 7" + tail, "42 (a) R x" + tail, "42 (a) R 7" + strings.Repeat(" x", 20)} {
		if p, ok := parseStat(line); ok {
			t.Errorf("%q is %+v", line, p)
		}
	}
}
