package worker

import (
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// spawner starts processes from one thread that lives as long as it does: the
// signal on the death of the parent is sent when the thread ends that started the child.
type spawner struct {
	once sync.Once
	work chan func()
	stop chan struct{}
	end  sync.Once
}

func newSpawner() *spawner { return &spawner{work: make(chan func()), stop: make(chan struct{})} }

func (s *spawner) start(cmd *exec.Cmd) error {
	s.once.Do(func() {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for {
				select {
				case f := <-s.work:
					f()
				case <-s.stop:
					return
				}
			}
		}()
	})
	done := make(chan error, 1)
	select {
	case s.work <- func() { done <- cmd.Start() }:
		return <-done
	case <-s.stop:
		return os.ErrClosed
	}
}

// close lets the thread go; processes that are left end with it or have ended.
func (s *spawner) close() { s.end.Do(func() { close(s.stop) }) }

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// socketPair makes a channel: our end, and the one that a child gets.
func socketPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "worker"), os.NewFile(uintptr(fds[1]), "host") //nolint:gosec // descriptors
	conn, err := net.FileConn(ours)
	_ = ours.Close() // FileConn has its own
	if err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return conn, theirs, nil
}

// Inherited gives the channel of a worker, from the descriptor that it was started with.
func Inherited() (net.Conn, error) {
	f := os.NewFile(3, "host")
	defer f.Close() //nolint:errcheck // FileConn has its own
	return net.FileConn(f)
}
