package runtimes

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// zipped makes an archive as pip fetches it, tarred one as npm does.
func zipped(t testing.TB, members map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, data := range members {
		m, err := w.Create(name)
		if err == nil {
			_, err = m.Write(data)
		}
		musttest.Do(t, err)
	}
	musttest.Do(t, w.Close())
	return out.Bytes()
}

func tarred(t testing.TB, members map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	g := gzip.NewWriter(&out)
	w := tar.NewWriter(g)
	for name, data := range members {
		err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o644, Typeflag: tar.TypeReg})
		if err == nil {
			_, err = w.Write(data)
		}
		musttest.Do(t, err)
	}
	musttest.Do(t, errors.Join(w.Close(), g.Close()))
	return out.Bytes()
}

// small is a runtime of three files, made of an archive as the real ones are.
type small struct {
	recipe  *recipe
	archive string // its path
}

// payload is large enough that an installation can be killed in the middle.
func payload(size int) []byte {
	b := make([]byte, size)
	r := rand.NewPCG(1, 2)
	for i := range b {
		b[i] = byte(r.Uint64())
	}
	return b
}

func makeSmall(t testing.TB, dir, name string, m manager, size int) *small {
	t.Helper()
	members := map[string][]byte{
		"x/module": payload(size), "x/LICENSE": []byte("free"), "../../escape": []byte("no"), "/etc/passwd": []byte("no"),
	}
	data := zipped(t, members)
	if m == npm {
		data = tarred(t, members)
	}
	s := &small{archive: filepath.Join(dir, name+"-"+string(m)+".archive")}
	musttest.Do(t, os.WriteFile(s.archive, data, 0o600))
	s.recipe = smallRecipe(name, m, size, sum(data), int64(len(data)))
	return s
}

func smallRecipe(name string, m manager, size int, archive string, length int64) *recipe {
	module := payload(size)
	library := library{"a.py": []byte("x = 1")}
	stored, err := library.store()
	if err != nil {
		panic(err)
	}
	return &recipe{
		name: name, version: "3.0.0", derivation: "1",
		source: source{manager: m, name: "small", version: "1.0", sha256: archive, size: length},
		outputs: []output{
			{"python.wasm", sum(module), int64(len(module))},
			{"stdlib.zip", sum(stored), int64(len(stored))},
			{"LICENSE", sum([]byte("free")), 4},
		},
		run:    Run{Entry: "_start", Args0: "python", Env: []string{"A=1"}},
		mounts: []mountOf{{"/lib", "stdlib.zip"}},
		build: func(b *builder) error {
			for from, to := range map[string]string{"x/module": "python.wasm", "x/LICENSE": "LICENSE"} {
				data, err := b.member(from, 64<<20)
				if err != nil {
					return err
				}
				if err := b.write(to, data); err != nil {
					return err
				}
				b.step("written " + to)
			}
			return b.write("stdlib.zip", stored)
		},
	}
}

func noFetch(context.Context, *source, string) (string, error) {
	return "", &missing{what: "no package manager is on the PATH"}
}

func wantCode(t *testing.T, err error, code skill.Code, words ...string) {
	t.Helper()
	var e *skill.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("%v; want %s", err, code)
	}
	for _, w := range words {
		if !strings.Contains(e.Message, w) {
			t.Errorf("message %q lacks %q", e.Message, w)
		}
	}
	if strings.Contains(e.Message, os.TempDir()) || len(e.Message) > 512 {
		t.Errorf("message %q", e.Message)
	}
}

