package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestMetricsAreAnsweredWhole(t *testing.T) {
	s := start(t, func(o *api.Options) { o.Metrics = apitest.Metrics })
	resp, body := s.do(t, "GET", "/metrics?many", "")
	if resp.StatusCode != 200 || len(body) != 50_000 || resp.ContentLength != 50_000 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("%d, %d bytes, %v", resp.StatusCode, len(body), resp.Header)
	}
	resp, body = s.do(t, "HEAD", "/metrics?many", "")
	if resp.StatusCode != 200 || len(body) > 0 || resp.ContentLength != 50_000 {
		t.Errorf("HEAD: %d, %d bytes of %d", resp.StatusCode, len(body), resp.ContentLength)
	}
	if resp, _ = s.do(t, "POST", "/metrics", "{}"); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("POST: %d %v", resp.StatusCode, resp.Header)
	}
	if resp, _ = start(t, nil).do(t, "GET", "/metrics", ""); resp.StatusCode != 404 {
		t.Errorf("without metrics: %d", resp.StatusCode)
	}
}

// told is what an edge has told of.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (w *told) add(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
}

func (w *told) Answered(method, route string, status int, took time.Duration) {
	if took < 0 {
		w.add("a negative time")
	}
	w.add(fmt.Sprintf("%s %q %d", method, route, status))
}

func (w *told) Turn(kind, outcome string) { w.add(kind + " " + outcome) }

func (w *told) Refused(reason string) { w.add("refused: " + reason) }

// take gives the lines since the last time, when there are so many.
func (w *told) take(t *testing.T, n int) []string {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		w.mu.Lock()
		if len(w.lines) >= n {
			lines := w.lines
			w.lines = nil
			w.mu.Unlock()
			slices.Sort(lines)
			return lines
		}
		w.mu.Unlock()
	}
	t.Fatalf("only %q was told, of %d", w.lines, n)
	return nil
}

// TestTheEdgeTellsOfRequests: each request is told of with its route, and each refusal
// with its reason; never with what the caller wrote.
func TestTheEdgeTellsOfRequests(t *testing.T) {
	w := &told{}
	keys := apitest.Keys{"reader": {ID: "reader", Type: skill.Agent, Tenant: "a", Scopes: []string{skill.ScopeRead}}, "all": skill.Local()}
	s := start(t, func(o *api.Options) {
		o.Watch, o.Authenticate, o.BodyLimit, o.HeadLimit, o.HeadTimeout = w, keys.Authenticate, 1000, 4096, 300*time.Millisecond
	})
	invoke := "POST /skills/echo:invoke HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: all\r\n"
	const route = `"/skills/{id}:invoke"`
	for name, c := range map[string]struct {
		raw  string
		want []string
	}{
		"a call":          {invoke + "Content-Length: 24\r\n\r\n" + `{"input": {"text": "x"}}`, []string{`POST ` + route + ` 200`}},
		"nobody":          {strings.Replace(invoke, "all", "x", 1) + "Content-Length: 0\r\n\r\n", []string{`POST ` + route + ` 401`, "refused: unauthorized"}},
		"a scope":         {strings.Replace(invoke, "all", "reader", 1) + "Content-Length: 0\r\n\r\n", []string{`POST ` + route + ` 403`, "refused: forbidden"}},
		"an origin":       {invoke + "Origin: http://evil.example\r\nContent-Length: 0\r\n\r\n", []string{`POST ` + route + ` 403`, "refused: origin"}},
		"a name":          {"GET /skills HTTP/1.1\r\nHost: evil.example\r\nX-Api-Key: all\r\n\r\n", []string{`GET "/skills" 403`, "refused: host"}},
		"no path":         {"GET /secret-path HTTP/1.1\r\nHost: localhost\r\n\r\n", []string{`GET "" 404`, "refused: route"}},
		"another method":  {"PUT /skills HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", []string{`PUT "" 405`, "refused: method"}},
		"a large body":    {invoke + "Transfer-Encoding: chunked\r\n\r\n7d0\r\n" + strings.Repeat("x", 2000) + "\r\n0\r\n\r\n", []string{`POST ` + route + ` 413`, "refused: too_large"}},
		"a declared body": {invoke + "Content-Length: 2000\r\n\r\n", []string{"refused: too_large"}},
		"a large head":    {invoke + "X-Much: " + strings.Repeat("x", 5000) + "\r\n\r\n", []string{"refused: head_too_large"}},
		"two lengths":     {invoke + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []string{`POST ` + route + ` 400`, "refused: malformed"}},
		"no HTTP":         {"hello\r\n\r\n", []string{"refused: malformed"}},
		"cut off":         {"POST /sk", []string{"refused: timeout"}},
		"a wrong input":   {invoke + "Content-Length: 2\r\n\r\n{}", []string{`POST ` + route + ` 400`}},
	} {
		t.Run(name, func(t *testing.T) {
			conn := musttest.Get(net.Dial("tcp", s.Addr))(t)
			defer conn.Close()
			musttest.Get(io.WriteString(conn, c.raw))(t)
			if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
				t.Fatal(err)
			} else {
				_ = resp.Body.Close()
			}
			got := w.take(t, len(c.want))
			for i := range got { // before its route was found, there is none
				if name == "two lengths" {
					got[i] = strings.Replace(got[i], `""`, route, 1)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestConnectionsThatAreTurnedAway: one that makes room and one that finds none are told of.
func TestConnectionsThatAreTurnedAway(t *testing.T) {
	w := &told{}
	s := start(t, func(o *api.Options) { o.Watch, o.MaxConns = w, 1 })
	dial := func() net.Conn {
		conn := musttest.Get(net.Dial("tcp", s.Addr))(t)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	dial()
	second := dial()
	if got := w.take(t, 1); got[0] != "refused: shed" {
		t.Fatal(got)
	}
	running := make(chan struct{})
	end := make(chan struct{})
	s.Door.Add("held-here", func(context.Context, skill.Request) (json.RawMessage, error) {
		close(running)
		<-end
		return json.RawMessage("{}"), nil
	})
	_, _ = io.WriteString(second, "POST /skills/held-here:invoke HTTP/1.1\r\nHost: localhost\r\nContent-Length: 13\r\n\r\n{\"input\": {}}")
	<-running
	dial()
	if got := w.take(t, 1); got[0] != "refused: connections" {
		t.Error(got)
	}
	close(end)
}
