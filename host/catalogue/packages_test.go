package catalogue

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/host/admission"
	"openskill/host/manifest"
	"openskill/host/packages"
	"openskill/host/store"
	"openskill/internal/digest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// withPackages gives a host's store its packages.
func withPackages(t *testing.T, change func(*Options)) func(*Options) {
	t.Helper()
	return func(o *Options) {
		o.Packages = packages.New(filepath.Dir(o.Dir))
		if change != nil {
			change(o)
		}
	}
}

// gives makes a lock of one package with a module that has a text, as adding packages to a folder
// does.
func gives(t *testing.T, s *Store, text string) func(tenant, folder string, has bool) (*Given, error) {
	t.Helper()
	return func(_, folder string, _ bool) (*Given, error) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "python"), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, "python", "words.py"), []byte(text), 0o600); err != nil {
			return nil, err
		}
		set, err := manifest.Digest(dir)
		if err != nil {
			return nil, err
		}
		sum := digest.Of([]byte(text))
		lock, err := json.Marshal(map[string]any{"lock": 1, "asked": []any{}, "set": set, "files": 1, "bytes": len(text), "packages": []any{
			map[string]any{"ecosystem": "python", "name": "words", "version": "1.0", "digest": sum},
			map[string]any{"ecosystem": "python", "name": "pyyaml", "version": "6.0"},
		}})
		if err != nil {
			return nil, err
		}
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = f.Close() })
		if err := admission.PackFolder(f, dir, admission.Limits{Bytes: 1 << 20, Files: 10}); err != nil {
			return nil, err
		}
		if err := s.o.Packages.Install(context.Background(), folder, lock, f); err != nil {
			return nil, err
		}
		return &Given{Lock: lock, Set: set, Files: f, Space: dir}, nil
	}
}

func none(string, string, bool) (*Given, error) { return nil, nil }

// packagesFor is a decision of the operator about the packages of a version.
func packagesFor(tenant string, id skill.ID, version string) Decision {
	return asOperator(Decision{Tenant: tenant, ID: id, Version: version})
}

// words is the module that a version's scripts would import; "none" without packages.
func words(s *Store, tenant string, id skill.ID, version string) string {
	found, err := s.Get(tenant, id, version)
	switch {
	case err != nil:
		return string(skill.CodeOf(err))
	case found.Descriptor.State == skill.StateQuarantined:
		return found.Descriptor.Reason
	case found.Packages == "":
		return "none"
	}
	b, err := os.ReadFile(filepath.Join(found.Packages, "python", "words.py"))
	if err != nil {
		return err.Error()
	}
	return string(b) + " " + strings.Join(found.Descriptor.Requires, ",")
}

// awaits reads what others have done until a version has these packages.
func (h *host) awaits(version, want string) {
	h.t.Helper()
	got := ""
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		musttest.Do(h.t, h.store.Refresh(h.t.Context()))
		if got = words(h.store, "acme", "up", version); got == want {
			return
		}
	}
	h.t.Fatalf("version %s has %q, want %q", version, got, want)
}

// Each version has packages of its own, on every host; a rollback brings back those of its version.
func TestPackagesOfVersions(t *testing.T) { onBoth(t, testPackagesOfVersions) }

func testPackagesOfVersions(t *testing.T, m *store.DB) {
	t.Helper()
	a, b := newHost(t, m, nil, withPackages(t, nil)), newHost(t, m, nil, withPackages(t, nil))
	for _, v := range []string{"1.0.0", "2.0.0"} {
		a.must(a.upload("acme", "up", v, v))
		a.must(a.store.decide(to(Enable, "acme", "up", v)))
		a.must(a.store.SetPackages(t.Context(), packagesFor("acme", "up", v), gives(t, a.store, "words for "+v)))
	}
	for _, h := range []*host{a, b} {
		h.awaits("1.0.0", "words for 1.0.0 pyyaml")
		h.awaits("", "words for 2.0.0 pyyaml")
	}
	b.must(b.store.decide(to(Rollback, "acme", "up", "")))
	a.awaits("", "words for 1.0.0 pyyaml")

	// A copy that is gone or damaged is fetched again; a host that was away reads its own.
	sets, err := filepath.Glob(filepath.Join(b.dir, "packages", "sets", "*"))
	if err != nil || len(sets) != 2 {
		t.Fatalf("%q, %v", sets, err)
	}
	for _, set := range sets {
		musttest.Do(t, os.RemoveAll(set))
	}
	b.awaits("1.0.0", "words for 1.0.0 pyyaml")
	b.restart()
	if got := words(b.store, "acme", "up", "1.0.0"); got != "words for 1.0.0 pyyaml" {
		t.Errorf("after a restart: %q", got)
	}
	musttest.Do(t, b.store.Close())
	musttest.Do(t, os.RemoveAll(filepath.Join(b.dir, "packages")))
	b.restart()
	b.awaits("1.0.0", "words for 1.0.0 pyyaml")
	found := must(b.store.Get("acme", "up", "1.0.0"))
	musttest.Do(t, b.store.Close())
	musttest.Do(t, os.WriteFile(filepath.Join(found.Packages, "python", "words.py"), []byte("other words"), 0o600))
	b.restart()
	b.awaits("1.0.0", "words for 1.0.0 pyyaml")

	// Others, and none.
	b.must(b.store.SetPackages(t.Context(), packagesFor("acme", "up", "1.0.0"), gives(t, b.store, "newer words")))
	a.awaits("1.0.0", "newer words pyyaml")
	a.must(a.store.SetPackages(t.Context(), packagesFor("acme", "up", "1.0.0"), none))
	b.awaits("1.0.0", "none")
	b.awaits("2.0.0", "words for 2.0.0 pyyaml")

	// A version that comes back, comes back without.
	a.must(a.store.decide(to(Delete, "acme", "up", "2.0.0")))
	a.must(a.upload("acme", "up", "2.0.0", "2.0.0"))
	a.awaits("2.0.0", "none")
}

