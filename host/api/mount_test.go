package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"openskill/host/api"
	"openskill/internal/musttest"
)

// mount starts an edge whose /mcp is f.
func mount(t *testing.T, f http.HandlerFunc, change func(*api.Options)) *server {
	t.Helper()
	return start(t, func(o *api.Options) {
		o.MCP = f
		if change != nil {
			change(o)
		}
	})
}

func TestMountedAnswers(t *testing.T) {
	s := mount(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Add("X-Two", "a")
		w.Header().Add("X-Two", "b")
		w.Header().Set("Cache-Control", "no-store") // in the place of this edge's own
		w.Header().Set("Connection", "close")       // not for a handler to say
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusAccepted)
		w.WriteHeader(http.StatusTeapot) // too late
		w.Header().Set("X-Late", "yes")
		_, _ = fmt.Fprintf(w, "%s %s %s %s %s %s", r.Method, r.URL.Path, r.URL.RawQuery, r.Host, r.Header.Get("X-Trace-Id"), body)
	}, nil)
	c := s.dial(t)
	for i := range 3 {
		body := strings.Repeat("x", i)
		c.send(t, "POST /mcp?a=b HTTP/1.1\r\nHost: localhost\r\nX-Trace-Id: t-"+itoa(i)+"\r\nContent-Length: "+itoa(i)+"\r\n\r\n"+body)
		resp, got := c.answer(t, "POST", "/mcp")
		if resp.StatusCode != 202 || string(got) != "POST /mcp a=b localhost t-"+itoa(i)+" "+body {
			t.Errorf("%d %s", resp.StatusCode, got)
		}
		if resp.Close || strings.Join(resp.Header["X-Two"], ",") != "a,b" || resp.Header.Get("X-Late") != "" || len(resp.Header["Cache-Control"]) != 1 {
			t.Errorf("headers %v", resp.Header)
		}
	}
	for _, method := range []string{"PUT", "PATCH", "HEAD"} {
		if resp, body := s.do(t, method, "/mcp", ""); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, POST, DELETE, OPTIONS" {
			t.Errorf("%s: %d %s", method, resp.StatusCode, body)
		}
	}
	if resp, _ := s.do(t, "OPTIONS", "/mcp", ""); resp.StatusCode != 204 {
		t.Errorf("OPTIONS: %d", resp.StatusCode)
	}
	if resp, body := s.do(t, "DELETE", "/mcp", ""); resp.StatusCode != 202 || !strings.HasPrefix(string(body), "DELETE") {
		t.Errorf("DELETE: %d %s", resp.StatusCode, body)
	}
}

// The rules of this edge hold before the handler is asked.
func TestMountedRules(t *testing.T) {
	calls := make(chan struct{}, 100)
	s := mount(t, func(w http.ResponseWriter, _ *http.Request) { calls <- struct{}{}; w.WriteHeader(http.StatusNoContent) }, func(o *api.Options) {
		o.Origins, o.BodyLimit = []string{"https://skills.example"}, 1000
	})
	for _, tc := range []struct {
		name   string
		header []string
		body   string
		want   int
	}{
		{"plain", nil, "{}", 204},
		{"localhost", []string{"Host", "localhost:1"}, "{}", 204},
		{"an address", []string{"Host", "[::1]:8000"}, "{}", 204},
		{"the operator's name", []string{"Host", "skills.example", "Origin", "https://skills.example"}, "{}", 204},
		{"a rebound name", []string{"Host", "evil.example"}, "{}", 403},
		{"a rebound name and its origin", []string{"Host", "evil.example", "Origin", "http://evil.example"}, "{}", 403},
		{"a foreign origin", []string{"Origin", "http://evil.example"}, "{}", 403},
		{"no origin", []string{"Origin", "null"}, "{}", 403},
		{"credentials in the host", []string{"Host", "localhost@evil.example"}, "{}", 403},
		{"compressed", []string{"Content-Encoding", "gzip"}, "{}", 415},
		{"at the limit", nil, strings.Repeat("x", 1000), 204},
		{"too large", nil, strings.Repeat("x", 1001), 413},
	} {
		if tc.name == "credentials in the host" {
			c := s.dial(t)
			c.send(t, "POST /mcp HTTP/1.1\r\nHost: localhost@evil.example\r\nContent-Length: 0\r\n\r\n")
			if resp, body := c.answer(t, "POST", "/mcp"); resp.StatusCode != 403 && resp.StatusCode != 400 {
				t.Errorf("%s: %d %s", tc.name, resp.StatusCode, body)
			}
			continue
		}
		resp, body := s.do(t, "POST", "/mcp", tc.body, tc.header...)
		if resp.StatusCode != tc.want {
			t.Errorf("%s: %d %s", tc.name, resp.StatusCode, body)
		}
		if called := len(calls) > 0; called != (tc.want == 204) {
			t.Errorf("%s: the handler was called: %v", tc.name, called)
		}
		for len(calls) > 0 {
			<-calls
		}
	}
}

