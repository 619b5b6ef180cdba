package guestfs_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
)

// seen is all that can be seen of a file system: folders with a slash, files with their
// content, links with where they lead.
func seen(tb testing.TB, fsys guestfs.FS) map[string]string {
	tb.Helper()
	out := map[string]string{}
	var walk func(dir string)
	walk = func(dir string) {
		f, errno := fsys.Open(dir, guestfs.Directory)
		if errno != 0 {
			tb.Fatalf("open %s: %v", dir, errno)
		}
		defer f.Close()
		for _, name := range list(tb, f, 3) {
			at := strings.TrimPrefix(dir+"/"+name, "./")
			st, errno := fsys.Stat(at, false)
			if errno != 0 {
				tb.Fatalf("stat %s: %v", at, errno)
			}
			switch st.Kind {
			case guestfs.KindDirectory:
				out[at+"/"] = ""
				walk(at)
			case guestfs.KindSymlink:
				out[at], errno = fsys.Readlink(at)
				if errno != 0 {
					tb.Fatalf("readlink %s: %v", at, errno)
				}
			default:
				if out[at] = read(tb, fsys, at); int64(len(out[at])) != st.Size {
					tb.Fatalf("%s has %d bytes, and says %d", at, len(out[at]), st.Size)
				}
			}
		}
	}
	walk(".")
	return out
}

var original = map[string]string{
	"a.txt": "first", "b.txt": strings.Repeat("long", 3000), "empty": "", "d/c.txt": "below", "d/e/f.txt": "deep", "g/h.txt": "h",
}

// shadowed is a file system whose folder "own" begins as the original.
func shadowed(tb testing.TB, limits guestfs.Limits) (*guestfs.Memory, string) {
	tb.Helper()
	dir := folder(tb, original)
	m := guestfs.NewMemory(limits)
	musttest.Do(tb, m.Shadow("own", openDir(tb, dir), 100))
	return m, dir
}

// TestShadow makes calls at random on a shadow and on a copy of the same folder: both
// are the same to the end, and the folder stays as it was. Put back, the shadow is what
// it was in the beginning.
func TestShadow(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"a.txt", "b.txt", "empty", "d", "d/c.txt", "d/e", "d/e/f.txt", "g", "g/h.txt", "new", "d/new", "new/x"}
	shadow, dir := shadowed(t, guestfs.Limits{Bytes: 1 << 20})
	before := seen(t, openDir(t, dir))
	saved, ok := shadow.Save()
	if !ok {
		t.Fatal("nothing is open, and it cannot be saved")
	}
	for round := range 60 {
		shadow.Restore(saved)
		a := shadow.Sub("own")
		if diff := cmp.Diff(before, seen(t, a)); diff != "" {
			t.Fatalf("round %d begins with\n%s", round, diff)
		}
		other := guestfs.NewMemory(guestfs.Limits{Bytes: 1 << 20})
		for _, d := range []string{"own", "own/d", "own/d/e", "own/g"} {
			if errno := other.Mkdir(d); errno != 0 {
				t.Fatal(errno)
			}
		}
		for name, text := range original {
			musttest.Do(t, other.WriteFile("own/"+name, []byte(text)))
		}
		b := other.Sub("own")
		for range 30 {
			x, y, op, size := names[random.IntN(len(names))], names[random.IntN(len(names))], random.IntN(10), random.IntN(5000)
			do := func(fsys guestfs.FS) (string, guestfs.Errno) {
				switch op {
				case 0:
					return "unlink " + x, fsys.Unlink(x)
				case 1:
					return "rename " + x + " " + y, fsys.Rename(x, y)
				case 2:
					return "mkdir " + x, fsys.Mkdir(x)
				case 3:
					return "rmdir " + x, fsys.Rmdir(x)
				case 4:
					return "link " + x + " " + y, fsys.Link(x, y)
				case 5:
					return "symlink " + x, fsys.Symlink("a.txt", x)
				}
				flags := []guestfs.OpenFlag{guestfs.Write, guestfs.Write | guestfs.Create, guestfs.Write | guestfs.Trunc, guestfs.Write | guestfs.Create | guestfs.Excl}[op-6]
				f, errno := fsys.Open(x, flags)
				if errno != 0 {
					return fmt.Sprint("open ", x), errno
				}
				defer f.Close()
				switch size % 3 {
				case 0:
					return fmt.Sprint("open ", x, flags), 0
				case 1:
					return fmt.Sprint("truncate ", x, size), f.Truncate(int64(size))
				}
				_, errno = f.WriteAt([]byte(strings.Repeat("w", size/7)), int64(size))
				return fmt.Sprint("write ", x, size), errno
			}
			what, got := do(a)
			if _, want := do(b); got != want {
				t.Fatalf("round %d, %s: %v, of a copy %v", round, what, got, want)
			}
			if diff := cmp.Diff(seen(t, b), seen(t, a)); diff != "" {
				t.Fatalf("round %d, %s:\n%s", round, what, diff)
			}
		}
	}
	if diff := cmp.Diff(before, seen(t, openDir(t, dir))); diff != "" {
		t.Errorf("the folder itself:\n%s", diff)
	}
}

