package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/api"
	"openskill/internal/musttest"
)

// Most clients send all of a body before they look at the answer.
const python = `
import sys, urllib.request, urllib.error
body = b"x" * int(sys.argv[2])
request = urllib.request.Request(sys.argv[1], body, {"Content-Type": sys.argv[3]})
try:
    print(urllib.request.urlopen(request).read())
except urllib.error.HTTPError as refused:
    print(refused.code, refused.read().decode())
`

// A body that is refused is read on, up to a bound, so that a client that sends all of it first
// finds the answer: not a reset in the middle.
func TestRefusedBodiesAreReadOn(t *testing.T) {
	const size = 40 << 20
	s, _ := startUploads(t, func(o *api.Options) {
		o.BodyLimit, o.UploadLimit, o.MCP = 1<<20, 8<<20, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	})
	body := strings.Repeat("x", size)
	for _, c := range []struct {
		path, kind string
		status     int
	}{
		{"/skills/echo:invoke", "application/json", 413},
		{"/skills", "multipart/form-data; boundary=b", 413},
		{"/skills", "text/plain", 413},
		{"/nosuch", "application/json", 404},
		{"/mcp", "application/json", 413},
	} {
		t.Run(c.path+" "+c.kind, func(t *testing.T) {
			for _, length := range []string{fmt.Sprintf("Content-Length: %d\r\n\r\n%s", size, body), fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", size, body)} {
				conn := s.dial(t)
				conn.send(t, "POST "+c.path+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+c.kind+"\r\n"+length)
				if resp, answer := conn.answer(t, "POST", c.path); resp.StatusCode < 400 || resp.StatusCode >= 500 || !bytes.HasPrefix(answer, []byte("{")) {
					t.Errorf("%d %.300s", resp.StatusCode, answer)
				}
				conn.ended(t)
			}
			url := "http://" + s.Addr + c.path
			if python3, err := exec.LookPath("python3"); err == nil {
				out, err := exec.CommandContext(t.Context(), python3, "-c", python, url, fmt.Sprint(size), c.kind).CombinedOutput()
				if err != nil || !bytes.HasPrefix(out, []byte(fmt.Sprint(c.status, " {"))) {
					t.Errorf("urllib: %v, %.500s", err, out)
				}
			}
			if curl, err := exec.LookPath("curl"); err == nil {
				file := filepath.Join(t.TempDir(), "body")
				musttest.Do(t, os.WriteFile(file, []byte(body), 0o600))
				out, err := exec.CommandContext(t.Context(), curl, "-sS", "--max-time", "60", "-H", "Expect:", "-H", "Content-Type: "+c.kind, "--data-binary", "@"+file, "-w", " %{http_code}", url).CombinedOutput()
				if err != nil || !bytes.HasPrefix(out, []byte("{")) || !bytes.HasSuffix(out, []byte(fmt.Sprint(" ", c.status))) {
					t.Errorf("curl: %v, %.500s", err, out)
				}
			}
		})
	}
}
