package catalogue

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// What was published is there again when the store is opened again.
func TestWhatIsKept(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	v := mustPublish(t, s, "acme", "up", "1.0.0", "one")
	if v.State != skill.StateDisabled || v.Version != "1.0.0" || !strings.HasPrefix(v.Digest, "sha256:") {
		t.Errorf("published as %+v", v)
	}
	mustPublish(t, s, "acme", "up", "1.1.0", "two")
	musttest.Get(s.decide(to(Enable, "acme", "up", "1.0.0")))(t)
	mustPublish(t, s, "../Ünïcode /", "up", "1.0.0", "other")
	musttest.Do(t, s.Close())

	s = open(t, dir, nil)
	found, err := s.Get("acme", "up", "")
	musttest.Do(t, err)
	d := found.Descriptor
	if d.Version != "1.0.0" || !d.Enabled || d.State != skill.StateEnabled || d.Trust != skill.Community || found.Owner != "acme" || d.Digest != v.Digest {
		t.Errorf("found %+v of %q", d, found.Owner)
	}
	if !strings.HasPrefix(found.Folder, s.Folder("acme")+string(filepath.Separator)) {
		t.Errorf("it is in %s, outside of its tenant's %s", found.Folder, s.Folder("acme"))
	}
	if b, err := os.ReadFile(filepath.Join(found.Folder, "lib", "m.wasm")); err != nil || string(b) != "one" {
		t.Errorf("its file holds %q, %v", b, err)
	}
	if found, err = s.Get("acme", "up", "1.1.0"); err != nil || found.Descriptor.Enabled || found.Descriptor.State != skill.StateDisabled {
		t.Errorf("the other version: %+v, %v", found, err)
	}
	if _, err := s.Get("../Ünïcode /", "up", "1.0.0"); err != nil {
		t.Error(err)
	}
	if err := filepath.WalkDir(found.Folder, func(path string, e os.DirEntry, err error) error {
		if info, _ := e.Info(); err == nil && info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%s can be written: %v", path, info.Mode())
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

func TestNamesOfTenantsAreFolders(t *testing.T) {
	seen := map[string]string{}
	for _, tenant := range []string{"acme", "Acme", "t-acme", "../acme", "", ".", "..", "a/b", "a\x00", "ä", strings.Repeat("x", 48), strings.Repeat("x", 49), strings.Repeat("x", 5000), "h-" + strings.Repeat("0", 62)} {
		name := Folder(tenant)
		if filepath.Base(name) != name || strings.HasPrefix(name, ".") || len(name) > 80 || strings.ToLower(name) != name {
			t.Errorf("%q becomes %q", tenant, name)
		}
		if other, taken := seen[name]; taken {
			t.Errorf("%q and %q are both %q", tenant, other, name)
		}
		seen[name] = tenant
	}
}

func TestTheSameVersionAgain(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	mustPublish(t, s, "acme", "up", "1.0.0", "one")
	_, err := publish(s, "acme", "up", "1.0.0", "one")
	wants(t, err, skill.Conflict)
	if !strings.Contains(err.Error(), "same digest") {
		t.Errorf("the message does not say that it is the same: %v", err)
	}
	_, err = publish(s, "acme", "up", "1.0.0", "two")
	wants(t, err, skill.Conflict)
	if !strings.Contains(err.Error(), "raise the version") {
		t.Errorf("the message does not say what to do: %v", err)
	}
	mustPublish(t, s, "other", "up", "1.0.0", "two") // ids are a matter of each tenant
	if list := folders(t, s); len(list) != 2 {
		t.Errorf("on disk: %v", list)
	}
}

// U07: fifty uploads of one id and version at once.
func TestFiftyAtOnce(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	var mu sync.Mutex
	codes := map[skill.Code]int{}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			_, err := publish(s, "acme", "up", "1.0.0", "one")
			mu.Lock()
			defer mu.Unlock()
			codes[skill.CodeOf(err)]++
		})
	}
	all.Wait()
	if diff := cmp.Diff(map[skill.Code]int{"": 1, skill.Conflict: 49}, codes); diff != "" {
		t.Error(diff)
	}
	if n := len(folders(t, s)); n != 1 || archives(t, s) != 1 {
		t.Errorf("%d versions on disk, %d in the database", n, archives(t, s))
	}
	if left, err := os.ReadDir(s.staging()); err != nil || len(left) > 0 {
		t.Errorf("left in staging: %v, %v", left, err)
	}
}

func TestReservedIDs(t *testing.T) {
	s := open(t, t.TempDir(), func(o *Options) { o.Reserved = func(id skill.ID) bool { return id == "echo" } })
	_, err := publish(s, "acme", "echo", "1.0.0", "one")
	wants(t, err, skill.Conflict)
	if !strings.Contains(err.Error(), "operator") {
		t.Error(err)
	}
}

func TestNobodysUpload(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	_, err := s.Begin(author(""))
	wants(t, err, skill.Forbidden)
	_, err = s.Begin(author("a\x00b")) // which PostgreSQL cannot hold
	wants(t, err, skill.InvalidArgument)
}

