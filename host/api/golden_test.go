package api_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"openskill/host/agent/conversations"
	"openskill/internal/musttest"
)

var update = flag.Bool("update", false, "write the golden conversations anew")

func itoa(n int) string { return strconv.Itoa(n) }

// TestConversations plays testdata/*.txtar: requests and the answers to them,
// over one connection that is only replaced where the server closed it.
func TestConversations(t *testing.T) {
	playAll(t, "testdata/*.txtar", func(t *testing.T) *server { return start(t, nil) })
}

// TestConversationsOfTenants plays testdata/tenants/*.txtar, where everything is behind
// the edge and callers show keys.
func TestConversationsOfTenants(t *testing.T) {
	playAll(t, "testdata/tenants/*.txtar", func(t *testing.T) *server {
		w := newWorld(t)
		w.addHeld("held")
		w.chat.Add(w.keys["ann"], "mark waits", waits("mark-approval")) // number 1
		w.react.Keep(conversations.Session{
			ID: "00000000-0000-7000-a000-000000000001", Owner: conversations.Owner{Tenant: ours, Principal: "mark-ann"}, PrincipalType: "agent",
			Status: "terminated", Iterations: 1, Tokens: 800, DurationMS: 1234, CreatedAt: worldTime,
		})
		return w.server
	})
}

func playAll(t *testing.T, pattern string, start func(*testing.T) *server) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			old := musttest.Get(txtar.ParseFile(file))(t)
			s := start(t)
			played := &txtar.Archive{Comment: old.Comment}
			var c *raw
			for _, f := range old.Files {
				name, isRequest := strings.CutSuffix(f.Name, ".request")
				if !isRequest {
					continue
				}
				if c == nil {
					c = s.dial(t)
				}
				text, method, path := requestText(string(f.Data))
				c.send(t, text)
				resp, body := c.answer(t, method, path)
				if resp.Close {
					c.ended(t)
					c = nil
				}
				played.Files = append(played.Files, f, txtar.File{Name: name + ".response", Data: responseText(resp, body)})
			}
			got := txtar.Format(played)
			if *update {
				musttest.Do(t, os.WriteFile(file, got, 0o644))
				return
			}
			if diff := cmp.Diff(string(txtar.Format(old)), string(got)); diff != "" {
				t.Errorf("run with -update after checking:\n%s", diff)
			}
		})
	}
}

// requestText makes a request of what a person wrote: line ends, Host and
// Content-Length are added.
func requestText(s string) (text, method, path string) {
	head, body, _ := strings.Cut(s, "\n\n")
	body = strings.TrimSuffix(body, "\n")
	lines := strings.Split(strings.TrimSuffix(head, "\n"), "\n")
	words := strings.Fields(lines[0])
	lines = append(lines, "Host: localhost")
	if body != "" {
		lines = append(lines, "Content-Length: "+itoa(len(body)))
	}
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + body, words[0], words[1]
}

// responseText leaves out what every answer has (checkResponse looks at that)
// and what differs from run to run.
func responseText(resp *http.Response, body []byte) []byte {
	trace := resp.Header.Get("X-Trace-Id")
	for _, name := range []string{
		"Date", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy",
		"Cross-Origin-Resource-Policy", "Cache-Control", "Content-Security-Policy", "Content-Length",
	} {
		resp.Header.Del(name)
	}
	var lines []string
	for name, values := range resp.Header {
		lines = append(lines, name+": "+strings.Join(values, ", "))
	}
	sort.Strings(lines)
	text := fmt.Sprintf("HTTP/1.1 %s\n%s\n\n%s", resp.Status, strings.Join(lines, "\n"), body)
	if len(trace) == 32 {
		text = strings.ReplaceAll(text, trace, "<new trace id>")
	}
	return []byte(strings.TrimRight(text, "\n") + "\n")
}
