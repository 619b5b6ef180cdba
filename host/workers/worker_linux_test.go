package workers_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"openskill/host/workers"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestMain lets this test program be a worker, too: of a runner that does what its
// input says.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "be-a-worker" {
		if err := beWorker(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "be-hostile" {
		if beHostile() != nil {
			os.Exit(3)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "be-a-compiler" {
		os.Exit(beCompiler(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "be-a-crowded-host" {
		os.Exit(beCrowdedHost(os.Args[2]))
	}
	os.Exit(m.Run())
}

func beWorker(args []string) error {
	link, err := workers.Inherited()
	if err != nil {
		return err
	}
	var c workers.Confinement
	view := ""
	for i, a := range args {
		switch a {
		case "--read":
			c.Read = append(c.Read, args[i+1])
		case "--apart":
			c.Apart = true
		case "--modules":
			view = args[i+1]
		case "--files":
			if c.Files, err = strconv.ParseUint(args[i+1], 10, 64); err != nil {
				return err
			}
		}
	}
	c.Read = append(c.Read, view)
	held, err := workers.Confine(&c)
	if err != nil {
		return err
	}
	outside := &workers.HostServices{}
	d := &workers.WorkerConfig{Runners: []skill.Runner{&obeyer{view: view, outside: outside}}, Protections: held, HostServices: outside}
	if workers.Narrows {
		d.Narrow = workers.Narrow
	}
	return workers.Serve(context.Background(), link, d)
}

const kind = skill.Kind("wasm:obey")

// obeyer is the runner of the tests' workers: standard input is what it does.
type obeyer struct {
	view    string
	outside *workers.HostServices
}

func (o *obeyer) Kind() skill.Kind { return kind }
func (o *obeyer) Close() error     { return nil }
func (o *obeyer) Prepare(context.Context, *skill.Spec) (skill.Plan, error) {
	return skill.Plan{}, errors.New("a worker was asked for a plan")
}

func (o *obeyer) Run(ctx context.Context, call *skill.Call) (*skill.Reply, error) {
	does, arg, _ := strings.Cut(string(call.Stdin), " ")
	say := func(format string, args ...any) (*skill.Reply, error) {
		return &skill.Reply{Stdout: fmt.Appendf(nil, format, args...)}, nil
	}
	switch does {
	case "say":
		return say("%s", arg)
	case "pid":
		return say("%d", os.Getpid())
	case "costly":
		r, err := say("%d", os.Getpid())
		r.Usage.StartFuel, _ = strconv.ParseUint(arg, 10, 64)
		return r, err
	case "crash":
		panic("as it was told")
	case "exit":
		os.Exit(0)
	case "hang":
		select {} // not even the end of the call ends it
	case "wait":
		<-ctx.Done()
		return &skill.Reply{Code: skill.Cancelled, Message: "the call ended"}, nil
	case "ask":
		ctx, cancel := context.WithTimeout(ctx, call.Limits.Timeout)
		defer cancel()
		return say("%s", o.outside.For(call)(ctx, []byte(arg)))
	case "give":
		over, cancel := context.WithCancel(ctx)
		cancel()
		fetch := o.outside.For(call)
		_ = fetch(over, []byte("in vain")) // the answer may have been faster
		return say("%s", fetch(ctx, []byte("again")))
	case "fail":
		return nil, &skill.Error{Op: "test.Run", Code: skill.Conflict, Subject: "it", Message: "changed", Err: errors.New("for the log")}
	case "flood":
		return &skill.Reply{Stdout: bytes.Repeat([]byte("x"), 64<<20)}, nil
	case "env":
		return say("%q", os.Environ())
	case "files":
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return say("%v", err)
		}
		return say("%d", len(entries))
	case "read":
		b, err := os.ReadFile(arg)
		if err != nil {
			return say("error: %v", err)
		}
		return say("%s", b)
	case "look":
		_, err := os.Stat(arg)
		return say("%v", err)
	case "write":
		return say("%v", os.WriteFile(arg, []byte("x"), 0o600))
	case "tell":
		fd, err := strconv.Atoi(arg)
		if err == nil {
			_, err = syscall.Write(fd, []byte("x"))
		}
		return say("%v", err)
	case "socket":
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		return say("%d %v", fd, err)
	case "connect":
		err := syscall.Connect(0, &syscall.SockaddrInet4{Port: 1, Addr: [4]byte{127, 0, 0, 1}})
		return say("%v", err)
	case "exec":
		return say("%v", syscall.Exec("/bin/true", []string{"true"}, nil))
	case "fork":
		pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if pid == 0 && errno == 0 {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
		return say("%v", errno)
	case "limit": // set a limit of the host, from an address with a low half of zeros
		const at = 1 << 32
		fd, err := unix.MemfdCreate("limit", unix.MFD_CLOEXEC)
		if err != nil {
			return say("%v", err)
		}
		_, _ = unix.Write(fd, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 4321), 4321))
		_, _, errno := syscall.RawSyscall6(syscall.SYS_MMAP, at, 4096, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_FIXED, uintptr(fd), 0)
		if errno != 0 {
			return say("%v", errno)
		}
		_, _, errno = syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(syscall.Getppid()), unix.RLIMIT_MSGQUEUE, at, 0, 0, 0)
		return say("%v", errno)
	case "signal": // have the kernel send one to the host, for an event on the channel
		_, _, errno := syscall.RawSyscall(syscall.SYS_FCNTL, 3, unix.F_SETOWN, uintptr(syscall.Getppid()))
		return say("%v", errno)
	case "eat": // and wait
		all := bytes.Repeat([]byte("x"), 400<<20)
		<-ctx.Done()
		return say("%d", len(all))
	case "keep":
		return say("%v", keepFiles(arg))
	case "file": // in memory, of so many bytes
		fd, err := unix.MemfdCreate("file", unix.MFD_CLOEXEC)
		if err != nil {
			return say("%v", err)
		}
		size, _ := strconv.Atoi(arg)
		_, atEnd := unix.Pwrite(fd, []byte("x"), int64(size)-1)
		return say("%v, %v", unix.Ftruncate(fd, int64(size)), atEnd)
	case "spin": // after the answer
		go func() {
			for n := 0; ; n++ {
				sink = n
			}
		}()
		return say("begun")
	case "threads":
		n, _ := strconv.Atoi(arg)
		made, all := make(chan struct{}), make(chan struct{})
		for range n {
			go func() {
				runtime.LockOSThread() // and it ends with the goroutine
				made <- struct{}{}
				<-all
			}()
			<-made
		}
		close(all)
		return say("%d threads", n)
	case "module":
		if b, err := os.ReadFile(filepath.Join(o.view, "code", "v", arg)); err != nil || string(b) != "made" {
			return nil, fmt.Errorf("%w: sha256:%s", skill.ErrUnusable, arg)
		}
		return say("compiled")
	case "names": // a thousand, each of them written as longest as JSON can
		reply := &skill.Reply{}
		for i := range 1000 {
			reply.Artifacts = append(reply.Artifacts, skill.Artifact{Name: strings.Repeat("\x01", 250) + fmt.Sprintf("%05d", i)})
		}
		return reply, nil
	case "files?":
		return &skill.Reply{Artifacts: []skill.Artifact{{Name: "a.txt", Data: []byte("one"), Size: 3}, {Name: `b\c.txt`, Data: []byte("two"), Size: 3}}, Stderr: []byte("said")}, nil
	}
	return say("what is %q?", does)
}

// planner is the obeyer's part in the host.
type planner struct{}

func (planner) Kind() skill.Kind { return kind }
func (planner) Close() error     { return nil }
func (planner) Prepare(context.Context, *skill.Spec) (skill.Plan, error) {
	return skill.Plan{}, nil
}

func (planner) Run(context.Context, *skill.Call) (*skill.Reply, error) {
	return nil, errors.New("a call was run in the host")
}

// command is this test program as a worker.
func command(t testing.TB) []string {
	t.Helper()
	self := musttest.Get(os.Executable())(t)
	return []string{self, "be-a-worker"}
}

func pool(t *testing.T, change func(*workers.Options)) (*workers.Pool, *workers.Runner) {
	t.Helper()
	o := workers.Options{Command: command(t), Dir: t.TempDir(), Spares: -1, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	p := musttest.Get(workers.New(o))(t)
	r := p.Runner(planner{})
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), p.Close(), p.Close()); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(o.Dir, "*")); len(left) > 0 {
			t.Errorf("workers left %q", left)
		}
	})
	return p, r
}

