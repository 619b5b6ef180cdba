package cli

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// guard is one way to hold processes. Which ways work differs by kernel,
// container and user; findGuard tries them, strongest first.
type guard struct {
	mode     int       // of boot.py
	flags    uintptr   // namespaces
	users    *userPool // each run under a user of its own; nil: the host's user
	userNS   bool      // namespaces by way of a user namespace, without root
	readonly bool      // all files but those of ./work, by a mount namespace
	counts   bool      // the limit of processes is one for each run
	landlock int       // version of the kernel's Landlock in use; 0: none
}

const namespaces = unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC

// guards are the ways to try on this kernel, strongest first. With root, a user
// of its own for each run keeps the script from writing what root owns and
// makes the limit of processes count, which the kernel does not hold root to (in
// a user namespace neither). A script that runs as the owner of files could
// still change their modes and times under Landlock; a mount namespace in which
// all is read-only keeps it from that.
func guards(root bool, landlock int) []*guard {
	var all []*guard
	add := func(g guard) {
		g.landlock = landlock // where the kernel has it, there is no run without it
		all = append(all, &g)
	}
	addBoth := func(g guard) {
		mounts := g
		mounts.readonly, mounts.flags = true, g.flags|unix.CLONE_NEWNS
		add(mounts)
		add(g)
	}
	if root {
		add(guard{mode: modeInit, flags: namespaces, users: newUserPool(), counts: true})
		addBoth(guard{mode: modeInit, flags: namespaces})
	}
	addBoth(guard{mode: modeInit, flags: namespaces | unix.CLONE_NEWUSER, userNS: true, counts: !root && countsInNamespaces()})
	add(guard{mode: modeReaper})
	add(guard{mode: modeGroup})
	return all
}

// allGuards are the guards to try, strongest first.
func allGuards() []*guard { return guards(os.Geteuid() == 0, landlockVersion()) }

// countsInNamespaces reports whether the kernel, from 5.14 on, counts the
// processes of a user in each user namespace apart. Before, the limit would
// count the user's processes on the whole machine.
func countsInNamespaces() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	major, rest, _ := strings.Cut(unix.ByteSliceToString(u.Release[:]), ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, _ := strconv.Atoi(major)
	b, _ := strconv.Atoi(minor)
	return a > 5 || a == 5 && b >= 14
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
	// Landlock forbids mounting. And with a user namespace the runtime writes
	// the child's id maps from this thread, which Landlock would refuse. Then
	// boot.py restricts itself.
	onThread := g.landlock > 0 && !g.userNS && !g.readonly
	cmd := &exec.Cmd{
		Path: j.python.Path, Args: j.argv(asked{g.mode, g.readonly, g.landlock > 0 && !onThread, g.counts}), Env: j.environ(), Dir: "/",
		Stdin: bytes.NewReader(j.stdin), WaitDelay: pipeDelay(g.mode),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: g.flags},
	}
	extra := make([]*os.File, 3) // descriptors 3, 4 and 5 of the child
	defer func() {
		for _, f := range extra {
			if f != nil {
				_ = f.Close()
			}
		}
	}()
	report, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer report.Close()
	extra[0] = w

	if g.userNS {
		uid, gid := os.Geteuid(), os.Getegid()
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		if g.readonly {
			cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // within that namespace; dropped by boot.py
		}
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
		if onThread {
			if err := restrictThread(extra[1]); err != nil {
				return nil, err
			}
		}
	}
	cmd.ExtraFiles = extra
	return j.wait(ctx, g.mode, cmd, report, w)
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
	return &userPool{next: firstUser + rand.Uint32N(lastUser-firstUser), used: map[uint32]bool{}} //nolint:gosec // so that hosts seldom meet, no secret
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
