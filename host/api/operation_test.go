package api_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestNewNeedsADoorAndACatalogue(t *testing.T) {
	for name, o := range map[string]api.Options{
		"nothing": {}, "no door": {Catalogue: apitest.NewCatalogue()}, "no catalogue": {Door: apitest.NewDoor()},
	} {
		if s, err := api.New(o); err == nil || s != nil {
			t.Errorf("%s: New = %v, %v", name, s, err)
		}
	}
}

func TestReadyz(t *testing.T) {
	for _, tc := range []struct {
		name        string
		err         error
		status      int
		code, shown string
	}{
		{"ready", nil, 200, "", ""},
		{"a known reason", &skill.Error{Code: skill.AuditUnavailable, Message: "the audit database cannot be written"}, 503, "AUDIT_UNAVAILABLE", "audit database"},
		{"an unknown reason", errors.New("open /var/lib/secret: permission denied"), 503, "INTERNAL", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log bytes.Buffer
			s := start(t, func(o *api.Options) {
				o.Ready = func() error { return tc.err }
				o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			})
			resp, body := s.do(t, "GET", "/readyz", "")
			if resp.StatusCode != tc.status || !bytes.Contains(body, []byte(tc.code)) || !bytes.Contains(body, []byte(tc.shown)) {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
			if bytes.Contains(body, []byte("/var/lib")) {
				t.Errorf("the answer shows a path of the host: %s", body)
			}
			if resp, _ := s.do(t, "GET", "/healthz", ""); resp.StatusCode != 200 {
				t.Errorf("/healthz: %d", resp.StatusCode)
			}
		})
	}
}

// What is still being compiled or started is named to everybody, by kinds alone.
func TestReadyNamesWhatIsWarming(t *testing.T) {
	kinds := []string{"wasm:python", "wasm:wasi"}
	s := start(t, func(o *api.Options) { o.Warming = func() []string { return kinds } })
	if resp, body := s.do(t, "GET", "/readyz", ""); resp.StatusCode != 200 || !bytes.Contains(body, []byte(`"status":"ok","version":"0.1.0","warming":["wasm:python","wasm:wasi"]}`)) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if resp, body := s.do(t, "GET", path, ""); resp.StatusCode != 200 || bytes.Contains(body, []byte("warming")) {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
		kinds = nil
	}
}

func TestPanicsAreLoggedAndNotShown(t *testing.T) {
	var log bytes.Buffer
	s := start(t, func(o *api.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	resp, body := s.do(t, "POST", "/skills/panic:invoke", `{"input":{}}`, "X-Trace-Id", "p-1")
	if resp.StatusCode != 500 || bytes.Contains(body, []byte("shadow")) || bytes.Contains(body, []byte("goroutine")) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if !strings.Contains(log.String(), "trace_id=p-1") || !strings.Contains(log.String(), "shadow") {
		t.Errorf("log: %s", log.String())
	}
}

// The page must work without a network: nothing that it loads is elsewhere.
func TestDocsWorkOffline(t *testing.T) {
	s := start(t, nil)
	for _, path := range []string{"/docs", "/docs/"} {
		resp, page := s.do(t, "GET", path, "")
		if resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
			t.Fatalf("%s: %d %s", path, resp.StatusCode, page)
		}
		if bytes.Contains(page, []byte("://")) {
			t.Errorf("the page names another host: %s", page)
		}
		if regexp.MustCompile(`<script>|<style|\son\w+=`).Match(page) {
			t.Errorf("the page has inline code, which its policy forbids: %s", page)
		}
		csp := resp.Header.Get("Content-Security-Policy")
		for _, rule := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"} {
			if !strings.Contains(csp, rule) {
				t.Errorf("policy %q lacks %s", csp, rule)
			}
		}
		if strings.Contains(csp, "http") || strings.Contains(csp, "*") {
			t.Errorf("policy %q allows other hosts", csp)
		}
		assets := regexp.MustCompile(`(?:src|href)="(/[^"]+)"`).FindAllSubmatch(page, -1)
		if len(assets) < 5 { // a style, two scripts, two icons
			t.Fatalf("only %d files in the page", len(assets))
		}
		for _, a := range assets {
			resp, plain := s.do(t, "GET", string(a[1]), "")
			if resp.StatusCode != 200 || len(plain) == 0 || resp.Header.Get("Content-Encoding") != "" {
				t.Errorf("%s: %d, %d bytes, encoding %q", a[1], resp.StatusCode, len(plain), resp.Header.Get("Content-Encoding"))
			}
			resp, packed := s.do(t, "GET", string(a[1]), "", "Accept-Encoding", "gzip")
			if enc := resp.Header.Get("Content-Encoding"); enc == "gzip" && len(packed) >= len(plain) || enc != "" && enc != "gzip" {
				t.Errorf("%s: encoding %q, %d bytes of %d", a[1], enc, len(packed), len(plain))
			}
			if strings.HasSuffix(string(a[1]), ".css") && regexp.MustCompile(`url\(["']?(https?:)?//`).Match(plain) {
				t.Errorf("%s loads from another host", a[1])
			}
		}
	}
	for _, path := range []string{"/docs/nothing.js", "/docs/swagger-ui.js", "/docs/..%2fserver.go", "/docs/docs.html", "/docs/a/b"} {
		if resp, body := s.do(t, "GET", path, ""); resp.StatusCode != 404 {
			t.Errorf("%s: %d %.100s", path, resp.StatusCode, body)
		}
	}
	if resp, _ := s.do(t, "GET", "/docs/docs.js", ""); strings.Contains(resp.Header.Get("Content-Type"), "json") {
		t.Errorf("docs.js has type %q", resp.Header.Get("Content-Type"))
	}
}

