package workers

import (
	"fmt"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The filter of system calls is written here, and not taken from a library: what a
// worker needs is few calls by number, and six of them by an argument. In the
// library that was looked at (elastic/go-seccomp-bpf 1.6.0) a call whose argument
// does not match is compared on with the argument in place of its number.

// rule allows a system call, if all of its tests hold.
type rule struct {
	nr    uintptr
	tests []test
}

// test looks at one half of an argument, the low one if high is not set: under a mask
// it must have a value. Numbers and flags are in the low half, which is all that the
// kernel takes of them; of an address both halves count.
type test struct {
	arg         uint32
	high        bool
	mask, value uint32
}

const whole = ^uint32(0)

// is are the tests that the low half of an argument is this.
func is(arg, value uint32) []test { return []test{{arg: arg, mask: whole, value: value}} }

// isNull are the tests that an argument is no address.
func isNull(arg uint32) []test {
	return []test{{arg: arg, mask: whole}, {arg: arg, high: true, mask: whole}}
}

// anyOf are rules that allow a call where one of values is the whole argument.
func anyOf(nr uintptr, arg uint32, values ...uint32) []rule {
	rules := make([]rule, len(values))
	for i, v := range values {
		rules[i] = rule{nr, is(arg, v)}
	}
	return rules
}

const (
	// pagemapScan is how images ask which pages a run has written: see wasm/image.
	pagemapScan = 0xc0606610
	prSetVMA    = 0x53564d41 // names of Go's memory

	// thread are the flags with which a thread is made, and threadToo those that a C
	// library adds.
	thread    = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD
	threadToo = unix.CLONE_SETTLS | unix.CLONE_PARENT_SETTID | unix.CLONE_CHILD_SETTID | unix.CLONE_CHILD_CLEARTID | unix.CLONE_DETACHED
)

// rules are what a worker, or a compiler, may do.
func rules(writes bool) []rule {
	plain := []uintptr{
		// memory; that code can be made executable is what a compiler's runtime is for
		unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE, unix.SYS_MREMAP, unix.SYS_BRK,
		unix.SYS_MEMFD_CREATE, unix.SYS_MEMBARRIER,
		// threads and their signals
		unix.SYS_FUTEX, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY,
		unix.SYS_GETTID, unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_SIGALTSTACK, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK,
		unix.SYS_RT_SIGRETURN, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_RESTART_SYSCALL, unix.SYS_GETCPU,
		// time and chance
		unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_NANOSLEEP, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRANDOM,
		// descriptors that there are; channels are read and written, and of what only
		// sockets can, a worker needs to be handed lanes
		unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_CLOSE, unix.SYS_LSEEK,
		unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_PIPE2, unix.SYS_EVENTFD2,
		unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_PPOLL, unix.SYS_FTRUNCATE,
		// files that Landlock lets it see
		unix.SYS_FSTAT, unix.SYS_NEWFSTATAT, unix.SYS_STATX, unix.SYS_GETDENTS64, unix.SYS_READLINKAT, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_FSTATFS,
		// to narrow Landlock further
		unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF,
		unix.SYS_GETEUID, unix.SYS_GETUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_UNAME, unix.SYS_SYSINFO, unix.SYS_GETRUSAGE,
	}
	plain = append(plain, ofProcessor...)
	if writes {
		plain = append(plain, unix.SYS_OPENAT, unix.SYS_MKDIRAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_UNLINKAT, unix.SYS_FSYNC,
			unix.SYS_FDATASYNC, unix.SYS_FCHMOD, unix.SYS_FCHMODAT)
	}
	all := make([]rule, 0, len(plain)+16)
	for _, nr := range plain {
		all = append(all, rule{nr: nr})
	}
	if !writes {
		// A file is opened to be read; lanes come by one descriptor.
		all = append(all, rule{unix.SYS_RECVMSG, is(0, handed)}, rule{unix.SYS_OPENAT, []test{{arg: 2, mask: unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC | unix.O_APPEND, value: unix.O_RDONLY}}})
	}
	all = append(all,
		rule{unix.SYS_CLONE, []test{{arg: 0, mask: ^uint32(threadToo), value: thread}}}, // no process, and no namespace
		rule{unix.SYS_IOCTL, is(1, pagemapScan)},
		// Go sends signals to its own threads.
		rule{unix.SYS_TGKILL, is(0, uint32(unix.Getpid()))},
		// Limits are asked for and not set, and those of this process: whoever has the same
		// user could set the host's.
		rule{unix.SYS_PRLIMIT64, append(is(0, 0), isNull(2)...)},
	)
	// Not who is told of a descriptor's events, and by which signal: that is a way to
	// send any signal to any process of the same user. Nor leases and locks, for which
	// others wait.
	all = append(all, anyOf(unix.SYS_FCNTL, 1, unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL,
		unix.F_ADD_SEALS, unix.F_GET_SEALS)...)
	return append(all, anyOf(unix.SYS_PRCTL, 0, unix.PR_SET_NO_NEW_PRIVS, prSetVMA, unix.PR_SET_NAME)...)
}

// What is done with other calls: most fail, as they do where a kernel lacks them.
// Those that nothing of ours ever makes, and that somebody would make who runs code
// of his own here, end the process, which the host records.
var fatal = []uintptr{
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
	unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT4, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_ADD_KEY, unix.SYS_KEYCTL, unix.SYS_KILL, unix.SYS_TKILL,
	unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_GETFD, unix.SYS_SETUID, unix.SYS_CAPSET,
}

// Offsets in struct seccomp_data of the kernel's include/uapi/linux/seccomp.h.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16 // eight bytes each, little-endian: the low half comes first
)