// U11: quotas, at their edge.
func TestQuotas(t *testing.T) {
	t.Run("skills", func(t *testing.T) {
		s := open(t, t.TempDir(), func(o *Options) { o.Skills = 2 })
		mustPublish(t, s, "acme", "a", "1.0.0", "x")
		mustPublish(t, s, "acme", "b", "1.0.0", "x")
		_, err := publish(s, "acme", "c", "1.0.0", "x")
		wants(t, err, skill.Conflict)
		mustPublish(t, s, "acme", "b", "1.1.0", "x")
		mustPublish(t, s, "other", "c", "1.0.0", "x")
		musttest.Get(s.decide(to(Delete, "acme", "a", "1.0.0")))(t)
		mustPublish(t, s, "acme", "c", "1.0.0", "x")
	})
	t.Run("versions", func(t *testing.T) {
		c := &clock{now: time.Unix(1e9, 0)}
		s := open(t, t.TempDir(), func(o *Options) { o.Versions, o.Grace, o.Now = 2, time.Minute, c.Now })
		mustPublish(t, s, "acme", "a", "1.0.0", "x")
		mustPublish(t, s, "acme", "a", "1.1.0", "x")
		_, err := publish(s, "acme", "a", "1.2.0", "x")
		wants(t, err, skill.Conflict)
		musttest.Get(s.decide(to(Delete, "acme", "a", "1.0.0")))(t)
		_, err = publish(s, "acme", "a", "1.2.0", "x") // its files are still there
		wants(t, err, skill.Conflict)
		c.pass(time.Minute)
		s.Sweep()
		mustPublish(t, s, "acme", "a", "1.2.0", "x")
	})
	t.Run("bytes at once", func(t *testing.T) {
		content := strings.Repeat("x", 10_000)
		s := open(t, t.TempDir(), func(o *Options) { o.Bytes, o.Skills = 130_000, 1000 })
		var mu sync.Mutex
		var all sync.WaitGroup
		accepted := 0
		for i := range 30 {
			all.Go(func() {
				_, err := publish(s, "acme", skill.ID("s"+string(rune('a'+i%26))+string(rune('a'+i/26))), "1.0.0", content)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					accepted++
				} else if skill.CodeOf(err) != skill.PayloadTooLarge || !strings.Contains(err.Error(), "delete unneeded versions") {
					t.Errorf("refused with %v", err)
				}
			})
		}
		all.Wait()
		if used := s.usage("acme").bytes; used > 130_000 || accepted < 1 || accepted > 5 {
			t.Errorf("%d accepted, %d bytes used of 130000", accepted, used)
		}
		if len(s.reserved) != 0 {
			t.Errorf("reserved for good: %v", s.reserved)
		}
	})
	t.Run("bytes are used up", func(t *testing.T) {
		s := open(t, t.TempDir(), func(o *Options) { o.Bytes = 7 * block })
		mustPublish(t, s, "acme", "a", "1.0.0", "x") // two files in two folders
		_, err := publish(s, "acme", "b", "1.0.0", "x")
		wants(t, err, skill.PayloadTooLarge)
		mustPublish(t, s, "other", "b", "1.0.0", "x")
	})
}

// A disk is full of empty files, too.
func TestSpaceIsThatOfTheDisk(t *testing.T) {
	dir := t.TempDir()
	for i := range 100 {
		musttest.Do(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600))
	}
	if got := spaceOf(dir); got != 101*block {
		t.Errorf("100 empty files take %d bytes, want %d", got, 101*block)
	}
	musttest.Do(t, os.WriteFile(filepath.Join(dir, "0"), make([]byte, block+1), 0o600))
	if got := spaceOf(dir); got != 102*block {
		t.Errorf("with one of two blocks they take %d bytes, want %d", got, 102*block)
	}
}

