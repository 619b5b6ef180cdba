package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// talk is a session whose client writes lines and reads lines.
type talk struct {
	t   *testing.T
	in  *os.File
	out *bufio.Reader
	end func() error // ends the input, and gives what the session returned
}

func converse(t *testing.T, s *Server, p skill.Principal) *talk {
	t.Helper()
	fromClient, toServer := pipe(t)
	fromServer, toClient := pipe(t)
	done := make(chan error, 1)
	go func() {
		done <- s.ServeStdio(context.Background(), p, fromClient, toClient)
		_ = toClient.Close()
	}()
	ended := false
	c := &talk{t: t, in: toServer, out: bufio.NewReader(fromServer)}
	c.end = func() error {
		if ended {
			return nil
		}
		ended = true
		_ = toServer.Close()
		return <-done
	}
	t.Cleanup(func() {
		if err := c.end(); err != nil {
			t.Errorf("the session ended with %v", err)
		}
		_, _ = fromClient.Close(), fromServer.Close()
	})
	return c
}

func (c *talk) say(line string) {
	c.t.Helper()
	musttest.Get(io.WriteString(c.in, line+"\n"))(c.t)
}

func (c *talk) hear() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatalf("%v after %q", err, line)
	}
	return strings.TrimSuffix(line, "\n")
}

// What differs from run to run.
var (
	madeUp  = regexp.MustCompile(`"[0-9a-f]{32}"`)
	latency = regexp.MustCompile(`"latency_ms":\d+`)
)

func settle(line string) string {
	return latency.ReplaceAllString(madeUp.ReplaceAllString(line, `"…"`), `"latency_ms":0`)
}

// TestConversations plays testdata/*.txtar: in each file the lines of clients, named
// 1, 2 and so on, and after each one what the server says to it. A line that is a
// notification, or a blank one, is answered by nothing.
func TestConversations(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d conversations, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a := musttest.Get(txtar.ParseFile(name))(t)
			agents, _ := folders(t, converter())
			c := converse(t, newServer(t, Options{AgentSkills: agents, Version: "1.2.3", BodyLimit: 4096}), skill.Local())
			got := &txtar.Archive{Comment: a.Comment}
			for _, f := range a.Files {
				if f.Name != "client" {
					continue
				}
				line := strings.ReplaceAll(string(bytes.TrimSuffix(f.Data, []byte("\n"))), "LONG", strings.Repeat("x", 4096))
				c.say(line)
				got.Files = append(got.Files, f)
				var m struct{ ID, Method any }
				if broken := json.Unmarshal([]byte(line), &m) != nil; line == "" || !broken && m.ID == nil && m.Method != nil {
					continue
				}
				got.Files = append(got.Files, txtar.File{Name: "server", Data: []byte(settle(c.hear()) + "\n")})
			}
			if err := c.end(); err != nil {
				t.Error(err)
			}
			if rest, err := io.ReadAll(c.out); err != nil || len(rest) > 0 {
				t.Errorf("the server said more: %s, %v", rest, err)
			}
			if *update {
				musttest.Do(t, os.WriteFile(name, txtar.Format(got), 0o600))
				return
			}
			if diff := cmp.Diff(string(txtar.Format(a)), string(txtar.Format(got))); diff != "" {
				t.Errorf("(-said +says, -update takes it over):\n%s", diff)
			}
		})
	}
}
