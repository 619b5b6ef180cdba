package catalogue

import (
	"archive/zip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/host/admission"
	"openskill/host/manifest"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func limits() skill.Limits {
	return skill.Limits{Timeout: time.Second, Memory: 1 << 20, Fuel: 1000, Output: 1 << 10, Scratch: 1 << 20}
}

func read(folder string) (*manifest.Skill, []manifest.Problem) {
	return manifest.ReadFolder(folder, manifest.Options{Defaults: limits(), Caps: limits()})
}

// checker is the engine of one host; nil accepts every module.
type checker func(tenant string, module []byte) error

func (c checker) Check(_ context.Context, kind skill.Kind, s *skill.Spec, _ *time.Duration) (json.RawMessage, error) {
	if c == nil {
		return nil, nil
	}
	module, err := os.ReadFile(filepath.Join(s.Folder, kind.File(s.Entry)))
	if err != nil {
		return nil, err
	}
	return nil, c(s.Tenant, module)
}

func admits(check checker) *admission.Admission {
	a, err := admission.New(admission.Options{Registry: manifest.Options{Defaults: limits(), Caps: limits()}, Checker: check})
	if err != nil {
		panic(err)
	}
	return a
}

// clock is a time that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func options(db *store.DB, dir string, change func(*Options)) Options {
	o := Options{DB: db, Dir: filepath.Join(dir, "uploads"), Old: filepath.Join(dir, "skills"), Read: read, Admission: admits(nil), Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	return o
}

// open opens a store in a state folder until the end of the test.
func open(tb testing.TB, dir string, change func(*Options)) *Store {
	tb.Helper()
	return openOn(tb, storetest.Open(tb, "sqlite:"+filepath.Join(dir, store.File)), dir, change)
}

func openOn(tb testing.TB, db *store.DB, dir string, change func(*Options)) *Store {
	tb.Helper()
	s := musttest.Get(Open(options(db, dir, change)))(tb)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// pack writes the folder of a skill into a staging folder, as admission leaves it.
func pack(staging string, id skill.ID, version, content string) (*admission.Admitted, error) {
	folder, err := os.MkdirTemp(staging, "skill-")
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("id: %s\nversion: %s\ndescription: d\ntype: wasm\nruntime: wasi\nentry: lib/m.wasm\n", id, version)
	if err := os.Mkdir(filepath.Join(folder, "lib"), 0o700); err != nil {
		return nil, err
	}
	for name, text := range map[string]string{"skill.yaml": text, "lib/m.wasm": content} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o400); err != nil {
			return nil, err
		}
	}
	if err := os.Chmod(filepath.Join(folder, "lib"), 0o500); err != nil {
		return nil, err
	}
	found, problems := read(folder)
	if len(problems) > 0 {
		return nil, fmt.Errorf("%v", problems)
	}
	return &admission.Admitted{Folder: folder, Skill: found, Digest: found.Descriptor.Digest}, os.Chmod(folder, 0o555)
}

// author is who uploads for a tenant.
func author(tenant string) skill.Principal {
	return skill.Principal{ID: "ann", Type: skill.Human, Tenant: tenant, Scopes: []string{skill.ScopeUpload}}
}

// to is a decision of a tenant's author about its own skill.
func to(action Action, tenant string, id skill.ID, version string) Decision {
	return Decision{Action: action, By: author(tenant), Tenant: tenant, ID: id, Version: version}
}

// asOperator is a decision by the operator instead.
func asOperator(d Decision) Decision {
	d.By = skill.Principal{ID: "op", Type: skill.Human, Tenant: "ops", Scopes: []string{skill.ScopeAdmin}}
	return d
}

// pinned is a decision about a version of a digest.
func pinned(d Decision, digest string) Decision {
	d.Digest = digest
	return d
}

// publish uploads one version.
func publish(s *Store, tenant string, id skill.ID, version, content string) (skill.VersionState, error) {
	u, err := s.Begin(author(tenant))
	if err != nil {
		return skill.VersionState{}, err
	}
	defer u.Close()
	a, err := pack(u.Staging(), id, version, content)
	if err != nil {
		return skill.VersionState{}, err
	}
	if err := u.Reserve(block); err != nil {
		return skill.VersionState{}, err
	}
	return u.Publish(context.Background(), a, "someone")
}

func mustPublish(tb testing.TB, s *Store, tenant string, id skill.ID, version, content string) skill.VersionState {
	tb.Helper()
	return musttest.Get(publish(s, tenant, id, version, content))(tb)
}