// events answers with server-sent events, one for each word that comes over say.
func events(say <-chan string, ended chan<- error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		flusher, _ := w.(http.Flusher)
		flusher.Flush()
		for {
			select {
			case word, ok := <-say:
				if !ok {
					ended <- nil
					return
				}
				if _, err := fmt.Fprintf(w, "data: %s\n\n", word); err != nil {
					ended <- err
					return
				}
				flusher.Flush()
			case <-r.Context().Done():
				ended <- context.Cause(r.Context())
				return
			}
		}
	}
}

// stream opens a stream and gives its reader, after the head has come.
func (s *server) stream(t *testing.T, method string) (*raw, *bufio.Reader) {
	t.Helper()
	c := s.dial(t)
	c.send(t, method+" /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
	resp, err := http.ReadResponse(c.br, &http.Request{Method: method})
	musttest.Do(t, err)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || len(resp.TransferEncoding) == 0 || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Fatalf("%d %v %v", resp.StatusCode, resp.Header, resp.TransferEncoding)
	}
	return c, bufio.NewReader(resp.Body)
}

// Each event is on its way when it is flushed, also long after the time that an answer
// otherwise has to be written.
func TestEventsComeOneByOne(t *testing.T) {
	say, ended := make(chan string), make(chan error, 1)
	s := mount(t, events(say, ended), func(o *api.Options) { o.WriteTimeout = 100 * time.Millisecond })
	c, body := s.stream(t, "POST")
	for i := range 4 {
		if i == 2 {
			<-time.After(250 * time.Millisecond) // longer than WriteTimeout
		}
		word := strings.Repeat("word", 1+i*10_000)
		say <- word
		for _, want := range []string{"data: " + word + "\n", "\n"} {
			if line, err := body.ReadString('\n'); err != nil || line != want {
				t.Fatalf("event %d: %d bytes, %v", i, len(line), err)
			}
		}
	}
	close(say)
	if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 {
		t.Errorf("the rest: %q, %v", rest, err)
	}
	if err := wait(t, "the handler's end", ended); err != nil {
		t.Error(err)
	}
	// The connection goes on.
	c.send(t, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if resp, _ := c.answer(t, "GET", "/healthz"); resp.StatusCode != 200 {
		t.Errorf("afterwards: %d", resp.StatusCode)
	}
}

func TestStreamsEndWhenTheClientLeaves(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	t.Run("in a stream", func(t *testing.T) {
		ended := make(chan error, 1)
		s := mount(t, events(make(chan string), ended), nil)
		c, _ := s.stream(t, "GET")
		_ = c.Close()
		if err := wait(t, "the handler's end", ended); err == nil || err.Error() != "the client closed its connection" {
			t.Errorf("it ended with %v", err)
		}
	})
	t.Run("before the head", func(t *testing.T) {
		begun, ended := make(chan struct{}), make(chan error, 1)
		s := mount(t, func(_ http.ResponseWriter, r *http.Request) {
			close(begun)
			<-r.Context().Done()
			ended <- context.Cause(r.Context())
		}, nil)
		c := s.dial(t)
		c.send(t, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
		wait(t, "the call", begun)
		_ = c.Close()
		if err := wait(t, "the handler's end", ended); err == nil || err.Error() != "the client closed its connection" {
			t.Errorf("it ended with %v", err)
		}
	})
	t.Run("not reading", func(t *testing.T) {
		ended := make(chan error, 1)
		s := mount(t, func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					ended <- err
					return
				}
			}
		}, func(o *api.Options) { o.WriteTimeout = 100 * time.Millisecond })
		c := s.dial(t)
		c.send(t, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
		if err := wait(t, "the handler's end", ended); err == nil {
			t.Error("it ended well")
		}
	})
}

