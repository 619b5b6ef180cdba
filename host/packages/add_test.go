package packages

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
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

// shelf is a folder of wheels: top needs base, odd is alone.
func shelf(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, wheel(t, "top", "1.0", files{"top/__init__.py": "import base\n"}, "base>=1", `other; sys_platform == "win32"`, `old; python_version < "3.0"`), dir, "top-1.0-py3-none-any.whl")
	write(t, wheel(t, "base", "1.5", files{"base.py": "x = 1\n"}), dir, "base-1.5-py3-none-any.whl")
	write(t, wheel(t, "odd", "2.0", files{"odd/__init__.py": ""}), dir, "odd-2.0-py3-none-any.whl")
	return dir
}

func options(from string) *Options {
	return &Options{From: from, PythonVersion: "3.15.0", Had: []Had{{Name: "had", Version: "3.1"}}, Library: map[string]bool{"json": true}}
}

func TestAddSharesAndRemoves(t *testing.T) {
	needsPip(t)
	s, o := New(t.TempDir()), options(shelf(t))
	one, two := t.TempDir(), t.TempDir()
	c := musttest.Get(s.Add(t.Context(), one, asks(t, "top", "had>=3"), o))(t)
	if diff := cmp.Diff([]string{"python:base 1.5", "python:had 3.1", "python:top 1.0"}, names(c.Lock)); diff != "" {
		t.Fatal(diff)
	}
	set, requires, err := s.Use(one)
	if err != nil || !slices.Equal(requires, []string{"had"}) {
		t.Fatalf("%v, %v", requires, err)
	}
	if b, err := os.ReadFile(filepath.Join(set, "python", "top", "__init__.py")); err != nil || string(b) != "import base\n" {
		t.Errorf("%q, %v", b, err)
	}
	other, err := s.Add(t.Context(), two, asks(t, "top"), o)
	if err != nil || other.Lock.Set != c.Lock.Set {
		t.Fatalf("the same packages have another set: %v", err)
	}
	if c, err = s.Add(t.Context(), one, asks(t, "odd"), o); err != nil || len(c.Added) != 1 || len(c.Removed) != 0 || c.Lock.Set == other.Lock.Set {
		t.Fatalf("%+v, %v", c, err)
	}
	if _, err := s.Remove(t.Context(), one, asks(t, "base"), o); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("what others need was removed: %v", err)
	}
	if c, err = s.Remove(t.Context(), one, asks(t, "top"), options("")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"python:had 3.1", "python:odd 2.0"}, names(c.Lock)); diff != "" {
		t.Error(diff)
	}
	if _, err = s.Remove(t.Context(), one, nil, o); err != nil {
		t.Fatal(err)
	}
	if l, err := s.Of(one); l != nil || err != nil {
		t.Errorf("%v, %v", l, err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "archives", "*")); len(left) != 2 {
		t.Errorf("archives are left that no lock names: %q", left)
	}
	if set, _, err := s.Use(two); err != nil || set == "" {
		t.Errorf("the other folder has lost its packages: %v", err)
	}
}

// T686: a set that was changed is not used, and can be made again.
func TestDamagedSet(t *testing.T) {
	needsPip(t)
	state, folder, o := t.TempDir(), t.TempDir(), options(shelf(t))
	c := musttest.Get(New(state).Add(t.Context(), folder, asks(t, "top"), o))(t)
	file := filepath.Join(New(state).set(c.Lock.Set), "python", "base.py")
	musttest.Do(t, os.Chmod(file, 0o600))
	write(t, []byte("x = 2\n"), file)
	if _, _, err := New(state).Use(folder); skill.CodeOf(err) != skill.ToolInvocationError || !strings.Contains(err.Error(), "packages lock") {
		t.Errorf("got %v", err)
	}
	musttest.Get(New(state).Relock(t.Context(), folder, nil, o))(t)
	if _, _, err := New(state).Use(folder); err != nil {
		t.Error(err)
	}
	// A file of a version that was locked may not change.
	write(t, wheel(t, "base", "1.5", files{"base.py": "x = 3\n"}), o.From, "base-1.5-py3-none-any.whl")
	if _, err := New(state).Relock(t.Context(), folder, nil, o); err == nil || !strings.Contains(err.Error(), "changed a released file") {
		t.Errorf("got %v", err)
	}
}

