package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"openskill/sdk/skill"
)

const (
	sigXCPU   = syscall.SIGXCPU
	openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
)

// guard is one way to hold processes. Which ways work differs by kernel,
// container and user; findGuard tries them, strongest first.
type guard struct {
	mode     int       // of boot.py
	flags    uintptr   // namespaces
	users    *userPool // each run under a user of its own; nil: the host's user
	userNS   bool      // namespaces by way of a user namespace, without root
	landlock int       // version of the kernel's Landlock in use; 0: none
}

const namespaces = unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC

// guards are the ways to try on this kernel, strongest first. With root, a user
// of its own for each run keeps the script from writing what root owns and
// makes the limit of processes count, which the kernel does not hold root to.
func guards(root bool, landlock int) []*guard {
	var all []*guard
	add := func(g guard) {
		if landlock > 0 {
			locked := g
			locked.landlock = landlock
			all = append(all, &locked)
		}
		all = append(all, &g)
	}
	if root {
		add(guard{mode: modeInit, flags: namespaces, users: newUserPool()})
		add(guard{mode: modeInit, flags: namespaces})
	}
	add(guard{mode: modeInit, flags: namespaces | unix.CLONE_NEWUSER, userNS: true})
	add(guard{mode: modeReaper})
	add(guard{mode: modeGroup})
	return all
}

// findGuard takes the strongest guard under which an interpreter runs a script.
func (r *Runner) findGuard(ctx context.Context, p *python) (*guard, error) {
	return r.firstGuard(ctx, p, guards(os.Geteuid() == 0, landlockVersion()))
}

func (r *Runner) firstGuard(ctx context.Context, p *python, all []*guard) (*guard, error) {
	var errs []error
	for _, g := range all {
		err := r.try(ctx, p, g)
		if err == nil {
			return g, nil
		}
		errs = append(errs, fmt.Errorf("%v: %w", g, err))
	}
	return nil, errors.Join(errs...)
}

// try runs a script that reads data, writes to ./work and starts a process, the
// things that a guard that is too strict for this machine would spoil.
func (r *Runner) try(ctx context.Context, p *python, g *guard) error {
	folder, err := os.MkdirTemp(r.opts.TempDir, "openskill-try-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	const source = "import json, os\nopen('work/a', 'w').close()\nos.listdir('data')\npid = os.fork()\n" +
		"if not pid: os._exit(0)\nos.wait()\nprint('ok')\n"
	name := filepath.Join(folder, "try.py")
	if err := os.WriteFile(name, []byte(source), 0o600); err != nil {
		return err
	}
	ctx, stop := context.WithTimeoutCause(ctx, askTime, errTimeout)
	defer stop()
	reply, err := r.run(ctx, p, g, &skill.Call{
		Folder: folder, Grants: skill.Grants{Data: folder, Scratch: true},
		Limits: skill.Limits{Timeout: askTime, Memory: 256 << 20, Output: 64 << 10, Scratch: 1 << 20},
	}, name)
	if err != nil {
		return err
	}
	if reply.Code != "" || string(reply.Stdout) != "ok\n" {
		return fmt.Errorf("%s %s, exit code %d, %.300q", reply.Code, reply.Message, reply.ExitCode, reply.Stderr)
	}
	return nil
}

// execute runs the job and returns when nothing of it is left.
func (j *job) execute(ctx context.Context, g *guard) (*ending, error) {
	type result struct {
		end *ending
		err error
	}
	done := make(chan result, 1)
	go func() {
		// The parent-death signal is sent when the thread that started the
		// child ends, so it is kept for as long as the child. And Landlock is
		// an attribute of a thread: it is set on this one, inherited by the
		// child, and ends with the thread, because it is never unlocked. The
		// runtime makes no other thread out of a locked one.
		runtime.LockOSThread()
		end, err := j.start(ctx, g)
		if g.landlock == 0 {
			runtime.UnlockOSThread()
		}
		done <- result{end, err}
	}()
	r := <-done
	return r.end, r.err
}

func (j *job) start(ctx context.Context, g *guard) (*ending, error) {
	cmd := &exec.Cmd{
		Path: j.python.Path, Args: j.argv(g.mode, g.landlock > 0 && g.userNS), Env: []string{}, Dir: "/",
		Stdin: bytes.NewReader(j.stdin), WaitDelay: 200 * time.Millisecond,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: g.flags},
	}
	extra := make([]*os.File, 3) // descriptors 3, 4 and 5 of the child
	defer func() {
		for _, f := range extra {
			if f != nil {
				f.Close() //nolint:errcheck,gosec // the child has its own
			}
		}
	}()
	report, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer report.Close() //nolint:errcheck // read only
	extra[0] = w

	if g.userNS {
		uid, gid := os.Geteuid(), os.Getegid()
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	}
	if g.users != nil {
		uid := g.users.take()
		defer g.users.give(uid)
		// The capability to read what others may not keeps folders usable that
		// are closed to all but root; Landlock then says which folders.
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_DAC_READ_SEARCH}
		if j.work != "" {
			if err := os.Chown(j.work, int(uid), int(uid)); err != nil {
				return nil, err
			}
		}
		// The capability comes into force with the exec, which has to find the
		// interpreter without it: it may be in a closed folder, too.
		if extra[2], err = os.Open(j.python.Path); err != nil {
			return nil, err
		}
		cmd.Path = "/proc/self/fd/5"
	}
	if g.landlock > 0 {
		if extra[1], err = j.ruleset(g.landlock); err != nil {
			return nil, err
		}
		// With a user namespace the runtime writes the child's id maps from
		// this thread, which Landlock would refuse; then boot.py does it.
		if !g.userNS {
			if err := restrictThread(extra[1]); err != nil {
				return nil, err
			}
		}
	}
	cmd.ExtraFiles = extra
	return j.wait(ctx, g, cmd, report, w)
}

