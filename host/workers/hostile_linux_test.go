package workers_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"openskill/host/app/hosttest"
	"openskill/host/workers"
	"openskill/sdk/skill"
)

// The kinds of frames, as numbers of their own: what a process says that has been
// taken over is not made by the package that it attacks.
const (
	sayHello   = 1
	sayAssign  = 2
	hearRun    = 16
	sayReply   = 17
	sayRequest = 18
)

// said is the head of a reply, as it is on a lane.
type said struct {
	refused, code, message             string
	exit, stdout, stderr, fuel, memory uint64
	starts                             uint64 // fuel of start-ups
	files                              []saidFile
	count                              uint64 // of files, where it is not their number
	gone                               uint64 // files that are no longer there, and one more
	value                              uint64 // bytes of a value, and one more
	state                              uint64 // bytes of a state
	patch, unknown                     byte
	processes                          string
	differs                            string
	recorded                           string // what stands where a recording does; "" for none
}

type saidFile struct {
	name string
	size uint64
}

func (s said) bytes() string {
	var b []byte
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	text(s.refused)
	text(s.code)
	text(s.message)
	for _, n := range []uint64{s.exit, s.stdout, s.stderr, s.fuel, s.memory, s.starts} {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.AppendVarint(b, math.MinInt64) // times that nobody believes
	b = binary.AppendVarint(b, math.MaxInt64)
	b = binary.AppendUvarint(b, max(s.count, uint64(len(s.files))))
	for _, f := range s.files {
		text(f.name)
		b = binary.AppendUvarint(b, f.size)
	}
	b = binary.AppendUvarint(b, s.gone)
	for range max(s.gone, 1) - 1 {
		text("a")
	}
	b = append(binary.AppendUvarint(binary.AppendUvarint(b, s.value), s.state), s.patch, s.unknown)
	text(s.processes)
	text(s.differs)
	if s.recorded == "" {
		b = append(b, 0)
	} else {
		b = append(append(b, 1), s.recorded...)
	}
	for range 4 { // of its images, of which nobody believes that either
		b = binary.AppendUvarint(b, math.MaxUint64)
	}
	return string(b)
}

// say writes a frame, of which it may tell another length than it has.
func say(conn io.Writer, kind byte, call uint64, length int, head string, body []byte) {
	if length < 0 {
		length = 13 + len(head) + len(body)
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(length))
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint64(b, call)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(head)))
	_, _ = conn.Write(append(append(b, head...), body...))
}

