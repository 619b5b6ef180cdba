package load

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The library's goroutine that ends idle connections sleeps until it looks again, and then
// ends: there are none.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"))
}

func target(t *testing.T, o Options, answer http.HandlerFunc) *Target {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	to, err := Open(server.URL, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(to.Close)
	return to
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const good = `{"success":true,"data":{}}`

func echo() []Skill { return []Skill{{"echo", 1, []byte(`{"input":{}}`)}} }

// TestOpenOnlyHere: a host elsewhere is called where that was asked for, and not else.
func TestOpenOnlyHere(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"http://127.0.0.1:8000": true, "http://localhost": true, "http://LOCALHOST.:80/base": true, "http://[::1]:8000": true,
		"http://127.9.9.9": true, "http://[::ffff:127.0.0.1]:80": true, "https://127.0.0.1": true,
		"http://example.com": false, "http://10.0.0.1": false, "http://0.0.0.0:8000": false, "http://[::]": false,
		"http://localhost.example.com": false, "http://127.0.0.1.example.com": false, "http://2130706433": false,
		"ftp://127.0.0.1": false, "127.0.0.1:8000": false, "": false, "http://": false, "http://u:p@127.0.0.1": false,
		"http://127.0.0.1/?a=b": false, "http://127.0.0.1:x": false,
	} {
		if _, err := Open(address, Options{}); (err == nil) != want {
			t.Errorf("%q: %v, want accepted %v", address, err, want)
		}
	}
	if _, err := Open("http://example.com", Options{Remote: true}); err != nil {
		t.Errorf("with Remote: %v", err)
	}
	if !loopback(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}) || loopback(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}) {
		t.Error("addresses that a name led to are not told apart")
	}
}

// TestAnswers: what comes back is taken for what it is, whoever sends it.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		status  int
		body    string
		success bool
		code    string
	}{
		{"a success", 200, good, true, ""},
		{"no result", 200, `{"status":"ok"}`, true, ""},
		{"nothing", 204, "", true, ""},
		{"a failure with status 200", 200, `{"success":false,"error":{"code":"TRAP"}}`, false, "TRAP"},
		{"a limit", 429, `{"success":false,"error":{"code":"RATE_LIMITED"}}`, false, "RATE_LIMITED"},
		{"success with a failure's status", 500, good, false, OtherStatus},
		{"a page", 502, "<html>", false, OtherStatus},
		{"a code of a terminal", 500, `{"error":{"code":"\u001b[31mRED"}}`, false, OtherStatus},
		{"a long code", 500, `{"error":{"code":"` + strings.Repeat("A", 41) + `"}}`, false, OtherStatus},
		{"an error that is no object", 500, `{"error":"no"}`, false, OtherStatus},
	} {
		to := target(t, Options{}, says(c.status, c.body))
		a, err := to.Do(Invoke("echo", nil))
		if err != nil || a.Success != c.success || a.Code != c.code || a.Status != c.status {
			t.Errorf("%s: %+v, %v", c.name, a, err)
		}
	}
}