// wait starts the process and stays until it and its descendants are gone.
func (j *job) wait(ctx context.Context, g *guard, cmd *exec.Cmd, report, w *os.File) (*ending, error) {
	end := &ending{}
	h := &holder{mode: g.mode, reported: make(chan struct{}), gone: make(chan struct{})}
	end.stdout = &capped{max: j.limits.Output, full: func() { h.stop(skill.OutputLimit) }}
	end.stderr = &capped{max: j.limits.Output, full: func() { h.stop(skill.OutputLimit) }}
	cmd.Stdout, cmd.Stderr = end.stdout, end.stderr

	h.mu.Lock() // output may arrive before the process is known
	err := cmd.Start()
	h.process = cmd.Process
	h.mu.Unlock()
	if err != nil {
		return nil, err
	}
	w.Close() //nolint:errcheck,gosec // the child has its own

	var work sync.WaitGroup
	work.Go(func() {
		b, _ := io.ReadAll(io.LimitReader(report, 64))
		var status, peak uint64
		if n, _ := fmt.Sscanf(string(b), "%d %d\n", &status, &peak); n == 2 {
			end.reported, end.status, end.peak = true, syscall.WaitStatus(status), peak //nolint:gosec // 16 bits
			close(h.reported)
		}
	})
	work.Go(func() { h.clear() })
	work.Go(func() { j.watch(ctx, h) })

	// The error says how the supervisor ended; what counts is its report.
	_ = cmd.Wait()
	close(h.gone)
	_ = report.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	work.Wait()
	end.stopped = h.reason
	end.peak = max(end.peak, h.peak)
	return end, nil
}

// scratchEvery is how often a run's files are added up. Each file alone is held
// to the cap by the kernel; this is for many.
const scratchEvery = 10 * time.Millisecond

// watch ends the run when its context does or its files are too many.
func (j *job) watch(ctx context.Context, h *holder) {
	var tick <-chan time.Time
	if j.work != "" {
		t := time.NewTicker(scratchEvery)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-h.gone:
			return
		case <-ctx.Done():
			code := skill.Cancelled
			if errors.Is(context.Cause(ctx), errTimeout) {
				code = skill.Timeout
			}
			h.stop(code)
			return
		case <-tick:
			if filled(j.work, j.limits.Scratch) != nil {
				h.stop(skill.OutputLimit)
				return
			}
		}
	}
}

// holder ends the processes of one run.
type holder struct {
	mode     int
	reported chan struct{} // closed when the script itself has ended
	gone     chan struct{} // closed when the supervisor has

	mu      sync.Mutex
	process *os.Process // the supervisor
	reason  skill.Code  // why the host ended the run
	peak    uint64      // bytes, seen at the end
}

// stop ends the run, for the first reason that is given.
func (h *holder) stop(why skill.Code) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason != "" || h.process == nil {
		return
	}
	h.reason = why
	h.peak = peakBelow(h.process.Pid)
	h.kill()
}

func (h *holder) kill() {
	switch h.mode {
	case modeInit:
		// The kernel kills the namespace with its init, and Wait returns when
		// the last process in it is gone.
		_ = h.process.Kill()
	case modeReaper:
		killBelow(h.process.Pid)
	case modeGroup:
		_ = syscall.Kill(-h.process.Pid, syscall.SIGKILL)
	}
}

// graceForReaper is how long descendants may take to vanish before the
// supervisor itself is killed.
const graceForReaper = 2 * time.Second

// clear ends what the script left behind, where the kernel does not.
func (h *holder) clear() {
	if h.mode == modeInit {
		return
	}
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	var since time.Time
	for {
		select {
		case <-h.gone:
			return
		case <-again.C:
		}
		h.mu.Lock()
		over := h.reason != ""
		select {
		case <-h.reported:
			over = true
		default:
		}
		if over {
			if since.IsZero() {
				since = time.Now()
			}
			h.kill()
			if time.Since(since) > graceForReaper {
				_ = h.process.Kill()
			}
		}
		h.mu.Unlock()
	}
}

// userPool gives out user ids from the range that systemd keeps for users that
// live as long as a service. It begins somewhere, so that two hosts on one
// machine rarely use the same.
type userPool struct {
	mu   sync.Mutex
	next uint32
	used map[uint32]bool
}

const firstUser, lastUser = 61184, 65519

func newUserPool() *userPool {
	return &userPool{next: firstUser + rand.Uint32N(lastUser-firstUser), used: map[uint32]bool{}}
}

func (p *userPool) take() uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range lastUser - firstUser {
		if p.next++; p.next > lastUser {
			p.next = firstUser
		}
		if !p.used[p.next] {
			break
		}
	}
	p.used[p.next] = true
	return p.next
}

func (p *userPool) give(uid uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, uid)
}
