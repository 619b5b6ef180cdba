package allow_test

import (
	"bytes"
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"openskill/host/dispatch/allow"
	"openskill/host/store"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

const digestA, digestB = "sha256:aaaa", "sha256:bbbb"

// kept is a store in a folder, and its key.
func kept(t *testing.T, dir string, key []byte) *allow.Store {
	t.Helper()
	db := musttest.Get(store.Open(t.Context(), store.Options{StateDir: dir, Log: slog.New(slog.DiscardHandler)}))(t)
	t.Cleanup(func() { _ = db.Close() })
	return allow.New(db, func(bool) ([]byte, error) { return key, nil }, nil)
}

func newKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return key
}

func variable(name, value string, places ...string) allow.Variable {
	return allow.Variable{Name: name, Value: &value, For: places}
}

func weather() allow.Grant {
	return allow.Grant{
		Skill: "weather", Digest: digestA, HTTP: []string{"https://api.example.com,GET,POST", "https://api.example.com GET,POST"},
		Env: []allow.Variable{variable("UNITS", "metric"), variable("API_KEY", secret, "api.example.com", "*.example.org")},
	}
}

const secret = "sk-0123456789-abcdefghij-secret"

func allowed(t *testing.T, s *allow.Store, g allow.Grant) *allow.Grant {
	t.Helper()
	return musttest.Get(s.Allow(t.Context(), skill.Local(), g))(t)
}

func TestGrantIsForItsFilesAlone(t *testing.T) {
	dir, key := t.TempDir(), newKey()
	s := kept(t, dir, key)
	if g, err := s.Granted(t.Context(), "weather", digestA); g != nil || err != nil {
		t.Fatalf("before: %v, %v", g, err)
	}
	made := allowed(t, s, weather())
	other := kept(t, dir, key) // as another process has it
	g := musttest.Get(other.Granted(t.Context(), "weather", digestA))(t)
	if len(g.HTTP) != 1 || g.HTTP[0].String() != "https://api.example.com GET,POST" || len(g.Secrets) != 1 || g.Secrets[0].Value != secret || len(g.Secrets[0].For) != 2 ||
		!slices.Equal(g.Env, []string{"API_KEY=" + made.Env[0].Placeholder, "UNITS=metric"}) {
		t.Errorf("%v", g)
	}
	if _, err := other.Granted(t.Context(), "weather", digestB); skill.CodeOf(err) != skill.Forbidden || !strings.Contains(err.Error(), "openskill skills allow weather") {
		t.Errorf("other files: %v", err)
	}
	if g, err := other.Granted(t.Context(), "weather2", digestA); g != nil || err != nil {
		t.Errorf("another skill: %v, %v", g, err)
	}
	musttest.Do(t, s.Revoke(t.Context(), skill.Local(), "weather"))
	for _, digest := range []string{digestA, digestB} {
		if g, err := other.Granted(t.Context(), "weather", digest); g != nil || err != nil {
			t.Errorf("revoked: %v, %v", g, err)
		}
	}
	if err := s.Revoke(t.Context(), skill.Local(), "weather"); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("revoked twice: %v", err)
	}
}

func TestOnlyAdministratorsAllow(t *testing.T) {
	s := kept(t, t.TempDir(), newKey())
	reader := skill.Principal{ID: "key:1", Type: skill.Agent, Tenant: "acme", Scopes: []string{skill.ScopeRead, skill.ScopeInvoke, skill.ScopeUpload}}
	for _, p := range []skill.Principal{{}, reader} {
		if _, err := s.Allow(t.Context(), p, weather()); skill.CodeOf(err) != skill.Forbidden && skill.CodeOf(err) != skill.Unauthorized {
			t.Errorf("%q allows: %v", p.ID, err)
		}
		if err := s.Revoke(t.Context(), p, "weather"); skill.CodeOf(err) != skill.Forbidden && skill.CodeOf(err) != skill.Unauthorized {
			t.Errorf("%q revokes: %v", p.ID, err)
		}
	}
}

