package catalogue_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	"openskill/host/catalogue"
	"openskill/host/catalogue/manifest"
	"openskill/host/catalogue/versionstest"
	"openskill/sdk/skill"
)

func limits() skill.Limits {
	return skill.Limits{Timeout: time.Second, Memory: 1 << 20, Fuel: 1000, Output: 1 << 10, Scratch: 1 << 20}
}

// checker is the engine of one host; nil accepts every module.
type checker func(module []byte) error

func (c checker) Check(_ context.Context, _ string, module []byte, _ *time.Duration) (json.RawMessage, error) {
	if c == nil {
		return nil, nil
	}
	return nil, c(module)
}

// host is one of several that share their uploads.
type host struct {
	t         *testing.T
	dir       string
	admission *admission.Admission
	store     *catalogue.Store
	change    func(*catalogue.Options)
	shared    catalogue.Shared
}

func newHost(t *testing.T, shared catalogue.Shared, check checker, change func(*catalogue.Options)) *host {
	t.Helper()
	a, err := admission.New(admission.Options{Registry: manifest.Options{Defaults: limits(), Caps: limits()}, Checker: check})
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, dir: t.TempDir(), admission: a, change: change, shared: shared}
	h.open()
	return h
}

func (h *host) open() {
	h.t.Helper()
	o := catalogue.Options{
		Dir: filepath.Join(h.dir, "shared"), Shared: h.shared, Pack: h.admission.Pack, Log: slog.New(slog.DiscardHandler),
		Read: func(folder string) (*manifest.Skill, []manifest.Problem) {
			return manifest.ReadFolder(folder, manifest.Options{Defaults: limits(), Caps: limits()})
		},
		Readmit: func(ctx context.Context, archive *os.File, tenant, staging string) (*catalogue.Admitted, error) {
			a, err := h.admission.Readmit(ctx, archive, tenant, staging)
			if err != nil {
				return nil, err
			}
			return &catalogue.Admitted{Folder: a.Folder, Skill: a.Skill, Digest: a.Digest}, nil
		},
	}
	if h.change != nil {
		h.change(&o)
	}
	s, err := catalogue.Open(o)
	if err != nil {
		h.t.Fatal(err)
	}
	h.store = s
	h.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			h.t.Error(err)
		}
	})
}

// restart closes the store and opens it again.
func (h *host) restart() {
	h.t.Helper()
	if err := h.store.Close(); err != nil {
		h.t.Fatal(err)
	}
	h.open()
}

// upload is what a client and the edge do.
func (h *host) upload(tenant string, id skill.ID, version, content string) (skill.VersionState, error) {
	u, err := h.store.Begin(tenant)
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
	a, err := h.admission.Admit(context.Background(), admission.Source{Archive: f, Owner: tenant}, u.Staging())
	if err != nil {
		return skill.VersionState{}, err
	}
	return u.Publish(context.Background(), &catalogue.Admitted{Folder: a.Folder, Skill: a.Skill, Digest: a.Digest}, "ann")
}

// seen is what a tenant finds of a skill.
func (h *host) seen(tenant string, id skill.ID) string {
	found, err := h.store.Get(tenant, id, "")
	if err != nil {
		return string(skill.CodeOf(err))
	}
	d := found.Descriptor
	out := fmt.Sprintf("%s %v:", d.Version, d.Enabled)
	all, err := h.store.Versions(tenant, id)
	if err != nil {
		return err.Error()
	}
	for _, v := range all {
		out += fmt.Sprintf(" %s=%s", v.Descriptor.Version, v.Descriptor.State)
	}
	if content, err := os.ReadFile(filepath.Join(found.Folder, "lib", "m.wasm")); err == nil {
		out += " " + string(content)
	}
	return out
}

// learns reads what others have done, and waits until the host shows it.
func (h *host) learns(tenant string, id skill.ID, want string) {
	h.t.Helper()
	got := ""
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if err := h.store.Refresh(h.t.Context()); err != nil {
			h.t.Fatal(err)
		}
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
	if err != nil {
		h.t.Fatal(err)
	}
}