// T716: packages are given by the operator alone, and a tenant sees those of what it finds.
func TestPackagesAreTheOperators(t *testing.T) {
	h := newHost(t, openDB(t), nil, withPackages(t, nil))
	h.must(h.upload("acme", "up", "1.0.0", "one"))
	asked := false
	choose := func(tenant, folder string, has bool) (*Given, error) {
		asked = true
		return gives(t, h.store, "words")(tenant, folder, has)
	}
	d := packagesFor("acme", "up", "1.0.0")
	for name, by := range map[string]skill.Principal{"its author": author("acme"), "another tenant": author("other"), "nobody": {}} {
		d.By = by
		if _, err := h.store.SetPackages(t.Context(), d, choose); err == nil || asked {
			t.Errorf("%s: %v, asked %v", name, err, asked)
		}
	}
	d = packagesFor("", "up", "1.0.0")
	if _, err := h.store.SetPackages(t.Context(), d, choose); skill.CodeOf(err) != skill.InvalidArgument || asked {
		t.Errorf("without a tenant: %v", err)
	}
	d = packagesFor("acme", "up", "9.0.0")
	if _, err := h.store.SetPackages(t.Context(), d, choose); skill.CodeOf(err) != skill.NotFound || asked {
		t.Errorf("of no version: %v", err)
	}
	h.must(h.store.SetPackages(t.Context(), packagesFor("acme", "up", "1.0.0"), choose))
	if lock, err := h.store.PackagesOf(t.Context(), "acme", "up", "1.0.0"); err != nil || !strings.Contains(string(lock), "words") {
		t.Errorf("%s, %v", lock, err)
	}
	if lock, err := h.store.PackagesOf(t.Context(), "other", "up", "1.0.0"); skill.CodeOf(err) != skill.NotFound || lock != nil {
		t.Errorf("another tenant sees %s, %v", lock, err)
	}
	h.must(h.upload("other", "up", "1.0.0", "one"))
	if got := words(h.store, "other", "up", "1.0.0"); got != "none" {
		t.Errorf("the same files of another tenant have %q", got)
	}
}

func openDB(t *testing.T) *store.DB {
	t.Helper()
	return open(t, t.TempDir(), nil).o.DB
}

// T717: what is in the database is compared with its digest before a host takes it.
func TestDamagedPackagesOfVersions(t *testing.T) { onBoth(t, testDamagedPackages) }

func testDamagedPackages(t *testing.T, m *store.DB) {
	t.Helper()
	for name, c := range map[string]struct{ damage, want string }{
		"lock":      {"UPDATE skill_blob_parts SET bytes = $1 WHERE digest = (SELECT packages_lock FROM upload_versions WHERE id = 'up' AND version = $2)", "does not match"},
		"files":     {"UPDATE skill_blob_parts SET bytes = $1 WHERE digest = (SELECT packages_set FROM upload_versions WHERE id = 'up' AND version = $2)", "its packages: "},
		"no lock":   {"DELETE FROM skill_blob_parts WHERE bytes <> $1 AND digest = (SELECT packages_lock FROM upload_versions WHERE id = 'up' AND version = $2)", "missing"},
		"the other": {"UPDATE upload_versions SET packages_set = digest WHERE id = 'up' AND version = $2 AND digest <> $1", "their files have the digest"},
	} {
		t.Run(name, func(t *testing.T) {
			version := map[string]string{"lock": "1.0.0", "files": "2.0.0", "no lock": "3.0.0", "the other": "4.0.0"}[name]
			a := newHost(t, m, nil, withPackages(t, nil))
			a.must(a.upload("acme", "up", version, name))
			a.must(a.store.SetPackages(t.Context(), packagesFor("acme", "up", version), gives(t, a.store, "words of "+name)))
			arg := any([]byte("PK damaged"))
			if name == "the other" {
				arg = "none"
			}
			execute(t, m, c.damage, arg, version)
			b := newHost(t, m, nil, withPackages(t, nil))
			got := ""
			for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && !strings.Contains(got, c.want); time.Sleep(5 * time.Millisecond) {
				got = words(b.store, "acme", "up", version)
			}
			if !strings.Contains(got, c.want) {
				t.Fatalf("the host shows %q, want %q", got, c.want)
			}
			if got := words(a.store, "acme", "up", version); got != "words of "+name+" pyyaml" {
				t.Errorf("the host that has them shows %q", got)
			}
			// Others mend it.
			a.must(a.store.SetPackages(t.Context(), packagesFor("acme", "up", version), gives(t, a.store, "mended "+name)))
			b.awaits(version, "mended "+name+" pyyaml")
		})
	}
}

