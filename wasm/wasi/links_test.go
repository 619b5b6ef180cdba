package wasi_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/wasm/guestfs"
	"openskill/wasm/wasi"
)

// symlink makes a link as a guest does.
func (g *guest) symlink(target, path string) guestfs.Errno {
	g.t.Helper()
	a, n := g.put(atPath, target)
	b, k := g.put(atPath2, path)
	return g.call("path_symlink", a, n, 3, b, k)
}

// on calls a function that takes a descriptor, a path, and nothing else.
func (g *guest) on(function, path string) guestfs.Errno {
	g.t.Helper()
	ptr, n := g.put(atPath, path)
	return g.call(function, 3, ptr, n)
}

// two calls path_rename or path_link.
func (g *guest) two(function, from, to string) guestfs.Errno {
	g.t.Helper()
	a, n := g.put(atPath, from)
	b, k := g.put(atPath2, to)
	if function == "path_link" {
		return g.call(function, 3, 0, a, n, 3, b, k)
	}
	return g.call(function, 3, a, n, 3, b, k)
}

// content is what a path reads, or why it cannot be read.
func (g *guest) content(path string) string {
	g.t.Helper()
	fd, errno := g.open(path, 0, rightRead, 0)
	if errno != 0 {
		return errno.String()
	}
	defer g.call("fd_close", fd)
	ptr, n := g.iovs(atData, 100)
	if errno := g.call("fd_read", fd, ptr, n, atResult); errno != 0 {
		return errno.String()
	}
	return g.text(atData, g.u32(atResult))
}

func (g *guest) file(path, text string) {
	g.t.Helper()
	fd := g.mustOpen(path, oCreate|oTrunc, rightWrite)
	if errno := g.write(fd, text); errno != 0 {
		g.t.Fatal(errno)
	}
	g.call("fd_close", fd)
}

