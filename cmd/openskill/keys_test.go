package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/host/identity"
	"openskill/host/store"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// runKeys runs a command line that must end with an exit code, and gives what it printed.
func runKeys(t *testing.T, state string, exit int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	args = append([]string{"keys"}, append(args, "--state", state)...)
	if code := Run(t.Context(), args, strings.NewReader(""), &out, &err); code != exit {
		t.Fatalf("%q: exit code %d, want %d: %s%s", args, code, exit, &out, &err)
	}
	return out.String(), err.String()
}

// A key that is created here is good for a host on the same database that runs, and
// ends there when it is revoked here.
func TestKeysOfARunningHost(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	db := musttest.Get(store.Open(t.Context(), store.Options{StateDir: state}))(t)
	t.Cleanup(func() { _ = db.Close() })
	now := time.Now()
	host := musttest.Get(identity.New(identity.Options{Keys: identity.NewKeyStore(db), Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}))(t)
	t.Cleanup(func() { _ = host.Close() })
	is := func(text string, code skill.Code) {
		t.Helper()
		now = now.Add(500 * time.Millisecond) // what the host knows is this old
		p, err := host.Authenticate(t.Context(), identity.Credentials{APIKey: []string{text}})
		if skill.CodeOf(err) != code || code == "" && (p.Tenant != "acme" || !p.MayInvoke("echo") || p.MayInvoke("other")) {
			t.Errorf("%+v, %v, want %q", p, err, code)
		}
	}
	made := func(args ...string) shownKey {
		t.Helper()
		stdout, stderr := runKeys(t, state, 0, append(args, "--json")...)
		var k shownKey
		if err := json.Unmarshal([]byte(stdout), &k); err != nil || stderr != "" {
			t.Fatalf("%v: %s%s", err, stdout, stderr)
		}
		return k
	}
	k := made("create", "--name", "the robot", "--tenant", "acme", "--scopes", "skills:read,skills:invoke:echo", "--expires", "720h")
	if k.Name != "the robot" || k.Principal != "key:"+k.ID || k.State != "active" || k.CreatedBy != "local" || k.ExpiresAt.Sub(*k.CreatedAt) != 720*time.Hour {
		t.Errorf("%+v", k)
	}
	is(k.Key, "")
	next := made("rotate", k.ID, "--overlap", "1h")
	if next.ID != k.ID || next.Key == k.Key || next.OldUntil == nil {
		t.Errorf("%+v", next)
	}
	is(next.Key, "")
	is(k.Key, "")
	last := made("rotate", "key:"+k.ID, "--overlap", "0s")
	is(next.Key, skill.Unauthorized)
	is(k.Key, skill.Unauthorized)
	is(last.Key, "")

	if stdout, _ := runKeys(t, state, 0, "revoke", last.Key); !strings.Contains(stdout, k.ID+`: the key "the robot" of acme is revoked since `) || strings.Contains(stdout, last.Key[21:]) {
		t.Errorf("%s", stdout)
	}
	is(last.Key, skill.Unauthorized)
	if _, stderr := runKeys(t, state, 1, "rotate", k.ID); !strings.Contains(stderr, "revoked or expired") {
		t.Errorf("%s", stderr)
	}

	// No form of a key is in the database, nor in what can be asked later.
	for _, args := range [][]string{{"list"}, {"list", "--json"}, {"show", k.ID}, {"show", k.ID, "--json"}} {
		stdout, stderr := runKeys(t, state, 0, args...)
		if !strings.Contains(stdout, k.ID) || !strings.Contains(stdout, "revoked") {
			t.Errorf("%q: %s", args, stdout)
		}
		for _, text := range []string{k.Key, next.Key, last.Key} {
			if strings.Contains(stdout+stderr, text[21:]) {
				t.Errorf("%q shows a key", args)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(state, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		b := musttest.Get(os.ReadFile(f))(t)
		if bytes.Contains(b, []byte(k.Key[21:73])) {
			t.Errorf("%s has a key", filepath.Base(f))
		}
	}
}

func TestKeysForPeople(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	stdout, stderr := runKeys(t, state, 0, "create", "--name", "x", "--tenant", "acme", "--scopes", "admin, skills:read", "--expires", "never")
	for _, want := range []string{"key            osk_", "scopes         admin,skills:read\n", "expires        never\n", "last used      never\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in %s", want, stdout)
		}
	}
	if !strings.Contains(stderr, "this key cannot be shown again") {
		t.Errorf("%s", stderr)
	}
	if stdout, _ := runKeys(t, state, 0, "list", "--tenant", "other"); strings.Contains(stdout, "acme") {
		t.Errorf("%s", stdout)
	}
	// A key that nobody has seen is as good as lost, which is said.
	var errs bytes.Buffer
	args := []string{"keys", "create", "--name", "x", "--tenant", "acme", "--scopes", "admin", "--state", state}
	if code := Run(t.Context(), args, strings.NewReader(""), broken{}, &errs); code != exitHost || !strings.Contains(errs.String(), "openskill keys rotate") {
		t.Errorf("exit code %d, %s", code, &errs)
	}
}

func TestWrongKeysCommands(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	create := func(args ...string) []string {
		return append([]string{"create", "--name", "n", "--tenant", "t", "--scopes", "admin"}, args...)
	}
	for _, c := range []struct {
		exit int
		args []string
		says string
	}{
		{2, []string{"create"}, "needs --name"},
		{2, []string{"create", "--name", "n", "--scopes", "admin"}, "needs --tenant"},
		{2, []string{"create", "--name", "n", "--tenant", "t"}, "needs --scopes"},
		{2, create("--scopes", "admn"), `unknown scope "admn": use skills:read`},
		{2, create("--scopes", ","), "1 to 64 scopes"},
		{2, create("--tenant", "anonymous"), "invalid tenant"},
		{2, create("--tenant", "a b"), "invalid tenant"},
		{2, create("--name", "a\x1b[31m"), "invalid key name"},
		{2, create("--expires", "720"), "invalid lifetime"},
		{2, create("--expires", "0s"), "invalid lifetime"},
		{2, create("--expires", "87601h"), "at most 87600 h"},
		{2, create("more"), "takes no arguments"},
		{2, []string{"list", "--tenant", "*"}, "invalid tenant"},
		{2, []string{"show", "osk_mistyped"}, "needs a key id"},
		{2, []string{"rotate", "aaaaaaaaaaaaaaaa", "--overlap", "-1s"}, "from 0s to 720 h"},
		{2, []string{"rotate", "aaaaaaaaaaaaaaaa", "--overlap", "721h"}, "from 0s to 720 h"},
		{1, []string{"show", "aaaaaaaaaaaaaaaa"}, "key not found"},
		{1, []string{"rotate", "aaaaaaaaaaaaaaaa"}, "key not found"},
		{1, []string{"revoke", "aaaaaaaaaaaaaaaa"}, "aaaaaaaaaaaaaaaa: key not found"},
		{2, []string{"revoke", "aaaaaaaaaaaaaaaa", "x"}, "needs a key id"},
	} {
		stdout, stderr := runKeys(t, state, c.exit, c.args...)
		if !strings.Contains(stderr, c.says) || stdout != "" || strings.Contains(stderr, "mistyped") || strings.Contains(stderr, "\x1b") {
			t.Errorf("%q: %s, want %q", c.args, stderr, c.says)
		}
	}
	// A database that cannot be opened is the host's failure.
	musttest.Do(t, os.Mkdir(filepath.Join(state, "x"), 0o700))
	bad := filepath.Join(state, "x")
	musttest.Do(t, os.Mkdir(filepath.Join(bad, store.File), 0o700))
	if _, stderr := runKeys(t, bad, exitHost, "list"); !strings.Contains(stderr, "the database cannot be opened") {
		t.Errorf("%s", stderr)
	}
}