// program is the filter as a program of the kernel's packet filter.
func program(allowed []rule) []bpf.Instruction {
	deny := uint32(unix.SECCOMP_RET_ERRNO | unix.EPERM)
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS}, // another processor's way of calling
	}
	for _, r := range allowed {
		// Each rule begins with the number and either answers or goes on to the next.
		n := 1 // the answer
		for range r.tests {
			n += 4
		}
		p = append(p,
			bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(r.nr), SkipFalse: uint8(n)},
		)
		for i, t := range r.tests {
			after := n - 4*(i+1) // instructions behind this test
			at := offsetArgs + 8*t.arg
			if t.high {
				at += 4
			}
			p = append(p,
				bpf.LoadAbsolute{Off: at, Size: 4},
				bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: t.mask},
				bpf.JumpIf{Cond: bpf.JumpEqual, Val: t.value, SkipTrue: 1},
				bpf.Jump{Skip: uint32(after)},
			)
		}
		p = append(p, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
	}
	p = append(p, bpf.LoadAbsolute{Off: offsetNumber, Size: 4})
	for _, nr := range fatal {
		p = append(p,
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(nr), SkipFalse: 1},
			bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		)
	}
	// Go and the C library take the older call where this one is not there.
	return append(p,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_CLONE3, SkipFalse: 1},
		bpf.RetConstant{Val: uint32(unix.SECCOMP_RET_ERRNO | unix.ENOSYS)},
		bpf.RetConstant{Val: deny},
	)
}

// filter puts all threads of this process under the filter.
func filter(writes bool) (Protection, error) {
	p := Protection{Name: "seccomp"}
	raw, err := bpf.Assemble(program(rules(writes)))
	if err != nil {
		return p, fmt.Errorf("worker: the filter of system calls: %w", err)
	}
	code := make([]unix.SockFilter, len(raw))
	for i, in := range raw {
		code[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return p, fmt.Errorf("worker: no_new_privs: %w", err)
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog))) //nolint:gosec // the kernel reads it
	if errno == 0 {
		p.On, p.Detail = true, fmt.Sprintf("%d system calls allowed; no processes, sockets or files", len(allowedNumbers(rules(writes))))
		return p, nil
	}
	if errno == unix.ENOSYS || errno == unix.EINVAL {
		p.Detail = "this kernel cannot filter system calls for all threads"
		return p, nil
	}
	return p, fmt.Errorf("worker: seccomp: %w", errno)
}

func allowedNumbers(rs []rule) map[uintptr]bool {
	n := map[uintptr]bool{}
	for _, r := range rs {
		n[r.nr] = true
	}
	return n
}
