package catalogue

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/host/store"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// The life of uploads on two hosts: what one does, the other shows.
func TestSharedLife(t *testing.T) { onBoth(t, testSharedLife) }

func testSharedLife(t *testing.T, m *store.DB) {
	t.Helper()
	a, b := newHost(t, m, nil, nil), newHost(t, m, nil, nil)
	a.must(a.upload("acme", "up", "1.0.0", "one"))
	b.learns("acme", "up", "1.0.0 false: 1.0.0=disabled one")
	b.must(b.store.decide(to(Enable, "acme", "up", "")))
	a.learns("acme", "up", "1.0.0 true: 1.0.0=enabled one")
	b.must(b.upload("acme", "up", "1.1.0", "two"))
	// The first host decides about a version that it has not seen yet.
	a.must(a.store.Decide(Decision{Action: Enable, By: author("acme"), ID: "up", Version: "1.1.0"}))
	a.learns("acme", "up", "1.1.0 true: 1.0.0=enabled 1.1.0=enabled two")
	b.learns("acme", "up", "1.1.0 true: 1.0.0=enabled 1.1.0=enabled two")
	if got := b.seen("other", "up"); got != "NOT_FOUND" {
		t.Errorf("another tenant finds %s", got)
	}
	a.must(a.store.decide(asOperator(to(Approve, "acme", "up", ""))))
	b.learns("other", "up", "1.1.0 true: 1.1.0=enabled two")
	b.must(b.upload("other", "up", "3.0.0", "three"))
	_, err := b.store.decide(asOperator(to(Approve, "other", "up", "")))
	wants(t, err, skill.Conflict)
	b.must(b.store.decide(to(Rollback, "acme", "up", "")))
	a.learns("acme", "up", "1.0.0 true: 1.0.0=enabled 1.1.0=disabled one")
	musttest.Do(t, b.store.Quarantine("acme", "up", "1.0.0", "it crashed"))
	a.learns("acme", "up", "1.0.0 false: 1.0.0=quarantined 1.1.0=disabled one")
	_, err = a.store.decide(to(Enable, "acme", "up", "1.0.0"))
	wants(t, err, skill.Forbidden)
	a.must(a.store.decide(to(Delete, "acme", "up", "1.1.0")))
	b.learns("acme", "up", "1.0.0 false: 1.0.0=quarantined one")
}

// U07 over hosts: uploads of one id and version at once, of which one wins.
func TestSharedRace(t *testing.T) { onBoth(t, testSharedRace) }

func testSharedRace(t *testing.T, m *store.DB) {
	t.Helper()
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
			wants(t, err, skill.Conflict)
		}
	}
	for _, h := range hosts {
		h.learns("acme", "up", fmt.Sprintf("1.0.0 false: 1.0.0=disabled from %d", won))
	}
	if n := archives(t, hosts[0].store); n != 1 {
		t.Errorf("%d archives are kept", n)
	}
}

func TestSharedQuotas(t *testing.T) { onBoth(t, testSharedQuotas) }

func testSharedQuotas(t *testing.T, m *store.DB) {
	t.Helper()
	small := func(o *Options) { o.Skills, o.Versions, o.Bytes = 2, 2, 8*24<<10 }
	a, b := newHost(t, m, nil, small), newHost(t, m, nil, small)
	a.must(a.upload("acme", "one", "1.0.0", "x"))
	b.must(b.upload("acme", "one", "1.1.0", "x"))
	_, err := a.upload("acme", "one", "1.2.0", "x") // a has not heard of the second one
	wants(t, err, skill.Conflict)
	b.must(b.upload("acme", "two", "1.0.0", "x"))
	_, err = a.upload("acme", "three", "1.0.0", "x")
	wants(t, err, skill.Conflict)
	b.must(b.upload("other", "three", "1.0.0", strings.Repeat("x", 90<<10)))
	_, err = a.upload("other", "four", "1.0.0", strings.Repeat("x", 90<<10))
	wants(t, err, skill.PayloadTooLarge)
}