// T685: nothing of a package is run on the host, whatever it needs.
func TestNothingOfAPackageIsRun(t *testing.T) {
	needsPip(t)
	dir, mark := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	setup := "open(" + strconvQuote(mark) + ", 'w').close()\nfrom setuptools import setup\nsetup(name='evil', version='1.0')\n"
	source := write(t, tarball(t, files{"evil-1.0/setup.py": setup, "evil-1.0/PKG-INFO": "Metadata-Version: 1.0\nName: evil\nVersion: 1.0\n"}), t.TempDir(), "evil-1.0.tar.gz")
	write(t, wheel(t, "lure", "1.0", files{"lure.py": ""}, "evil @ file://"+source), dir, "lure-1.0-py3-none-any.whl")
	s, o := New(t.TempDir()), options(dir)
	if _, err := s.Add(t.Context(), t.TempDir(), asks(t, "lure"), o); err == nil || !strings.Contains(err.Error(), "source alone") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the package was built")
	}
}

func strconvQuote(s string) string { b, _ := json.Marshal(s); return string(b) }

// index serves wheels as a package index does, with what it says of each.
type index map[string]map[string]any // by file name; "data" is its content

func (x index) serve(t *testing.T) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := path.Base(r.URL.Path); strings.HasPrefix(r.URL.Path, "/files/") {
			_, _ = w.Write(x[name]["data"].([]byte))
			return
		}
		project := path.Base(strings.TrimSuffix(r.URL.Path, "/"))
		list := []map[string]any{}
		for name, said := range x {
			if !strings.HasPrefix(name, project+"-") {
				continue
			}
			sum := sha256.Sum256(said["data"].([]byte))
			f := map[string]any{"filename": name, "url": "/files/" + name, "hashes": map[string]string{"sha256": hex.EncodeToString(sum[:])}}
			for k, v := range said {
				if k != "data" {
					f[k] = v
				}
			}
			list = append(list, f)
		}
		if len(list) == 0 {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
		_ = json.NewEncoder(w).Encode(map[string]any{"meta": map[string]string{"api-version": "1.1"}, "name": project, "files": list})
	}))
	t.Cleanup(server.Close)
	t.Setenv("PIP_INDEX_URL", server.URL+"/simple/")
	t.Setenv("PIP_TRUSTED_HOST", "127.0.0.1")
	t.Setenv("NO_PROXY", "127.0.0.1")
}

