package workers

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// spawner starts processes from one thread that lives as long as it does: the
// signal on the death of the parent is sent when the thread ends that started the child.
type spawner struct {
	once sync.Once
	work chan func()
	stop chan struct{}
	end  sync.Once

	together bool // the kernel refuses mount namespaces; of that thread alone
}

func newSpawner() *spawner { return &spawner{work: make(chan func()), stop: make(chan struct{})} }

func (s *spawner) start(cmd *exec.Cmd) error {
	s.once.Do(func() {
		keepInherited()
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
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	select {
	case s.work <- func() { done <- s.apart(cmd) }:
		return <-done
	case <-s.stop:
		return os.ErrClosed
	}
}

// close lets the thread go; processes that are left end with it or have ended.
func (s *spawner) close() { s.end.Do(func() { close(s.stop) }) }

// keepInherited keeps descriptors that this process was started with, beside the three that
// every process has, from its own children: Go closes in them what it has opened itself,
// and whatever a shell or supervisor left open would go on into a worker, which is to have
// its channel alone.
func keepInherited() {
	const first = 3
	if unix.CloseRange(first, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	list, _ := os.ReadDir("/proc/self/fd") // before Linux 5.11; without it there is no other way
	for _, e := range list {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
}

// link is the host's end of the two connections that a worker is started with: one
// for what it is told beside calls, and one by which it is handed lanes.
type link struct {
	conn  stream
	lanes *net.UnixConn
}

// newLink makes one, and the ends that the child gets.
func newLink() (*link, []*os.File, error) {
	conn, told, err := socketPair(unix.SOCK_STREAM)
	if err != nil {
		return nil, nil, err
	}
	theirs := []*os.File{os.NewFile(uintptr(told), "host")}
	ours, handed, err := socketPair(unix.SOCK_SEQPACKET)
	if err == nil {
		theirs = append(theirs, os.NewFile(uintptr(handed), "lanes"))
		var lanes *net.UnixConn
		if lanes, err = unixConn(ours); err == nil {
			return &link{conn: conn, lanes: lanes}, theirs, nil
		}
	}
	_ = conn.Close()
	for _, f := range theirs {
		_ = f.Close()
	}
	return nil, nil, err
}

// unixConn makes a connection of a socket, which it takes.
func unixConn(f *os.File) (*net.UnixConn, error) {
	c, err := net.FileConn(f)
	_ = f.Close() // FileConn has its own
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, errors.New("worker: a descriptor is not what hands over lanes")
	}
	return u, nil
}

// open hands the worker one end of a new connection and gives the other.
func (l *link) open() (stream, error) {
	ours, theirs, err := socketPair(unix.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	_ = l.lanes.SetWriteDeadline(time.Now().Add(patience))
	_, _, err = l.lanes.WriteMsgUnix([]byte{0}, unix.UnixRights(theirs), nil)
	_ = unix.Close(theirs) // the worker has its own
	if err != nil {
		_ = ours.Close()
		return nil, fmt.Errorf("hand over a connection: %w", err)
	}
	return ours, nil
}

func (l *link) close() { _, _ = l.conn.Close(), l.lanes.Close() }

// socketPair makes two ends that the runtime can wait for. Theirs is a bare
// descriptor: a file that gives its own away can no longer be waited for.
func socketPair(kind int) (ours *os.File, theirs int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, 0, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "worker"), fds[1], nil
}

// Link is a worker's end of what it was started with.
type Link struct {
	conn  stream
	lanes *os.File
}

// The descriptors that a worker begins with, beside those that every process has.
const (
	told   = 3 // what it is told beside calls
	handed = 4 // by which it is handed lanes; the only one that its filter lets it ask
)

// Inherited gives that end, from the descriptors of this process. It is called before
// the process is confined.
func Inherited() (*Link, error) {
	for _, fd := range []int{told, handed} {
		if err := unix.SetNonblock(fd, true); err != nil {
			return nil, os.NewSyscallError("fcntl", err)
		}
		unix.CloseOnExec(fd)
	}
	return &Link{conn: os.NewFile(told, "host"), lanes: os.NewFile(handed, "lanes")}, nil
}

// Close ends it. It may be called twice.
func (l *Link) Close() error {
	_, _ = l.conn.Close(), l.lanes.Close()
	return nil
}

// accept waits for the next lane.
func (l *Link) accept() (stream, error) {
	raw, err := l.lanes.SyscallConn()
	if err != nil {
		return nil, err
	}
	var (
		b          [1]byte
		n, got     int
		flags      int
		oob        = make([]byte, unix.CmsgSpace(4))
		receiveErr error
	)
	err = raw.Read(func(fd uintptr) bool {
		n, got, flags, _, receiveErr = unix.Recvmsg(int(fd), b[:], oob, unix.MSG_CMSG_CLOEXEC)
		return !errors.Is(receiveErr, unix.EAGAIN) && !errors.Is(receiveErr, unix.EINTR)
	})
	switch {
	case err != nil:
		return nil, err
	case receiveErr != nil:
		return nil, os.NewSyscallError("recvmsg", receiveErr)
	case n == 0:
		return nil, io.EOF
	case flags&unix.MSG_CTRUNC != 0:
		return nil, errFrame
	}
	all, err := unix.ParseSocketControlMessage(oob[:got])
	if err != nil || len(all) != 1 {
		return nil, errFrame
	}
	fds, err := unix.ParseUnixRights(&all[0])
	if err != nil || len(fds) != 1 {
		return nil, errFrame
	}
	return os.NewFile(uintptr(fds[0]), "lane"), nil
}
