package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// A04: what is packed small must not be unpacked into memory.
func TestCompressedBodiesAreNotUnpacked(t *testing.T) {
	var member bytes.Buffer
	zw := gzip.NewWriter(&member)
	musttest.Get(io.CopyN(zw, zeros{}, 8<<20))(t)
	musttest.Do(t, zw.Close())
	bomb := bytes.NewBuffer(bytes.Repeat(member.Bytes(), 64)) // 512 MiB when unpacked
	s := start(t, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, enc := range []string{"gzip", "GZIP", "deflate", "br", "zstd", "identity", "gzip, gzip", "x"} {
		resp, body := s.do(t, "POST", "/skills/echo:invoke", bomb.String(), "Content-Encoding", enc, "Content-Type", "application/json")
		if resp.StatusCode != 415 || !bytes.Contains(body, []byte("UNSUPPORTED_ENCODING")) {
			t.Errorf("%s: %d %s", enc, resp.StatusCode, body)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("eight refusals of %d bytes allocated %d bytes", bomb.Len(), grown)
	}
	if n := len(s.Door.Calls()); n > 0 {
		t.Errorf("%d calls reached the door", n)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A05: clients that send slowly or nothing cost a connection each, and nobody
// else's answer. What waited for one of them would wait for an hour.
func TestSlowClientsDoNotKeepOthersOut(t *testing.T) {
	for _, tc := range []struct {
		name  string
		conns int // of the server
	}{{"room for all", 0}, {"room for fewer", 100}} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, func(o *api.Options) {
				o.MaxConns, o.HeadTimeout, o.BodyTimeout, o.IdleTimeout = tc.conns, time.Hour, time.Hour, time.Hour
			})
			begun := []string{
				"", "P", "POST /skills/echo:invoke HTTP/1.1\r\nHost: x\r\nX-A: ",
				"POST /skills/echo:invoke HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{",
			}
			for i := range 500 {
				c := s.dial(t)
				_, _ = io.WriteString(c, begun[i%len(begun)]) // may have been put out already
			}
			for range 100 {
				if resp, _ := s.do(t, "GET", "/healthz", ""); resp.StatusCode != 200 {
					t.Fatalf("/healthz answered %d", resp.StatusCode)
				}
			}
		})
	}
}