// leftovers are names in the folder of the runtimes that are neither runtimes nor locks.
func leftovers(t *testing.T, s *Store) (names []string) {
	t.Helper()
	entries := musttest.Get(os.ReadDir(s.dir))(t)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".work-") {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestInstall(t *testing.T) {
	for _, m := range []manager{pip, npm} {
		t.Run(string(m), func(t *testing.T) {
			one := makeSmall(t, t.TempDir(), "one", m, 1000)
			state := t.TempDir()
			s := newStore(state, []*recipe{one.recipe}, noFetch)
			if st := s.List(); st[0].State != Absent || !st[0].Default {
				t.Errorf("at first: %+v", st)
			}
			_, err := s.Open("one")
			wantCode(t, err, skill.ToolInvocationError, "not installed", "openskill runtime install one")
			_, err = s.Install(t.Context(), "one", nil)
			wantCode(t, err, skill.ToolInvocationError, "no package manager")

			last := 0.0
			report, err := s.Install(t.Context(), "one", &InstallOptions{From: one.archive, Step: func(what string, done float64) {
				if what == "" || done < last || done > 1 {
					t.Errorf("step %q at %v after %v", what, done, last)
				}
				last = done
			}})
			if err != nil || !report.Changed || report.State != Installed || last != 1 {
				t.Fatalf("%+v, %v, steps to %v", report, err, last)
			}
			if st, err := s.Verify(t.Context(), "one"); err != nil || st.State != Installed {
				t.Errorf("%+v, %v", st, err)
			}
			// An installation that was killed after its rename left this.
			musttest.Do(t, os.Mkdir(filepath.Join(s.dir, ".work-one-killed"), 0o700))
			if report, err := s.Install(t.Context(), "one", nil); err != nil || report.Changed {
				t.Errorf("again: %+v, %v", report, err)
			}
			if l := leftovers(t, s); l != nil {
				t.Errorf("left over: %v", l)
			}
			r := musttest.Get(s.Open("one"))(t)
			got, err := os.ReadFile(r.Module.Path)
			if err != nil || "sha256:"+sum(got) != r.Module.Digest || !filepath.IsAbs(r.Module.Path) || r.Args0 != "python" {
				t.Errorf("%+v, %v", r, err)
			}
			mounts, closing, err := r.Mount()
			if err != nil || len(mounts) != 1 || mounts[0].Path != "/lib" {
				t.Fatalf("%+v, %v", mounts, err)
			}
			if st, errno := mounts[0].FS.Stat("a.py", true); errno != 0 || st.Size != 5 {
				t.Errorf("%+v, %v", st, errno)
			}
			if err := errors.Join(closing(), closing()); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(state, "escape")); err == nil {
				t.Error("a member chose its own path")
			}
			if removed, err := s.Remove(t.Context(), "one"); !removed || err != nil {
				t.Errorf("remove: %v, %v", removed, err)
			}
			if removed, err := s.Remove(t.Context(), "one"); removed || err != nil {
				t.Errorf("remove again: %v, %v", removed, err)
			}
			if s.List()[0].State != Absent || leftovers(t, s) != nil {
				t.Errorf("after the removal: %+v, %v", s.List(), leftovers(t, s))
			}
		})
	}
}

func TestUnknownNames(t *testing.T) {
	s := New(t.TempDir())
	_, err := s.Open("../x")
	wantCode(t, err, skill.NotFound, "slim, scientific, python-3.12")
	_, err = s.Install(t.Context(), "", nil)
	wantCode(t, err, skill.NotFound)
	_, err = s.Verify(t.Context(), "numpy")
	wantCode(t, err, skill.NotFound)
	_, err = s.Remove(t.Context(), "..")
	wantCode(t, err, skill.NotFound)
	_, _, err = s.Modules("pandas")
	wantCode(t, err, skill.NotFound)
}

// An archive that is not the pinned one installs nothing, and one that makes other
// files than the pinned ones neither.
func TestOtherArchives(t *testing.T) {
	dir := t.TempDir()
	one := makeSmall(t, dir, "one", pip, 1000)
	other := filepath.Join(dir, "other")
	s := newStore(t.TempDir(), []*recipe{one.recipe}, noFetch)
	good := musttest.Get(os.ReadFile(one.archive))(t)
	for name, data := range map[string][]byte{
		"empty": {}, "text": []byte("no archive"), "longer": append(slices.Clone(good), 0),
		"one bit": append([]byte{good[0] ^ 1}, good[1:]...), "shorter": good[:len(good)-1],
	} {
		t.Run(name, func(t *testing.T) {
			musttest.Do(t, os.WriteFile(other, data, 0o600))
			_, err := s.Install(t.Context(), "one", &InstallOptions{From: other})
			wantCode(t, err, skill.InvalidArgument, "pinned", one.recipe.source.sha256, "nothing was installed")
			if s.List()[0].State != Absent || leftovers(t, s) != nil {
				t.Errorf("%+v, %v", s.List(), leftovers(t, s))
			}
		})
	}
	t.Run("a folder", func(t *testing.T) {
		_, err := s.Install(t.Context(), "one", &InstallOptions{From: dir})
		wantCode(t, err, skill.InvalidArgument)
	})
	t.Run("no zip behind the right hash", func(t *testing.T) {
		r := *one.recipe
		r.source.sha256, r.source.size = sum([]byte("text")), 4
		musttest.Do(t, os.WriteFile(other, []byte("text"), 0o600))
		_, err := newStore(t.TempDir(), []*recipe{&r}, noFetch).Install(t.Context(), "one", &InstallOptions{From: other})
		wantCode(t, err, skill.InvalidArgument)
	})
	t.Run("other files come out", func(t *testing.T) {
		r := *one.recipe
		r.outputs = slices.Clone(r.outputs)
		r.outputs[0].sha256 = sum(nil)
		s := newStore(t.TempDir(), []*recipe{&r}, noFetch)
		_, err := s.Install(t.Context(), "one", &InstallOptions{From: one.archive})
		wantCode(t, err, skill.Internal)
		if s.List()[0].State != Absent || leftovers(t, s) != nil {
			t.Errorf("%+v, %v", s.List(), leftovers(t, s))
		}
	})
	t.Run("a member is too large", func(t *testing.T) {
		r := *one.recipe
		r.build = func(b *builder) error { _, err := b.member("x/module", 999); return err }
		_, err := newStore(t.TempDir(), []*recipe{&r}, noFetch).Install(t.Context(), "one", &InstallOptions{From: one.archive})
		if wantCode(t, err, skill.Internal); !strings.Contains(err.Error(), "more than 999 bytes") {
			t.Error(err)
		}
	})
}