func TestValuesAreEncrypted(t *testing.T) {
	dir, key := t.TempDir(), newKey()
	s := kept(t, dir, key)
	allowed(t, s, weather())
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, value := range []string{secret, "metric"} {
			if bytes.Contains(b, []byte(value)) {
				t.Errorf("%s has %q", path, value)
			}
		}
		return err
	})
	musttest.Do(t, err)
	for name, key := range map[string][]byte{"another key": newKey(), "no key": nil} {
		if g, err := kept(t, dir, key).Granted(t.Context(), "weather", digestA); g != nil || skill.CodeOf(err) != skill.Forbidden || !strings.Contains(err.Error(), "grants.key") {
			t.Errorf("%s: %v, %v", name, g, err)
		}
	}
	// What is sealed for one skill is worth nothing in the row of another.
	evil := allow.Grant{Skill: "evil", Digest: digestA, HTTP: []string{"https://evil.example"}, Env: []allow.Variable{variable("API_KEY", "anything1")}}
	allowed(t, s, evil)
	db := musttest.Get(store.Open(t.Context(), store.Options{StateDir: dir, Log: slog.New(slog.DiscardHandler)}))(t)
	defer db.Close()
	musttest.Get(db.Exec(t.Context(), "UPDATE script_grants SET sealed = (SELECT sealed FROM script_grants WHERE skill = 'weather') WHERE skill = 'evil'"))(t)
	if g, err := s.Granted(t.Context(), "evil", digestA); err == nil {
		t.Errorf("moved values are read: %v", g)
	}
	musttest.Get(db.Exec(t.Context(), "UPDATE script_grants SET body = '{' WHERE skill = 'weather'"))(t)
	if g, err := s.Granted(t.Context(), "weather", digestA); skill.CodeOf(err) != skill.AuditUnavailable {
		t.Errorf("a damaged row: %v, %v", g, err)
	}
}