func TestSlowRequestsEnd(t *testing.T) {
	s := start(t, func(o *api.Options) {
		o.HeadTimeout, o.BodyTimeout, o.IdleTimeout = 80*time.Millisecond, 80*time.Millisecond, 80*time.Millisecond
	})
	for _, tc := range []struct{ name, begun, path string }{
		{"head", "POST /skills/echo:invoke HTTP/1.1\r\nHost: x\r\n", "/unknown"},
		{"nothing", "", "/unknown"},
		{"empty body", "POST /skills/echo:invoke HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n", "/unknown"},
		{"body", "POST /skills/echo:invoke HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"input\"", "/skills/echo:invoke"},
		{"chunks", "POST /skills/echo:invoke HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"in\r\n", "/skills/echo:invoke"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := s.dial(t)
			at := time.Now()
			c.send(t, tc.begun)
			resp, body := c.answer(t, "POST", tc.path)
			if resp.StatusCode != 408 {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
			if d := time.Since(at); d > 2*time.Second {
				t.Errorf("took %v", d)
			}
			_ = c.Close()
		})
	}
	t.Run("idle", func(t *testing.T) {
		c := s.dial(t)
		c.send(t, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		c.answer(t, "GET", "/healthz")
		c.ended(t)
	})
}

// A06: what one request leaves in the buffers of a connection must not reach
// the calls of another.
func TestNoValueOutlivesItsRequest(t *testing.T) {
	s := start(t, nil)
	for _, id := range []skill.ID{"echo-a", "echo-b", "echo-c"} { // of one length: they come to the same place of a buffer
		s.Door.Add(id, func(_ context.Context, r skill.Request) (json.RawMessage, error) { return r.Input, nil })
	}
	const rounds = 60
	c := s.dial(t)
	var want []string
	for i := range rounds {
		tenant := string(rune('a' + i%3))
		text := strings.Repeat(tenant, 5+i%40)
		path := "/skills/echo-" + tenant + ":invoke"
		want = append(want, "echo-"+tenant+" "+text+" t-"+text)
		body := `{"version":"0.1.0","input":{"text":"` + text + `"}}`
		c.send(t, "POST "+path+" HTTP/1.1\r\nHost: x\r\nX-Trace-Id: t-"+text+"\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+body)
		resp, got := c.answer(t, "POST", path)
		if id := resp.Header.Get("X-Trace-Id"); id != "t-"+text || !bytes.Contains(got, []byte(`"text":"`+text+`"`)) {
			t.Fatalf("call %d: trace id %q, %s", i, id, got)
		}
	}
	// Looked at after all of them: aliases of the buffer would have changed.
	calls := s.Door.Calls()
	if len(calls) != rounds {
		t.Fatalf("%d calls, want %d", len(calls), rounds)
	}
	for i, r := range calls {
		var in struct{ Text string }
		if err := json.Unmarshal(r.Input, &in); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		if got := string(r.SkillID) + " " + in.Text + " " + string(r.TraceID); got != want[i] || r.Version != "0.1.0" {
			t.Errorf("call %d is now %q %s, want %q", i, got, r.Version, want[i])
		}
	}
}

func TestPipelinedCallsAreAnsweredInOrder(t *testing.T) {
	s := start(t, nil)
	c := s.dial(t)
	var all strings.Builder
	for i := range 20 {
		all.WriteString(post("echo", fmt.Sprintf(`{"input":{"text":"%d"}}`, i)))
	}
	c.send(t, all.String())
	for i := range 20 {
		if _, body := c.answer(t, "POST", "/skills/echo:invoke"); !bytes.Contains(body, fmt.Appendf(nil, `{"echoed":"%d"}`, i)) {
			t.Fatalf("answer %d: %s", i, body)
		}
	}
}

// A pipelined request behind a running one must be neither lost nor taken for a
// departed client.
func TestPipelinedBytesSurviveALongCall(t *testing.T) {
	s := start(t, nil)
	c := s.dial(t)
	c.send(t, post("sleep", `{"input":{"ms":300}}`))
	c.send(t, post("echo", `{"input":{"text":"behind"}}`))
	if _, body := c.answer(t, "POST", "/skills/sleep:invoke"); !bytes.Contains(body, []byte(`"success":true`)) {
		t.Errorf("the running call: %s", body)
	}
	if _, body := c.answer(t, "POST", "/skills/echo:invoke"); !bytes.Contains(body, []byte(`"behind"`)) {
		t.Errorf("the one behind: %s", body)
	}
}

// A request that cannot be read must not be answered as the one before it.
func TestAMalformedRequestBehindAGoodOne(t *testing.T) {
	s := start(t, nil)
	c := s.dial(t)
	body := `{"input":{"text":"x"}}`
	c.send(t, "POST /skills/echo:invoke HTTP/1.1\r\nHost: x\r\nX-Trace-Id: first\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+body+
		"GET /skills HTTP/1.1\r\nX-Trace-Id: second\r\n\r\n") // no Host
	if resp, _ := c.answer(t, "POST", "/skills/echo:invoke"); resp.Header.Get("X-Trace-Id") != "first" {
		t.Errorf("the good one: trace id %q", resp.Header.Get("X-Trace-Id"))
	}
	resp, answer := c.answer(t, "GET", "/unknown")
	if resp.StatusCode != 400 || resp.Header.Get("X-Trace-Id") == "first" {
		t.Errorf("the bad one: %d, trace id %q, %s", resp.StatusCode, resp.Header.Get("X-Trace-Id"), answer)
	}
	c.ended(t)
}

// A client that asks for much and reads nothing holds its connection for
// WriteTimeout at most.
func TestSlowReadersEnd(t *testing.T) {
	s := start(t, func(o *api.Options) { o.WriteTimeout = 100 * time.Millisecond })
	huge := json.RawMessage(`"` + strings.Repeat("x", 32<<20) + `"`)
	h := make(chan struct{}, 1)
	s.Door.Add("huge", func(context.Context, skill.Request) (json.RawMessage, error) { h <- struct{}{}; return huge, nil })
	c := s.dial(t)
	c.send(t, post("huge", `{"input":{}}`))
	wait(t, "the run", h)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil { // which waits for the connection
		t.Errorf("Shutdown = %v", err)
	}
}

// While such a client holds its connection, it is the first to make room for others.
func TestSlowReadersMakeRoom(t *testing.T) {
	huge := json.RawMessage(`"` + strings.Repeat("x", 32<<20) + `"`)
	for name, request := range map[string]string{
		"a result": post("huge", `{"input":{}}`),
		"a page":   "GET /console/huge HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			h := make(chan struct{}, 3)
			s := start(t, func(o *api.Options) {
				o.MaxConns = 3
				o.Console = apitest.Console(func(w http.ResponseWriter, _ *http.Request) {
					h <- struct{}{}
					_, _ = w.Write(huge) // its client has been put out
				}, nil)
			})
			s.Door.Add("huge", func(context.Context, skill.Request) (json.RawMessage, error) { h <- struct{}{}; return huge, nil })
			for range 3 {
				s.dial(t).send(t, request)
				wait(t, "a run", h)
			}
			status := 0
			within(t, "room for one more", func() bool {
				c := s.dial(t)
				defer c.Close()
				c.send(t, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
				resp, err := http.ReadResponse(c.br, nil)
				musttest.Do(t, err)
				status = resp.StatusCode
				return status == http.StatusOK
			})
			if status != http.StatusOK {
				t.Errorf("it answers %d", status)
			}
		})
	}
}

// A07.
func TestTraceIDs(t *testing.T) {
	s := start(t, nil)
	for _, tc := range []struct {
		name, value string
		kept        bool
	}{
		{"plain", "Demo_1.2-3", true},
		{"longest", strings.Repeat("x", 64), true},
		{"too long", strings.Repeat("x", 65), false},
		{"empty", "", false},
		{"space", "a b", false},
		{"percent", "a%0d%0ab", false},
		{"not ASCII", "é", false},
		{"html", "<b>", false},
	} {
		for _, path := range []string{"/healthz", "/nowhere", "/skills/echo:invoke"} {
			resp, _ := s.do(t, "GET", path, "", "X-Trace-Id", tc.value)
			if got := resp.Header.Get("X-Trace-Id"); (got == tc.value) != tc.kept {
				t.Errorf("%s on %s: %q", tc.name, path, got)
			}
			// The other name of the same.
			resp, _ = s.do(t, "GET", path, "", "X-Request-Id", tc.value)
			got, trace := resp.Header.Get("X-Request-Id"), resp.Header.Get("X-Trace-Id")
			if (got == tc.value) != (tc.kept || tc.value == "") || tc.value != "" && got != trace {
				t.Errorf("X-Request-Id %s on %s: %q, and the trace id is %q", tc.name, path, got, trace)
			}
		}
	}
	if resp, _ := s.do(t, "GET", "/healthz", "", "X-Request-Id", "r-1", "X-Trace-Id", "t-1"); resp.Header.Get("X-Request-Id") != "r-1" || resp.Header.Get("X-Trace-Id") != "t-1" {
		t.Errorf("both: %v", resp.Header)
	}
	for name, head := range map[string]string{
		"CRLF in the value":    "X-Trace-Id: a\r\nX-Injected: yes",
		"bare carriage return": "X-Trace-Id: a\rX-Injected: yes",
		"bare line feed":       "X-Trace-Id: a\nX-Injected: yes",
		"ANSI":                 "X-Trace-Id: \x1b[31mred",
		"NUL":                  "X-Trace-Id: a\x00b",
		"folded":               "X-Trace-Id: a\r\n b",
		"space before colon":   "X-Trace-Id : a",
	} {
		t.Run(name, func(t *testing.T) {
			c := s.dial(t)
			c.send(t, "GET /healthz HTTP/1.1\r\nHost: x\r\n"+head+"\r\n\r\n")
			resp, _ := c.answer(t, "GET", "/healthz")
			if resp.StatusCode != 200 && resp.StatusCode != 400 {
				t.Errorf("status %d", resp.StatusCode)
			}
			if resp.Header.Get("X-Injected") != "" {
				t.Error("the answer has a header that the client chose")
			}
		})
	}
}

func TestHugeHeadersAreRefused(t *testing.T) {
	s := start(t, nil)
	for name, text := range map[string]string{
		"one of 10 MB":  "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Trace-Id: " + strings.Repeat("x", 10<<20) + "\r\n\r\n",
		"many":          "GET /healthz HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X-A: b\r\n", 100_000) + "\r\n",
		"a path":        "GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"one line only": strings.Repeat("x", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			c := s.dial(t)
			c.send(t, text)
			resp, body := c.answer(t, "GET", "/healthz")
			if resp.StatusCode != 431 || !bytes.Contains(body, []byte("PAYLOAD_TOO_LARGE")) {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
			c.ended(t)
		})
	}
}

