// Package console tests a host in a process of its own with a real browser and a real OpenID
// provider, which the product's module does not need.
package console

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/host/app/hosttest"
	"openskill/host/identity"
	"openskill/sdk/skill"
	"openskill/wasm/wasmtest"
)

// serving is a host that serves; dir is where it was started.
type serving struct {
	url, dir string
	settings *config.Settings
}

// prepare returns a host that is not started, with an empty folder of skills.
func prepare(t *testing.T, flags map[string]string) *serving {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "skills"), 0o700); err != nil {
		t.Fatal(err)
	}
	if flags["listen"] == "" {
		flags["listen"] = "127.0.0.1:0"
	}
	s, err := config.Load(config.Sources{Dir: dir, Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	return &serving{dir: dir, settings: s}
}

// start starts the host as users do, until the test ends.
func (v *serving) start(t *testing.T, flags map[string]string, env ...string) {
	t.Helper()
	args := []string{"serve"}
	for name, value := range flags {
		if value != "" {
			args = append(args, "--"+name+"="+value)
		}
	}
	var log bytes.Buffer
	cmd := exec.Command(hosttest.Program(t, "../.."), args...)
	cmd.Dir, cmd.Env, cmd.Stderr = v.dir, append(os.Environ(), env...), &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the host did not end well: %v", err)
		}
		if t.Failed() {
			t.Logf("the end of its log:\n%s", log.Bytes()[max(0, log.Len()-4000):])
		}
	})
	_, url, ok := strings.Cut(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("%q, %v", line, err)
	}
	v.url = url
}

// aKey is a key that a test has made.
type aKey struct{ id, text string }

// keysOf makes keys of one tenant by name and scopes.
func (v *serving) keysOf(t *testing.T, wanted map[string][]string) (*identity.Keys, map[string]aKey) {
	t.Helper()
	db, err := app.OpenStore(t.Context(), v.settings, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	keys, out := identity.NewKeys(identity.NewKeyStore(db)), map[string]aKey{}
	for name, scopes := range wanted {
		k, text, err := keys.Create(t.Context(), identity.NewKey{Name: name, Tenant: "acme", Scopes: scopes, By: "test"})
		if err != nil {
			t.Fatal(err)
		}
		out[name] = aKey{k.ID, text}
	}
	return keys, out
}

// asks calls a host with a key.
type asks struct {
	*serving
	key string
}

// ask returns the status and the body of an answer.
func (a asks) ask(t *testing.T, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", a.key)
	res, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// want asks, and reads the result, which must be a success.
func (a asks) want(t *testing.T, path, body string) skill.Result {
	t.Helper()
	status, text := a.ask(t, path, body)
	var out skill.Result
	if err := json.Unmarshal([]byte(text), &out); err != nil || status != http.StatusOK {
		t.Fatalf("%s: %d %s", path, status, text)
	}
	return out
}

// says is a module that prints text.
func says(text string) []byte {
	b := wasmtest.New()
	write := b.Import("fd_write")
	b.Memory(1)
	vec := make([]byte, 8)
	binary.LittleEndian.PutUint32(vec, 512)
	binary.LittleEndian.PutUint32(vec[4:], uint32(len(text)))
	b.Data(256, string(vec))
	b.Data(512, text)
	b.Command(wasmtest.I32(1) + wasmtest.I32(256) + wasmtest.I32(1) + wasmtest.I32(1032) + wasmtest.Call(write) + wasmtest.Drop)
	return b.Bytes()
}

const wasiEntry = "type: wasm\nruntime: wasi\nentry: m.wasm\nlimits: {timeout_ms: 20000}\n"

// echo is the manifest of a skill that wants a text.
func echo(id string) string {
	return fmt.Sprintf("id: %s\nversion: 0.1.0\ndescription: An upload.\n%s", id, wasiEntry)
}

// write puts files into the folder of skills.
func (v *serving) write(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(v.dir, "skills", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// zipped is a folder as an archive.
func zipped(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
