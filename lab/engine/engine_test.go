package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// lay makes a folder of files.
func lay(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, all := t.TempDir(), fstest.MapFS{}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	if err := os.CopyFS(dir, all); err != nil {
		t.Fatal(err)
	}
	return dir
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

var past = time.Unix(1e9, 0)

// diff changes the second of three lines of a file.
const diff = `diff --git a/a/b.go b/a/b.go
--- a/a/b.go
+++ b/a/b.go
@@ -1,3 +1,3 @@
 one
-two
+zwei
 three
`

// TestEdits holds that a file is edited if it is the one that an edit was made for, and that
// otherwise nothing is.
func TestEdits(t *testing.T) {
	const before, after = "one\ntwo\nthree\n", "one\nzwei\nthree\n"
	for _, c := range []struct{ name, patch, file, want, fails string }{
		{"the file", "File: " + digest(before) + " a/b.go\n\n" + diff, before, after, ""},
		{"another file", "File: " + digest(before) + " a/b.go\n\n" + diff, before + "\n", before + "\n", "has the SHA-256"},
		{"no hash", diff, before, before, `and not ""`},
		{"another text", "File: " + digest("one\n2\nthree\n") + " a/b.go\n\n" + diff, "one\n2\nthree\n", "one\n2\nthree\n", "conflict"},
		{"outside", "File: " + digest(before) + " a/b.go\n\n" + strings.NewReplacer("a/a/b.go", "a/../b.go", "b/a/b.go", "b/../b.go").Replace(diff), before, before, "adds some"},
		{"deleted", "diff --git a/a/b.go b/a/b.go\ndeleted file mode 100644\n--- a/a/b.go\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n", before, before, "adds some"},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, err := read(lay(t, map[string]string{"0001-x.patch": "What it is for.\n\n" + c.patch}))
			root := lay(t, map[string]string{"a/b.go": c.file})
			if err == nil {
				err = all.list[0].apply(root)
			}
			if fails := err != nil; fails != (c.fails != "") || fails && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%v, want %q", err, c.fails)
			}
			if b, err := os.ReadFile(filepath.Join(root, "a", "b.go")); err != nil || string(b) != c.want {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}

// TestNoEdits holds that a folder without edits, and one whose edit is cut off, are refused.
func TestNoEdits(t *testing.T) {
	for _, files := range []map[string]string{{}, {"0001-x.patch": ""}, {"0001-x.patch": diff[:len(diff)-8]}} {
		if all, err := read(lay(t, files)); err == nil {
			t.Errorf("%v: %+v", files, all)
		}
	}
}

// TestWorkspaces holds which modules build with the copy, and that a file that is right is
// not written again.
func TestWorkspaces(t *testing.T) {
	root := lay(t, map[string]string{
		"go.mod":            "module openskill\n\ngo 1.26\n",
		"lab/go.mod":        "module openskill/lab\n\ngo 1.26\n\nrequire openskill v0.0.0\n",
		"peer/go.mod":       "module peer\n\ngo 1.26\n\nrequire " + wazero + " v1.12.0\n",
		"a/testdata/go.mod": "module inner\n\ngo 1.26\n",
		".openskill/go.mod": "module kept\n\ngo 1.26\n",
	})
	for range 2 {
		if err := workspaces(root, filepath.Join(root, ".openskill", "engine", "x")); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"go.work": "./.openskill/engine/x", "lab/go.work": "../.openskill/engine/x", "peer/go.work": "", "a/testdata/go.work": "none", ".openskill/go.work": "none"} {
			b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
			_, replace, _ := strings.Cut(string(b), "replace "+wazero+" => ")
			if err != nil && want != "none" || err == nil && strings.TrimSpace(replace) != want {
				t.Errorf("%s: %v\n%s", name, err, b)
			}
		}
		if err := os.Chtimes(filepath.Join(root, "go.work"), past, past); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "go.work")); err != nil || !info.ModTime().Equal(past) {
		t.Error("a go.work that is right was written again", err)
	}
	if err := workspaces(root, t.TempDir()+"/with space"); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(root, "go.work")); err != nil || !strings.Contains(string(b), `=> "/`) {
		t.Errorf("a state folder outside the project: %v\n%s", err, b)
	}
}

// TestSweep holds that copies of other edits go when no make was for them for a day, and that
// those in use, by this or another clone, stay.
func TestSweep(t *testing.T) {
	root, now := lay(t, map[string]string{"current/x": "", "recent/x": "", "old/x/y": "", "making-1/x": "", "making-2/x": "", "file": ""}), time.Now()
	for name, age := range map[string]time.Duration{"current": 2 * unused, "recent": unused - time.Minute, "old": unused, "making-1": unused, "making-2": time.Minute, "file": 2 * unused} {
		at := filepath.Join(root, name)
		if err := os.Chtimes(at, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := sweep(filepath.Join(root, "current"), now); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]bool{"current": true, "recent": true, "old": false, "making-1": false, "making-2": true, "file": true} {
			if _, err := os.Stat(filepath.Join(root, name)); err == nil != want {
				t.Errorf("%s: want there %v: %v", name, want, err)
			}
		}
	}
	if info, err := os.Stat(filepath.Join(root, "current")); err != nil || now.Sub(info.ModTime()) > time.Minute {
		t.Error("the current copy is not marked as used", err)
	}
	if err := sweep(filepath.Join(root, "none"), now); err == nil {
		t.Error("a copy that is not there was marked")
	}
}

// TestCurrent holds that what the tests of this project run on has the edits of wasm/edits.
func TestCurrent(t *testing.T) {
	all, err := read(filepath.Join("..", "..", "wasm", "edits"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join("..", "..", "go.work"))
	if os.IsNotExist(err) {
		t.Skip("the tests run on wazero as it is, without go.work; run make engine to write one")
	}
	if err != nil || !strings.Contains(string(b), all.digest) {
		t.Errorf("go.work is for other edits than %s; run make engine: %v\n%s", all.digest, err, b)
	}
}