func TestLargeBodies(t *testing.T) {
	s := start(t, func(o *api.Options) { o.BodyLimit = 100_000 })
	frame := len(`{"input":{"text":""}}`)
	fits := `{"input":{"text":"` + strings.Repeat("x", 100_000-frame) + `"}}`
	if resp, body := s.do(t, "POST", "/skills/echo:invoke", fits); resp.StatusCode != 200 {
		t.Errorf("a body of exactly the limit: %d %.200s", resp.StatusCode, body)
	}
	head := "POST /skills/echo:invoke HTTP/1.1\r\nHost: x\r\nX-Trace-Id: big-1\r\n"
	big := strings.Repeat("x", 5<<20)
	for name, text := range map[string]string{
		"one byte more":    head + "Content-Length: 100001\r\n\r\n" + fits + " ",
		"much more":        head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(big), big),
		"only announced":   head + "Content-Length: 999999999999\r\n\r\n",
		"in one chunk":     head + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(big), big),
		"in many chunks":   head + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("400\r\n"+strings.Repeat("x", 1024)+"\r\n", 200) + "0\r\n\r\n",
		"after a question": head + "Expect: 100-continue\r\nContent-Length: 100001\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := s.dial(t)
			c.send(t, text)
			resp, body := c.answer(t, "POST", "/skills/echo:invoke")
			if resp.StatusCode != 413 || !bytes.Contains(body, []byte(`"trace_id":"big-1"`)) || !bytes.Contains(body, []byte(`"skill_id":"echo"`)) {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
			if !resp.Close {
				t.Error("the answer does not say that the connection closes")
			}
			c.ended(t)
		})
	}
	if n := len(s.Door.Calls()); n != 1 {
		t.Errorf("%d calls reached the door, want the one that fits", n)
	}
}