// F02 where the guest makes the links itself: they lead through its scratch space and
// to nothing else, whatever they say.
func TestF02OwnSymlinks(t *testing.T) {
	data := dataFolder(t)
	root, work := worldRoot(t, data)
	g := newGuest(t, wasi.Config{Root: root})
	want := func(want, got guestfs.Errno) {
		t.Helper()
		if got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	want(0, g.on("path_create_directory", "work/d"))
	g.file("work/d/f", "mine")
	for name, target := range map[string]string{
		"file": "d/f", "folder": "d", "d/back": "../d/f", "self": "self", "ping": "pong", "pong": "ping", "dangling": "none",
		"up": "..", "data": "../data/a.txt", "ten": strings.Repeat("../", 10) + "etc/passwd", "detour": "d/../../data/a.txt", "chain0": "d/f",
	} {
		want(0, g.symlink(target, "work/"+name))
	}
	for i := range 41 {
		want(0, g.symlink("chain"+strconv.Itoa(i), "work/chain"+strconv.Itoa(i+1)))
	}
	for _, target := range []string{"/", "/etc/passwd", "/work/d/f", "/data/a.txt", data} {
		want(guestfs.EPERM, g.symlink(target, "work/absolute"))
	}
	want(guestfs.EROFS, g.symlink("a.txt", "data/new"))
	want(guestfs.EROFS, g.symlink("data", "new"))

	got := map[string]string{}
	for _, path := range []string{
		"file", "folder/f", "d/back", "folder/back", "folder/../d/f", "folder/../folder/../file", "folder/.", "chain39", "chain40",
		"self", "ping", "dangling", "dangling/x", "dangling/../d/f", "file/x", "file/", "file/../d/f", "folder/", "self/..",
		"up", "up/data/a.txt", "data", "ten", "detour", "data/../d/f", "up/..",
	} {
		got[path] = g.content("work/" + path)
	}
	if d := cmp.Diff(map[string]string{
		"file": "mine", "folder/f": "mine", "d/back": "mine", "folder/back": "mine", "folder/../d/f": "mine",
		"folder/../folder/../file": "mine", "folder/.": "EISDIR", "folder/": "EISDIR", "chain39": "mine", "chain40": "ELOOP",
		"self": "ELOOP", "self/..": "ELOOP", "ping": "ELOOP", "dangling": "ENOENT", "dangling/x": "ENOENT", "dangling/../d/f": "mine",
		"file/x": "ENOTDIR", "file/": "ENOTDIR", "file/../d/f": "ENOENT",
		"up": "EPERM", "up/data/a.txt": "EPERM", "data": "EPERM", "ten": "EPERM", "detour": "EPERM", "data/../d/f": "EPERM", "up/..": "EPERM",
	}, got); d != "" {
		t.Error(d)
	}

	// Calls about a link itself, and about what a slash behind it makes of it.
	for _, c := range []struct {
		want guestfs.Errno
		got  guestfs.Errno
	}{
		{guestfs.EEXIST, g.symlink("x", "work/file")},
		{guestfs.EEXIST, g.symlink("x", "work/dangling")},
		{guestfs.ENOENT, g.symlink("x", "work/new/")},
		{guestfs.EEXIST, g.symlink("x", "work/d/")},
		{guestfs.ENOTDIR, g.symlink("x", "work/file/")},
		{guestfs.EROFS, g.symlink("x", "data/sub/")},
		{guestfs.EEXIST, g.on("path_create_directory", "work/dangling")},
		{guestfs.ENOTDIR, g.on("path_remove_directory", "work/folder")},
		{guestfs.ENOTDIR, g.on("path_remove_directory", "work/folder/")},
		{guestfs.ENOTDIR, g.on("path_unlink_file", "work/folder/")},
		{guestfs.ENOTDIR, g.two("path_rename", "work/folder/", "work/moved")},
		{guestfs.ENOENT, g.two("path_link", "work/file", "work/new/")},
		{guestfs.ENOTDIR, g.two("path_link", "work/file/", "work/new")},
		{guestfs.EPERM, g.two("path_link", "work/d", "work/new")},
		{guestfs.EROFS, g.two("path_link", "work/file", "other")}, // outside of every mount
	} {
		want(c.want, c.got)
	}
	want(0, g.two("path_link", "work/file", "work/second"))
	ptr, n := g.put(atPath, "work/second")
	g.want(0, "path_readlink", 3, ptr, n, atData, 100, atResult)
	if got := g.text(atData, g.u32(atResult)); got != "d/f" {
		t.Errorf("the second name of a link leads to %q", got)
	}
	// With a link followed, the file gets the name.
	to, k := g.put(atPath2, "work/third")
	g.want(0, "path_link", 3, 1, ptr, n, 3, to, k)
	g.want(0, "path_filestat_get", 3, 0, to, k, atResult)
	if kind := g.text(atResult+16, 1); kind != "\x04" {
		t.Errorf("kind %q", kind)
	}

	// What is made through a link is made where it leads, and not by name alone.
	g.file("work/dangling", "made")
	if got := g.content("work/none"); got != "made" {
		t.Errorf("what the link leads to reads %q", got)
	}
	_, errno := g.open("work/dangling", oCreate|oExcl, rightWrite, 0)
	want(guestfs.EEXIST, errno)

	// A folder that was opened by a link stays that folder when the link leads elsewhere.
	want(0, g.on("path_create_directory", "work/e"))
	g.file("work/e/f", "other")
	dir := g.mustOpen("work/folder", oDirectory, 0)
	file := g.mustOpen("work/file", 0, rightRead)
	want(0, g.symlink("e", "work/next"))
	want(0, g.two("path_rename", "work/next", "work/folder"))
	want(0, g.symlink("e/f", "work/next"))
	want(0, g.two("path_rename", "work/next", "work/file"))
	if got := g.content("work/folder/f") + ", " + g.content("work/file"); got != "other, other" {
		t.Errorf("the links read %q", got)
	}
	ptr, n = g.put(atPath, "f")
	g.want(0, "path_open", dir, 1, ptr, n, 0, rightRead, 0, 0, atResult)
	if got := g.read(uint64(g.u32(atResult)), 10) + ", " + g.read(file, 10); got != "mine, mine" {
		t.Errorf("what was open reads %q", got)
	}
	// A descriptor is for what is below its folder.
	want(0, g.symlink("../e/f", "work/d/out"))
	ptr, n = g.put(atPath, "out")
	g.want(guestfs.EPERM, "path_open", dir, 1, ptr, n, 0, rightRead, 0, 0, atResult)
	g.want(0, "path_readlink", dir, ptr, n, atData, 100, atResult)
	if got := g.content("work/d/out"); got != "other" {
		t.Errorf("from above it reads %q", got)
	}

	kinds := strings.Join(g.listDir(g.mustOpen("work", oDirectory, 0), 4096), " ")
	if !strings.Contains(kinds, "file") || !strings.Contains(kinds, "ten") {
		t.Errorf("listed: %s", kinds)
	}
	if files := work.Files(); len(files) != 2 || files[0].Name != "none" || files[1].Name != "third" {
		t.Errorf("artifacts: %v", files)
	}
}

// Every link that is followed, and every ".." that may stand behind one, costs as much
// as a path.
func TestLinksAreCharged(t *testing.T) {
	root, _ := worldRoot(t, dataFolder(t))
	used := uint64(0)
	g := newGuest(t, wasi.Config{Root: root, Charge: func(units uint64) { used += units }})
	g.file("work/f", "text")
	cost := func(path string) uint64 {
		ptr, n := g.put(atPath, path)
		used = 0
		g.want(0, "path_filestat_get", 3, 1, ptr, n, atResult)
		return used
	}
	plain := cost("work/f")
	for i := range 40 {
		if errno := g.symlink(map[bool]string{true: "f", false: strconv.Itoa(i - 1)}[i == 0], "work/"+strconv.Itoa(i)); errno != 0 {
			t.Fatal(errno)
		}
	}
	if got := cost("work/f"); got != plain {
		t.Errorf("%d units with links beside it, %d without", got, plain)
	}
	one := cost("work/0") - plain
	if one < 1000 {
		t.Errorf("a link costs %d units", one)
	}
	if got := cost("work/39"); got != plain+40*one {
		t.Errorf("forty links cost %d units, one %d", got-plain, one)
	}
	if got := cost("work/" + strings.Repeat("../work/", 100) + "f"); got != plain+100*one {
		t.Errorf("a hundred \"..\" cost %d units", got-plain)
	}
}