// T687: what the index says of a file is held against it.
func TestIndex(t *testing.T) {
	needsPip(t)
	old, young := "2026-01-01T00:00:00Z", "2026-11-26T00:00:00.5Z"
	x := index{}
	put := func(name string, said map[string]any) {
		dist, version, _ := strings.Cut(strings.TrimSuffix(name, "-py3-none-any.whl"), "-")
		if said["data"] == nil {
			said["data"] = wheel(t, dist, version, files{dist + ".py": ""})
		}
		x[name] = said
	}
	put("aged-1.0-py3-none-any.whl", map[string]any{"upload-time": old})
	put("aged-2.0-py3-none-any.whl", map[string]any{"upload-time": young})
	put("fresh-1.0-py3-none-any.whl", map[string]any{"upload-time": young})
	put("undated-1.0-py3-none-any.whl", map[string]any{})
	put("back-1.0-py3-none-any.whl", map[string]any{"upload-time": old, "yanked": "it was bad"})
	put("wrong-1.0-py3-none-any.whl", map[string]any{"upload-time": old, "hashes": map[string]string{"sha256": strings.Repeat("0", 64)}})
	put("cut-1.0-py3-none-any.whl", map[string]any{"upload-time": old, "data": wheel(t, "cut", "1.0", nil)[:200]})
	put("far-1.0-py3-none-any.whl", map[string]any{"upload-time": old, "data": wheel(t, "far", "1.0", nil, "aged @ http://127.0.0.1:1/aged-1.0-py3-none-any.whl")})
	x["native-1.0-cp315-cp315-manylinux_2_28_x86_64.whl"] = map[string]any{"upload-time": old, "data": []byte("x")}
	x["built-1.0.tar.gz"] = map[string]any{"upload-time": old, "data": []byte("x")}
	x.serve(t)
	o := options("")
	o.MinAge = 7 * 24 * time.Hour
	o.now = func() time.Time { return time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC) }
	for _, c := range []struct{ ask, got, err string }{
		{"aged", "python:aged 1.0", ""},
		{"aged>=2", "", "released more than 7 days ago"},
		{"fresh", "", "released more than 7 days ago"},
		{"undated", "", "no date of release"},
		{"back==1.0", "", "taken back"},
		{"wrong", "", "HASH"},
		{"cut", "", "could not download"},
		{"far", "", "could not download"},
		{"native", "", "needs native code"},
		{"built", "", "source alone"},
		{"none-of-these", "", "not found in the index"},
		{"had>4", "", "the runtimes have 3.1"},
	} {
		t.Run(c.ask, func(t *testing.T) {
			change, err := New(t.TempDir()).Add(t.Context(), t.TempDir(), asks(t, c.ask), o)
			switch {
			case c.err == "" && err != nil:
				t.Fatal(err)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Fatalf("got %v, want %q", err, c.err)
			case c.err == "" && !slices.Equal(names(change.Lock), []string{c.got}):
				t.Errorf("got %q", names(change.Lock))
			}
		})
	}
	o.MinAge = 0
	if c, err := New(t.TempDir()).Add(t.Context(), t.TempDir(), asks(t, "aged", "undated"), o); err != nil || !slices.Contains(names(c.Lock), "python:aged 2.0") {
		t.Errorf("%v", err)
	}
	o.Allowed = func(_ Ecosystem, name string) bool { return name == "aged" }
	if _, err := New(t.TempDir()).Add(t.Context(), t.TempDir(), asks(t, "aged", "undated"), o); err == nil || !strings.Contains(err.Error(), "not on the list") {
		t.Errorf("got %v", err)
	}
}

// Two changes at once wait for each other, one that ends early changes nothing, and what a
// killed one left is removed.
func TestChangesAtOnce(t *testing.T) {
	needsPip(t)
	state, o := t.TempDir(), options(shelf(t))
	write(t, nil, Dir(state), ".work-killed", "set", "x")
	folders := []string{t.TempDir(), t.TempDir()}
	var wait sync.WaitGroup
	for _, folder := range folders {
		for _, name := range []string{"top", "odd"} {
			wait.Go(func() {
				if _, err := New(state).Add(t.Context(), folder, asks(t, name), o); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wait.Wait()
	s := New(state)
	a, errA := s.Of(folders[0])
	b, errB := s.Of(folders[1])
	if errA != nil || errB != nil || a.Set != b.Set || len(a.Packages) != 3 {
		t.Errorf("%v %v %v %v", a, b, errA, errB)
	}
	gone, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.Remove(gone, folders[0], asks(t, "odd"), o); err == nil {
		t.Error("a cancelled change was made")
	}
	if again, err := s.Of(folders[0]); err != nil || again.Set != a.Set {
		t.Errorf("%v, %v", again, err)
	}
	if left, _ := filepath.Glob(filepath.Join(Dir(state), workPrefix+"*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// T708: a damaged lock of one folder stops no change of another, and costs no set or archive.
func TestDamagedLockOfAnother(t *testing.T) {
	needsPip(t)
	s, o, one, two := New(t.TempDir()), options(shelf(t)), t.TempDir(), t.TempDir()
	musttest.Get(s.Add(t.Context(), one, asks(t, "top"), o))(t)
	_, file, err := s.locked(one)
	musttest.Do(t, err)
	whole := musttest.Get(os.ReadFile(file))(t)
	write(t, whole[:len(whole)/2], file)
	killed := write(t, whole[:9], filepath.Dir(file), ".new-1")
	if _, err := s.Add(t.Context(), two, asks(t, "odd"), o); err != nil {
		t.Errorf("another folder got no packages: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "archives", "*")); len(left) != 3 {
		t.Errorf("archives: %q, want those of both folders", left)
	}
	write(t, whole, file)
	musttest.Get(s.Remove(t.Context(), two, nil, o))(t)
	if _, _, err := s.Use(one); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(killed); err == nil {
		t.Error("what a killed process left of a lock is there")
	}
}