// Requests whose end is not where it seems, or that never become one.
func TestMalformedRequests(t *testing.T) {
	s := start(t, nil)
	body := `{"input":{"text":"x"}}`
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	head := "POST /skills/echo:invoke HTTP/1.1\r\nHost: x\r\n"
	for _, tc := range []struct {
		name, text string
		status     int
	}{
		{"truncated body", head + "Content-Length: 1000\r\n\r\n" + body, 400},
		{"truncated chunk", head + "Transfer-Encoding: chunked\r\n\r\nff\r\n" + body, 400},
		{"truncated head", head, 400},
		{"broken chunk size", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + body, 400},
		{"negative chunk size", head + "Transfer-Encoding: chunked\r\n\r\n-1\r\n" + body, 400},
		{"huge chunk size", head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n" + body, 400},
		{"both lengths", head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked, 400},
		{"both lengths, other order", head + "Transfer-Encoding: chunked\r\ncontent-LENGTH: 3\r\n\r\n" + chunked, 400},
		{"two lengths", head + "Content-Length: 22\r\nContent-Length: 3\r\n\r\n" + body, 400},
		{"negative length", head + "Content-Length: -1\r\n\r\n" + body, 400},
		{"signed length", head + "Content-Length: +22\r\n\r\n" + body, 400},
		{"unknown transfer encoding", head + "Transfer-Encoding: gzip, chunked\r\n\r\n" + chunked, 400},
		{"no host", "POST /skills/echo:invoke HTTP/1.1\r\nContent-Length: 22\r\n\r\n" + body, 400},
		{"two hosts", head + "Host: y\r\nContent-Length: 22\r\n\r\n" + body, 400},
		{"no HTTP", "hello\r\n\r\n", 400},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := "/unknown" // where the head was not understood
			if strings.HasPrefix(tc.name, "both") || strings.HasPrefix(tc.name, "truncated body") || strings.Contains(tc.name, "chunk") {
				path = "/skills/echo:invoke"
			}
			c := s.dial(t)
			c.send(t, tc.text)
			if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite() // so that a truncated request ends
			}
			resp, answer := c.answer(t, "POST", path)
			if resp.StatusCode != tc.status {
				t.Errorf("%d %s", resp.StatusCode, answer)
			}
			c.ended(t)
		})
	}
	if n := len(s.Door.Calls()); n > 0 {
		t.Errorf("%d calls reached the door", n)
	}
}

