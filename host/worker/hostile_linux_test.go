package worker_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"openskill/host/worker"
	"openskill/sdk/skill"
)

// The kinds of frames, as numbers of their own: what a process says that has been
// taken over is not made by the package that it attacks.
const (
	sayHello   = 1
	sayAssign  = 2
	hearRun    = 4
	sayReply   = 7
	sayRequest = 8
)

// say writes a frame, of which it may tell another length than it has.
func say(conn net.Conn, kind byte, call uint64, length int, head string, body []byte) {
	if length < 0 {
		length = 13 + len(head) + len(body)
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(length)) //nolint:gosec // a test
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint64(b, call)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(head))) //nolint:gosec // a test
	_, _ = conn.Write(append(append(b, head...), body...))
}

// beHostile is a worker in which somebody runs code of his own: what a call's input
// names is said instead of an answer.
func beHostile() error {
	conn, err := worker.Inherited()
	if err != nil {
		return err
	}
	say(conn, sayHello, 0, -1, `{"version":1,"narrows":false,"protections":[]}`, nil)
	for len(os.Args) > 2 && os.Args[2] == "deaf" {
		time.Sleep(time.Hour)
	}
	for {
		var h [17]byte
		if _, err := io.ReadFull(conn, h[:]); err != nil {
			return nil //nolint:nilerr // the host is done with it
		}
		rest := make([]byte, binary.LittleEndian.Uint32(h[:])-13)
		if _, err := io.ReadFull(conn, rest); err != nil {
			return nil //nolint:nilerr // as that
		}
		if h[4] == hearRun {
			attack(conn, binary.LittleEndian.Uint64(h[5:]), string(rest[binary.LittleEndian.Uint32(h[13:]):]))
		}
	}
}

// large is more than the calls of these tests may leave.
const large = 64 << 20