// What was written is known, and nothing else is taken for it.
func TestShadowWritten(t *testing.T) {
	m, _ := shadowed(t, guestfs.Limits{})
	fsys := m.Sub("own")
	if got := m.Written("own"); got != nil {
		t.Errorf("%v before anything was", got)
	}
	must := func(errno guestfs.Errno) {
		t.Helper()
		if errno != 0 {
			t.Fatal(errno)
		}
	}
	must(fsys.Rename("d/c.txt", "g/c.txt"))
	must(fsys.Link("a.txt", "a2.txt"))
	must(fsys.Symlink("a.txt", "link"))
	must(fsys.Unlink("empty"))
	must(fsys.Mkdir("new"))
	f, errno := fsys.Open("b.txt", guestfs.Write)
	must(errno)
	f.Close() // and nothing written
	f, errno = fsys.Open("d/e/f.txt", guestfs.Write)
	must(errno)
	_, errno = f.WriteAt([]byte("D"), 0)
	must(errno)
	f.Close()
	want := []guestfs.FileInfo{{Name: "a2.txt", Size: 5}, {Name: "d/e/f.txt", Size: 4}, {Name: "g/c.txt", Size: 5}}
	if diff := cmp.Diff(want, m.Written("own")); diff != "" {
		t.Error(diff)
	}
	for name, text := range map[string]string{"a2.txt": "first", "d/e/f.txt": "Deep", "g/c.txt": "below"} {
		if b, err := m.ReadFile("own/" + name); err != nil || string(b) != text {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

// A folder costs nothing until it is written to, and its limits are those of others.
func TestShadowLimits(t *testing.T) {
	m, dir := shadowed(t, guestfs.Limits{Bytes: 16 << 10, Files: 2})
	fsys := m.Sub("own")
	for i, want := range []guestfs.Errno{0, 0, guestfs.ENOSPC} {
		f, errno := fsys.Open(fmt.Sprint("new", i), guestfs.Write|guestfs.Create)
		if errno != want {
			t.Errorf("file %d: %v, want %v", i, errno, want)
		}
		if errno == 0 {
			f.Close()
		}
	}
	f, errno := fsys.Open("b.txt", guestfs.Write) // of 12,000 bytes
	if errno != 0 {
		t.Fatal(errno)
	}
	defer f.Close()
	if _, errno := f.WriteAt([]byte("x"), 0); errno != 0 {
		t.Errorf("one file that fits: %v", errno)
	}
	if _, errno := f.WriteAt([]byte("x"), 16<<10); errno != guestfs.ENOSPC {
		t.Errorf("one that does not: %v", errno)
	}
	if err := guestfs.NewMemory(guestfs.Limits{}).Shadow("own", openDir(t, dir), 9); err == nil {
		t.Error("ten files and folders are taken for nine")
	}
	if err := guestfs.NewMemory(guestfs.Limits{Depth: 3}).Shadow("own", openDir(t, dir), 100); err == nil {
		t.Error("a file four folders deep is taken for three")
	}
}

// Links of a folder lead nowhere else, and its devices are not there.
func TestShadowLinks(t *testing.T) {
	dir := folder(t, map[string]string{"in/a.txt": "a", "in/d/b.txt": "b", "out.txt": "secret"})
	for name, target := range map[string]string{
		"file": "a.txt", "dir": "d", "up": "../out.txt", "absolute": filepath.Join(dir, "out.txt"), "dangling": "nowhere", "loop": "loop", "around": ".",
	} {
		if err := os.Symlink(target, filepath.Join(dir, "in", name)); err != nil {
			t.Skip("this system has no symbolic links for us: ", err)
		}
	}
	m := guestfs.NewMemory(guestfs.Limits{})
	musttest.Do(t, m.Shadow("own", openDir(t, filepath.Join(dir, "in")), 100))
	got := seen(t, m.Sub("own"))
	for name, text := range got {
		if strings.Contains(text, "secret") {
			t.Errorf("%s shows what is outside", name)
		}
	}
	names := make([]string, 0, len(got))
	for name := range got {
		names = append(names, name)
	}
	slices.Sort(names)
	t.Log(names)
	for _, name := range []string{"up", "absolute"} {
		if f, errno := m.Sub("own").Open(name, 0); errno == 0 {
			f.Close()
			t.Errorf("%s can be opened", name)
		}
	}
}