// Whatever is wrong with an installed runtime is found, told by file, and mended.
func TestDamage(t *testing.T) {
	one := makeSmall(t, t.TempDir(), "one", pip, 1000)
	dir := ""
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) func() error {
		return func() error { return os.WriteFile(at(name), []byte(text), 0o600) }
	}
	for _, c := range []struct {
		name    string
		harm    func() error
		listed  State
		found   State
		opens   bool
		message string
	}{
		{"a bit of the module", func() error {
			b, err := os.ReadFile(at("python.wasm"))
			b[500] ^= 1
			return errors.Join(err, os.WriteFile(at("python.wasm"), b, 0o600))
		}, Installed, Damaged, false, "python.wasm is damaged"},
		{"a short file", func() error { return os.Truncate(at("python.wasm"), 10) }, Damaged, Damaged, false, "python.wasm has 10 bytes"},
		{"no library", func() error { return os.Remove(at("stdlib.zip")) }, Damaged, Damaged, false, "stdlib.zip is not there"},
		{"a folder for a file", func() error { return errors.Join(os.Remove(at("LICENSE")), os.Mkdir(at("LICENSE"), 0o700)) }, Damaged, Damaged, false, "LICENSE is not a file"},
		{"a link for a file", func() error {
			return errors.Join(os.Rename(at("LICENSE"), dir+".moved"), os.Symlink(dir+".moved", at("LICENSE")))
		}, Damaged, Damaged, false, "LICENSE is not a file"},
		{"one file more", write("sitecustomize.py", "x"), Installed, Damaged, true, "sitecustomize.py does not belong"},
		{"no manifest", func() error { return os.Remove(at(manifestFile)) }, Foreign, Foreign, false, "from another version"},
		{"another manifest", write(manifestFile, "{}"), Foreign, Foreign, false, "from another version"},
		{"a huge manifest", write(manifestFile, strings.Repeat(" ", maxManifest+1)), Damaged, Damaged, false, "manifest.json cannot be read"},
		{"an empty folder", func() error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)) }, Foreign, Foreign, false, "from another version"},
		{"a file for the folder", func() error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) }, Damaged, Damaged, false, "cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t.TempDir(), []*recipe{one.recipe}, noFetch)
			opts := &InstallOptions{From: one.archive}
			musttest.Get(s.Install(t.Context(), "one", opts))(t)
			musttest.Get(s.Open("one"))(t)
			dir = s.folder(one.recipe)
			musttest.Do(t, c.harm())
			if got := s.List()[0]; got.State != c.listed {
				t.Errorf("listed as %+v, want %s", got, c.listed)
			}
			st, err := s.Verify(t.Context(), "one")
			if err != nil || st.State != c.found || !strings.Contains(st.Detail, c.message) {
				t.Errorf("verified as %+v, %v; want %s, %q", st, err, c.found, c.message)
			}
			if _, err := s.Open("one"); (err == nil) != c.opens {
				t.Errorf("open: %v", err)
			} else if err != nil {
				wantCode(t, err, skill.ToolInvocationError, "openskill runtime install one")
			}
			report, err := s.Install(t.Context(), "one", opts)
			if err != nil || !report.Changed {
				t.Fatalf("mending: %+v, %v", report, err)
			}
			if st, err := s.Verify(t.Context(), "one"); err != nil || st.State != Installed {
				t.Errorf("mended: %+v, %v", st, err)
			}
			if _, err := s.Open("one"); err != nil {
				t.Errorf("mended: %v", err)
			}
		})
	}
}

