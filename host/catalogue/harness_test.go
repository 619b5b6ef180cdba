package catalogue

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"openskill/host/catalogue/manifest"
	"openskill/sdk/skill"
)

func limits() skill.Limits {
	return skill.Limits{Timeout: time.Second, Memory: 1 << 20, Fuel: 1000, Output: 1 << 10, Scratch: 1 << 20}
}

func read(folder string) (*manifest.Skill, []manifest.Problem) {
	return manifest.ReadFolder(folder, manifest.Options{Defaults: limits(), Caps: limits()})
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

func options(dir string, change func(*Options)) Options {
	o := Options{Dir: dir, Read: read, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	return o
}

// open opens a store until the end of the test.
func open(tb testing.TB, dir string, change func(*Options)) *Store {
	tb.Helper()
	s, err := Open(options(dir, change))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// pack writes the folder of a skill into a staging folder, as admission leaves it.
func pack(staging string, id skill.ID, version, content string) (*Admitted, error) {
	folder, err := os.MkdirTemp(staging, "skill-")
	if err != nil {
		return nil, err
	}
	manifest := fmt.Sprintf("id: %s\nversion: %s\ndescription: d\ntype: wasm\nruntime: wasi\nentry: lib/m.wasm\n", id, version)
	if err := os.Mkdir(filepath.Join(folder, "lib"), 0o700); err != nil {
		return nil, err
	}
	for name, text := range map[string]string{"skill.yaml": manifest, "lib/m.wasm": content} {
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
	return &Admitted{Folder: folder, Skill: found, Digest: found.Descriptor.Digest}, os.Chmod(folder, 0o555)
}

// publish uploads one version.
func publish(s *Store, tenant string, id skill.ID, version, content string) (skill.VersionState, error) {
	u, err := s.Begin(tenant)
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
	v, err := publish(s, tenant, id, version, content)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// wants fails the test unless err has the code.
func wants(tb testing.TB, err error, code skill.Code) {
	tb.Helper()
	if got := skill.CodeOf(err); got != code {
		tb.Fatalf("got %v (%q), want %q", err, got, code)
	}
}

// folders counts the version folders of a skill on disk.
func folders(tb testing.TB, s *Store, tenant string, id skill.ID) (n int) {
	tb.Helper()
	entries, err := os.ReadDir(s.at(key{tenant, id}))
	if err != nil && !os.IsNotExist(err) {
		tb.Fatal(err)
	}
	for _, e := range entries {
		if isVersion(e) {
			n++
		}
	}
	return n
}