func callOf(tenant, does string) *skill.Call {
	return &skill.Call{
		SkillID: "obey", Tenant: tenant, Folder: "/nowhere", Stdin: []byte(does),
		Limits: skill.Limits{Timeout: 10 * time.Second, Memory: 1 << 20, Fuel: 1, Output: 1 << 20, Scratch: 1 << 20},
	}
}

func run(t *testing.T, r *workers.Runner, tenant, does string) *skill.Reply {
	t.Helper()
	reply, err := r.Run(t.Context(), callOf(tenant, does))
	if err != nil {
		t.Fatalf("%s: %v", does, err)
	}
	return reply
}

func TestCalls(t *testing.T) {
	_, r := pool(t, nil)
	if got := run(t, r, "a", "say hello"); string(got.Stdout) != "hello" || got.Code != "" {
		t.Errorf("%+v", got)
	}
	big := strings.Repeat("0123456789abcdef", 60_000)
	if got := run(t, r, "a", "say "+big); string(got.Stdout) != big {
		t.Errorf("%d bytes came back of %d", len(got.Stdout), len(big))
	}
	c := callOf("a", "files?")
	c.Grants.Scratch = true
	got, err := r.Run(t.Context(), c)
	if err != nil || len(got.Artifacts) != 2 || string(got.Artifacts[1].Data) != "two" || got.Artifacts[1].Name != `b\c.txt` || string(got.Stderr) != "said" {
		t.Errorf("%+v, %v", got, err)
	}
	c = callOf("a", "names")
	c.Grants.Scratch = true
	if got, err = r.Run(t.Context(), c); err != nil || len(got.Artifacts) != 1000 {
		t.Errorf("many files: %.200v, %v", got, err)
	}
	_, err = r.Run(t.Context(), callOf("a", "fail"))
	var e *skill.Error
	if !errors.As(err, &e) || e.Code != skill.Conflict || e.Message != "changed" || e.Subject != "it" || !strings.Contains(err.Error(), "for the log") {
		t.Errorf("%v", err)
	}
}