func TestWellFormedVariants(t *testing.T) {
	s := start(t, nil)
	body := `{"input":{"text":"x"}}`
	head := "POST /skills/echo:invoke HTTP/1.1\r\nHost: x\r\n"
	for name, text := range map[string]string{
		"chunked":            head + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
		"one byte a chunk":   head + "Transfer-Encoding: chunked\r\n\r\n" + oneByteChunks(body),
		"absolute form":      "POST http://x/skills/echo:invoke HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\n\r\n" + body,
		"query":              "POST /skills/echo:invoke?x=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\n\r\n" + body,
		"lower-case headers": "POST /skills/echo:invoke HTTP/1.1\r\nhost: x\r\ncontent-length: 22\r\n\r\n" + body,
		"trailing slash":     "POST /skills/echo:invoke/ HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\n\r\n" + body,
	} {
		t.Run(name, func(t *testing.T) {
			c := s.dial(t)
			for range 2 { // the second one shows that nothing of the first is left
				c.send(t, text)
				if resp, answer := c.answer(t, "POST", "/skills/echo:invoke"); resp.StatusCode != 200 {
					t.Errorf("%d %s", resp.StatusCode, answer)
				}
			}
		})
	}
	t.Run("a body where none is expected", func(t *testing.T) {
		c := s.dial(t)
		c.send(t, "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 44\r\n\r\nGET /skills/evil HTTP/1.1\r\nHost: localhost\r\n\r\n"+
			"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
		for _, path := range []string{"/healthz", "/readyz"} {
			if resp, answer := c.answer(t, "GET", path); resp.StatusCode != 200 {
				t.Errorf("%s: %d %s", path, resp.StatusCode, answer)
			}
		}
	})
}

func oneByteChunks(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteString("1\r\n" + s[i:i+1] + "\r\n")
	}
	return b.String() + "0\r\n\r\n"
}

func TestExpectContinue(t *testing.T) {
	s := start(t, nil)
	c := s.dial(t)
	c.send(t, "POST /skills/echo:invoke HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 22\r\n\r\n")
	line, err := c.br.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Fatalf("interim answer %q, %v", line, err)
	}
	musttest.Get(c.br.ReadString('\n'))(t)
	c.send(t, `{"input":{"text":"x"}}`)
	if resp, body := c.answer(t, "POST", "/skills/echo:invoke"); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// What a door gets wrong must not leave the edge in another shape.
func TestWrongResultsAreMended(t *testing.T) {
	s := start(t, nil)
	for name, r := range map[string]*skill.Result{
		"none":                     nil,
		"failure without an error": {SkillID: "x"},
		"success with an error":    {Success: true, SkillID: "x", Error: &skill.ResultError{Code: skill.Trap, Status: 502, Message: "x"}},
		"failure with data":        {SkillID: "x", Data: json.RawMessage(`{}`), Error: &skill.ResultError{Code: skill.Trap, Status: 502, Message: "x"}},
		"other trace id":           {Success: true, SkillID: "x", TraceID: "other"},
		"unknown code":             {SkillID: "x", Error: &skill.ResultError{Code: "GUEST_SAYS_HI", Status: 200, Message: "x"}},
		"no status":                {SkillID: "x", Error: &skill.ResultError{Code: skill.Trap, Message: "x"}},
		"long and dirty message":   {SkillID: "x", Error: &skill.ResultError{Code: skill.Trap, Status: 502, Message: "\x1b[31m\u202e" + strings.Repeat("é", 5000)}},
		"no message":               {SkillID: "x", Error: &skill.ResultError{Code: skill.Trap, Status: 502}},
		"message of control":       {SkillID: "x", Error: &skill.ResultError{Code: skill.Trap, Status: 502, Message: "\x00\x01"}},
		"odd hint":                 {SkillID: "x", Error: &skill.ResultError{Code: skill.RateLimited, Status: 429, Message: "x", Details: map[string]any{"retry_after_ms": "soon"}}},
		"negative hint":            {SkillID: "x", Error: &skill.ResultError{Code: skill.RateLimited, Status: 429, Message: "x", Details: map[string]any{"retry_after_ms": -5}}},
	} {
		t.Run(name, func(t *testing.T) {
			fixed := start(t, func(o *api.Options) { o.Door = doorFunc(func() *skill.Result { return r }) })
			fixed.do(t, "POST", "/skills/x:invoke", `{"input":{}}`) // checks the answer
		})
	}
	_ = s
}

