package egress_test

import (
	"archive/zip"
	"compress/gzip"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/workers/egress"
	"openskill/internal/musttest"
	"openskill/plugins/python"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

var update = flag.Bool("update", false, "write testdata/python/*.txt")

// site answers Python's libraries as the servers do that scripts meet.
func site(w http.ResponseWriter, r *http.Request) {
	part := func(i int) string {
		if parts := strings.Split(r.URL.Path, "/"); i < len(parts) {
			return parts[i]
		}
		return ""
	}
	n, _ := strconv.Atoi(part(2))
	switch part(1) {
	case "status":
		w.WriteHeader(n)
		fmt.Fprintf(w, "status %d", n)
	case "redirect":
		if n == 0 {
			fmt.Fprintf(w, "arrived by %s", r.Method)
			return
		}
		http.Redirect(w, r, fmt.Sprintf("/redirect/%d", n-1), http.StatusFound)
	case "chunks":
		for i := range n {
			fmt.Fprintf(w, "chunk %d\n", i)
			w.(http.Flusher).Flush()
		}
	case "gzip":
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		z := gzip.NewWriter(w)
		fmt.Fprintf(z, `{"gzip": %q}`, r.Header.Get("Accept-Encoding"))
		_ = z.Close()
	case "large":
		line := strings.Repeat("x", 1023) + "\n"
		for range n {
			_, _ = io.WriteString(w, line)
		}
	case "cookies":
		if c, err := r.Cookie("session"); err == nil {
			fmt.Fprintf(w, "session %s", c.Value)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "s-1", Path: "/"})
		http.SetCookie(w, &http.Cookie{Name: "theme", Value: "dark", Path: "/"})
		_, _ = io.WriteString(w, "new session")
	case "multipart":
		if err := r.ParseMultipartForm(1 << 20); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var lines []string
		for name, values := range r.MultipartForm.Value {
			lines = append(lines, name+"="+values[0])
		}
		for name, files := range r.MultipartForm.File {
			f, err := files[0].Open()
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			b, _ := io.ReadAll(f)
			_ = f.Close()
			lines = append(lines, fmt.Sprintf("%s=%s:%d", name, files[0].Filename, len(b)))
		}
		sort.Strings(lines)
		_, _ = io.WriteString(w, strings.Join(lines, " "))
	case "echo":
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %q auth=%s x=%s", r.Method, r.URL.RequestURI(), b, r.Header.Get("Authorization"), r.Header.Get("X-Key"))
	case "slow":
		select {
		case <-r.Context().Done():
		case <-time.After(10 * time.Second):
		}
	case "reset", "bad-status", "headers":
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		switch part(1) {
		case "reset":
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this")
		case "bad-status":
			_, _ = io.WriteString(conn, "HTTP/1.1 abc OK\r\n\r\n")
		default:
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+strings.Repeat("X-Many: 1\r\n", n)+"Content-Length: 2\r\n\r\nok")
		}
	default:
		http.NotFound(w, r)
	}
}

// pythons runs scripts in the sandbox, with requests by a client of this package.
type pythons struct {
	runner      *python.Runner
	http, https *httptest.Server
	packages    string // folder of wheels; "" for none
	grants      []skill.HTTPRule
}

const stateDir = "../../../.openskill"

func newPythons(t *testing.T) *pythons {
	t.Helper()
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if state == "" {
		state = stateDir
	}
	state = musttest.Get(filepath.Abs(state))(t)
	p := &pythons{http: serve(t, site), https: httptest.NewTLSServer(http.HandlerFunc(site))}
	t.Cleanup(p.https.Close)
	if wheels, _ := filepath.Glob(filepath.Join(state, "python-packages", "*.whl")); len(wheels) > 0 {
		p.packages = filepath.Join(state, "python-packages")
	}
	e := musttest.Get(wasm.Open(&wasm.Options{CacheDir: filepath.Join(state, "cache", "wasm")}))(t)
	t.Cleanup(func() { _ = e.Close() })
	roots := x509.NewCertPool()
	roots.AddCert(p.https.Certificate())
	client := egress.New(&egress.Options{RootCAs: roots, MaxRequests: 200, MaxHeader: 256 << 10})
	p.runner = python.New(e, &python.Options{StateDir: state, Outgoing: client})
	t.Cleanup(func() { _ = p.runner.Close() })
	if err := runnertest.Ready(t.Context(), p.runner); err != nil {
		var unready *skill.Error
		if errors.As(err, &unready) && strings.Contains(unready.Message, "install") {
			t.Skip("no Python runtime is installed; run make runtimes")
		}
		t.Fatal(err)
	}
	p.grants = rules(t, p.http.URL+" GET,HEAD,POST,PUT,DELETE", p.https.URL+" GET,POST")
	return p
}

