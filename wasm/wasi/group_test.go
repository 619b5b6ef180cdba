package wasi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
	"openskill/wasm/wasi"
)

// family is the first process of a run, and what its others do.
type family struct {
	*guest

	fd    uint64
	out   bytes.Buffer
	close func() // before the worlds of its processes are
}

// newFamily makes a process whose others do what does says, by the name of their program.
func newFamily(t *testing.T, does map[string]func(ctx context.Context, g *guest) wasi.Exit) *family {
	t.Helper()
	root := musttest.Get(guestfs.NewTree(guestfs.Mount{Path: "/dev/process", FS: guestfs.Exchange{Asks: guestfs.Processes}}))(t)
	f := &family{}
	ctx, cancel := context.WithCancel(t.Context())
	var group *wasi.Group
	f.close = func() {
		cancel()
		if group != nil {
			group.Close()
		}
	}
	r := newRuntime(t)
	self := &wasi.Process{Args: []string{"first", "x"}, Env: []string{"A=b"}, Dir: "/"}
	cfg := wasi.Config{Root: root, Stdout: &f.out, Process: self, Group: func(first *wasi.Process) {
		group = wasi.NewGroup(ctx, first, wasi.GroupOptions{Start: func(p *wasi.Process) (*wasi.Started, guestfs.Errno) {
			do := does[p.Args[0]]
			if do == nil {
				return nil, guestfs.ENOENT
			}
			return &wasi.Started{Drop: func() {}, Run: func(ctx context.Context) (exit wasi.Exit) {
				g := newGuestRuntime(ctx, t, newRuntime(t), wasi.Config{Root: root, Process: p}, memoryPages)
				defer g.w.Leave()
				defer func() {
					if e := recover(); e != nil && e != any(errUnwound) {
						panic(e)
					}
				}()
				return do(ctx, g)
			}}, 0
		}})
	}}
	f.guest = newGuestRuntime(ctx, t, r, cfg, memoryPages)
	f.fd = f.mustOpen("dev/process", 0, rightRead|rightWrite)
	return f
}

// errUnwound ends the goroutine of a process whose run was ended in a call of the host.
var errUnwound = errors.New("unwound")

// ask sends a request and gives what it is answered.
func (f *family) ask(request string) map[string]any {
	f.t.Helper()
	if errno := f.write(f.fd, request); errno != 0 {
		f.t.Fatal(errno)
	}
	var text strings.Builder
	for {
		s := f.read(f.fd, 1000)
		if s == "" {
			break
		}
		text.WriteString(s)
	}
	answer := map[string]any{}
	if err := json.Unmarshal([]byte(text.String()), &answer); err != nil {
		f.t.Fatalf("%v: %s", err, text.String())
	}
	return answer
}

func (f *family) wants(request, want string) {
	f.t.Helper()
	if got := fmt.Sprint(f.ask(request)); got != want {
		f.t.Errorf("%s: %s, not %s", request, got, want)
	}
}

// What a guest asks that is no request, or that there is nothing for, it is told.
func TestProcessRequests(t *testing.T) {
	f := newFamily(t, map[string]func(context.Context, *guest) wasi.Exit{
		"seven": func(context.Context, *guest) wasi.Exit { return wasi.Exit{Code: 7} },
	})
	defer f.close()
	f.wants(`{"op":"self"}`, "map[args:[first x] dir:/ env:[A=b] pid:1 stdin:inherited]")
	f.wants(`{"op":"wait"}`, "map[error:ECHILD message:there is no such child process]")
	f.wants(`{"op":"kill","pid":2,"signal":9}`, "map[error:ESRCH message:there is no such process]")
	const unread = "map[error:EINVAL message:the request is not one JSON object with known fields]"
	for _, r := range []string{"x", "[]", `{"op":1}`, `{"other":1}`, `{"op":"self"} x`, `{"pid":-1.5}`, strings.Repeat("[", 100_000)} {
		f.wants(r, unread)
	}
	f.wants(`{"op":"other"}`, "map[error:EINVAL message:op is self, start, wait, kill, pipe or ready]")
	f.wants(`{"op":"start"}`, "map[error:ENOENT message:no program is named]")
	f.wants(`{"op":"start","args":["none"]}`, "map[error:ENOENT message:none: command not found]")
	f.wants(`{"op":"start","args":["seven","a\u0000b"]}`, "map[error:EINVAL message:arguments and variables have no zero bytes]")
	const stream = "map[error:EINVAL message:a stream is a number, pipe, null, or stdout for stderr]"
	f.wants(`{"op":"start","args":["seven"],"stdin":"other"}`, stream)
	f.wants(`{"op":"start","args":["seven"],"stdout":[1]}`, stream)
	f.wants(`{"op":"start","args":["seven"],"stdout":"stdout"}`, "map[error:EINVAL message:only stderr can be stdout]")
	for _, fd := range []string{"1", "3", "99", "4294967296", "18446744073709551615"} { // of stdin
		f.wants(`{"op":"start","args":["seven"],"stdin":`+fd+`}`, "map[error:EBADF message:a stream names a descriptor that is not open for it]")
	}
	f.wants(`{"op":"start","args":["seven"],"stdin":"null","stderr":"stdout"}`, "map[pid:2]")
	f.wants(`{"op":"wait","pid":3}`, "map[error:ECHILD message:there is no such child process]")
	f.wants(`{"op":"wait","block":false}`, "map[pid:0]")
	f.wants(`{"op":"wait"}`, "map[exit:7 pid:2]")
	f.wants(`{"op":"wait"}`, "map[error:ECHILD message:there is no such child process]")
}