func wants(t *testing.T, what string, err error, code skill.Code) {
	t.Helper()
	if got := skill.CodeOf(err); got != code {
		t.Errorf("%s: %v (%q), want %q", what, err, got, code)
	}
}

// folders lists what a host has on its disk.
func (h *host) folders() (list []string) {
	all, err := filepath.Glob(filepath.Join(h.dir, "shared", "*", "*", "*"))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range all {
		rel, _ := filepath.Rel(filepath.Join(h.dir, "shared"), f)
		if !strings.HasPrefix(rel, ".") {
			list = append(list, rel)
		}
	}
	return list
}

var by = catalogue.By{ID: "ann"}

// The life of uploads on two hosts: what one does, the other shows.
func TestSharedLife(t *testing.T) {
	m := &versionstest.Memory{}
	a, b := newHost(t, m, nil, nil), newHost(t, m, nil, nil)
	a.must(a.upload("acme", "up", "1.0.0", "one"))
	b.learns("acme", "up", "1.0.0 false: 1.0.0=disabled one")
	b.must(b.store.Enable("acme", "up", "", by))
	a.learns("acme", "up", "1.0.0 true: 1.0.0=enabled one")
	b.must(b.upload("acme", "up", "1.1.0", "two"))
	// The first host decides about a version that it has not seen yet.
	if owner, err := a.store.Owner("acme", "", "up", false); err != nil || owner != "acme" {
		t.Fatalf("%q, %v", owner, err)
	}
	a.must(a.store.Enable("acme", "up", "1.1.0", by))
	a.learns("acme", "up", "1.1.0 true: 1.0.0=enabled 1.1.0=enabled two")
	b.learns("acme", "up", "1.1.0 true: 1.0.0=enabled 1.1.0=enabled two")
	if got := b.seen("other", "up"); got != "NOT_FOUND" {
		t.Errorf("another tenant finds %s", got)
	}
	a.must(a.store.Approve("acme", "up", "", catalogue.By{ID: "op", Operator: true}))
	b.learns("other", "up", "1.1.0 true: 1.1.0=enabled two")
	b.must(b.upload("other", "up", "3.0.0", "three"))
	_, err := b.store.Approve("other", "up", "", catalogue.By{ID: "op", Operator: true})
	wants(t, "approving an id of two tenants", err, skill.Conflict)
	b.must(b.store.Rollback("acme", "up", catalogue.By{}))
	a.learns("acme", "up", "1.0.0 true: 1.0.0=enabled 1.1.0=disabled one")
	if err := b.store.Quarantine("acme", "up", "1.0.0", "it crashed"); err != nil {
		t.Fatal(err)
	}
	a.learns("acme", "up", "1.0.0 false: 1.0.0=quarantined 1.1.0=disabled one")
	_, err = a.store.Enable("acme", "up", "1.0.0", by)
	wants(t, "enabling what is quarantined", err, skill.Forbidden)
	a.must(a.store.Delete("acme", "up", "1.1.0", catalogue.By{}))
	b.learns("acme", "up", "1.0.0 false: 1.0.0=quarantined one")
}

// U07 over hosts: uploads of one id and version at once, of which one wins.
func TestSharedRace(t *testing.T) {
	m := &versionstest.Memory{}
	hosts := []*host{newHost(t, m, nil, nil), newHost(t, m, nil, nil), newHost(t, m, nil, nil)}
	const each = 5
	errs := make([]error, each*len(hosts))
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = hosts[i%len(hosts)].upload("acme", "up", "1.0.0", fmt.Sprintf("from %d", i)) })
	}
	all.Wait()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won < 0:
			won = i
		case err == nil:
			t.Errorf("uploads %d and %d have both won", won, i)
		default:
			wants(t, "one that lost", err, skill.Conflict)
		}
	}
	for _, h := range hosts {
		h.learns("acme", "up", fmt.Sprintf("1.0.0 false: 1.0.0=disabled from %d", won))
	}
	if n := m.Archives(); n != 1 {
		t.Errorf("%d archives are kept", n)
	}
}