// call is one of a script in a folder of its own, with wheels beside it.
func (p *pythons) call(t *testing.T, text string, wheels ...string) *skill.Call {
	t.Helper()
	c := &skill.Call{
		SkillID: "asker", Folder: t.TempDir(), Entry: "scripts/main.py", Script: true, Args: []string{p.http.URL, p.https.URL},
		Grants: skill.Grants{HTTP: p.grants},
		Limits: skill.Limits{Timeout: 2 * time.Minute, Memory: 256 << 20, Fuel: 1e12, Output: 1 << 20, Scratch: 64 << 20},
	}
	write := func(name string, b []byte) {
		name = filepath.Join(c.Folder, "scripts", filepath.FromSlash(name))
		musttest.Do(t, os.MkdirAll(filepath.Dir(name), 0o700))
		musttest.Do(t, os.WriteFile(name, b, 0o600))
	}
	write("main.py", []byte(text))
	for _, w := range wheels {
		found, _ := filepath.Glob(filepath.Join(p.packages, w+"-*.whl"))
		if p.packages == "" || len(found) != 1 {
			t.Skip("the packages of Python are not set up: run scripts/python-packages.sh .openskill/python-packages, which needs pip")
		}
		z := musttest.Get(zip.OpenReader(found[0]))(t)
		defer z.Close()
		for _, f := range z.File {
			if path.Ext(f.Name) == ".so" {
				t.Fatalf("%s is native code: %s", found[0], f.Name)
			}
			r := musttest.Get(f.Open())(t)
			b := musttest.Get(io.ReadAll(r))(t)
			_ = r.Close()
			write(f.Name, b)
		}
	}
	return c
}

func (p *pythons) run(t *testing.T, c *skill.Call) *skill.Reply {
	t.Helper()
	return musttest.Get(runnertest.Do(t.Context(), p.runner, c))(t)
}

var aiohttp = []string{"aiohttp", "aiohappyeyeballs", "aiosignal", "attrs", "frozenlist", "idna", "multidict", "propcache", "typing_extensions", "yarl"}

// Libraries of Python make requests as they were written to: what each script of
// testdata/python prints is in the text beside it.
func TestPythonLibraries(t *testing.T) {
	p := newPythons(t)
	for name, wheels := range map[string][]string{
		"urllib":   nil,
		"sockets":  nil,
		"asyncio":  nil,
		"requests": {"requests", "urllib3", "idna", "certifi"},
		"httpx":    {"httpx", "httpcore", "h11", "anyio", "sniffio", "idna", "certifi"},
		"aiohttp":  aiohttp,
	} {
		t.Run(name, func(t *testing.T) {
			text := musttest.Get(os.ReadFile(filepath.Join("testdata", "python", name+".py")))(t)
			r := p.run(t, p.call(t, string(text), wheels...))
			got := strings.NewReplacer(p.http.URL, "HTTP", p.https.URL, "HTTPS").Replace(string(r.Stdout))
			if r.Code != "" || r.ExitCode != 0 {
				t.Fatalf("code %q, exit code %d\n%s\n%s", r.Code, r.ExitCode, got, r.Stderr)
			}
			golden := filepath.Join("testdata", "python", name+".txt")
			if *update {
				musttest.Do(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want := musttest.Get(os.ReadFile(golden))(t)
			if d := cmp.Diff(string(want), got); d != "" {
				t.Error(d)
			}
		})
	}
}

// A skill's own runner replays the responses that were recorded, with the network gone.
func TestPythonRequestsAreReplayed(t *testing.T) {
	p := newPythons(t)
	c := p.call(t, `
import sys, time, urllib.request
print([urllib.request.urlopen(sys.argv[1] + path).read() for path in ("/redirect/1", "/chunks/2")], time.time())
`)
	c.Record = 1 << 20
	then := p.run(t, c)
	if then.Recording == nil || then.Recording.Draws == nil || !strings.Contains(string(then.Stdout), "arrived by GET") {
		t.Fatalf("%+v\n%s%s", then.Recording, then.Stdout, then.Stderr)
	}
	p.http.Close()
	again := *c
	again.Record, again.Replay = 0, then.Recording.Draws
	if now := p.run(t, &again); string(now.Stdout) != string(then.Stdout) || now.Usage.Fuel != then.Usage.Fuel {
		t.Errorf("%s%s\nthen %s", now.Stdout, now.Stderr, then.Stdout)
	}
}

// A skill that was not given its input yet may make requests too: the first one ends what
// its runs share.
func TestPythonRequestsBeforeReading(t *testing.T) {
	p := newPythons(t)
	c := p.call(t, `
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1] + "/status/200").read(), sys.stdin.read())
`)
	c.Script, c.Stdin = false, []byte("input")
	for range 2 {
		if r := p.run(t, c); string(r.Stdout) != "b'status 200' input\n" {
			t.Errorf("%s%s", r.Stdout, r.Stderr)
		}
	}
}