func attack(conn net.Conn, call uint64, what string) {
	reply := func(head string, body string) { say(conn, sayReply, call, -1, head, []byte(body)) }
	switch what {
	case "good":
		reply(`{"stdout":2}`, "ok")
	case "silence":
	case "half of a frame":
		say(conn, sayReply, call, 1000, `{"stdout":900}`, []byte("and no more"))
	case "a call of nobody":
		say(conn, sayReply, call+1, -1, `{"stdout":2}`, []byte("ok"))
	case "without end, of nobody":
		for {
			if _, err := conn.Write(bytes.Repeat([]byte{13, 0, 0, 0, sayReply, 77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 4000)); err != nil {
				return
			}
		}
	case "4 GiB":
		say(conn, sayReply, call, math.MaxUint32, `{}`, nil)
	case "more than a call can leave":
		say(conn, sayReply, call, -1, fmt.Sprintf(`{"stdout":%d}`, large), make([]byte, large))
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
	case "no JSON":
		reply(`{"stdout":`, "")
	case "deep JSON":
		reply(`{"usage":`+strings.Repeat("[", 1<<20)+`}`, "")
	case "a negative length":
		reply(`{"stdout":-1}`, "")
	case "a length beyond":
		reply(`{"stdout":100}`, "ok")
	case "bytes of nothing":
		reply(`{"stdout":1}`, "ok")
	case "a negative cost":
		reply(`{"usage":{"Fuel":-1}}`, "")
	case "any cost":
		reply(`{"stdout":2,"usage":{"Fuel":18446744073709551615,"MemoryPeak":18446744073709551615}}`, "ok")
	case "a code of the host's":
		reply(`{"code":"UNAUTHORIZED","message":"log in at evil.example"}`, "")
	case "an error of the host's":
		reply(`{"refused":{"code":"AUDIT_UNAVAILABLE","message":"m"}}`, "")
	case "an error in colours":
		reply(`{"refused":{"code":"INVALID_ARGUMENT","message":"a\u001b[31mb\u202ec","details":{"k\u001b":["v\u0007\u202e"]}}}`, "")
	case "an error of a megabyte":
		reply(`{"refused":{"code":"INVALID_ARGUMENT","message":"m","details":{"k":["`+strings.Repeat(`x","`, 400_000)+`"]}}}`, "")
	case "a million files":
		reply(`{"files":[`+strings.Repeat("{},", 600_000)+`{}]}`, "")
	case "files that nobody could write":
		reply(`{"files":[{"name":"f","size":2}]}`, "ok")
	case "answered twice":
		reply(`{"stdout":2}`, "ok")
		reply(`{"stdout":2}`, "ok")
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
		reply(fmt.Sprintf(`{"stdout":%d}`, len(text)), text)
	case "descriptors":
		f, err := os.Open(os.DevNull)
		unix, ok := conn.(*net.UnixConn)
		if err != nil || !ok {
			return
		}
		for range 50 { // a request that the host answers with no
			b := []byte{14, 0, 0, 0, sayRequest, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, '1'}
			binary.LittleEndian.PutUint64(b[5:], call)
			_, _, _ = unix.WriteMsgUnix(b, syscall.UnixRights(int(f.Fd()), int(f.Fd())), nil) //nolint:gosec // a descriptor
			_, _ = io.ReadFull(conn, make([]byte, 17+len("false")))
		}
		reply(`{"stdout":2}`, "ok")
	}
}

// TestHostileWorker has processes say whatever they like: the host believes nothing but
// an answer to what it asked, takes no more than that can be, and goes on.
func TestHostileWorker(t *testing.T) {
	worker.LowerPatience(t, 200*time.Millisecond)
	p, r := pool(t, func(o *worker.Options) { o.Command = []string{o.Command[0], "be-hostile"}; o.Idle = time.Hour })
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
		return ""
	}
	timeout := func(got *skill.Reply, err error) string {
		if err != nil || got.Code != skill.Timeout {
			return "want TIMEOUT"
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
		"silence":                       timeout,
		"half of a frame":               timeout,
		"a call of nobody":              crashed,
		"without end, of nobody":        crashed,
		"4 GiB":                         crashed,
		"more than a call can leave":    crashed,
		"less than a frame":             crashed,
		"a head without end":            crashed,
		"a second hello":                crashed,
		"what only a host says":         crashed,
		"no kind":                       crashed,
		"no JSON":                       crashed,
		"deep JSON":                     crashed,
		"a negative length":             crashed,
		"a length beyond":               crashed,
		"bytes of nothing":              crashed,
		"a negative cost":               crashed,
		"a code of the host's":          crashed,
		"a million files":               crashed,
		"files that nobody could write": crashed,
		"a request of nobody":           crashed,
		"requests without end":          crashed,
		"noise":                         crashed,
		"answered twice":                ok,
		"descriptors":                   ok,
		"an error of the host's":        refused(skill.Internal, "m", "null"),
		"an error in colours":           refused(skill.InvalidArgument, "a[31mbc", `{"k":["v"]}`),
		"an error of a megabyte":        refused(skill.InvalidArgument, "m", "null"),
		"any cost": func(got *skill.Reply, err error) string {
			if bad := ok(got, err); bad != "" || got.Usage.Fuel > 1 || got.Usage.MemoryPeak > 1<<32 {
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
			if what == "silence" || what == "half of a frame" {
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

// TestDeafWorker holds that a worker which reads nothing of a call costs the call its
// time, and no more.
func TestDeafWorker(t *testing.T) {
	_, r := pool(t, func(o *worker.Options) { o.Command = []string{o.Command[0], "be-hostile", "deaf"} })
	c := callOf("a", strings.Repeat("x", 4<<20))
	c.Limits.Timeout = 300 * time.Millisecond
	began := time.Now()
	got, err := r.Run(t.Context(), c)
	if took := time.Since(began); err != nil || got.Code != skill.Timeout || took > 3*time.Second {
		t.Errorf("%+v, %v after %s", got, err, took)
	}
}
