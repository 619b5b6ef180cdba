//go:build unix && !race

package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/app/hosttest"
	"openskill/internal/musttest"
	"openskill/sdk/client"
	"openskill/sdk/skill"
)

// codeOf is the code of an error of the client; "" of another one.
func codeOf(err error) skill.Code {
	if e, ok := errors.AsType[*client.Error](err); ok {
		return e.Code
	}
	return ""
}

// TestSessionsOfKilledHosts: two hosts share a database. A frozen session goes on at the host that is asked first, and
// survives a host that is killed. A session that is not frozen ends with its host.
func TestSessionsOfKilledHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("short: starting a language takes seconds")
	}
	t.Setenv("OPENSKILL_DATABASE_URL", "sqlite:"+filepath.Join(t.TempDir(), "shared.db"))
	start := func() (*killable, *client.Client) {
		state := t.TempDir()
		hosttest.Runtimes(t, filepath.Join("..", ".."), state)
		k := launch(t, t.TempDir(), state)
		if !k.out.Scan() {
			t.Fatalf("the host does not start: %s", k.log.String())
		}
		_, url, _ := strings.Cut(k.out.Text(), "listening on ")
		return k, musttest.Get(client.New(url, nil))(t)
	}
	one, first := start()
	two, second := start()
	defer two.kill()
	value := func(c *client.Client, session, code string) string {
		t.Helper()
		r, err := c.RunCode(t.Context(), client.Code{Language: "python", Code: code, Session: session})
		if err != nil {
			if strings.Contains(err.Error(), "is not installed") {
				t.Skip(err)
			}
			return string(codeOf(err))
		}
		_, rest, _ := strings.Cut(string(r.Data), `"value":`)
		return strings.TrimRight(rest, "}")
	}
	moved := musttest.Get(first.CreateCodeSession(t.Context(), "python"))(t).ID
	lost := musttest.Get(first.CreateCodeSession(t.Context(), "python"))(t).ID
	if got := value(first, moved, "import json\nx = [1]\nlen(x)") + value(first, lost, "x = 1\nx"); got != "11" {
		t.Fatal(got)
	}
	if got := value(second, moved, "x"); got != "NOT_FOUND" {
		t.Errorf("in the memory of the other host: %s", got)
	}
	musttest.Get(first.FreezeCodeSession(t.Context(), moved))(t)
	if got := value(second, moved, "x.append(2)\njson.dumps(x)"); got != `"[1, 2]"` {
		t.Errorf("at the second host: %s", got)
	}
	musttest.Get(second.FreezeCodeSession(t.Context(), moved))(t)
	one.kill()
	again, third := start()
	defer again.kill()
	if got := value(third, moved, "x"); got != "[1,2]" && got != "[1, 2]" {
		t.Errorf("after the first host was killed: %s", got)
	}
	if got := value(third, lost, "x"); got != "NOT_FOUND" {
		t.Errorf("a session that was not frozen: %s", got)
	}
}
