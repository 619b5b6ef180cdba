package community

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/host/pysource"
	"openskill/host/workers/egress"
	"openskill/internal/musttest"
	"openskill/plugins/all"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// sandbox runs scripts as a worker process does, with requests to the server of each case.
type sandbox struct {
	runners map[skill.Kind]skill.Runner
	dir     string // where packages are kept

	mu       sync.Mutex
	clients  map[string]*egress.Client // by the call's execution
	packages map[string]*installed     // by their names
}

// For implements [skill.Outgoing].
func (s *sandbox) For(call *skill.Call) skill.Fetch {
	s.mu.Lock()
	c := s.clients[call.ExecutionID]
	s.mu.Unlock()
	if c == nil {
		c = egress.New(nil)
	}
	return c.For(call)
}

func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	e := musttest.Get(wasm.Open(&wasm.Options{CacheDir: filepath.Join(state(t), "cache", "wasm"), ImageBytes: 4 << 30}))(t)
	t.Cleanup(func() { _ = e.Close() }) // the cases say what failed
	s := &sandbox{runners: map[skill.Kind]skill.Runner{}, dir: t.TempDir(), clients: map[string]*egress.Client{}, packages: map[string]*installed{}}
	var read *pysource.Analyzer // by the runner itself, as a host has it
	imports := func(ctx context.Context, s *skill.Spec, script []byte) ([]string, error) {
		return read.Imports(ctx, s, script)
	}
	for _, r := range all.Sandboxed(all.Options{Engine: e, StateDir: state(t), Outgoing: s, Imports: imports}) {
		t.Cleanup(func() { _ = r.Close() })
		s.runners[r.Kind()] = r
	}
	read = pysource.New(pysource.Options{Runner: s.runners[skill.WasmPython], Dir: t.TempDir()})
	for _, kind := range []skill.Kind{skill.WasmPython, skill.WasmJavaScript, skill.WasmShell} {
		if err := runnertest.Ready(t.Context(), s.runners[kind]); err != nil {
			t.Skip(err) // not installed: the message says what to run
		}
	}
	return s
}

func (k *kase) kind() skill.Kind {
	switch k.interpreter()[0] {
	case "python3":
		return skill.WasmPython
	case "bash":
		return skill.WasmShell
	}
	return skill.WasmJavaScript
}

// run runs a case in the sandbox. The digest of a folder without files of the case is that
// of the collection's part: one image serves its cases.
func (s *sandbox) run(t *testing.T, k *kase, folder string) *outcome {
	t.Helper()
	name := filepath.Base(folder)
	if len(k.Files) > 0 {
		own := filepath.Join(t.TempDir(), name)
		musttest.Do(t, os.CopyFS(own, os.DirFS(folder)))
		k.put(t, own)
		folder = own
	}
	folder = musttest.Get(filepath.EvalSymlinks(folder))(t)
	id := k.of.Name + "/" + k.Name
	call := &skill.Call{
		SkillID: skill.ID(name), TraceID: "community", ExecutionID: id, Tenant: "test", Folder: folder, Entry: k.Script, Digest: id,
		Trust: skill.Trusted, Args: k.Args, Stdin: []byte(k.Stdin), Script: true,
		Limits: skill.Limits{Timeout: 3 * time.Minute, Memory: 512 << 20, Fuel: 1 << 37, Output: 8 << 20, Scratch: 64 << 20},
	}
	for _, name := range slices.Sorted(maps.Keys(k.Env)) {
		call.Grants.Env = append(call.Grants.Env, name+"="+k.Env[name])
	}
	if len(k.Packages) > 0 {
		call.Grants.Packages = s.packagesOf(t, k).set
	}
	s.answer(t, k, call)
	reply, err := runnertest.Do(t.Context(), s.runners[k.kind()], call)
	if err != nil {
		return &outcome{failed: err.Error()}
	}
	o := &outcome{exit: int(reply.ExitCode), stdout: reply.Stdout, stderr: reply.Stderr, files: map[string][]byte{}}
	if reply.Code != "" {
		o.failed = fmt.Sprintf("%s: %s", reply.Code, reply.Message)
	}
	for _, a := range reply.Artifacts {
		was, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(a.Name)))
		if err != nil || string(was) != string(a.Data) { // written again as it was is no change
			o.files[a.Name] = a.Data
		}
	}
	return o
}

// answer starts the server of a case, and has the requests of its call go there.
func (s *sandbox) answer(t *testing.T, k *kase, call *skill.Call) {
	t.Helper()
	if len(k.HTTP) == 0 {
		return
	}
	ca := newAuthority(t)
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	at := map[uint16]string{}
	for _, port := range []uint16{80, 443} {
		l := musttest.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
		at[port] = l.Addr().String()
		if port == 443 {
			l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{ca.certificate(t, k.hosts(t))}, MinVersion: tls.VersionTLS12})
		}
		server := &http.Server{Handler: handler(k.HTTP), ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(l) }() // until it is closed
		t.Cleanup(func() { _ = server.Close() })
	}
	for _, a := range k.HTTP {
		scheme, rest, _ := strings.Cut(a.URL, "://")
		name, _, _ := strings.Cut(rest, "/")
		rule := musttest.Get(skill.ParseHTTPRule(scheme + "://" + name + " GET,HEAD,POST,PUT,PATCH,DELETE"))(t)
		call.Grants.HTTP = append(call.Grants.HTTP, rule)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[call.ExecutionID] = egress.New(&egress.Options{
		MaxRequests: 64, Resolver: everywhere{}, RootCAs: pool,
		Dial: func(ctx context.Context, network string, address netip.AddrPort) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, at[address.Port()])
		},
	})
}