// Whoever asks for the largest file of the page, which nobody needs credentials for, costs
// the host no copy of it.
func TestDocsAreNotCopied(t *testing.T) {
	s := start(t, nil)
	c := s.dial(t)
	get := func(header string) (size int64) {
		c.send(t, "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n"+header+"\r\n")
		resp, err := http.ReadResponse(c.br, nil)
		musttest.Do(t, err)
		if size, err = io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%d %v", resp.StatusCode, err)
		}
		return size
	}
	const times = 20
	for name, header := range map[string]string{"plain": "", "packed": "Accept-Encoding: gzip\r\n"} {
		size := get(header)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			if got := get(header); got != size {
				t.Fatalf("%s: %d bytes, and then %d", name, size, got)
			}
		}
		runtime.ReadMemStats(&after)
		if each := (after.TotalAlloc - before.TotalAlloc) / times; each > 128<<10 {
			t.Errorf("%s: an answer of %d bytes allocates %d", name, size, each)
		}
	}
}

func TestOpenAPIDocument(t *testing.T) {
	want := musttest.Get(os.ReadFile("openapi.json"))(t)
	if _, got := start(t, nil).do(t, "GET", "/openapi.json", ""); !bytes.Equal(got, want) {
		t.Errorf("the document that is served differs from the file: %.200s", got)
	}
}

// A host that is out of descriptors must not stop for good.
func TestAcceptWaitsOutShortages(t *testing.T) {
	inner := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := &server{Addr: inner.Addr().String()}
	server := musttest.Get(api.New(api.Options{Door: apitest.NewDoor(), Catalogue: apitest.NewCatalogue()}))(t)
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(&failing{Listener: inner, errs: []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED}})
	}()
	if resp, _ := s.do(t, "GET", "/healthz", ""); resp.StatusCode != 200 {
		t.Errorf("status %d", resp.StatusCode)
	}
	if err := server.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := wait(t, "Serve's end", served); err != nil {
		t.Errorf("Serve = %v", err)
	}
}

type failing struct {
	net.Listener
	errs []error
}

func (f *failing) Accept() (net.Conn, error) {
	if len(f.errs) > 0 {
		err := &net.OpError{Op: "accept", Err: f.errs[0]}
		f.errs = f.errs[1:]
		return nil, err
	}
	return f.Listener.Accept()
}