// T718: of two changes at once one wins, and a change that does not come to its end changes nothing.
func TestPackagesAreChangedWhole(t *testing.T) {
	h := newHost(t, openDB(t), nil, withPackages(t, nil))
	h.must(h.upload("acme", "up", "1.0.0", "one"))
	d := packagesFor("acme", "up", "1.0.0")
	late := func(then func()) func(string, string, bool) (*Given, error) {
		return func(tenant, folder string, has bool) (*Given, error) {
			then()
			return gives(t, h.store, "late words")(tenant, folder, has)
		}
	}
	_, err := h.store.SetPackages(t.Context(), d, func(_, folder string, _ bool) (*Given, error) {
		_, _ = gives(t, h.store, "half a change")("", folder, false)
		return nil, errors.New("the download was cut off")
	})
	if err == nil || words(h.store, "acme", "up", "1.0.0") != "none" {
		t.Errorf("%v, %s", err, words(h.store, "acme", "up", "1.0.0"))
	}
	h.restart() // as after a kill: the copies name packages that no record has
	if got := words(h.store, "acme", "up", "1.0.0"); got != "none" {
		t.Errorf("after a restart it has %q", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	_, err = h.store.SetPackages(ctx, d, late(stop))
	if err == nil || words(h.store, "acme", "up", "1.0.0") != "none" {
		t.Errorf("cancelled: %v, %s", err, words(h.store, "acme", "up", "1.0.0"))
	}
	_, err = h.store.SetPackages(t.Context(), d, late(func() {
		h.must(h.store.SetPackages(t.Context(), d, gives(t, h.store, "first words")))
	}))
	wants(t, err, skill.Conflict)
	h.awaits("1.0.0", "first words pyyaml")
	h.restart()
	h.awaits("1.0.0", "first words pyyaml")
	_, err = h.store.SetPackages(t.Context(), d, late(func() { h.must(h.store.decide(to(Delete, "acme", "up", "1.0.0"))) }))
	wants(t, err, skill.NotFound)
}

// T719: packages count against the tenant's quota, and go with their version.
func TestPackagesTakeQuota(t *testing.T) {
	c := &clock{now: time.Now()}
	h := newHost(t, openDB(t), nil, withPackages(t, func(o *Options) { o.Bytes, o.Now = 64<<10, c.Now }))
	h.must(h.upload("acme", "up", "1.0.0", "one"))
	d := packagesFor("acme", "up", "1.0.0")
	_, _, before, most := h.store.Used("acme")
	_, err := h.store.SetPackages(t.Context(), d, gives(t, h.store, strings.Repeat("x", 64<<10)))
	wants(t, err, skill.PayloadTooLarge)
	if got := words(h.store, "acme", "up", "1.0.0"); got != "none" {
		t.Errorf("it has %q", got)
	}
	fits := most - before - 3*block // of the folders, and what is left of a block
	h.must(h.store.SetPackages(t.Context(), d, gives(t, h.store, strings.Repeat("x", int(fits)))))
	h.must(h.store.SetPackages(t.Context(), d, gives(t, h.store, strings.Repeat("y", int(fits))))) // in their place
	if _, _, used, _ := h.store.Used("acme"); used <= before+fits {
		t.Errorf("used %d, %d without packages of %d bytes", used, before, fits)
	}
	if _, err := h.upload("acme", "up", "1.1.0", "two"); skill.CodeOf(err) != skill.PayloadTooLarge {
		t.Errorf("there is room: %v", err)
	}
	h.must(h.store.decide(to(Delete, "acme", "up", "1.0.0")))
	c.pass(time.Hour)
	h.store.Sweep()
	if _, _, used, _ := h.store.Used("acme"); used != 0 {
		t.Errorf("%d bytes are left", used)
	}
	c.pass(2 * unnamed)
	h.store.Sweep()
	if n := archives(t, h.store); n != 0 {
		t.Errorf("%d archives are left", n)
	}
	if locks, err := filepath.Glob(filepath.Join(h.dir, "packages", "locks", "*")); err != nil || len(locks) != 0 {
		t.Errorf("locks are left: %q, %v", locks, err)
	}
}
