package workers

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"openskill/internal/musttest"
)

// TestFilter asks the filter of system calls, as a program of the packet filter, what
// it says of calls by number and arguments.
func TestFilter(t *testing.T) {
	const (
		allow = uint32(unix.SECCOMP_RET_ALLOW)
		deny  = uint32(unix.SECCOMP_RET_ERRNO | unix.EPERM)
		kill  = uint32(unix.SECCOMP_RET_KILL_PROCESS & 0xffffffff)
		other = uint32(unix.SECCOMP_RET_ERRNO | unix.ENOSYS)
	)
	pid := uint64(unix.Getpid())
	for _, c := range []struct {
		name   string
		writes bool
		arch   uint32
		nr     uint32
		args   []uint64
		want   uint32
	}{
		{"read", false, auditArch, unix.SYS_READ, nil, allow},
		{"open to read", false, auditArch, unix.SYS_OPENAT, []uint64{0, 0, unix.O_RDONLY | unix.O_CLOEXEC}, allow},
		{"open to write", false, auditArch, unix.SYS_OPENAT, []uint64{0, 0, unix.O_WRONLY}, deny},
		{"open to read and write", false, auditArch, unix.SYS_OPENAT, []uint64{0, 0, unix.O_RDWR}, deny},
		{"open with both bits", false, auditArch, unix.SYS_OPENAT, []uint64{0, 0, unix.O_ACCMODE}, deny},
		{"create", false, auditArch, unix.SYS_OPENAT, []uint64{0, 0, unix.O_CREAT}, deny},
		{"truncate", false, auditArch, unix.SYS_OPENAT, []uint64{0, 0, unix.O_TRUNC}, deny},
		{"a compiler opens to write", true, auditArch, unix.SYS_OPENAT, []uint64{0, 0, unix.O_WRONLY | unix.O_CREAT}, allow},
		{"openat2, whose flags cannot be seen", false, auditArch, unix.SYS_OPENAT2, nil, deny},
		{"a thread", false, auditArch, unix.SYS_CLONE, []uint64{thread}, allow},
		{"a process", false, auditArch, unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, deny},
		{"a process that shares memory", false, auditArch, unix.SYS_CLONE, []uint64{unix.CLONE_VM | uint64(unix.SIGCHLD)}, deny},
		{"a thread of the C library", false, auditArch, unix.SYS_CLONE, []uint64{thread | unix.CLONE_SETTLS | unix.CLONE_PARENT_SETTID | unix.CLONE_CHILD_CLEARTID}, allow},
		{"a thread in a namespace of its own", false, auditArch, unix.SYS_CLONE, []uint64{thread | unix.CLONE_NEWNET}, deny},
		{"a thread that the host is told of", false, auditArch, unix.SYS_CLONE, []uint64{thread | unix.CLONE_PARENT}, deny},
		{"clone3", false, auditArch, unix.SYS_CLONE3, nil, other},
		{"a program", false, auditArch, unix.SYS_EXECVE, nil, kill},
		{"a socket", false, auditArch, unix.SYS_SOCKET, nil, deny},
		{"a connection", false, auditArch, unix.SYS_CONNECT, nil, kill},
		{"the pages that were written", false, auditArch, unix.SYS_IOCTL, []uint64{7, pagemapScan}, allow},
		{"another ioctl", false, auditArch, unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, deny},
		{"a signal to a thread of its own", false, auditArch, unix.SYS_TGKILL, []uint64{pid, 1, uint64(unix.SIGURG)}, allow},
		{"a signal to somebody else", false, auditArch, unix.SYS_TGKILL, []uint64{pid + 1, 1, 9}, deny},
		{"kill", false, auditArch, unix.SYS_KILL, []uint64{1, 9}, kill},
		{"limits asked for", false, auditArch, unix.SYS_PRLIMIT64, []uint64{0, 7, 0, 1}, allow},
		{"limits set", false, auditArch, unix.SYS_PRLIMIT64, []uint64{0, 7, 1, 0}, deny},
		{"limits set, from an address with a low half of zeros", false, auditArch, unix.SYS_PRLIMIT64, []uint64{0, 7, 1 << 32, 0}, deny},
		{"limits of somebody else", false, auditArch, unix.SYS_PRLIMIT64, []uint64{pid + 1, 7, 0, 1}, deny},
		{"a copy of a descriptor", false, auditArch, unix.SYS_FCNTL, []uint64{3, unix.F_DUPFD_CLOEXEC, 0}, allow},
		{"a seal", false, auditArch, unix.SYS_FCNTL, []uint64{3, unix.F_ADD_SEALS, unix.F_SEAL_WRITE}, allow},
		{"who is told of events", false, auditArch, unix.SYS_FCNTL, []uint64{3, unix.F_SETOWN, pid + 1}, deny},
		{"by which signal", false, auditArch, unix.SYS_FCNTL, []uint64{3, unix.F_SETSIG, 9}, deny},
		{"a lease", false, auditArch, unix.SYS_FCNTL, []uint64{3, unix.F_SETLEASE, unix.F_RDLCK}, deny},
		{"a lock", false, auditArch, unix.SYS_FCNTL, []uint64{3, unix.F_SETLK, 1}, deny},
		{"a descriptor handed over", false, auditArch, unix.SYS_SENDMSG, nil, deny},
		{"a lane taken", false, auditArch, unix.SYS_RECVMSG, []uint64{handed}, allow},
		{"a descriptor taken", false, auditArch, unix.SYS_RECVMSG, []uint64{handed + 1}, deny},
		{"a compiler takes a descriptor", true, auditArch, unix.SYS_RECVMSG, []uint64{handed}, deny},
		{"a compiler takes much of the disk at once", true, auditArch, unix.SYS_FALLOCATE, nil, deny},
		{"a compiler makes a second name", true, auditArch, unix.SYS_LINKAT, nil, deny},
		{"no new privileges", false, auditArch, unix.SYS_PRCTL, []uint64{unix.PR_SET_NO_NEW_PRIVS, 1}, allow},
		{"a keeper of capabilities", false, auditArch, unix.SYS_PRCTL, []uint64{unix.PR_SET_KEEPCAPS, 1}, deny},
		{"another processor's way of calling", false, auditArch ^ 1, unix.SYS_READ, nil, kill},
		{"a number with a bit more", false, auditArch, unix.SYS_READ | 0x40000000, nil, deny},
		{"a number that does not exist", false, auditArch, 1 << 20, nil, deny},
	} {
		t.Run(c.name, func(t *testing.T) {
			vm := musttest.Get(bpf.NewVM(program(rules(c.writes))))(t)
			// The machine of the library reads words as the network has them.
			data := make([]byte, offsetArgs+6*8)
			binary.BigEndian.PutUint32(data[offsetNumber:], c.nr)
			binary.BigEndian.PutUint32(data[offsetArch:], c.arch)
			for i, a := range c.args {
				binary.BigEndian.PutUint32(data[offsetArgs+8*i:], uint32(a))
				binary.BigEndian.PutUint32(data[offsetArgs+8*i+4:], uint32(a>>32))
			}
			got, err := vm.Run(data)
			if err != nil || uint32(got) != c.want {
				t.Errorf("%#x, %v; want %#x", got, err, c.want)
			}
		})
	}
}