// TestKeys holds that calls of two tenants are in two processes, and those of one in one.
func TestKeys(t *testing.T) {
	p, r := pool(t, func(o *workers.Options) { o.Spares = 1 })
	a, b := string(run(t, r, "a", "pid").Stdout), string(run(t, r, "b", "pid").Stdout)
	if a == b {
		t.Errorf("two tenants in process %s", a)
	}
	if again := string(run(t, r, "a", "pid").Stdout); again != a {
		t.Errorf("%s, and then %s", a, again)
	}
	if s := p.Stats(); s.Crashes != 0 || s.Live < 2 {
		t.Errorf("%+v", s)
	}
}

// TestCrashes ends workers in every way in the middle of a call: the call is told,
// others go on, and the next one works.
func TestCrashes(t *testing.T) {
	_, r := pool(t, nil)
	for _, does := range []string{"crash", "exit", "flood"} {
		t.Run(does, func(t *testing.T) {
			var other sync.WaitGroup
			other.Go(func() {
				if got, err := r.Run(t.Context(), callOf("other", "say on")); err != nil || string(got.Stdout) != "on" {
					t.Errorf("another tenant: %+v, %v", got, err)
				}
			})
			got, err := r.Run(t.Context(), callOf("a", does))
			other.Wait()
			if does == "flood" { // more than its limit: no reply can be made of it
				if err == nil && got.Code == "" {
					t.Errorf("%d bytes were taken", len(got.Stdout))
				}
			} else if err != nil || got.Code != skill.WorkerCrashed {
				t.Errorf("%+v, %v", got, err)
			}
			if got := run(t, r, "a", "say back"); string(got.Stdout) != "back" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestHanging holds that a call which does not end is ended with its process, in time.
func TestHanging(t *testing.T) {
	p, r := pool(t, nil)
	pid := string(run(t, r, "a", "pid").Stdout)
	other := make(chan *skill.Reply, 1)
	go func() {
		reply, err := r.Run(context.Background(), callOf("a", "wait"))
		if err != nil {
			reply = &skill.Reply{Message: err.Error()}
		}
		other <- reply
	}()
	for p.Stats().Busy == 0 {
		time.Sleep(time.Millisecond)
	}
	c := callOf("a", "hang")
	c.Limits.Timeout = time.Second // enough to begin it on any machine: what was not begun does not hang
	began := time.Now()
	got, err := r.Run(t.Context(), c)
	if took := time.Since(began); err != nil || got.Code != skill.Timeout || took < c.Limits.Timeout || took > 5*time.Second {
		t.Errorf("%+v, %v after %s", got, err, took)
	}
	// Others of that process are told, and that it was not their doing.
	if got := <-other; got.Code != skill.WorkerCrashed || !got.Bystander {
		t.Errorf("another call of the process: %+v", got)
	}
	if again := string(run(t, r, "a", "pid").Stdout); again == pid {
		t.Error("the process that hangs is still there")
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { time.Sleep(50 * time.Millisecond); cancel() }()
	if got, err := r.Run(ctx, callOf("a", "wait")); err != nil || got.Code != skill.Cancelled {
		t.Errorf("a caller who left: %+v, %v", got, err)
	}
}

// TestKilled kills workers in mid-call, again and again, and looks at what is left.
func TestKilled(t *testing.T) {
	times := 40
	if n, err := strconv.Atoi(os.Getenv("OPENSKILL_KILLS")); err == nil {
		times = n
	}
	slowest := time.Duration(0)
	p, r := pool(t, nil)
	run(t, r, "a", "say x")
	before := descriptors(t)
	for range times {
		answer := make(chan *skill.Reply, 1)
		go func() {
			reply, err := r.Run(context.Background(), callOf("a", "wait"))
			if err != nil {
				reply = &skill.Reply{Message: err.Error()}
			}
			answer <- reply
		}()
		for p.Stats().Busy == 0 {
			time.Sleep(time.Millisecond)
		}
		killed := time.Now()
		for _, pid := range p.Stats().Pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case got := <-answer:
			slowest = max(slowest, time.Since(killed))
			if got.Code != skill.WorkerCrashed {
				t.Fatalf("%+v", got)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the call was not told")
		}
		if got := run(t, r, "a", "say on"); string(got.Stdout) != "on" {
			t.Fatalf("%+v", got)
		}
	}
	t.Logf("%d workers were killed in mid-call; the slowest answer came %s after", times, slowest)
	if after := descriptors(t); after > before+4 {
		t.Errorf("%d descriptors, and %d before", after, before)
	}
	if zombies := children(t, "Z"); zombies > 0 {
		t.Errorf("%d zombies", zombies)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries := musttest.Get(os.ReadDir("/proc/self/fd"))(t)
	return len(entries)
}

// children counts processes of this one that are in a state.
func children(t *testing.T, state string) (n int) {
	t.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[0] == state && f[1] == fmt.Sprint(os.Getpid()) {
			n++
		}
	}
	return n
}

// TestLoops holds that a key whose workers only crash gets fewer and fewer.
func TestLoops(t *testing.T) {
	p, r := pool(t, nil)
	for range 12 {
		_, _ = r.Run(t.Context(), callOf("a", "crash"))
		if _, err := r.Run(t.Context(), callOf("a", "crash")); skill.CodeOf(err) == skill.WorkerCrashed {
			var e *skill.Error
			if errors.As(err, &e) && e.Details["retry_after_ms"] == nil {
				t.Errorf("%v has no time", err)
			}
			if got := run(t, r, "b", "say on"); string(got.Stdout) != "on" {
				t.Errorf("another tenant: %+v", got)
			}
			t.Logf("refused after %d crashes", p.Stats().Crashes)
			return
		}
	}
	t.Error("never refused")
}

// TestMany holds that there are never more workers than there may be.
func TestMany(t *testing.T) {
	p, r := pool(t, func(o *workers.Options) { o.Max = 3 })
	for i := range 8 {
		run(t, r, fmt.Sprint(i), "say x")
		if n := p.Stats().Live; n > 3 {
			t.Errorf("%d workers", n)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	for i := range 3 {
		busy.Go(func() { _, _ = r.Run(ctx, callOf(fmt.Sprint(i), "wait")) })
	}
	for p.Stats().Busy < 3 {
		time.Sleep(time.Millisecond)
	}
	if got, err := r.Run(t.Context(), callOf("one more", "say x")); skill.CodeOf(err) != skill.RateLimited {
		t.Errorf("one too many: %+v, %v; %+v", got, err, p.Stats())
	}
	cancel()
	busy.Wait()
}

// TestRecycled holds that a worker ends after its calls, and none is lost with it.
func TestRecycled(t *testing.T) {
	p, r := pool(t, func(o *workers.Options) { o.Calls = 5 })
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 25 {
				if got, err := r.Run(context.Background(), callOf("a", "say x")); err != nil || string(got.Stdout) != "x" {
					t.Errorf("%+v, %v", got, err)
				}
			}
		})
	}
	all.Wait()
	if s := p.Stats(); s.Starts < 10 || s.Crashes > 0 {
		t.Errorf("%+v after 100 calls of 5 each", s)
	}
}

// TestCancelledLate holds that a call can still be cancelled long after the last
// thing that its worker was told, and that the worker goes on.
func TestCancelledLate(t *testing.T) {
	workers.LowerPatience(t, 20*time.Millisecond)
	p, r := pool(t, nil)
	pid := string(run(t, r, "a", "pid").Stdout)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if got, err := r.Run(ctx, callOf("a", "wait")); err != nil || got.Code != skill.Cancelled || !strings.Contains(got.Message, "the call ended") {
		t.Errorf("%+v, %v; want what the worker itself says of it", got, err)
	}
	if again := string(run(t, r, "a", "pid").Stdout); again != pid || p.Stats().Crashes > 0 {
		t.Errorf("%s was replaced by %s", pid, again)
	}
}

// TestCannotStart holds that a host which cannot start processes says so, and goes on
// when it can.
func TestCannotStart(t *testing.T) {
	self := musttest.Get(os.Executable())(t)
	program := filepath.Join(t.TempDir(), "program")
	_, r := pool(t, func(o *workers.Options) { o.Command = []string{program, "be-a-worker"} })
	for range 5 {
		if _, err := r.Run(t.Context(), callOf("a", "say x")); skill.CodeOf(err) != skill.RateLimited {
			t.Fatalf("without a program: %v", err)
		}
	}
	musttest.Do(t, os.Symlink(self, program))
	if got := run(t, r, "a", "say on"); string(got.Stdout) != "on" {
		t.Errorf("%+v", got)
	}
}