// A pipe holds 64 KiB, ends when nobody writes, and is broken when nobody reads.
func TestPipe(t *testing.T) {
	f := newFamily(t, nil)
	defer f.close()
	pipe := func() (reads, writes uint64) {
		a := f.ask(`{"op":"pipe"}`)
		return uint64(a["read"].(float64)), uint64(a["write"].(float64))
	}
	reads, writes := pipe()
	const nonblock = 4
	for _, fd := range []uint64{reads, writes} {
		if errno := f.call("fd_fdstat_set_flags", fd, nonblock); errno != 0 {
			t.Fatal(errno)
		}
	}
	iovs, n := f.iovs(atData, 10)
	f.want(guestfs.EAGAIN, "fd_read", reads, iovs, n, atResult)
	f.want(guestfs.EBADF, "fd_read", writes, iovs, n, atResult)
	f.want(guestfs.EBADF, "fd_write", reads, iovs, n, atResult)
	f.want(guestfs.ESPIPE, "fd_seek", reads, 0, 0, atResult)
	total := 0
	for errno := guestfs.Errno(0); errno == 0; {
		if errno = f.write(writes, strings.Repeat("x", 1000)); errno == 0 {
			total += 1000
		} else if errno != guestfs.EAGAIN {
			t.Fatal(errno)
		}
	}
	if total < 64_000 || total > 66_000 {
		t.Errorf("a pipe took %d bytes", total)
	}
	got := 0
	f.want(0, "fd_close", writes)
	for s := f.read(reads, 1000); s != ""; s = f.read(reads, 1000) {
		got += len(s)
	}
	if got != 64<<10 {
		t.Errorf("%d bytes came out", got)
	}
	f.want(0, "fd_close", reads)
	reads, writes = pipe()
	f.want(0, "fd_close", reads)
	if errno := f.write(writes, "x"); errno != guestfs.EPIPE {
		t.Error(errno)
	}
	f.want(0, "fd_close", writes)

	// All pipes of a run hold 2 MiB, and have room again when one is closed.
	total, closed := 0, false
	for range 50 {
		reads, writes = pipe()
		if errno := f.call("fd_fdstat_set_flags", writes, nonblock); errno != 0 {
			t.Fatal(errno)
		}
		for range 64 {
			if f.write(writes, strings.Repeat("x", 1024)) == 0 {
				total += 1024
			}
		}
		if total == 1<<20 && !closed {
			f.want(0, "fd_close", reads) // what was in it is gone
			total, closed = total-64<<10, true
		}
	}
	if total != 2<<20 {
		t.Errorf("all pipes hold %d bytes", total)
	}
}

// A guest without poll waits for the first of several descriptors, for a child, or for a time.
func TestReady(t *testing.T) {
	f := newFamily(t, map[string]func(context.Context, *guest) wasi.Exit{
		"writes": func(_ context.Context, g *guest) wasi.Exit {
			g.write(1, "abc")
			return wasi.Exit{Code: 3}
		},
		"reads": func(_ context.Context, g *guest) wasi.Exit {
			for g.read(0, 100) != "" {
			}
			return wasi.Exit{}
		},
	})
	defer f.close()
	f.wants(`{"op":"ready","ms":0}`, "map[]")
	f.wants(`{"op":"ready","ms":1}`, "map[]")
	f.wants(`{"op":"ready","child":0,"ms":0.5}`, "map[]")
	f.wants(`{"op":"start","args":["writes"],"stdin":"null","stdout":"pipe"}`, "map[pid:2 stdout:5]")
	f.wants(`{"op":"ready","read":[5]}`, "map[read:[map[bytes:3 fd:5]]]")
	f.read(5, 100)
	f.wants(`{"op":"ready","read":[5],"child":2}`, "map[ended:true read:[map[bytes:0 fd:5]]]")
	f.wants(`{"op":"ready","child":3,"ms":0}`, "map[]")
	f.wants(`{"op":"wait"}`, "map[exit:3 pid:2]")
	f.wants(`{"op":"start","args":["reads"],"stdin":"pipe"}`, "map[pid:3 stdin:6]")
	f.wants(`{"op":"ready","write":[6],"child":3}`, "map[write:[map[bytes:65536 fd:6]]]")
	f.want(0, "fd_close", 6)
	f.wants(`{"op":"ready","child":3}`, "map[ended:true]")
	f.wants(`{"op":"ready","write":[1],"ms":1000}`, "map[write:[map[bytes:65536 fd:1]]]") // what is no pipe never waits
	const closed = "map[error:EBADF message:a descriptor to wait for is not open for it]"
	for _, r := range []string{`"read":[1]`, `"write":[5]`, `"read":[6]`, `"read":[4294967295]`} {
		f.wants(`{"op":"ready",`+r+`}`, closed)
	}
	f.wants(`{"op":"ready","read":[`+strings.Repeat("5,", 1024)+`5]}`, "map[error:EINVAL message:too many descriptors to wait for]")
	if a := f.ask(`{"op":"ready","read":[` + strings.Repeat("5,", 1023) + `4],"ms":1e300}`); len(a["read"].([]any)) != 1024 {
		t.Error(a)
	}
}

