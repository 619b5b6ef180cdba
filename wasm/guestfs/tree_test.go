package guestfs_test

import (
	"slices"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
)

func tree(tb testing.TB, mounts ...guestfs.Mount) *guestfs.Tree {
	tb.Helper()
	return musttest.Get(guestfs.NewTree(mounts...))(tb)
}

func names(tb testing.TB, fsys guestfs.FS, dir string) []string {
	tb.Helper()
	f := mustOpen(tb, fsys, dir, guestfs.Directory)
	first := list(tb, f, 1)
	if errno := f.Rewind(); errno != 0 {
		tb.Fatal(errno)
	}
	if again := list(tb, f, 1); !slices.Equal(first, again) {
		tb.Errorf("%q, then %q", first, again)
	}
	slices.Sort(first)
	return first
}

func TestTree(t *testing.T) {
	data := openDir(t, folder(t, map[string]string{"a.txt": "alpha", "sub/b.txt": "beta", "hidden/x": "x"}))
	work := guestfs.NewMemory(guestfs.Limits{})
	tr := tree(t,
		guestfs.Mount{Path: "/data", FS: data},
		guestfs.Mount{Path: "/work", FS: work},
		guestfs.Mount{Path: "/usr/local/lib/lib.zip", FS: guestfs.Bytes([]byte("zip"))},
		guestfs.Mount{Path: "/usr/local/lib/lib.zip/inner/dir", FS: guestfs.FromFS(archive(t, sample))},
		guestfs.Mount{Path: "/data/sub/deep", FS: guestfs.FromFS(archive(t, sample))},
		guestfs.Mount{Path: "/data/hidden", FS: guestfs.Bytes([]byte("over it"))},
		guestfs.Mount{Path: "/skill/main.py", FS: guestfs.Bytes([]byte("print()"))})

	for name, want := range map[string]string{
		"data/a.txt": "alpha", "data/sub/b.txt": "beta", "data/sub/deep/a.txt": "alpha", "data/hidden": "over it",
		"usr/local/lib/lib.zip": "zip", "usr/local/lib/lib.zip/inner/dir/sub/b.txt": "beta", "skill/main.py": "print()",
	} {
		if got := read(t, tr, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for dir, want := range map[string]string{
		".": "data skill usr work", "data": "a.txt hidden sub", "data/sub": "b.txt deep", "usr": "local", "usr/local": "lib",
		"usr/local/lib": "lib.zip", "usr/local/lib/lib.zip/inner": "dir", "work": "", "skill": "main.py", "data/sub/deep": "a.txt sub",
	} {
		if got := strings.Join(names(t, tr, dir), " "); got != want {
			t.Errorf("%s has %q, want %q", dir, got, want)
		}
	}
	for name, want := range map[string]guestfs.Errno{
		"none": guestfs.ENOENT, "usr/none": guestfs.ENOENT, "data/none": guestfs.ENOENT, "data/hidden/x": guestfs.ENOTDIR,
		"dat": guestfs.ENOENT, "data2": guestfs.ENOENT, "skill/main.py/x": guestfs.ENOTDIR, "../data": guestfs.EINVAL, "": guestfs.EINVAL,
	} {
		if _, errno := tr.Open(name, 0); errno != want {
			t.Errorf("open %q: %v, want %v", name, errno, want)
		}
		if _, errno := tr.Stat(name, true); errno != want {
			t.Errorf("stat %q: %v, want %v", name, errno, want)
		}
	}
	// The kinds in a listing are those of the mounts.
	entries, errno := mustOpen(t, tr, "data", 0).ReadDir(10)
	if errno != 0 || entries[0] != (guestfs.Dirent{Name: "hidden", Inode: 1, Kind: guestfs.KindRegular}) || entries[1].Kind != guestfs.KindDirectory && entries[1].Name != "sub" {
		t.Errorf("%+v, %v", entries, errno)
	}
	// Two mounts never share a device, so that no two files look the same.
	a, _ := tr.Stat("data/a.txt", true)
	b, _ := tr.Stat("skill/main.py", true)
	c, _ := mustOpen(t, tr, "data/a.txt", 0).Stat()
	root, _ := tr.Stat(".", true)
	if a.Dev == b.Dev || a.Dev != c.Dev || a.Inode != c.Inode || root.Dev == a.Dev || root.Kind != guestfs.KindDirectory {
		t.Errorf("%+v %+v %+v %+v", a, b, c, root)
	}
}

func TestTreeChanges(t *testing.T) {
	work, other := guestfs.NewMemory(guestfs.Limits{}), guestfs.NewMemory(guestfs.Limits{})
	tr := tree(t,
		guestfs.Mount{Path: "/work", FS: work},
		guestfs.Mount{Path: "/work/dir/inner", FS: other},
		guestfs.Mount{Path: "/other", FS: other},
		guestfs.Mount{Path: "/data", FS: guestfs.FromFS(archive(t, sample))})
	do := func(what string, want, got guestfs.Errno) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	f := mustOpen(t, tr, "work/f", guestfs.Create|guestfs.Write)
	if n, errno := f.WriteAt([]byte("x"), 0); n != 1 || errno != 0 {
		t.Error(n, errno)
	}
	do("mkdir", 0, tr.Mkdir("work/dir"))
	do("mkdir of a mount", guestfs.EEXIST, tr.Mkdir("work"))
	do("mkdir in the root", guestfs.EROFS, tr.Mkdir("new"))
	do("create in the root", guestfs.EROFS, second(tr.Open("new", guestfs.Create)))
	do("create with odd flags", guestfs.EROFS, second(tr.Open("work2/new", guestfs.Excl)))
	do("rename", 0, tr.Rename("work/f", "work/g"))
	do("rename to another mount", guestfs.EXDEV, tr.Rename("work/g", "other/g"))
	do("rename into the root", guestfs.EROFS, tr.Rename("work/g", "g"))
	do("rename of what holds a mount", guestfs.EBUSY, tr.Rename("work/dir", "work/moved"))
	do("rename onto what holds a mount", guestfs.EBUSY, tr.Rename("work/g", "work/dir"))
	do("rename of a mount", guestfs.EBUSY, tr.Rename("other", "other/x"))
	do("rmdir of a mount", guestfs.EBUSY, tr.Rmdir("other"))
	do("rmdir of what holds a mount", guestfs.EBUSY, tr.Rmdir("work/dir"))
	do("unlink of a mount", guestfs.EBUSY, tr.Unlink("other"))
	do("link", 0, tr.Link("work/g", "work/linked"))
	do("unlink", 0, tr.Unlink("work/g"))
	do("unlink of the other name", 0, tr.Unlink("work/linked"))
	do("link between mounts", guestfs.EXDEV, tr.Link("data/a.txt", "work/a"))
	do("symlink to a place of the root", guestfs.EPERM, tr.Symlink("/data", "work/b"))
	do("symlink on read-only", guestfs.EROFS, tr.Symlink("/work", "data/b"))
	do("times of the root", guestfs.EROFS, tr.SetTimes(".", true, nil, nil))
	do("times", 0, tr.SetTimes("work", true, nil, nil))
	do("a name of no sense", guestfs.EINVAL, tr.Mkdir("work/../x"))
	do("readlink of the root", guestfs.EINVAL, second(tr.Readlink(".")))
	do("readlink of nothing", guestfs.ENOENT, second(tr.Readlink("none")))
}

func second[T any](_ T, errno guestfs.Errno) guestfs.Errno { return errno }

func TestNewTreeRefuses(t *testing.T) {
	ok := guestfs.Bytes(nil)
	for what, mounts := range map[string][]guestfs.Mount{
		"relative":       {{Path: "data", FS: ok}},
		"root":           {{Path: "/", FS: ok}},
		"empty":          {{Path: "", FS: ok}},
		"not clean":      {{Path: "/data/../x", FS: ok}},
		"trailing slash": {{Path: "/data/", FS: ok}},
		"nothing there":  {{Path: "/data"}},
		"taken twice":    {{Path: "/data", FS: ok}, {Path: "/data", FS: ok}},
	} {
		if _, err := guestfs.NewTree(mounts...); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if got := names(t, tree(t), "."); len(got) != 0 {
		t.Errorf("an empty tree has %q", got)
	}
}

func TestClean(t *testing.T) {
	long := strings.Repeat("x", 255)
	for _, tc := range []struct {
		base, path, want string
		trailing         bool
		errno            guestfs.Errno
	}{
		{".", "a", "a", false, 0},
		{".", "a/b", "a/b", false, 0},
		{"d", "a", "d/a", false, 0},
		{".", "./a", "a", false, 0},
		{".", "a/", "a", true, 0},
		{".", "a//b/.", "a/b", true, 0},
		{".", "a/../b", "b", false, 0},
		{".", ".", ".", true, 0},
		{"d", ".", "d", true, 0},
		{"d", "a/..", "d", true, 0},
		{"d", "a/b/..", "d/a", true, 0},
		{"d", "..", "", false, guestfs.EPERM},
		{"d", "a/../../x", "", false, guestfs.EPERM},
		{".", "/a", "", false, guestfs.EPERM},
		{".", "", "", false, guestfs.ENOENT},
		{".", "a\x00b", "", false, guestfs.EINVAL},
		{".", "\xff", "", false, guestfs.EILSEQ},
		{".", long, long, false, 0},
		{".", long + "/" + long, long + "/" + long, false, 0},
		{".", long + "y", "", false, guestfs.ENAMETOOLONG},
		{".", "a/" + long + "y/b", "", false, guestfs.ENAMETOOLONG},
		{strings.Repeat(long+"/", 15) + long, "xx", "", false, guestfs.ENAMETOOLONG},
		{".", "...", "...", false, 0},
		{".", "..a/b..", "..a/b..", false, 0},
	} {
		name, trailing, errno := guestfs.Clean(tc.base, tc.path)
		if name != tc.want || trailing != tc.trailing || errno != tc.errno {
			t.Errorf("Clean(%.20q, %.20q) = %.20q, %v, %v; want %.20q, %v, %v", tc.base, tc.path, name, trailing, errno, tc.want, tc.trailing, tc.errno)
		}
	}
}

// FuzzClean: whatever a guest asks for, the name is valid and below its base.
func FuzzClean(f *testing.F) {
	for _, s := range []string{"a", "../a", "a/../../b", "/", "./.././", "a\x00", "\xff", "a/b/c/../../../.."} {
		f.Add("base/dir", s)
	}
	f.Fuzz(func(t *testing.T, base, path string) {
		if b, _, errno := guestfs.Clean(".", base); errno != 0 || b != base {
			return
		}
		name, _, errno := guestfs.Clean(base, path)
		if errno != 0 {
			if name != "" {
				t.Errorf("a name with %v", errno)
			}
			return
		}
		if again, _, errno := guestfs.Clean(".", name); errno != 0 || again != name {
			t.Errorf("%q is not clean: %q, %v", name, again, errno)
		}
		if base != "." && name != base && !strings.HasPrefix(name, base+"/") {
			t.Errorf("%q leads from %q to %q", path, base, name)
		}
	})
}
