package app

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"openskill/host/app/config"
	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
	"openskill/wasm/wasmtest"
)

// requesting is a module that reads its input, sends a request, and prints the first
// line of the answer if there is no body: that is one JSON object.
func requesting(request string) []byte {
	b := wasmtest.New()
	read, write := b.Import("fd_read"), b.Import("fd_write")
	ask, response := b.Import("http_request"), b.Import("http_read")
	b.Memory(2)
	b.Data(0, "\x00\x10\x00\x00\x00\x10\x00\x00\x00\x20\x00\x00\x00\x00\x00\x00")
	b.Data(0x8000, request)
	i := wasmtest.I32
	call := func(f uint32, args ...int64) wasmtest.Code {
		var c wasmtest.Code
		for _, a := range args {
			c += i(a)
		}
		return c + wasmtest.Call(f) + wasmtest.Drop
	}
	b.Command(call(read, 0, 0, 1, 16) + call(ask, 0x8000, int64(len(request)), 16) + call(response, 0x2000, 0x1000, 16) +
		i(12) + i(16) + "\x28\x02\x00" + "\x36\x02\x00" + // the length of the output is what was read
		call(write, 1, 8, 1, 16))
	return b.Bytes()
}

// A request of a skill goes out where manifest and operator agree, from wherever the
// skill runs, and nowhere else.
func TestOutgoing(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer s.Close()
	allow := s.URL + " GET; @*/* http://192.0.2.1"
	for name, c := range map[string]struct {
		asks, allow string
		want        string // in the data
		sent        bool
	}{
		"granted":     {s.URL, allow, `"status":204`, true},
		"not asked":   {"https://example.com", allow, "NETWORK_DENIED", false},
		"not allowed": {s.URL, "https://example.com", "NETWORK_DENIED", false},
		"no network":  {s.URL, "", "OPENSKILL_HTTP_ALLOW", false},
		"uploads'":    {s.URL, "@*/* " + s.URL, "NETWORK_DENIED", false},
	} {
		for _, workers := range []string{"off", "tenant"} {
			t.Run(name+", workers "+workers, func(t *testing.T) {
				dir := t.TempDir()
				folder := filepath.Join(dir, "skills", "asker")
				musttest.Do(t, os.MkdirAll(folder, 0o700))
				manifest := fmt.Sprintf("id: asker\nversion: 0.1.0\ndescription: A test.\ntype: wasm\nruntime: wasi\nentry: asker.wasm\npermissions: {http: ['%s GET']}\n", c.asks)
				module := requesting(fmt.Sprintf(`{"url": "%s/x"}`, s.URL))
				for name, b := range map[string][]byte{"skill.yaml": []byte(manifest), "asker.wasm": module} {
					musttest.Do(t, os.WriteFile(filepath.Join(folder, name), b, 0o600))
				}
				set := load(t, config.Sources{Dir: dir, Flags: map[string]string{"workers": workers}, Environ: []string{"OPENSKILL_HTTP_ALLOW=" + c.allow}})
				var said logged
				h := musttest.Get(Open(set, &Options{Mode: Watched, Log: slog.New(slog.NewJSONHandler(&said, nil))}))(t)
				defer h.Close()
				before := asked.Load()
				r := h.Invoke(t.Context(), skill.Local(), skill.Request{SkillID: "asker", Input: []byte("{}"), TraceID: "t"})
				if !r.Success || !strings.Contains(string(r.Data), c.want) {
					t.Errorf("%s %+v, want %s", r.Data, r.Error, c.want)
				}
				if sent := asked.Load() > before; sent != c.sent {
					t.Errorf("a request was sent: %v", sent)
				}
				want := []records.Count{{Name: "asker", N: 1}}
				if c.sent {
					want = nil
				}
				if got := h.lately.window.Of("local").Denied; !slices.Equal(got, want) {
					t.Errorf("denied requests: %v, want %v", got, want)
				}
				_, told := said.of(t, "t")["a skill's request was denied"]
				if told == c.sent {
					t.Errorf("the log tells of a denied request: %v", told)
				}
				answer := httptest.NewRecorder()
				h.metrics.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
				if counted := strings.Contains(answer.Body.String(), `openskill_egress_denied_total{skill="asker",tenant="local"} 1`); counted == c.sent {
					t.Errorf("the metrics have a denied request: %v", counted)
				}
			})
		}
	}
}