// wants fails the test unless err has the code.
func wants(tb testing.TB, err error, code skill.Code) {
	tb.Helper()
	if got := skill.CodeOf(err); got != code {
		tb.Fatalf("got %v (%q), want %q", err, got, code)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// folders lists the copies of versions that a store has on its disk.
func folders(tb testing.TB, s *Store) (list []string) {
	tb.Helper()
	all := musttest.Get(filepath.Glob(filepath.Join(s.o.Dir, "[th]-*", "*")))(tb)
	return append(list, all...)
}

// archives counts those in the database.
func archives(tb testing.TB, s *Store) (n int) {
	tb.Helper()
	musttest.Do(tb, s.o.DB.Read.QueryRowContext(tb.Context(), "SELECT COUNT(*) FROM skill_blobs").Scan(&n))
	return n
}

// execute changes the database behind the back of its hosts.
func execute(tb testing.TB, db *store.DB, statement string, args ...any) {
	tb.Helper()
	musttest.Get(db.Write.ExecContext(context.Background(), statement, args...))(tb)
}

// failing makes every change of uploads fail, until the returned function is called.
func failing(tb testing.TB, db *store.DB) (mend func()) {
	tb.Helper()
	if db.Postgres() {
		return away(tb, db, "revisions")
	}
	execute(tb, db, "CREATE TRIGGER failing BEFORE UPDATE ON revisions BEGIN SELECT RAISE(ABORT, 'gone'); END")
	return func() { execute(tb, db, "DROP TRIGGER failing") }
}

// onBoth runs a test on each kind of database.
func onBoth(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, fresh func(*testing.T) func() *store.DB) {
		t.Helper()
		test(t, fresh(t)())
	})
}

// away takes a table away, until the returned function is called.
func away(tb testing.TB, db *store.DB, table string) (mend func()) {
	tb.Helper()
	execute(tb, db, "ALTER TABLE "+table+" RENAME TO away")
	return func() { execute(tb, db, "ALTER TABLE away RENAME TO "+table) }
}

// host is one of several on one database.
type host struct {
	t     *testing.T
	dir   string
	db    *store.DB
	store *Store
	o     func(*Options)
}

func newHost(t *testing.T, db *store.DB, check checker, change func(*Options)) *host {
	t.Helper()
	h := &host{t: t, dir: t.TempDir(), db: db, o: func(o *Options) {
		o.Admission = admits(check)
		if change != nil {
			change(o)
		}
	}}
	h.store = openOn(t, db, h.dir, h.o)
	return h
}

// restart closes the store and opens it again.
func (h *host) restart() {
	h.t.Helper()
	musttest.Do(h.t, h.store.Close())
	h.store = openOn(h.t, h.db, h.dir, h.o)
}

// upload is what a client and the edge do.
func (h *host) upload(tenant string, id skill.ID, version, content string) (skill.VersionState, error) {
	u, err := h.store.Begin(author(tenant))
	if err != nil {
		return skill.VersionState{}, err
	}
	defer u.Close()
	f, err := u.File()
	if err != nil {
		return skill.VersionState{}, err
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for name, text := range map[string]string{
		"skill.yaml":   fmt.Sprintf("id: %s\nversion: %s\ndescription: d\ntype: wasm\nruntime: wasi\nentry: lib/m.wasm\n", id, version),
		"lib/m.wasm":   content,
		"data/one.txt": "one",
	} {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		if err != nil {
			return skill.VersionState{}, err
		}
	}
	if err := z.Close(); err != nil {
		return skill.VersionState{}, err
	}
	if err := u.Reserve(4096); err != nil {
		return skill.VersionState{}, err
	}
	a, err := h.store.o.Admission.Admit(context.Background(), admission.Source{Archive: f, Owner: tenant}, u.Staging())
	if err != nil {
		return skill.VersionState{}, err
	}
	return u.Publish(context.Background(), a, "ann")
}

// seen is what a tenant finds of a skill: the version that calls get, the state of each, and
// the module of the first.
func (h *host) seen(tenant string, id skill.ID) string {
	out := seen(h.store, tenant, id)
	found, err := h.store.Get(tenant, id, "")
	if err != nil {
		return out
	}
	if content, err := os.ReadFile(filepath.Join(found.Folder, "lib", "m.wasm")); err == nil {
		out += " " + string(content)
	}
	return strings.ReplaceAll(out, "+shared", "")
}

// learns reads what others have done, and waits until the host shows it.
func (h *host) learns(tenant string, id skill.ID, want string) {
	h.t.Helper()
	got := ""
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		musttest.Do(h.t, h.store.Refresh(h.t.Context()))
		if got = h.seen(tenant, id); got == want {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-h.t.Context().Done():
		}
	}
	h.t.Fatalf("%s of %s: %q, want %q", id, tenant, got, want)
}

func (h *host) must(_ skill.VersionState, err error) {
	h.t.Helper()
	musttest.Do(h.t, err)
}