type doorFunc func() *skill.Result

func (f doorFunc) Invoke(context.Context, skill.Principal, skill.Request) *skill.Result { return f() }

func TestNobodyMayNothing(t *testing.T) {
	for _, tc := range []struct {
		name   string
		who    skill.Principal
		status int
	}{
		{"nobody", skill.Principal{Scopes: []string{skill.ScopeRead, skill.ScopeInvoke}}, 401},
		{"without scopes", skill.Principal{ID: "x"}, 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, func(o *api.Options) { o.Authenticate = apitest.As(tc.who) })
			for _, path := range []string{"/skills", "/skills/echo", "/skills/echo/versions"} {
				if resp, body := s.do(t, "GET", path, ""); resp.StatusCode != tc.status {
					t.Errorf("%s: %d %s", path, resp.StatusCode, body)
				}
			}
			if resp, body := s.do(t, "POST", "/skills/echo:invoke", `{"input":{"text":"x"}}`); resp.StatusCode != tc.status {
				t.Errorf("invoke: %d %s", resp.StatusCode, body)
			}
		})
	}
}

func TestOrigins(t *testing.T) {
	s := start(t, func(o *api.Options) { o.Origins = []string{"https://skills.example"} })
	for _, tc := range []struct {
		host, origin, site string
		want               int
	}{
		{"127.0.0.1:8000", "", "", 200},
		{"127.0.0.1:8000", "http://127.0.0.1:8000", "same-origin", 200},
		{"localhost:8000", "http://localhost:8000", "", 200},
		{"[::1]:8000", "http://[::1]:8000", "", 200},
		{"skills.example", "https://skills.example", "", 200},
		{"any.example", "", "", 200}, // no browser, or it would name an origin
		{"127.0.0.1:8000", "http://127.0.0.1:9000", "same-site", 403},
		{"127.0.0.1:8000", "http://localhost:8000", "", 403},
		{"127.0.0.1:8000", "null", "cross-site", 403},
		{"127.0.0.1:8000", "", "cross-site", 403},
		{"rebound.example:8000", "http://rebound.example:8000", "same-origin", 403},
		{"localhost.evil.example", "http://localhost.evil.example", "", 403},
		{"127.0.0.1:8000", "http://127.0.0.1:8000@evil.example", "", 403},
		{"127.0.0.1:8000", "http://%zz", "", 403},
	} {
		header := []string{"Host", tc.host, "Origin", tc.origin, "Sec-Fetch-Site", tc.site}
		resp, body := s.do(t, "POST", "/skills/echo:invoke", `{"input":{"text":"x"}}`, header...)
		if resp.StatusCode != tc.want {
			t.Errorf("%+v: %d %s", tc, resp.StatusCode, body)
		}
	}
	// Two of them, of which any reader may take another.
	for _, first := range []string{"https://skills.example", "http://localhost", "", "https://evil.example"} {
		c := s.dial(t)
		c.send(t, strings.Replace(post("echo", `{"input":{"text":"x"}}`), "\r\n\r\n", "\r\nOrigin: "+first+"\r\norigin: https://evil.example\r\n\r\n", 1))
		if resp, body := c.answer(t, "POST", "/skills/echo:invoke"); resp.StatusCode != 403 {
			t.Errorf("%q and another origin: %d %s", first, resp.StatusCode, body)
		}
	}
}

// Many clients at once, for the race detector.
func TestConcurrentClients(t *testing.T) {
	s := start(t, nil)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			tr := &http.Transport{}
			defer tr.CloseIdleConnections()
			client := &http.Client{Transport: tr, Timeout: 20 * time.Second}
			for n := range 25 {
				text := fmt.Sprintf("%d-%d", i, n)
				resp, err := client.Post("http://"+s.Addr+"/skills/echo:invoke", "application/json", strings.NewReader(`{"input":{"text":"`+text+`"}}`))
				if err != nil {
					t.Error(err)
					return
				}
				if body := checkResponse(t, "POST", "/skills/echo:invoke", resp); !bytes.Contains(body, []byte(`"`+text+`"`)) {
					t.Errorf("%s: %s", text, body)
				}
			}
		})
	}
	wg.Wait()
}
