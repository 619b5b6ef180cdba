package workers_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"openskill/host/workers"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// beCrowdedHost is a host whose user may have no more processes for a while, and no
// control groups at all. What each call was told is printed.
func beCrowdedHost(dir string) int {
	// Go ends a program that cannot have a thread, so those that it needs are there.
	var there sync.WaitGroup
	on := make(chan struct{})
	for range 24 {
		there.Add(1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			there.Done()
			<-on
		}()
	}
	there.Wait()
	close(on)
	self, err := os.Executable()
	if err != nil {
		return 3
	}
	p, err := workers.New(workers.Options{Command: []string{self, "be-a-worker"}, Dir: dir, Spares: -1, Memory: 200 << 20, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	r := p.Runner(planner{})
	call := func(tenant, does string) {
		reply, err := r.Run(context.Background(), callOf(tenant, does))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			fmt.Println(tenant, skill.CodeOf(err))
			return
		}
		fmt.Println(tenant, string(reply.Stdout)+string(reply.Code))
	}
	call("a", "say on")
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &limit) != nil || unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 1, Max: limit.Max}) != nil {
		return 3
	}
	call("b", "say on")
	call("a", "say on")
	if unix.Setrlimit(unix.RLIMIT_NPROC, &limit) != nil {
		return 3
	}
	call("b", "say on")
	call("b", "eat")
	call("b", "say on")
	if r.Close() != nil || p.Close() != nil {
		return 3
	}
	return 0
}

// TestNoMoreProcesses holds that a host whose user has all the processes that it may
// have says so to the call that needs one, goes on with those that have one, and starts
// them again when it can. That user may make no control groups: a worker that takes too
// much memory is ended all the same.
func TestNoMoreProcesses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("another user is needed, whom the limit of processes holds, and only root can be that")
	}
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		musttest.Do(t, os.Chmod(d, 0o755))
	}
	self := musttest.Get(os.Executable())(t)
	program, state := filepath.Join(dir, "program"), filepath.Join(dir, "state")
	b, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(program, b, 0o755)
	}
	const user = 54321
	if err == nil {
		err = os.Mkdir(state, 0o700)
	}
	if err == nil {
		err = os.Chown(state, user, user)
	}
	musttest.Do(t, err)
	cmd := exec.Command(program, "be-a-crowded-host", state)
	cmd.Dir, cmd.Env = "/", []string{"GOMAXPROCS=2"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	var said, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s %s", err, said.String(), errs.String())
	}
	if want := "a on\nb RATE_LIMITED\na on\nb on\nb WORKER_CRASHED\nb on\n"; said.String() != want {
		t.Errorf("%q, want %q; %s", said.String(), want, errs.String())
	}
}

// TestThreads holds that a worker cannot take all threads of the machine.
func TestThreads(t *testing.T) {
	p, r := pool(t, nil)
	run(t, r, "a", "say x")
	bounded := false
	for _, held := range p.Stats().Held {
		bounded = bounded || strings.HasSuffix(held.Detail, "threads")
	}
	if !bounded {
		t.Skip("this host may make no control group that bounds threads")
	}
	if got := run(t, r, "a", "threads 100"); string(got.Stdout) != "100 threads" {
		t.Errorf("a hundred: %+v", got)
	}
	if got := run(t, r, "a", "threads 2000"); got.Code != skill.WorkerCrashed {
		t.Errorf("two thousand: %+v", got)
	}
	if got := run(t, r, "a", "say on"); string(got.Stdout) != "on" {
		t.Errorf("afterwards: %+v", got)
	}
}
