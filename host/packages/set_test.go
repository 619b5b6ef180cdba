package packages

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func python(name string) *Package { return &Package{Ecosystem: Python, Name: name, Version: "1.0"} }

func node(name string) *Package {
	return &Package{Ecosystem: NPM, Name: name, Version: "1.0", At: "node_modules/" + name}
}

// made adds archives to a set, and gives where it is.
func made(t *testing.T, add func(put func(p *Package, archive []byte) error)) string {
	t.Helper()
	work := t.TempDir()
	m := musttest.Get(newSet(work, map[string]bool{"json": true}))(t)
	n := 0
	add(func(p *Package, archive []byte) error {
		n++
		return m.add(t.Context(), p, write(t, archive, work, fmt.Sprintf("%d.whl", n)))
	})
	return m.dir
}

// T688: archives of packages are held to the rules for uploads, and to a few of their own.
func TestRefusesArchives(t *testing.T) {
	link := func() []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		h := &zip.FileHeader{Name: "a.py"}
		h.SetMode(os.ModeSymlink | 0o777)
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = w.Write([]byte("/etc/passwd"))
		}
		if err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	tarLink := func() []byte {
		var b bytes.Buffer
		g := gzip.NewWriter(&b)
		w := tar.NewWriter(g)
		if w.WriteHeader(&tar.Header{Name: "package/a.js", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}) != nil || w.Close() != nil || g.Close() != nil {
			t.Fatal("cannot write")
		}
		return b.Bytes()
	}
	whole := zipped(t, files{"a.py": "x = 1"})
	for _, c := range []struct {
		name    string
		p       *Package
		archive []byte
		err     string
	}{
		{"a name above", python("a"), zipped(t, files{"../a.py": ""}), "must stay inside"},
		{"an absolute name", python("a"), zipped(t, files{"/etc/a.py": ""}), "absolute"},
		{"a device of Windows", python("a"), zipped(t, files{"a/con.py": ""}), "device name"},
		{"names that differ in case", python("a"), zipped(t, files{"a/x.py": "", "a/X.py": ""}), "differ only in case"},
		{"a deep path", python("a"), zipped(t, files{strings.Repeat("a/", 40) + "x.py": ""}), "too many parts"},
		{"a link", python("a"), link(), "symbolic link"},
		{"a link in a tarball", node("a"), tarLink(), "symbolic link"},
		{"a bomb", python("a"), zipped(t, files{"a.py": strings.Repeat("\x00", 32<<20)}), "times its size"},
		{"a part of an archive", python("a"), whole[:len(whole)-10], "zip"},
		{"no archive", python("a"), []byte("hello"), "neither a zip nor a tar.gz"},
		{"nothing", python("a"), nil, "neither a zip nor a tar.gz"},
		{"a library", python("a"), zipped(t, files{"a/_a.cpython-315.so": ""}), "needs native code"},
		{"a library with a version", python("a"), zipped(t, files{"a.libs/liba.so.1": ""}), "needs native code"},
		{"an extension of Windows", python("a"), zipped(t, files{"a/a.pyd": ""}), "needs native code"},
		{"an add-on", node("a"), tarball(t, files{"package/build/a.node": ""}), "needs native code"},
		{"sources of an add-on", node("a"), tarball(t, files{"package/binding.gyp": ""}), "needs native code"},
		{"a file beside the package", node("a"), tarball(t, files{"a.js": ""}), "outside of its folder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			made(t, func(put func(*Package, []byte) error) {
				err := put(c.p, c.archive)
				if code := skill.CodeOf(err); err == nil || code == skill.Internal || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
			})
		})
	}
}

// T688: no package has files in the place of another one's.
func TestPackagesDoNotMix(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		err        string
	}{
		{"the same file", "ns/x.py", "ns/x.py", "which a has too"},
		{"one that differs in case", "ns/x.py", "ns/X.py", "which a has too"},
		{"a folder that differs in case", "ns/x.py", "NS/y.py", "on some systems"},
		{"a file in the place of a folder", "ns/x.py", "ns", "place of a folder"},
		{"a folder in the place of a file", "ns", "ns/x.py", "below a file"},
		{"a shared folder", "ns/x.py", "ns/y.py", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			made(t, func(put func(*Package, []byte) error) {
				musttest.Do(t, put(python("a"), zipped(t, files{c.a: "a"})))
				err := put(python("b"), zipped(t, files{c.b: "b"}))
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
			})
		})
	}
	made(t, func(put func(*Package, []byte) error) {
		for _, p := range []string{"a", "b"} {
			if err := put(python(p), zipped(t, files{"ns/__init__.py": "same"})); err != nil {
				t.Error(err)
			}
		}
	})
}

// Files that would run by themselves, or be installed elsewhere, are left out.
func TestLeavesOut(t *testing.T) {
	p := python("a")
	dir := made(t, func(put func(*Package, []byte) error) {
		if err := put(p, zipped(t, files{
			"a.py": "1", "a.pth": "import os", "sitecustomize.py": "", "json/__init__.py": "", "a-1.0.data/purelib/more.py": "2",
			"a-1.0.data/scripts/tool": "", "a-1.0.data/headers/a.h": "", "__pycache__/a.cpython-315.pyc": "",
		})); err != nil {
			t.Fatal(err)
		}
		musttest.Do(t, put(node("b"), tarball(t, files{"package/index.js": "1", "package/index.d.ts": "", "package/index.js.map": "", "package/package.json": "{}"})))
	})
	var got []string
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
		if !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			got = append(got, filepath.ToSlash(name))
		}
		return nil
	})
	if want := "node_modules/b/index.js node_modules/b/package.json python/a.py python/more.py"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(p.Notes) != 5 {
		t.Errorf("notes: %q", p.Notes)
	}
}

// T689: the packages of a folder have limits together.
func TestSetLimits(t *testing.T) {
	oldFiles, oldBytes, oldArchive := maxSetFiles, maxSetBytes, maxArchive
	defer func() { maxSetFiles, maxSetBytes, maxArchive = oldFiles, oldBytes, oldArchive }()
	maxSetFiles, maxSetBytes, maxArchive = 3, 1000, 2000
	noise := make([]byte, 3000)
	for i := range noise {
		noise[i] = byte(i * i >> 3)
	}
	for _, c := range []struct {
		name string
		all  []files
		err  string
	}{
		{"as many as may be", []files{{"a.py": "1", "b.py": "2"}, {"c.py": "3"}}, ""},
		{"one file more", []files{{"a.py": "1", "b.py": "2"}, {"c.py": "3", "d.py": "4"}}, "3 files together"},
		{"as many bytes as may be", []files{{"a.py": strings.Repeat("x", 600)}, {"b.py": strings.Repeat("x", 400)}}, ""},
		{"one byte more", []files{{"a.py": strings.Repeat("x", 600)}, {"b.py": strings.Repeat("x", 401)}}, "bytes together"},
	} {
		t.Run(c.name, func(t *testing.T) {
			made(t, func(put func(*Package, []byte) error) {
				var err error
				for i, f := range c.all {
					if e := put(python(string(rune('a'+i))), zipped(t, f)); e != nil {
						err = e
					}
				}
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
			})
		})
	}
	made(t, func(put func(*Package, []byte) error) {
		if err := put(python("a"), append(zipped(t, files{"a.py": "1"}), noise...)); err == nil || !strings.Contains(err.Error(), "the limit is 2000") {
			t.Errorf("got %v", err)
		}
	})
}