func TestSharedQuotas(t *testing.T) {
	m := &versionstest.Memory{}
	small := func(o *catalogue.Options) { o.Skills, o.Versions, o.Bytes = 2, 2, 8*24<<10 }
	a, b := newHost(t, m, nil, small), newHost(t, m, nil, small)
	a.must(a.upload("acme", "one", "1.0.0", "x"))
	b.must(b.upload("acme", "one", "1.1.0", "x"))
	_, err := a.upload("acme", "one", "1.2.0", "x") // a has not heard of the second one
	wants(t, "a third version", err, skill.Conflict)
	b.must(b.upload("acme", "two", "1.0.0", "x"))
	_, err = a.upload("acme", "three", "1.0.0", "x")
	wants(t, "a third skill", err, skill.Conflict)
	b.must(b.upload("other", "three", "1.0.0", strings.Repeat("x", 90<<10)))
	_, err = a.upload("other", "four", "1.0.0", strings.Repeat("x", 90<<10))
	wants(t, "too many bytes", err, skill.PayloadTooLarge)
}

// A host that was away catches up when it starts; one whose files are damaged or gone
// fetches them again; what nobody names is removed.
func TestSharedFilesAreACopy(t *testing.T) {
	m := &versionstest.Memory{}
	a, b := newHost(t, m, nil, nil), newHost(t, m, nil, nil)
	if err := b.store.Close(); err != nil {
		t.Fatal(err)
	}
	a.must(a.upload("acme", "up", "1.0.0", "one"))
	a.must(a.store.Enable("acme", "up", "", by))
	b.open()
	const want = "1.0.0 true: 1.0.0=enabled one"
	b.learns("acme", "up", want)

	found, err := b.store.Get("acme", "up", "")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(found.Folder, "lib", "m.wasm")
	if err := errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, []byte("bad"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := b.seen("acme", "up"); got == "1.0.0 true: 1.0.0=enabled bad" {
		t.Errorf("changed files are served: %s", got)
	}
	b.learns("acme", "up", want)
	a.learns("acme", "up", want) // it is no reason for a quarantine
	if err := os.RemoveAll(filepath.Join(b.dir, "shared")); err == nil {
		b.learns("acme", "up", want)
	}

	// What a crash may leave: a folder that no record names.
	stray := filepath.Join(b.dir, "shared", "t-acme", "stray", "1.0.0@0123456789abcdef")
	if err := os.MkdirAll(stray, 0o700); err != nil {
		t.Fatal(err)
	}
	b.restart()
	b.learns("acme", "up", want)
	if list := b.folders(); len(list) != 1 {
		t.Errorf("on its disk are %v", list)
	}
}

// A host that joins fetches by turns of tenants: versions of one that take long leave room
// for another's.
func TestTenantsFetchByTurns(t *testing.T) {
	m := &versionstest.Memory{}
	release := make(chan struct{})
	a := newHost(t, m, nil, nil)
	for i := range 8 {
		a.must(a.upload("many", skill.ID(fmt.Sprint("slow", i)), "1.0.0", "slow"))
	}
	for _, id := range []skill.ID{"one", "two"} {
		a.must(a.upload("other", id, "1.0.0", "quick"))
	}
	b := newHost(t, m, func(module []byte) error {
		if bytes.Contains(module, []byte("slow")) {
			<-release
		}
		return nil
	}, nil)
	defer close(release) // before b is closed
	for _, id := range []skill.ID{"one", "two"} {
		b.learns("other", id, "1.0.0 false: 1.0.0=disabled quick")
	}
}

// Each host's own engine decides, and a database that was changed by hand is found.
func TestSharedFilesAreRefused(t *testing.T) {
	m := &versionstest.Memory{}
	strict := func(module []byte) error {
		if bytes.Contains(module, []byte("fast")) {
			return &skill.Error{Code: skill.FeatureDisabled, Message: "uses a proposal that is switched off"}
		}
		return nil
	}
	a, b := newHost(t, m, nil, nil), newHost(t, m, strict, nil)
	a.must(a.upload("acme", "up", "1.0.0", "fast"))
	a.must(a.store.Enable("acme", "up", "", by))
	b.learns("acme", "up", "1.0.0 false: 1.0.0=quarantined")
	if got := a.seen("acme", "up"); got != "1.0.0 true: 1.0.0=enabled fast" {
		t.Errorf("the first host: %s", got)
	}
	if s, err := b.store.Get("acme", "up", ""); err != nil || !strings.Contains(s.Descriptor.Reason, "switched off") {
		t.Errorf("the reason: %+v, %v", s, err)
	}

	v, err := a.upload("acme", "two", "1.0.0", "two")
	a.must(v, err)
	other, err := a.upload("acme", "three", "1.0.0", "three")
	a.must(other, err)
	var archive []byte
	m.Spoil(other.Digest, func(b []byte) []byte { archive = b; return b })
	m.Spoil(v.Digest, func([]byte) []byte { return archive }) // whole, and of another skill
	b.learns("acme", "two", "1.0.0 false: 1.0.0=quarantined")
	m.Spoil(other.Digest, func(b []byte) []byte { return b[:len(b)/2] })
	c := newHost(t, m, nil, nil)
	c.learns("acme", "three", "1.0.0 false: 1.0.0=quarantined")
}

// The database ends, or the host, at each step of a change: afterwards all agree.
func TestSharedCrashes(t *testing.T) {
	gone := errors.New("gone")
	for name, step := range map[string]struct {
		set  func(m *versionstest.Memory, fail error)
		made bool
	}{
		"before the commit": {func(m *versionstest.Memory, fail error) { m.Before = func() error { return fail } }, false},
		"after the commit":  {func(m *versionstest.Memory, fail error) { m.After = func() error { return fail } }, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := &versionstest.Memory{}
			a, b := newHost(t, m, nil, nil), newHost(t, m, nil, nil)
			step.set(m, gone)
			_, err := a.upload("acme", "up", "1.0.0", "one")
			wants(t, "the upload", err, skill.Internal)
			step.set(m, nil)
			want := "NOT_FOUND"
			if step.made {
				want = "1.0.0 false: 1.0.0=disabled one"
			}
			a.learns("acme", "up", want)
			b.learns("acme", "up", want)
			a.restart()
			a.learns("acme", "up", want)
			_, err = a.upload("acme", "up", "1.0.0", "one")
			if step.made {
				wants(t, "the upload again", err, skill.Conflict)
			} else if err != nil {
				t.Errorf("the upload again: %v", err)
			}
			if step.made {
				step.set(m, gone)
				_, err = b.store.Enable("acme", "up", "", by)
				wants(t, "enabling", err, skill.Internal)
				step.set(m, nil)
				a.learns("acme", "up", "1.0.0 true: 1.0.0=enabled one")
				b.learns("acme", "up", "1.0.0 true: 1.0.0=enabled one")
			}
		})
	}
	t.Run("on the disk", func(t *testing.T) {
		m := &versionstest.Memory{}
		a, b := newHost(t, m, nil, nil), newHost(t, m, nil, nil)
		// The commit is made, and then the place for the files cannot be had.
		blocked := filepath.Join(a.dir, "shared", "t-acme")
		if err := os.WriteFile(blocked, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		a.must(a.upload("acme", "up", "1.0.0", "one"))
		b.learns("acme", "up", "1.0.0 false: 1.0.0=disabled one")
		if got := a.seen("acme", "up"); got != "NOT_FOUND" {
			t.Errorf("without its files: %s", got)
		}
		if err := os.Remove(blocked); err != nil {
			t.Fatal(err)
		}
		a.learns("acme", "up", "1.0.0 false: 1.0.0=disabled one")
	})
}

// A database that comes back without its last changes: hosts go back to what it has.
func TestSharedChangesAreLost(t *testing.T) {
	m := &versionstest.Memory{}
	a, b := newHost(t, m, nil, nil), newHost(t, m, nil, nil)
	a.must(a.upload("acme", "up", "1.0.0", "one"))
	b.learns("acme", "up", "1.0.0 false: 1.0.0=disabled one")
	before := m.Copy()
	a.must(a.store.Enable("acme", "up", "", by))
	a.must(a.upload("acme", "more", "1.0.0", "more"))
	b.learns("acme", "more", "1.0.0 false: 1.0.0=disabled more")
	b.learns("acme", "up", "1.0.0 true: 1.0.0=enabled one")
	m.Lose(before)
	for _, h := range []*host{a, b} {
		h.learns("acme", "up", "1.0.0 false: 1.0.0=disabled one")
		h.learns("acme", "more", "NOT_FOUND")
		if list := h.folders(); len(list) != 1 {
			t.Errorf("on its disk are %v", list)
		}
	}
	a.must(a.upload("acme", "more", "1.0.0", "again"))
	b.learns("acme", "more", "1.0.0 false: 1.0.0=disabled again")
}

// A quarantine holds on its host while the database is away, and everywhere afterwards.
func TestSharedQuarantineIsOwed(t *testing.T) {
	m := &versionstest.Memory{}
	a, b := newHost(t, m, nil, nil), newHost(t, m, nil, nil)
	a.must(a.upload("acme", "up", "1.0.0", "one"))
	a.must(a.store.Enable("acme", "up", "", by))
	b.learns("acme", "up", "1.0.0 true: 1.0.0=enabled one")
	m.Fail(errors.New("gone"))
	if err := a.store.Quarantine("acme", "up", "1.0.0", "it crashed"); err == nil {
		t.Error("a quarantine was written to a database that is gone")
	}
	if got := a.seen("acme", "up"); got != "1.0.0 false: 1.0.0=quarantined one" {
		t.Errorf("while the database is gone: %s", got)
	}
	if _, err := a.store.Disable("acme", "up", "", catalogue.By{}); skill.CodeOf(err) != skill.Internal {
		t.Errorf("a decision meanwhile: %v", err)
	}
	if got := b.seen("acme", "up"); got != "1.0.0 true: 1.0.0=enabled one" {
		t.Errorf("the other host meanwhile: %s", got)
	}
	m.Fail(nil)
	a.learns("acme", "up", "1.0.0 false: 1.0.0=quarantined one")
	b.learns("acme", "up", "1.0.0 false: 1.0.0=quarantined one")
	b.must(b.store.Enable("acme", "up", "", catalogue.By{ID: "op", Operator: true}))
	a.learns("acme", "up", "1.0.0 true: 1.0.0=enabled one")
}

// What is deleted goes from every disk when its grace is over, and from the database.
func TestSharedSweep(t *testing.T) {
	m := &versionstest.Memory{}
	var mu sync.Mutex
	var passed time.Duration
	clock := func(o *catalogue.Options) {
		o.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(passed)
		}
	}
	a, b := newHost(t, m, nil, clock), newHost(t, m, nil, clock)
	a.must(a.upload("acme", "up", "1.0.0", "one"))
	b.learns("acme", "up", "1.0.0 false: 1.0.0=disabled one")
	b.must(b.store.Delete("acme", "up", "1.0.0", catalogue.By{}))
	a.learns("acme", "up", "NOT_FOUND")
	if len(a.folders()) != 1 || len(b.folders()) != 1 {
		t.Errorf("before the grace is over: %v, %v", a.folders(), b.folders())
	}
	a.must(a.upload("acme", "up", "1.0.0", "one")) // back as it was
	b.learns("acme", "up", "1.0.0 false: 1.0.0=disabled one")
	b.must(b.store.Delete("acme", "up", "1.0.0", catalogue.By{}))
	mu.Lock()
	passed = 2 * time.Hour
	mu.Unlock()
	a.store.Sweep()
	b.store.Sweep()
	a.store.Sweep()
	if len(a.folders()) != 0 || len(b.folders()) != 0 || m.Archives() != 0 {
		t.Errorf("after it: %v, %v, %d archives", a.folders(), b.folders(), m.Archives())
	}
	for _, h := range []*host{a, b} { // the name stays that of those files, on every host
		if _, err := h.upload("acme", "up", "1.0.0", "another"); skill.CodeOf(err) != skill.Conflict {
			t.Errorf("other files under the name of a deleted version: %v", err)
		}
	}
	a.must(a.upload("acme", "up", "1.0.0", "one"))
	b.learns("acme", "up", "1.0.0 false: 1.0.0=disabled one")
}