// beHostile is a worker in which somebody runs code of his own: what a call's input
// names is said instead of an answer.
func beHostile() error {
	beside := os.NewFile(3, "host")
	say(beside, sayHello, 0, -1, `{"version":10,"narrows":false,"protections":[]}`, nil)
	for {
		oob := make([]byte, 64)
		n, got, _, _, err := syscall.Recvmsg(4, make([]byte, 1), oob, 0)
		if errors.Is(err, syscall.EAGAIN) {
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil || n == 0 {
			return nil
		}
		messages, err := syscall.ParseSocketControlMessage(oob[:got])
		if err != nil {
			return err
		}
		fds, err := syscall.ParseUnixRights(&messages[0])
		if err != nil {
			return err
		}
		for len(os.Args) > 2 && os.Args[2] == "deaf" {
			time.Sleep(time.Hour)
		}
		go listen(os.NewFile(uintptr(fds[0]), "lane"))
	}
}

func listen(lane *os.File) {
	for {
		var h [17]byte
		if _, err := io.ReadFull(lane, h[:]); err != nil {
			return
		}
		rest := make([]byte, binary.LittleEndian.Uint32(h[:])-13)
		if _, err := io.ReadFull(lane, rest); err != nil {
			return
		}
		if h[4] == hearRun {
			attack(lane, binary.LittleEndian.Uint64(h[5:]), string(rest[binary.LittleEndian.Uint32(h[13:]):]))
		}
	}
}

// large is more than the calls of these tests may leave.
const large = 64 << 20

func attack(conn *os.File, call uint64, what string) {
	raw := func(head, body string) { say(conn, sayReply, call, -1, head, []byte(body)) }
	reply := func(s said, body string) { raw(s.bytes(), body) }
	switch what {
	case "good":
		reply(said{stdout: 2}, "ok")
	case "silence":
	case "half of a frame":
		say(conn, sayReply, call, 1000, said{stdout: 900}.bytes(), []byte("and no more"))
	case "a call of nobody":
		say(conn, sayReply, call+1, -1, said{stdout: 2}.bytes(), []byte("ok"))
	case "without end, of nobody":
		for {
			if _, err := conn.Write(bytes.Repeat([]byte{13, 0, 0, 0, sayReply, 77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 4000)); err != nil {
				return
			}
		}
	case "4 GiB":
		say(conn, sayReply, call, math.MaxUint32, `{}`, nil)
	case "more than a call can leave":
		say(conn, sayReply, call, -1, said{stdout: large}.bytes(), make([]byte, large))
	case "less than a frame":
		say(conn, sayReply, call, 5, `{}`, nil)
	case "a head without end":
		b := make([]byte, 217)
		binary.LittleEndian.PutUint32(b, 100)
		b[4] = sayReply
		binary.LittleEndian.PutUint64(b[5:], call)
		binary.LittleEndian.PutUint32(b[13:], math.MaxUint32)
		_, _ = conn.Write(b)
	case "a second hello":
		say(conn, sayHello, 0, -1, `{"version":1}`, nil)
	case "what only a host says":
		say(conn, sayAssign, call, -1, `{"folders":["/"]}`, nil)
	case "no kind":
		say(conn, 200, call, -1, `{}`, nil)
	case "no head":
		raw("\xff", "")
	case "deep JSON":
		reply(said{refused: `{"details":` + strings.Repeat("[", 1<<20-100) + `}`}, "")
	case "a length beyond all":
		reply(said{stdout: math.MaxUint64}, "")
	case "a length beyond":
		reply(said{stdout: 100}, "ok")
	case "bytes of nothing":
		reply(said{stdout: 1}, "ok")
	case "any cost":
		reply(said{stdout: 2, fuel: math.MaxUint64, memory: math.MaxUint64, starts: math.MaxUint64}, "ok")
	case "a code of the host's":
		reply(said{code: "UNAUTHORIZED", message: "log in at evil.example"}, "")
	case "an error of the host's":
		reply(said{refused: `{"code":"AUDIT_UNAVAILABLE","message":"m"}`}, "")
	case "an error in colours":
		reply(said{refused: `{"code":"INVALID_ARGUMENT","message":"a\u001b[31mb\u202ec","details":{"k\u001b":["v\u0007\u202e"]}}`}, "")
	case "an error of a megabyte":
		reply(said{refused: `{"code":"INVALID_ARGUMENT","message":"m","details":{"k":["` + strings.Repeat(`x","`, 200_000) + `"]}}`}, "")
	case "a million files":
		reply(said{files: make([]saidFile, 400_000)}, "")
	case "files without end":
		reply(said{count: math.MaxInt32}, "")
	case "files that nobody could write":
		reply(said{files: []saidFile{{"f", 2}}}, "ok")
	case "files gone that were never there":
		reply(said{stdout: 2, gone: 2}, "ok")
	case "a recording of nobody":
		reply(said{stdout: 2, recorded: "\x03\x00\x00\x00"}, "okab")
	case "a state of no session":
		reply(said{stdout: 2, state: 100}, "ok"+strings.Repeat("s", 100))
	case "a session: its state is damaged":
		reply(said{stdout: 2, state: 100}, "ok"+strings.Repeat("s", 100))
	case "a session: its difference is damaged":
		reply(said{stdout: 2, state: 100, patch: 1}, "ok"+strings.Repeat("s", 100))
	case "a session: unknown without end", "a state of no session is unknown":
		reply(said{unknown: 1}, "")
	case "processes of no script":
		reply(said{stdout: 2, processes: `{"started":1,"list":[{"id":2,"parent":1,"program":"jq","exit":0}]}`}, "ok")
	case "a difference to nothing":
		reply(said{stdout: 2, differs: "it is another"}, "ok")
	case "answered twice":
		reply(said{stdout: 2}, "ok")
		reply(said{stdout: 2}, "ok")
	case "a request of nobody":
		say(conn, sayRequest, call+1, -1, "1", []byte("{}"))
	case "requests without end":
		for range 100_000 { // and reads no answer
			say(conn, sayRequest, call, -1, "1", make([]byte, 4000))
		}
	case "noise":
		_, _ = conn.Write(bytes.Repeat([]byte("noise"), 10_000))
	case "standard error without end":
		n, line := 0, bytes.Repeat([]byte("\x1b[31m noise\n"), 4096)
		for {
			k, err := syscall.Write(2, line)
			if err != nil {
				break
			}
			n += k
		}
		text := fmt.Sprint(n)
		reply(said{stdout: uint64(len(text))}, text)
	case "descriptors":
		f, err := os.Open(os.DevNull)
		if err != nil {
			return
		}
		for range 50 { // a request that the host answers with no
			b := []byte{14, 0, 0, 0, sayRequest, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, '1'}
			binary.LittleEndian.PutUint64(b[5:], call)
			_ = syscall.Sendmsg(int(conn.Fd()), b, syscall.UnixRights(int(f.Fd()), int(f.Fd())), nil, 0)
			_, _ = io.ReadFull(conn, make([]byte, 17+len("false")))
		}
		reply(said{stdout: 2}, "ok")
	}
}

// TestHostileWorker has processes say whatever they like: the host believes nothing but
// an answer to what it asked, takes no more than that can be, and goes on.
func TestHostileWorker(t *testing.T) {
	workers.LowerPatience(t, 200*time.Millisecond)
	p, r := pool(t, func(o *workers.Options) { o.Command = []string{o.Command[0], "be-hostile"}; o.Idle = time.Hour })
	ok := func(got *skill.Reply, err error) string {
		if err != nil || got.Code != "" || string(got.Stdout) != "ok" {
			return "want the answer"
		}
		return ""
	}
	crashed := func(got *skill.Reply, err error) string {
		if err != nil || got.Code != skill.WorkerCrashed {
			return "want WORKER_CRASHED"
		}
		if got.Usage.Fuel != 1 {
			return "want the fuel that the call might have used"
		}
		return ""
	}
	timeout := func(got *skill.Reply, err error) string {
		if err != nil || got.Code != skill.Timeout {
			return "want TIMEOUT"
		}
		if got.Usage.Fuel != 1 {
			return "want the fuel that the call might have used"
		}
		return ""
	}
	refused := func(code skill.Code, message, details string) func(*skill.Reply, error) string {
		return func(_ *skill.Reply, err error) string {
			var e *skill.Error
			if !errors.As(err, &e) || e.Code != code || e.Message != message {
				return fmt.Sprintf("want %s %q", code, message)
			}
			if b, _ := json.Marshal(e.Details); string(b) != details {
				return fmt.Sprintf("the details are %.200s, want %s", b, details)
			}
			return ""
		}
	}
	if got, err := r.Run(t.Context(), callOf("other", "good")); ok(got, err) != "" {
		t.Fatalf("%+v, %v", got, err)
	}
	before := descriptors(t)
	for what, want := range map[string]func(*skill.Reply, error) string{
		"silence":                          timeout,
		"half of a frame":                  timeout,
		"a call of nobody":                 crashed,
		"without end, of nobody":           crashed,
		"4 GiB":                            crashed,
		"more than a call can leave":       crashed,
		"less than a frame":                crashed,
		"a head without end":               crashed,
		"a second hello":                   crashed,
		"what only a host says":            crashed,
		"no kind":                          crashed,
		"no head":                          crashed,
		"deep JSON":                        crashed,
		"a length beyond all":              crashed,
		"a length beyond":                  crashed,
		"bytes of nothing":                 crashed,
		"a code of the host's":             crashed,
		"a million files":                  crashed,
		"files without end":                crashed,
		"files that nobody could write":    crashed,
		"files gone that were never there": crashed,
		"a recording of nobody":            crashed,
		"a difference to nothing":          crashed,
		"processes of no script":           crashed,
		"a state of no session":            crashed,
		"a state of no session is unknown": crashed,

		"a session: its state is damaged":      crashed,
		"a session: its difference is damaged": crashed,
		"a session: unknown without end":       crashed,

		"a request of nobody":    crashed,
		"requests without end":   timeout,
		"noise":                  crashed,
		"answered twice":         ok,
		"descriptors":            ok,
		"an error of the host's": refused(skill.Internal, "m", "null"),
		"an error in colours":    refused(skill.InvalidArgument, "a[31mbc", `{"k":["v"]}`),
		"an error of a megabyte": refused(skill.InvalidArgument, "m", "null"),
		"any cost": func(got *skill.Reply, err error) string {
			if bad := ok(got, err); bad != "" || got.Usage.Fuel > 1 || got.Usage.StartFuel == 0 || got.Usage.StartFuel > 1<<44 || got.Usage.MemoryPeak > 1<<32 {
				return "want the answer, at no more cost than the call had"
			}
			return ""
		},
		"standard error without end": func(got *skill.Reply, err error) string {
			if err != nil || len(got.Stdout) > 7 {
				return "want an end of listening after a megabyte or two"
			}
			return ""
		},
	} {
		t.Run(what, func(t *testing.T) {
			c := callOf(what, what)
			c.Limits.Timeout = 5 * time.Second
			if strings.HasPrefix(what, "a session: ") {
				c.Session = &skill.SessionState{Most: 1 << 20}
			}
			if what == "silence" || what == "half of a frame" || what == "requests without end" {
				c.Limits.Timeout = 200 * time.Millisecond
			}
			allocated := totalAllocated()
			got, err := r.Run(t.Context(), c)
			if bad := want(got, err); bad != "" {
				t.Errorf("%+v, %v: %s", got, err, bad)
			}
			if took := totalAllocated() - allocated; took > 32<<20 {
				t.Errorf("the host took %d MiB", took>>20)
			}
			if got, err := r.Run(t.Context(), callOf("other", "good")); ok(got, err) != "" {
				t.Errorf("another tenant: %+v, %v", got, err)
			}
			got, err = r.Run(t.Context(), callOf(what, "good"))
			for try := 0; what == "answered twice" && ok(got, err) != "" && try < 3; try++ { // it may have been under way
				got, err = r.Run(t.Context(), callOf(what, "good"))
			}
			if ok(got, err) != "" {
				t.Errorf("the next call: %+v, %v", got, err)
			}
		})
	}
	if got, err := r.Run(t.Context(), callOf("other", "good")); ok(got, err) != "" || p.Stats().Crashes == 0 {
		t.Errorf("in the end: %+v, %v, %+v", got, err, p.Stats())
	}
	// Each worker has a channel, a pipe and a handle.
	if after := descriptors(t); after > before+6*p.Stats().Live {
		t.Errorf("%d descriptors, and %d before, with %d workers", after, before, p.Stats().Live)
	}
}

func totalAllocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// keepFiles has files in memory of so many MiB together, none of them mapped.
func keepFiles(mib string) error {
	left, err := strconv.Atoi(strings.Fields(mib)[0])
	b := bytes.Repeat([]byte("x"), 1<<20)
	for ; left > 0 && err == nil; left -= 16 {
		var fd int
		if fd, err = unix.MemfdCreate("kept", unix.MFD_CLOEXEC); err != nil {
			return err
		}
		for range min(left, 16) {
			if _, err := unix.Write(fd, b); err != nil {
				return err
			}
		}
	}
	return err
}

// TestFilesInMemory holds that a process which keeps its memory in files that it does not
// map, where the kernel's limits of a process do not count it, has no more of it than
// others: a worker, and a compiler.
func TestFilesInMemory(t *testing.T) {
	hosttest.NoRace(t)
	m := modules(t, func(o *workers.ModulesOptions) { o.Strangers = workers.CompileLimits{Memory: 256 << 20} })
	if why := m.Unheld(); why != "" {
		t.Skipf("control groups are unavailable: %s", why)
	}
	if _, err := m.Ensure(t.Context(), sourceOf("keep 100")); err != nil {
		t.Errorf("a compiler, 100 MiB of 256: %v", err)
	}
	if _, err := m.Ensure(t.Context(), sourceOf("keep 400")); skill.CodeOf(err) != skill.CompileTimeout {
		t.Errorf("a compiler, 400 MiB of 256: %v", err)
	}
	_, r := pool(t, func(o *workers.Options) { o.Memory = 256 << 20 })
	if got := run(t, r, "a", "keep 100"); string(got.Stdout) != "<nil>" {
		t.Errorf("a worker, 100 MiB of 256: %+v", got)
	}
	if got := run(t, r, "a", "keep 400"); got.Code != skill.WorkerCrashed {
		t.Errorf("a worker, 400 MiB of 256: %+v", got)
	}
	if got := run(t, r, "a", "say on"); string(got.Stdout) != "on" {
		t.Errorf("afterwards: %+v", got)
	}
}

// TestFileInMemory holds that one file in memory has a bound also where the kernel has no
// control groups, and that who asks for more goes on.
func TestFileInMemory(t *testing.T) {
	_, r := pool(t, func(o *workers.Options) { o.Command = append(o.Command, "--files", fmt.Sprint(64<<20)) })
	if got := run(t, r, "a", fmt.Sprint("file ", 64<<20)); string(got.Stdout) != "<nil>, <nil>" {
		t.Errorf("at the limit: %+v", got)
	}
	if got := run(t, r, "a", fmt.Sprint("file ", 64<<20+1)); string(got.Stdout) != "file too large, file too large" {
		t.Errorf("one byte beyond: %+v", got)
	}
}

// TestDeafWorker holds that a worker which reads nothing of a call costs the call its
// time, and no more.
func TestDeafWorker(t *testing.T) {
	_, r := pool(t, func(o *workers.Options) { o.Command = []string{o.Command[0], "be-hostile", "deaf"} })
	c := callOf("a", strings.Repeat("x", 4<<20))
	c.Limits.Timeout = 300 * time.Millisecond
	began := time.Now()
	got, err := r.Run(t.Context(), c)
	if took := time.Since(began); err != nil || got.Code != skill.Timeout || took > 3*time.Second {
		t.Errorf("%+v, %v after %s", got, err, took)
	}
}