func TestRefusesWhatNoGrantCanBe(t *testing.T) {
	s := kept(t, t.TempDir(), newKey())
	many := make([]string, 257)
	for i := range many {
		many[i] = "https://api.example.com"
	}
	for name, change := range map[string]func(*allow.Grant){
		"skill":             func(g *allow.Grant) { g.Skill = "../x" },
		"rule":              func(g *allow.Grant) { g.HTTP = []string{"ftp://example.com"} },
		"rules":             func(g *allow.Grant) { g.HTTP = many },
		"name":              func(g *allow.Grant) { g.Env = []allow.Variable{variable("PYTHONPATH", "/work")} },
		"names":             func(g *allow.Grant) { g.Env = append(g.Env, variable("UNITS", "again")) },
		"every host":        func(g *allow.Grant) { g.Env[1].For = []string{"*"} },
		"a place":           func(g *allow.Grant) { g.Env[1].For = []string{"api.example.com GET"} },
		"places":            func(g *allow.Grant) { g.Env[1].For = many[:17] },
		"a large value":     func(g *allow.Grant) { g.Env[0] = variable("UNITS", strings.Repeat("x", 4097)) },
		"a NUL":             func(g *allow.Grant) { g.Env[0] = variable("UNITS", "a\x00b") },
		"a short secret":    func(g *allow.Grant) { g.Env[1] = variable("API_KEY", "1234567", "api.example.com") },
		"a line in it":      func(g *allow.Grant) { g.Env[1] = variable("API_KEY", "12345678\r\nX: y", "api.example.com") },
		"no value":          func(g *allow.Grant) { g.Env[1].Value = nil },
		"values, too large": func(g *allow.Grant) { g.Env[1] = variable("API_KEY", strings.Repeat("x", 4097), "api.example.com") },
	} {
		g := weather()
		change(&g)
		if _, err := s.Allow(t.Context(), skill.Local(), g); skill.CodeOf(err) != skill.InvalidArgument || strings.Contains(err.Error(), "12345678") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all, err := s.Digests(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	largest := weather()
	largest.Env[1] = variable("API_KEY", strings.Repeat("x", 4096), "api.example.com")
	allowed(t, s, largest)
}

// A variable without a value has the one that was allowed before, with its placeholder while its
// hosts stay the same.
func TestKeepsValues(t *testing.T) {
	s := kept(t, t.TempDir(), newKey())
	first := allowed(t, s, weather())
	again := *first
	again.Digest = digestB
	for i := range again.Env {
		again.Env[i].Value = nil
	}
	second := allowed(t, s, again)
	g, err := s.Granted(t.Context(), "weather", digestB)
	if err != nil || g.Secrets[0].Value != secret || second.Env[0].Placeholder != first.Env[0].Placeholder {
		t.Fatalf("%v, %v, %v", g, err, second)
	}
	unnamed := *second
	unnamed.Env = []allow.Variable{{Name: "API_KEY"}, {Name: "UNITS"}}
	if third := allowed(t, s, unnamed); len(third.Env[0].For) != 2 || third.Env[0].Placeholder != first.Env[0].Placeholder || len(third.Env[1].For) != 0 {
		t.Errorf("a secret without its hosts: %+v", third.Env)
	}
	moved := *second
	moved.Env = slices.Clone(second.Env)
	moved.Env[0].Value, moved.Env[0].For = nil, []string{"other.example"}
	moved.Env[1].Value = nil
	if third := allowed(t, s, moved); third.Env[0].Placeholder == first.Env[0].Placeholder {
		t.Error("the placeholder of other hosts is the same")
	}
}

// A decision is about the grant that was reviewed: not about one that was revoked, made or changed
// since.
func TestRefusesStaleReviews(t *testing.T) {
	s := kept(t, t.TempDir(), newKey())
	current := allow.Current{Skill: "weather", Digest: digestA}
	decide := func(is *allow.Grant, host string) (*allow.Grant, error) {
		g := musttest.Get((&allow.Wish{HTTP: []string{"https://" + host}}).Grant(allow.Compare(current, is)))(t)
		return s.Allow(t.Context(), skill.Local(), g)
	}
	first := musttest.Get(decide(nil, "a.example"))(t)
	if g, err := decide(nil, "b.example"); skill.CodeOf(err) != skill.Conflict {
		t.Errorf("made meanwhile: %v, %v", g, err)
	}
	second, err := decide(first, "b.example")
	if err != nil || len(second.HTTP) != 2 {
		t.Fatalf("%v, %v", second, err)
	}
	if g, err := decide(first, "c.example"); skill.CodeOf(err) != skill.Conflict {
		t.Errorf("changed meanwhile: %v, %v", g, err)
	}
	musttest.Do(t, s.Revoke(t.Context(), skill.Local(), "weather"))
	if g, err := decide(second, "c.example"); skill.CodeOf(err) != skill.Conflict {
		t.Errorf("revoked meanwhile: %v, %v", g, err)
	}
	if all, err := s.Digests(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestAllowsTwiceAtOnce(t *testing.T) {
	dir := t.TempDir()
	key := newKey()
	var all sync.WaitGroup
	for range 8 {
		s := kept(t, dir, key)
		all.Go(func() {
			if _, err := s.Allow(t.Context(), skill.Local(), weather()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if g, err := kept(t, dir, key).Granted(t.Context(), "weather", digestA); err != nil || g.Env[0] != "API_KEY="+g.Secrets[0].Placeholder {
		t.Errorf("%v, %v", g, err)
	}
}

func TestPlaceholders(t *testing.T) {
	for value, begin := range map[string]string{
		secret: "sk-", "ghp_0123456789012345678901234567890123ab": "ghp_", "short-secret": "", "correct-horse-battery-staple": "", strings.Repeat("x", 4096): "",
	} {
		p := allow.Placeholder(value)
		if q := allow.Placeholder(value); p == q {
			t.Errorf("%s twice", p)
		}
		rest, ok := strings.CutPrefix(p, begin)
		if !ok || len(rest) < 24 || len(p) > 64+13 || strings.Trim(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") != "" {
			t.Errorf("%.20s: %s", value, p)
		}
		if n := len(value); n >= 24+len(begin) && n <= 64 && len(p) != n {
			t.Errorf("%s: %s has another length", value, p)
		}
	}
}

func TestReviewShowsWhatChanged(t *testing.T) {
	ask := func(names ...string) (list []allow.Ask) {
		for _, n := range names {
			list = append(list, allow.Ask{Name: n, File: "a.py", Line: 1})
		}
		return list
	}
	before := allow.Current{Skill: "weather", Digest: digestA, HTTP: ask("https://a.example GET,HEAD"), Env: ask("KEY"), Files: map[string]string{"a.py": "1", "b.py": "1", "c.py": "1"}}
	r := allow.Compare(before, nil)
	if r.State != allow.Nothing || r.Changes != nil {
		t.Errorf("%+v", r)
	}
	g := musttest.Get((&allow.Wish{}).Grant(r))(t)
	if !slices.Equal(g.HTTP, []string{"https://a.example GET,HEAD"}) || len(g.Env) != 0 {
		t.Errorf("a variable was granted unnamed: %+v", g)
	}
	if _, err := (&allow.Wish{Digest: digestB}).Grant(r); skill.CodeOf(err) != skill.Conflict {
		t.Errorf("another digest: %v", err)
	}
	now := allow.Current{Skill: "weather", Digest: digestB, HTTP: ask("https://b.example GET,HEAD"), Env: ask("KEY", "TOKEN"), Files: map[string]string{"a.py": "1", "b.py": "2", "d.py": "1"}}
	r = allow.Compare(now, &g)
	c := r.Changes
	if r.State != allow.Changed || !slices.Equal(c.Added, []string{"d.py"}) || !slices.Equal(c.Changed, []string{"b.py"}) || !slices.Equal(c.Removed, []string{"c.py"}) ||
		!slices.Equal(c.Gone, []string{"https://a.example GET,HEAD"}) || !r.HTTP[0].New || r.Env[0].New || !r.Env[1].New {
		t.Errorf("%+v %+v", r, c)
	}
	// What is named for changed files is all that they get.
	if g, err := (&allow.Wish{HTTP: []string{"https://c.example"}}).Grant(r); err != nil || !slices.Equal(g.HTTP, []string{"https://c.example"}) {
		t.Errorf("%+v, %v", g, err)
	}
	if _, err := (&allow.Wish{}).Grant(allow.Compare(allow.Current{Skill: "x", Digest: digestA}, nil)); skill.CodeOf(err) != skill.InvalidArgument {
		t.Errorf("nothing to allow: %v", err)
	}
}