// There are bounds on how many processes live, on how many a run starts, and on descriptors.
func TestProcessBounds(t *testing.T) {
	f := newFamily(t, map[string]func(context.Context, *guest) wasi.Exit{
		"short": func(context.Context, *guest) wasi.Exit { return wasi.Exit{} },
	})
	defer f.close()
	const many = "map[error:EAGAIN message:the run has too many processes]"
	for i := 2; i <= wasi.MaxAlive; i++ {
		f.wants(`{"op":"start","args":["short"]}`, fmt.Sprintf("map[pid:%d]", i))
	}
	f.wants(`{"op":"start","args":["short"]}`, many)
	f.wants(`{"op":"wait","pid":64}`, "map[exit:0 pid:64]") // those that ended count until somebody waits for them
	f.wants(`{"op":"start","args":["short"]}`, "map[pid:65]")
	f.wants(`{"op":"start","args":["short"]}`, many)
	for i := 65; i <= wasi.MaxStarted; i++ {
		if i > 65 {
			f.wants(`{"op":"start","args":["short"]}`, fmt.Sprintf("map[pid:%d]", i))
		}
		f.ask(`{"op":"wait"}`)
	}
	f.wants(`{"op":"start","args":["short"]}`, many)
	var answer map[string]any
	for range 200 {
		if answer = f.ask(`{"op":"pipe"}`); answer["error"] != nil {
			break
		}
	}
	if fmt.Sprint(answer) != "map[error:EMFILE message:too many descriptors are open]" {
		t.Error(answer)
	}
	f.wants(`{"op":"start","args":["short"],"stdin":"pipe"}`, many)
}

// Arguments of all processes together, and requests of all open files, are bounded.
func TestBytesOfProcesses(t *testing.T) {
	f := newFamily(t, map[string]func(context.Context, *guest) wasi.Exit{
		"short": func(context.Context, *guest) wasi.Exit { return wasi.Exit{} },
	})
	defer f.close()
	big := fmt.Sprintf(`{"op":"start","args":["short","%s"]}`, strings.Repeat("x", 900<<10))
	ask := func() string { // in pieces, as the guest's memory is small
		for rest := big; rest != ""; {
			n := min(len(rest), 60<<10)
			if errno := f.write(f.fd, rest[:n]); errno != 0 {
				t.Fatal(errno)
			}
			rest = rest[n:]
		}
		return f.read(f.fd, 1000)
	}
	for i := range 9 {
		if got := ask(); got != fmt.Sprintf(`{"pid":%d}`, i+2) {
			t.Fatal(got)
		}
	}
	if got := ask(); !strings.Contains(got, "E2BIG") {
		t.Error(got)
	}
	total := 0
	for range 20 {
		fd := f.mustOpen("dev/process", 0, rightRead|rightWrite)
		for range 64 {
			errno := f.write(fd, strings.Repeat("x", 16<<10))
			if errno == 0 {
				total += 16 << 10
			} else if errno != guestfs.EFBIG {
				t.Fatal(errno)
			}
		}
	}
	if total != 16<<20 {
		t.Errorf("requests have %d bytes", total)
	}
}

// Where each process waits for another one the run ends, as it does when its first one is
// ended; what a process waits for ends with its group.
func TestProcessesWaitForEachOther(t *testing.T) {
	f := newFamily(t, map[string]func(context.Context, *guest) wasi.Exit{
		"reader": func(_ context.Context, g *guest) wasi.Exit {
			iovs, n := g.iovs(atData, 10)
			if _, err := g.try("fd_read", 0, iovs, n, atResult); err != nil {
				panic(errUnwound)
			}
			return wasi.Exit{}
		},
	})
	defer f.close()
	f.ask(`{"op":"start","args":["reader"],"stdin":"pipe"}`)
	if errno := f.write(f.fd, `{"op":"wait"}`); errno != 0 {
		t.Fatal(errno)
	}
	iovs, n := f.iovs(atData, 10)
	_, err := f.try("fd_read", f.fd, iovs, n, atResult)
	var stop *wasi.Stop
	if !errors.As(err, &stop) || stop.Reason != wasi.ReasonFault || !strings.Contains(stop.What, "deadlock") {
		t.Fatal(err)
	}
}