// A host that was away catches up when it starts; one whose files are damaged or gone
// fetches them again; what nobody names is removed.
func TestSharedFilesAreACopy(t *testing.T) { onBoth(t, testSharedFilesAreACopy) }

func testSharedFilesAreACopy(t *testing.T, m *store.DB) {
	t.Helper()
	a, b := newHost(t, m, nil, nil), newHost(t, m, nil, nil)
	musttest.Do(t, b.store.Close())
	a.must(a.upload("acme", "up", "1.0.0", "one"))
	a.must(a.store.decide(to(Enable, "acme", "up", "")))
	b.restart()
	const want = "1.0.0 true: 1.0.0=enabled one"
	b.learns("acme", "up", want)

	found := musttest.Get(b.store.Get("acme", "up", ""))(t)
	file := filepath.Join(found.Folder, "lib", "m.wasm")
	musttest.Do(t, errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, []byte("bad"), 0o600)))
	if got := b.seen("acme", "up"); got == "1.0.0 true: 1.0.0=enabled bad" {
		t.Errorf("changed files are served: %s", got)
	}
	b.learns("acme", "up", want)
	a.learns("acme", "up", want) // it is no reason for a quarantine
	if err := os.RemoveAll(filepath.Join(b.dir, "uploads")); err == nil {
		b.learns("acme", "up", want)
	}

	// What a crash may leave: a folder that no record names.
	stray := filepath.Join(b.dir, "uploads", "t-acme", "stray", "1.0.0@0123456789abcdef")
	musttest.Do(t, os.MkdirAll(stray, 0o700))
	b.restart()
	b.learns("acme", "up", want)
	if list := folders(t, b.store); len(list) != 1 {
		t.Errorf("on its disk are %v", list)
	}
}

// A host that joins fetches by turns of tenants: versions of one that take long leave room
// for another's.
func TestTenantsFetchByTurns(t *testing.T) { onBoth(t, testTenantsFetchByTurns) }