// Two at once: both succeed, and one of them had the work.
func TestInstallAtOnce(t *testing.T) {
	one := makeSmall(t, t.TempDir(), "one", pip, 1<<20)
	state := t.TempDir()
	var wg sync.WaitGroup
	var mu sync.Mutex
	changed := 0
	for range 8 {
		wg.Go(func() {
			// A Store each, as processes have.
			s := newStore(state, []*recipe{one.recipe}, noFetch)
			report, err := s.Install(t.Context(), "one", &InstallOptions{From: one.archive})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if report.Changed {
				changed++
			}
		})
	}
	wg.Wait()
	if changed != 1 {
		t.Errorf("%d installations did the work, want 1", changed)
	}
}

func TestInstallEndsWithItsContext(t *testing.T) {
	one := makeSmall(t, t.TempDir(), "one", pip, 1000)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	s := newStore(t.TempDir(), []*recipe{one.recipe}, func(ctx context.Context, _ *source, _ string) (string, error) {
		stop()
		<-ctx.Done()
		return "", ctx.Err()
	})
	if _, err := s.Install(ctx, "one", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("while fetching: %v", err)
	}
	if _, err := s.Install(ctx, "one", &InstallOptions{From: one.archive}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	if s.List()[0].State != Absent || leftovers(t, s) != nil {
		t.Errorf("%+v, %v", s.List(), leftovers(t, s))
	}
}

// killedSize is the size of the module whose installation is killed.
const killedSize = 4 << 20

// TestMain is also the installer that TestKilled kills.
func TestMain(m *testing.M) {
	if state := os.Getenv("OPENSKILL_TEST_INSTALL"); state != "" {
		os.Exit(child(state, os.Getenv("OPENSKILL_TEST_ARCHIVE")))
	}
	os.Exit(m.Run())
}

func child(state, archive string) int {
	b, err := os.ReadFile(archive)
	if err == nil {
		r := smallRecipe("one", pip, killedSize, sum(b), int64(len(b)))
		_, err = newStore(state, []*recipe{r}, noFetch).Install(context.Background(), "one", &InstallOptions{From: archive})
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// An installation that is killed at any moment leaves nothing that is taken for a
// runtime, and the next one is right.
func TestKilled(t *testing.T) {
	one := makeSmall(t, t.TempDir(), "one", pip, killedSize)
	install := func(state string) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "OPENSKILL_TEST_INSTALL="+state, "OPENSKILL_TEST_ARCHIVE="+one.archive)
		cmd.Stderr = io.Discard
		return cmd
	}
	state := t.TempDir()
	began := time.Now()
	musttest.Do(t, install(state).Run())
	whole := time.Since(began)
	s := newStore(state, []*recipe{one.recipe}, noFetch)
	kills := 100
	if testing.Short() {
		kills = 20
	}
	seen := map[State]int{}
	swept := 0
	for i := range kills {
		if i%4 != 0 { // or else it is killed while it looks at a whole one, or replaces a damaged one
			musttest.Get(s.Remove(t.Context(), "one"))(t)
		} else if i%8 == 0 {
			_ = os.WriteFile(filepath.Join(s.folder(one.recipe), manifestFile), nil, 0o600)
		}
		cmd := install(state)
		musttest.Do(t, cmd.Start())
		timer := time.AfterFunc(time.Duration(rand.Int64N(int64(whole)*3/2)), func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // killed or not
		timer.Stop()
		if len(leftovers(t, s)) > 0 {
			swept++
		}
		st := musttest.Get(s.Verify(t.Context(), "one"))(t)
		seen[st.State]++
		listed := s.List()[0].State
		_, opened := s.Open("one")
		if listed != st.State || (opened == nil) != (st.State == Installed) || st.State == Damaged {
			t.Fatalf("kill %d: listed %s, verified %+v, opened: %v", i, listed, st, opened)
		}
		if st.State == Foreign && i%8 != 0 {
			t.Fatalf("kill %d: a half-written runtime: %+v", i, st)
		}
	}
	t.Logf("%d kills within %v: %v; %d left work", kills, whole*3/2, seen, swept)
	if seen[Installed] == kills || seen[Absent] == 0 {
		t.Error("no installation was killed in time")
	}
	musttest.Get(s.Install(t.Context(), "one", &InstallOptions{From: one.archive}))(t)
	st, err := s.Verify(t.Context(), "one")
	if diff := cmp.Diff(Installed, st.State); diff != "" || err != nil || len(leftovers(t, s)) > 0 {
		t.Errorf("at the end: %s, %v, %v", diff, err, leftovers(t, s))
	}
}
