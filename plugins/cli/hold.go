//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"openskill/sdk/skill"
)

const (
	sigXCPU     = syscall.SIGXCPU
	openFlags   = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	folderFlags = syscall.O_DIRECTORY | openFlags
)

// pipeDelay is how long reading what the script printed may go on once the
// supervisor has ended. Where no process can get away the end is certain to come
// and the delay is for a machine so busy that the reader does not get its turn.
// With a process group one that got away may hold the streams for ever.
func pipeDelay(mode int) time.Duration {
	if mode == modeGroup {
		return time.Second
	}
	return 10 * time.Second
}

// firstGuard takes the first of all under which the interpreter runs a script.
func (r *machine) firstGuard(ctx context.Context, p *python, all []*guard) (*guard, error) {
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
func (r *machine) try(ctx context.Context, p *python, g *guard) error {
	folder, err := os.MkdirTemp(r.opts.TempDir, tryPrefix)
	if err != nil {
		return err
	}
	defer hold(folder)()
	defer os.RemoveAll(folder)
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
	}, name, false)
	if err != nil {
		return err
	}
	if reply.Code != "" || string(reply.Stdout) != "ok\n" {
		return fmt.Errorf("%s %s, exit code %d, %.300q", reply.Code, reply.Message, reply.ExitCode, reply.Stderr)
	}
	return nil
}

// supervisor is more than an interpreter has resident that is about to execute a file: the
// kernel's count of that process begins with it.
const supervisor = 24 << 20

// wait starts the process and stays until it and its descendants are gone.
func (j *job) wait(ctx context.Context, mode int, cmd *exec.Cmd, report, w *os.File) (*ending, error) {
	end := &ending{}
	if j.program {
		end.least = supervisor
	}
	h := &holder{mode: mode, reported: make(chan struct{}), gone: make(chan struct{})}
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
	_ = w.Close()

	var work sync.WaitGroup
	work.Go(func() {
		b, _ := io.ReadAll(io.LimitReader(report, 64))
		var status, peak uint64
		if n, _ := fmt.Sscanf(string(b), "%d %d\n", &status, &peak); n == 2 {
			end.reported, end.status, end.peak = true, syscall.WaitStatus(status), peak
			close(h.reported)
		}
	})
	work.Go(func() { h.clear() })
	work.Go(func() { j.watch(ctx, h) })

	// Other errors say how the supervisor ended; what counts is its report.
	err = cmd.Wait()
	close(h.gone)
	_ = report.SetReadDeadline(time.Now().Add(pipeDelay(mode)))
	work.Wait()
	if errors.Is(err, exec.ErrWaitDelay) && mode != modeGroup {
		return nil, err // what was printed may be incomplete
	}
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

// stop ends the run, for the first reason that is given. A script that has ended
// by itself is not ended again, though what it started may still be dying.
func (h *holder) stop(why skill.Code) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason != "" || h.process == nil || closed(h.reported) || closed(h.gone) {
		return
	}
	h.reason = why
	h.peak = peakBelow(h.process.Pid)
	h.kill()
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
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
		if h.reason != "" || closed(h.reported) {
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