func TestUploadThatEnds(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	u, err := s.Begin(author("acme"))
	musttest.Do(t, err)
	f, err := u.File()
	musttest.Do(t, err)
	defer f.Close()
	a, err := pack(u.Staging(), "up", "1.0.0", "one")
	musttest.Do(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = u.publish(ctx, a)
	wants(t, err, skill.Cancelled)
	for range 2 {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := u.Publish(t.Context(), a, "someone"); err == nil {
		t.Error("a closed upload publishes")
	}
	if left, err := os.ReadDir(s.staging()); err != nil || len(left) > 0 {
		t.Errorf("left in staging: %v, %v", left, err)
	}
	_, err = s.Get("acme", "up", "")
	wants(t, err, skill.NotFound)
}

func TestOneProcessHasTheStore(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	if _, err := Open(options(s.o.DB, dir, nil)); err == nil || !strings.Contains(err.Error(), "another openskill") {
		t.Fatalf("a second store: %v", err)
	}
	musttest.Do(t, s.Close())
	open(t, dir, nil)
	_, err := publish(s, "acme", "up", "1.0.0", "one")
	if err == nil {
		t.Error("a closed store takes uploads")
	}
}

func overwrite(t *testing.T, path, text string) {
	t.Helper()
	musttest.Do(t, os.Chmod(path, 0o600))
	musttest.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

// U09: a file that is swapped on disk does not run.
func TestSwappedFile(t *testing.T) {
	for name, swap := range map[string]func(t *testing.T, file string){
		"written": func(t *testing.T, file string) { t.Helper(); overwrite(t, file, "two") },
		"same size and time": func(t *testing.T, file string) {
			t.Helper()
			info := must(os.Stat(file))
			overwrite(t, file, "eno")
			musttest.Do(t, os.Chtimes(file, info.ModTime(), info.ModTime()))
		},
		"replaced": func(t *testing.T, file string) {
			t.Helper()
			writable(t, file)
			overwriteNew(t, file+"x", "eno")
			musttest.Do(t, os.Rename(file+"x", file))
		},
		"one more": func(t *testing.T, file string) { t.Helper(); writable(t, file); overwriteNew(t, file+"x", "x") },
		"gone": func(t *testing.T, file string) {
			t.Helper()
			writable(t, file)
			musttest.Do(t, os.Remove(file))
		},
		"a link": func(t *testing.T, file string) {
			t.Helper()
			writable(t, file)
			musttest.Do(t, os.Rename(file, file+"x"))
			musttest.Do(t, os.Symlink(file+"x", file))
		},
	} {
		for _, when := range []string{"while it serves", "before it starts"} {
			t.Run(name+" "+when, func(t *testing.T) {
				dir := t.TempDir()
				s := open(t, dir, nil)
				mustPublish(t, s, "acme", "up", "1.0.0", "one")
				musttest.Get(s.decide(to(Enable, "acme", "up", "")))(t)
				folder := must(s.Get("acme", "up", "")).Folder
				if when == "before it starts" {
					_ = s.Close()
				}
				swap(t, filepath.Join(folder, "lib", "m.wasm"))
				if when == "before it starts" {
					s = open(t, dir, nil)
				}
				// It is not served, and comes back from the database.
				for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
					found, err := s.Get("acme", "up", "")
					if err == nil {
						if b, err := os.ReadFile(filepath.Join(found.Folder, "lib", "m.wasm")); err != nil || string(b) != "one" || !found.Descriptor.Enabled {
							t.Errorf("served: %q, %v, %+v", b, err, found.Descriptor)
						}
						break
					}
					if !strings.Contains(err.Error(), "still being fetched") || time.Now().After(end) {
						t.Fatal(err)
					}
				}
				if extra, _ := filepath.Glob(filepath.Join(folder, "lib", "*x")); len(extra) > 0 {
					t.Errorf("left: %v", extra)
				}
			})
		}
	}
}

func writable(t *testing.T, file string) {
	t.Helper()
	musttest.Do(t, os.Chmod(filepath.Dir(file), 0o700))
}

func overwriteNew(t *testing.T, path, text string) {
	t.Helper()
	musttest.Do(t, os.WriteFile(path, []byte(text), 0o400))
}

// A host that accepts less than the one before shows why, and forgets nothing.
func TestNotAcceptedAnyMore(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	mustPublish(t, s, "acme", "up", "1.0.0", "one")
	musttest.Get(s.decide(to(Enable, "acme", "up", "")))(t)
	_ = s.Close()
	s = open(t, dir, func(o *Options) {
		o.Read = func(string) (*manifest.Skill, []manifest.Problem) {
			return nil, []manifest.Problem{{File: "skill.yaml", Line: 3, Message: "no runtime has pandas"}}
		}
	})
	found := must(s.Get("acme", "up", ""))
	if d := found.Descriptor; d.Enabled || !strings.Contains(d.Reason, "pandas") {
		t.Errorf("found %+v", d)
	}
	_ = s.Close()
	s = open(t, dir, nil)
	if got, want := seen(s, "acme", "up"), "1.0.0 true: 1.0.0=enabled"; got != want {
		t.Errorf("on the host before: %s, want %s", got, want)
	}
}

// What a crash leaves on the disk is gone after the next start.
func TestWhatACrashLeaves(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	mustPublish(t, s, "acme", "up", "1.0.0", "one")
	_ = s.Close()
	for _, path := range []string{
		filepath.Join(s.staging(), "123", "out", "skill-1", "skill.yaml"),                     // unpacked, or half
		filepath.Join(s.Folder("acme"), strings.Repeat("0", 64), "skill.yaml"),                // moved, and not in the database
		filepath.Join(s.o.Dir, "t-other", "1.0.0@0123456789abcdef", "lib", "made", "nothing"), // of nobody
	} {
		musttest.Write(t, path, "{")
	}
	s = open(t, dir, nil)
	if list := folders(t, s); len(list) != 1 || list[0] != must(s.Get("acme", "up", "1.0.0")).Folder {
		t.Errorf("on disk: %v", list)
	}
	if left, err := os.ReadDir(s.staging()); err != nil || len(left) > 0 {
		t.Errorf("left in staging: %v, %v", left, err)
	}
}