// TestBrokenAnswers: what is no answer has a name of its own, and is not asked for again.
func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	for _, c := range []struct {
		name, code string
		answer     http.HandlerFunc
	}{
		{"cut off before the first byte", BrokenAnswer, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		{"cut off in the middle", BrokenAnswer, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, good)
			panic(http.ErrAbortHandler)
		}},
		{"too late", NoAnswer, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}},
	} {
		asked.Store(0)
		to := target(t, Options{Timeout: 300 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) { asked.Add(1); c.answer(w, r) })
		a, err := to.Do(Invoke("echo", []byte("{}")))
		if err == nil || a.Code != c.code || asked.Load() != 1 {
			t.Errorf("%s: %+v, %v, asked %d times; want %s", c.name, a, err, asked.Load(), c.code)
		}
	}
	var listen net.ListenConfig
	ln, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	to, err := Open("http://"+ln.Addr().String(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if a, err := to.Do(Invoke("echo", nil)); err == nil || a.Code != NoConnection {
		t.Errorf("nobody listens: %+v, %v", a, err)
	}
	if failureOf(errors.Join(ErrNotLoopback)) != NotLoopback {
		t.Error("a name that leads elsewhere is not told")
	}
}

// TestPlan: every call that was due is in the report, once; keys and weights arrive.
func TestPlan(t *testing.T) {
	t.Parallel()
	var calls, keys sync.Map
	count := func(m *sync.Map, key string) {
		n, _ := m.LoadOrStore(key, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
	}
	to := target(t, Options{Key: "osk_x", Connections: 16}, func(w http.ResponseWriter, r *http.Request) {
		count(&calls, r.URL.Path)
		count(&keys, r.Header.Get("Authorization"))
		if r.URL.Path == "/skills/b:invoke" {
			says(429, `{"error":{"code":"RATE_LIMITED"}}`)(w, r)
			return
		}
		says(200, good)(w, r)
	})
	p := Plan{Rate: 200, Duration: time.Second, Connections: 16, Timeout: 30 * time.Second, Skills: []Skill{{"a", 3, []byte("{}")}, {"b", 1, []byte("{}")}}}
	r := p.Do(t.Context(), to)
	if r.Due != 200 || r.Sent+r.Unsent != r.Due || r.Succeeded+r.Failed+r.Open != r.Sent || r.Cut {
		t.Errorf("%+v", r)
	}
	if want := r.Succeeded + r.Unsent + r.Open; r.All.Latency.TotalCount() != want || r.Late.TotalCount() != r.Sent {
		t.Errorf("%d latencies and %d latenesses of %d and %d", r.All.Latency.TotalCount(), r.Late.TotalCount(), want, r.Sent)
	}
	if len(r.Failures) != 1 || r.Failures[0].Status != 429 || r.Failures[0].Code != "RATE_LIMITED" || r.Failures[0].Count != r.Failed {
		t.Errorf("failures %+v", r.Failures)
	}
	if r.Unsent == 0 && (r.Succeeded != 150 || r.Failed != 50) {
		t.Errorf("%d and %d, want 150 and 50", r.Succeeded, r.Failed)
	}
	if _, ok := keys.Load("Bearer osk_x"); !ok {
		t.Error("the key did not arrive")
	}
}

// TestStall is what an open model is for: a host that stands still makes late all calls
// that are due meanwhile, also those that could not be sent.
func TestStall(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	to := target(t, Options{Connections: 2}, func(w http.ResponseWriter, r *http.Request) {
		<-release
		says(200, good)(w, r)
	})
	p := Plan{Rate: 100, Duration: 500 * time.Millisecond, Connections: 2, Timeout: 30 * time.Second, Skills: echo()}
	over := time.AfterFunc(time.Second, func() { close(release) })
	defer over.Stop()
	r := p.Do(t.Context(), to)
	if r.Due != 50 || r.Sent != 2 || r.Unsent != 48 || r.Succeeded != 2 || r.All.Latency.TotalCount() != 50 {
		t.Errorf("%+v", r)
	}
	// The calls that were due first have waited for half a second at least; half of
	// all for a quarter. Clients in a closed loop would have seen two slow calls.
	if median := r.All.Latency.ValueAtPercentile(50); median < 200_000 {
		t.Errorf("the median is %d µs", median)
	}
}

// TestInterrupted: what was measured is there, calls under way are not failures, and
// nothing goes on.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked atomic.Int64
	left := make(chan struct{})
	to := target(t, Options{Connections: 4}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if asked.Add(1) <= 5 {
			_, _ = io.WriteString(w, good)
			return
		}
		cancel()
		select {
		case <-r.Context().Done():
		case <-left:
		}
	})
	t.Cleanup(func() { close(left) })
	p := Plan{Rate: 50, Duration: time.Hour, Connections: 4, Timeout: time.Hour, Skills: echo()}
	r := p.Do(ctx, to)
	if !r.Cut || r.Succeeded != 5 || r.Failed != 0 || r.Open < 1 || r.Took > time.Minute {
		t.Errorf("%+v", r)
	}
	if r = p.Do(ctx, to); r.Sent != 0 || !r.Cut {
		t.Errorf("ended before it began: %+v", r)
	}
	if _, err := to.Do(Invoke("echo", nil)); err == nil {
		t.Error("a target that was closed calls")
	}
}

// TestPlot: the picture is well-formed whatever skills are called, within its frame,
// and has colours for dark pages.
func TestPlot(t *testing.T) {
	t.Parallel()
	r := run{most: 1e8}
	h := r.histogram()
	for i := range int64(5000) {
		r.record(h, time.Duration(i*i)*time.Microsecond, 1)
	}
	rep := &Report{All: Measured{Latency: h}, Skills: []Measured{{ID: "<b>&\"x\x01", Latency: h}, {ID: "none", Latency: r.histogram()}}}
	svg, err := rep.Plot(`a "title" <with> & more`)
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, svg)
		}
		e, ok := tok.(xml.StartElement)
		if !ok || e.Name.Local != "polyline" {
			continue
		}
		lines++
		for _, a := range e.Attr {
			if a.Name.Local != "points" {
				continue
			}
			last := -1.0
			for point := range strings.FieldsSeq(a.Value) {
				var x, y float64
				if _, err := fmt.Sscanf(point, "%f,%f", &x, &y); err != nil || x < last || x < plotLeft || x > plotLeft+plotWidth || y < plotTop || y > plotTop+plotHeight {
					t.Fatalf("the point %s is not where it must be: %v", point, err)
				}
				last = x
			}
		}
	}
	if lines != 2 { // all, and the one that was called
		t.Errorf("%d curves", lines)
	}
	if !bytes.Contains(svg, []byte("prefers-color-scheme: dark")) || !bytes.Contains(svg, []byte(">99.9 %<")) {
		t.Errorf("%s", svg)
	}
	if svg, err := (&Report{All: Measured{Latency: r.histogram()}}).Plot("nothing"); err != nil || xml.Unmarshal(svg, new(struct{})) != nil {
		t.Errorf("a plot of nothing: %v\n%s", err, svg)
	}
}
