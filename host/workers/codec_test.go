package workers

import (
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// filled are a call and a reply that leave nothing out.
func filled(t testing.TB) (*wireCall, *wireReply) {
	t.Helper()
	var n uint64
	call, reply := &wireCall{}, &wireReply{}
	fill(reflect.ValueOf(call).Elem(), &n)
	fill(reflect.ValueOf(reply).Elem(), &n)
	rule := musttest.Get(skill.ParseHTTPRule("https://api.example.com:8443/v1/ GET,POST"))(t)
	call.Call.Trust, call.Call.Grants.HTTP = skill.Trusted, []skill.HTTPRule{rule, rule}
	call.Call.Stdin, call.Call.Replay, call.Call.Files = nil, nil, nil // the body
	call.Call.Session.State = nil
	call.Call.Grants.Secrets = nil // which stay in the host
	m := &call.Call.Plan.Module
	m.File, m.Function = "", "" // which stay in the host
	reply.Refused.Details = []byte(`{"key":"value"}`)
	return call, reply
}

// fill gives every field below v a value that no other has.
func fill(v reflect.Value, n *uint64) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(*n)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Func, reflect.Interface: // of a plan, which stay in the host
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(fmt.Sprint("key ", *n)), reflect.ValueOf("value"))
	default:
		panic(v.Kind().String())
	}
}

// TestHeads holds that all of a call and of a reply comes over, that nothing stays
// nothing, and that what is cut off or has more behind it is refused.
func TestHeads(t *testing.T) {
	call, reply := filled(t)
	for _, c := range []struct {
		name string
		head appender
		read func([]byte) (any, error)
	}{
		{"call", call, func(b []byte) (any, error) { var w wireCall; err := w.read(b); return &w, err }},
		{"no call", &wireCall{}, func(b []byte) (any, error) { var w wireCall; err := w.read(b); return &w, err }},
		{"reply", reply, func(b []byte) (any, error) { var w wireReply; err := w.read(b); return &w, err }},
		{"no reply", &wireReply{}, func(b []byte) (any, error) { var w wireReply; err := w.read(b); return &w, err }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := c.head.append(nil)
			got, err := c.read(b)
			if diff := cmp.Diff(any(c.head), got, cmp.Comparer(func(a, b skill.Module) bool { return a.Digest == b.Digest && a.Trusted == b.Trusted })); diff != "" || err != nil {
				t.Errorf("%v %s", err, diff)
			}
			for i := range b {
				if _, err := c.read(b[:i]); err == nil {
					t.Errorf("%d bytes of %d are taken", i, len(b))
				}
			}
			if _, err := c.read(append(b[:len(b):len(b)], 0)); err == nil {
				t.Error("a byte that belongs to nothing is taken")
			}
		})
	}
}

func FuzzHeads(f *testing.F) {
	call, reply := filled(f)
	f.Add(call.append(nil))
	f.Add(reply.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c wireCall
		if c.read(b) == nil {
			var again wireCall
			if err := again.read(c.append(nil)); err != nil {
				t.Errorf("%+v: %v", c, err)
			}
		}
		var r wireReply
		if r.read(b) == nil {
			if size := len(r.Files); size > len(b) {
				t.Errorf("%d files of %d bytes", size, len(b))
			}
			_, _, _ = decodeReply(&frame{head: b, body: b}, &skill.Call{Limits: skill.Limits{Output: 1 << 20, Scratch: 1 << 20}}) // must not panic
		}
	})
}

// TestFramesInPieces holds that a deadline in the middle of a frame loses none of it.
func TestFramesInPieces(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	body := make([]byte, 3<<20)
	for i := range body {
		body[i] = byte(i)
	}
	sent := make(chan error, 1)
	go func() {
		r, w := net.Pipe()
		go func() { sent <- newChannel(w, anySize).send(kindReply, 7, "head", body); _ = w.Close() }()
		piece := make([]byte, 300_001)
		for {
			n, err := io.ReadFull(r, piece)
			if _, werr := b.Write(piece[:n]); err != nil || werr != nil {
				return
			}
			time.Sleep(5 * time.Millisecond) // longer than the reader waits
		}
	}()
	c, waits := newChannel(a, anySize), 0
	for {
		_ = a.SetReadDeadline(time.Now().Add(time.Millisecond))
		f, err := c.receive()
		if ne, ok := err.(net.Error); ok && ne.Timeout() { //nolint:errorlint // as it comes
			waits++
			continue
		}
		if err != nil || f.kind != kindReply || f.call != 7 || string(f.head) != `"head"` || string(f.body) != string(body) {
			t.Fatalf("%+v, %v", f, err)
		}
		break
	}
	if err := <-sent; err != nil || waits == 0 {
		t.Errorf("%v after %d waits", err, waits)
	}
}

// TestFramesOfNobody holds what a worker may not say.
func TestFramesOfNobody(t *testing.T) {
	for name, b := range map[string]string{
		"shorter than its header": "\x01\x00\x00\x00" + "\x12" + "\x01\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00",
		"larger than it may be":   "\xff\xff\xff\xff" + "\x12" + "\x01\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00",
		"a head beyond its end":   "\x0e\x00\x00\x00" + "\x12" + "\x01\x00\x00\x00\x00\x00\x00\x00" + "\x02\x00\x00\x00x",
		"a head that is too long": "\x00\x00\x20\x00" + "\x12" + "\x01\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x11\x00",
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			go func() { _, _ = theirs.Write([]byte(b)); _ = theirs.Close() }()                                       // the reader may have gone
			if f, err := newChannel(ours, func(kind, uint64) int64 { return 10 << 20 }).receive(); err != errFrame { //nolint:errorlint // that very one
				t.Errorf("%+v, %v", f, err)
			}
		})
	}
}

// What a worker tells of processes is held against what a run can start.
func TestProcessesAsTold(t *testing.T) {
	list := func(n int) (l []skill.Process) {
		for i := range n {
			l = append(l, skill.Process{ID: i + 2, Parent: 1, Program: "jq"})
		}
		return l
	}
	one := func(p skill.Process) *skill.Processes { return &skill.Processes{Started: 1, List: []skill.Process{p}} }
	for _, c := range []struct {
		name string
		told *skill.Processes
		ok   bool
	}{
		{"none", nil, true},
		{"one", &skill.Processes{Started: 1, List: list(1)}, true},
		{"the most", &skill.Processes{Started: 1000, List: list(100)}, true},
		{"of a child", &skill.Processes{Started: 2, List: []skill.Process{list(1)[0], {ID: 3, Parent: 2, Program: "jq"}}}, true},
		{"no start", &skill.Processes{}, false},
		{"fewer than none", &skill.Processes{Started: -1}, false},
		{"more than a run starts", &skill.Processes{Started: 1001, List: list(100)}, false},
		{"a longer list", &skill.Processes{Started: 101, List: list(101)}, false},
		{"more in the list than started", &skill.Processes{Started: 1, List: list(2)}, false},
		{"another id", one(skill.Process{ID: 3, Parent: 1}), false},
		{"its own parent", one(skill.Process{ID: 2, Parent: 2}), false},
		{"a parent of nobody", one(skill.Process{ID: 2}), false},
		{"a name in colours", one(skill.Process{ID: 2, Parent: 1, Program: "a\x1b[31m"}), false},
		{"a long name", one(skill.Process{ID: 2, Parent: 1, Program: strings.Repeat("x", 65)}), false},
	} {
		if got := processesOf(c.told, &skill.Call{Script: true}); got != c.ok {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