// What a handler keeps of its request must not be what the next one writes.
func TestAMountedRequestIsItsOwn(t *testing.T) {
	kept := make(chan *http.Request, 1)
	s := mount(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case kept <- r:
		default:
		}
		w.WriteHeader(http.StatusNoContent)
	}, nil)
	c := s.dial(t)
	for i, word := range []string{"first-", "second", "third-"} {
		c.send(t, "POST /mcp?"+word+" HTTP/1.1\r\nHost: localhost\r\nX-Word: "+word+"\r\nContent-Length: 6\r\n\r\n"+word)
		if resp, _ := c.answer(t, "POST", "/mcp"); resp.StatusCode != 204 {
			t.Fatalf("%d: %d", i, resp.StatusCode)
		}
	}
	r := <-kept
	body, err := io.ReadAll(r.Body)
	if err != nil || string(body) != "first-" || r.URL.RawQuery != "first-" || r.Header.Get("X-Word") != "first-" {
		t.Errorf("the first request is now %s %v %s, %v", r.URL, r.Header, body, err)
	}
}

func TestMountedPanics(t *testing.T) {
	for _, after := range []string{"nothing", "something", "a stream"} {
		s := mount(t, func(w http.ResponseWriter, _ *http.Request) {
			switch after {
			case "something":
				_, _ = io.WriteString(w, "half")
			case "a stream":
				_, _ = io.WriteString(w, "half")
				w.(http.Flusher).Flush()
			}
			panic("secret of /etc/shadow")
		}, nil)
		c := s.dial(t)
		c.send(t, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
		if after == "a stream" {
			resp, err := http.ReadResponse(c.br, nil)
			musttest.Do(t, err)
			if b, err := io.ReadAll(resp.Body); err == nil || strings.Contains(string(b), "secret") {
				t.Errorf("a broken stream ends as if it were whole: %q", b)
			}
			continue
		}
		resp, body := c.answer(t, "POST", "/mcp")
		if resp.StatusCode != 500 || strings.Contains(string(body), "secret") || strings.Contains(string(body), "half") {
			t.Errorf("after %s: %d %s", after, resp.StatusCode, body)
		}
	}
}

// A stream that only listens does not keep a host from stopping; a call may end first.
func TestShutdownEndsListeners(t *testing.T) {
	ended := make(chan error, 1)
	s := mount(t, events(make(chan string), ended), nil)
	c, body := s.stream(t, "GET")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown = %v", err)
	}
	if err := wait(t, "the handler's end", ended); err == nil || err.Error() != "the host is shutting down" {
		t.Errorf("it ended with %v", err)
	}
	if _, err := io.ReadAll(body); err != nil {
		t.Errorf("the stream: %v", err)
	}
	c.ended(t)

	say := make(chan string)
	s = mount(t, events(say, ended), nil)
	_, body = s.stream(t, "POST")
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(ctx) }()
	say <- "last"
	if line, err := body.ReadString('\n'); err != nil || line != "data: last\n" {
		t.Errorf("%q, %v", line, err)
	}
	close(say)
	if err := wait(t, "Shutdown", done); err != nil {
		t.Errorf("Shutdown = %v", err)
	}
	if err := wait(t, "the handler's end", ended); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