func testTenantsFetchByTurns(t *testing.T, m *store.DB) {
	t.Helper()
	release := make(chan struct{})
	a := newHost(t, m, nil, nil)
	for i := range 8 {
		a.must(a.upload("many", skill.ID(fmt.Sprint("slow", i)), "1.0.0", "slow"))
	}
	for _, id := range []skill.ID{"one", "two"} {
		a.must(a.upload("other", id, "1.0.0", "quick"))
	}
	b := newHost(t, m, func(_ string, module []byte) error {
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
func TestSharedFilesAreRefused(t *testing.T) { onBoth(t, testSharedFilesAreRefused) }

func testSharedFilesAreRefused(t *testing.T, m *store.DB) {
	t.Helper()
	strict := func(_ string, module []byte) error {
		if bytes.Contains(module, []byte("fast")) {
			return &skill.Error{Code: skill.FeatureDisabled, Message: "uses a proposal that is switched off"}
		}
		return nil
	}
	a, b := newHost(t, m, nil, nil), newHost(t, m, strict, nil)
	a.must(a.upload("acme", "up", "1.0.0", "fast"))
	a.must(a.store.decide(to(Enable, "acme", "up", "")))
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
	execute(t, m, "UPDATE skill_blob_parts SET bytes = (SELECT bytes FROM skill_blob_parts WHERE digest = $1) WHERE digest = $2", other.Digest, v.Digest) // whole, and of another skill
	b.learns("acme", "two", "1.0.0 false: 1.0.0=quarantined")
	execute(t, m, "UPDATE skill_blob_parts SET bytes = substr(bytes, 1, 100) WHERE digest = $1", other.Digest)
	c := newHost(t, m, nil, nil)
	c.learns("acme", "three", "1.0.0 false: 1.0.0=quarantined")
}

// A change that the database refuses is not made, on any host.
func TestDatabaseRefuses(t *testing.T) { onBoth(t, testDatabaseRefuses) }

func testDatabaseRefuses(t *testing.T, m *store.DB) {
	t.Helper()
	a, b := newHost(t, m, nil, nil), newHost(t, m, nil, nil)
	a.must(a.upload("acme", "up", "1.0.0", "one"))
	b.learns("acme", "up", "1.0.0 false: 1.0.0=disabled one")
	mend := failing(t, m)
	_, err := a.upload("acme", "other", "1.0.0", "two")
	wants(t, err, skill.Internal)
	_, err = b.store.decide(to(Enable, "acme", "up", ""))
	wants(t, err, skill.Internal)
	mend()
	if n := archives(t, a.store); n != 1 {
		t.Errorf("%d archives are kept of one version", n)
	}
	for _, h := range []*host{a, b} {
		h.learns("acme", "other", "NOT_FOUND")
		h.learns("acme", "up", "1.0.0 false: 1.0.0=disabled one")
	}
	a.must(a.upload("acme", "other", "1.0.0", "two"))
	b.learns("acme", "other", "1.0.0 false: 1.0.0=disabled two")
}

// A version is there although the disk of its host has no place for its files.
func TestPublishesWithoutPlaceForTheFiles(t *testing.T) {
	onBoth(t, testPublishesWithoutPlaceForTheFiles)
}

func testPublishesWithoutPlaceForTheFiles(t *testing.T, m *store.DB) {
	t.Helper()
	a, b := newHost(t, m, nil, nil), newHost(t, m, nil, nil)
	blocked := a.store.Folder("acme")
	musttest.Do(t, os.WriteFile(blocked, nil, 0o600))
	a.must(a.upload("acme", "up", "1.0.0", "one"))
	b.learns("acme", "up", "1.0.0 false: 1.0.0=disabled one")
	if got := a.seen("acme", "up"); got != "NOT_FOUND" {
		t.Errorf("without its files: %s", got)
	}
	musttest.Do(t, os.Remove(blocked))
	a.learns("acme", "up", "1.0.0 false: 1.0.0=disabled one")
}

// A database that comes back without its last changes: hosts go back to what it has.
func TestSharedChangesAreLost(t *testing.T) { onBoth(t, testSharedChangesAreLost) }

func testSharedChangesAreLost(t *testing.T, m *store.DB) {
	t.Helper()
	a, b := newHost(t, m, nil, nil), newHost(t, m, nil, nil)
	a.must(a.upload("acme", "up", "1.0.0", "one"))
	b.learns("acme", "up", "1.0.0 false: 1.0.0=disabled one")
	var before int64
	musttest.Do(t, m.Read.QueryRowContext(t.Context(), "SELECT revision FROM revisions WHERE topic = $1", Topic).Scan(&before))
	a.must(a.store.decide(to(Enable, "acme", "up", "")))
	a.must(a.upload("acme", "more", "1.0.0", "more"))
	b.learns("acme", "more", "1.0.0 false: 1.0.0=disabled more")
	b.learns("acme", "up", "1.0.0 true: 1.0.0=enabled one")
	execute(t, m, "DELETE FROM uploads WHERE id = 'more'")
	execute(t, m, "UPDATE uploads SET current_version = '', revision = $1", before)
	execute(t, m, "UPDATE upload_versions SET enabled = FALSE, was_enabled = FALSE")
	execute(t, m, "UPDATE revisions SET revision = $1 WHERE topic = $2", before, Topic)
	for _, h := range []*host{a, b} {
		h.learns("acme", "up", "1.0.0 false: 1.0.0=disabled one")
		h.learns("acme", "more", "NOT_FOUND")
		if list := folders(t, h.store); len(list) != 1 {
			t.Errorf("on its disk are %v", list)
		}
	}
	a.must(a.upload("acme", "more", "1.0.0", "again"))
	b.learns("acme", "more", "1.0.0 false: 1.0.0=disabled again")
}

// A quarantine holds on its host while the database is away, and everywhere afterwards.
func TestQuarantineHoldsWithoutTheDatabase(t *testing.T) {
	onBoth(t, testQuarantineHoldsWithoutTheDatabase)
}

func testQuarantineHoldsWithoutTheDatabase(t *testing.T, m *store.DB) {
	t.Helper()
	a, b := newHost(t, m, nil, nil), newHost(t, m, nil, nil)
	a.must(a.upload("acme", "up", "1.0.0", "one"))
	a.must(a.store.decide(to(Enable, "acme", "up", "")))
	b.learns("acme", "up", "1.0.0 true: 1.0.0=enabled one")
	mend := failing(t, m)
	if err := a.store.Quarantine("acme", "up", "1.0.0", "it crashed"); err == nil {
		t.Error("a quarantine was written to a database that is gone")
	}
	if got := a.seen("acme", "up"); got != "1.0.0 false: 1.0.0=quarantined one" {
		t.Errorf("while the database is gone: %s", got)
	}
	if _, err := a.store.decide(to(Disable, "acme", "up", "")); skill.CodeOf(err) != skill.Internal {
		t.Errorf("a decision meanwhile: %v", err)
	}
	if got := b.seen("acme", "up"); got != "1.0.0 true: 1.0.0=enabled one" {
		t.Errorf("the other host meanwhile: %s", got)
	}
	mend()
	a.learns("acme", "up", "1.0.0 false: 1.0.0=quarantined one")
	b.learns("acme", "up", "1.0.0 false: 1.0.0=quarantined one")
	b.must(b.store.decide(asOperator(to(Enable, "acme", "up", ""))))
	a.learns("acme", "up", "1.0.0 true: 1.0.0=enabled one")
}

// What is deleted goes from every disk when its grace is over, and from the database.
func TestSharedSweep(t *testing.T) { onBoth(t, testSharedSweep) }

func testSharedSweep(t *testing.T, m *store.DB) {
	t.Helper()
	var mu sync.Mutex
	var passed time.Duration
	clock := func(o *Options) {
		o.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(passed)
		}
	}
	a, b := newHost(t, m, nil, clock), newHost(t, m, nil, clock)
	a.must(a.upload("acme", "up", "1.0.0", "one"))
	b.learns("acme", "up", "1.0.0 false: 1.0.0=disabled one")
	b.must(b.store.decide(to(Delete, "acme", "up", "1.0.0")))
	a.learns("acme", "up", "NOT_FOUND")
	if len(folders(t, a.store)) != 1 || len(folders(t, b.store)) != 1 {
		t.Errorf("before the grace is over: %v, %v", folders(t, a.store), folders(t, b.store))
	}
	a.must(a.upload("acme", "up", "1.0.0", "one")) // back as it was
	b.learns("acme", "up", "1.0.0 false: 1.0.0=disabled one")
	b.must(b.store.decide(to(Delete, "acme", "up", "1.0.0")))
	mu.Lock()
	passed = 2 * time.Hour
	mu.Unlock()
	a.store.Sweep()
	b.store.Sweep()
	a.store.Sweep()
	if len(folders(t, a.store)) != 0 || len(folders(t, b.store)) != 0 || archives(t, a.store) != 0 {
		t.Errorf("after it: %v, %v, %d archives", folders(t, a.store), folders(t, b.store), archives(t, a.store))
	}
	for _, h := range []*host{a, b} { // the name stays that of those files, on every host
		if _, err := h.upload("acme", "up", "1.0.0", "another"); skill.CodeOf(err) != skill.Conflict {
			t.Errorf("other files under the name of a deleted version: %v", err)
		}
	}
	a.must(a.upload("acme", "up", "1.0.0", "one"))
	b.learns("acme", "up", "1.0.0 false: 1.0.0=disabled one")
}
