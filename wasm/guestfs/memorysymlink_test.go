package guestfs_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
)

// errnos holds answers against what they should be.
func errnos(t *testing.T) func(want, got guestfs.Errno) {
	t.Helper()
	return func(want, got guestfs.Errno) {
		t.Helper()
		if got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

func TestMemorySymlink(t *testing.T) {
	m := guestfs.NewMemory(guestfs.Limits{})
	do := errnos(t)
	do(0, m.Mkdir("d"))
	do(0, m.Mkdir("d/e"))
	musttest.Do(t, m.WriteFile("d/f", []byte("text")))
	for name, target := range map[string]string{
		"file": "d/f", "folder": "d", "d/e/up": "../f", "slash": "d/", "dot": "d/.", "dots": "d/e/..", "long": "folder/./e/../e//up",
		"dangling": "none", "away": "none/none", "below": "file/x", "fileslash": "file/", "loop": "loop", "ping": "pong", "pong": "ping",
		"out": "..", "outside": "d/../../x", "deep": strings.Repeat("../", 10) + "x", "root": ".", "back": "d/..",
	} {
		do(0, m.Symlink(target, name))
		if got, errno := m.Readlink(name); errno != 0 || got != target {
			t.Errorf("%s leads to %q, %v", name, got, errno)
		}
		st, errno := m.Stat(name, false)
		if errno != 0 || st.Kind != guestfs.KindSymlink || st.Size != int64(len(target)) || st.Links != 1 {
			t.Errorf("%s itself: %+v, %v", name, st, errno)
		}
	}
	for name, want := range map[string]string{
		"file": "text", "folder/f": "text", "d/e/up": "text", "slash/f": "text", "dot/f": "text", "dots/f": "text", "long": "text",
		"root/file": "text", "back/file": "text", "root/root/root/d/f": "text", "folder/e/up": "text",

		"dangling": "ENOENT", "away": "ENOENT", "below": "ENOTDIR", "fileslash": "ENOTDIR", "file/x": "ENOTDIR", "loop": "ELOOP", "ping": "ELOOP", "loop/x": "ELOOP",
		"out": "EPERM", "out/x": "EPERM", "outside": "EPERM", "deep": "EPERM", "root/out": "EPERM", "dangling/x": "ENOENT", "folder/none": "ENOENT",
	} {
		got, err := m.ReadFile(name)
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != want {
			t.Errorf("%s reads %q, want %q", name, got, want)
		}
	}

	// Without following.
	for _, name := range []string{"file", "folder", "loop", "dangling", "out"} {
		_, errno := m.Open(name, guestfs.NoFollow)
		do(guestfs.ELOOP, errno)
		_, errno = m.Open(name, guestfs.NoFollow|guestfs.Create|guestfs.Write)
		do(guestfs.ELOOP, errno)
		_, errno = m.Open(name, guestfs.Create|guestfs.Excl|guestfs.Write)
		do(guestfs.EEXIST, errno)
		do(guestfs.EEXIST, m.Mkdir(name))
		do(guestfs.EEXIST, m.Symlink("x", name))
		do(guestfs.ENOTDIR, m.Rmdir(name))
		do(guestfs.EEXIST, m.Link("d/f", name))
	}
	mustOpen(t, m, "folder/f", guestfs.NoFollow).Close() // on the way they are followed
	mustOpen(t, m, "slash", guestfs.Directory).Close()
	_, errno := m.Open("file", guestfs.Directory)
	do(guestfs.ENOTDIR, errno)
	_, errno = m.Open("folder", guestfs.Write)
	do(guestfs.EISDIR, errno)
	_, errno = m.Readlink("d/f")
	do(guestfs.EINVAL, errno)
	_, errno = m.Readlink("none")
	do(guestfs.ENOENT, errno)

	// What is opened to be made is made where the link leads.
	f := mustOpen(t, m, "dangling", guestfs.Create|guestfs.Write)
	f.WriteAt([]byte("made"), 0)
	f.Close()
	if got, err := m.ReadFile("none"); err != nil || string(got) != "made" {
		t.Errorf("%q, %v", got, err)
	}
	_, errno = m.Open("outside", guestfs.Create|guestfs.Write)
	do(guestfs.EPERM, errno)

	// A link that is moved or taken away leaves what it led to, and has new surroundings.
	do(0, m.Rename("file", "moved"))
	do(guestfs.ENOENT, m.Unlink("file"))
	do(0, m.Unlink("moved"))
	do(0, m.Rename("folder", "d/f2"))
	_, errno = m.Stat("d/f2", true)
	do(guestfs.ENOENT, errno)
	do(0, m.Rename("d/f2", "folder"))
	do(0, m.Rename("folder/f", "folder/e/f")) // by the folder's other name
	do(guestfs.EINVAL, m.Rename("folder/e", "d/e/x"))
	do(guestfs.EINVAL, m.Rename("d/e", "folder/e/x"))
	do(0, m.Rename("folder/e/f", "d/e/f"))
	do(0, m.Rename("none", "dangling")) // in the link's place
	if st, errno := m.Stat("dangling", false); errno != 0 || st.Kind != guestfs.KindRegular {
		t.Errorf("%+v, %v", st, errno)
	}
	do(guestfs.EISDIR, m.Rename("loop", "d"))
	do(guestfs.ENOTDIR, m.Rename("d", "loop"))

	// Times of the link, and of what it leads to.
	link, file := time.Unix(10, 0), time.Unix(20, 0)
	do(0, m.SetTimes("long", false, nil, &link))
	do(guestfs.ENOENT, m.SetTimes("long", true, nil, &file))
	do(0, m.SetTimes("dots", true, nil, &file))
	for name, want := range map[string]time.Time{"long": link, "d": file} {
		if st, errno := m.Stat(name, false); errno != 0 || !st.Mtime.Equal(want) {
			t.Errorf("%s: %v, %v", name, st.Mtime, errno)
		}
	}

	// A listing has them as what they are, and artifacts are files only.
	kinds := map[string]guestfs.Kind{}
	entries, errno := mustOpen(t, m, ".", 0).ReadDir(100)
	do(0, errno)
	for _, e := range entries {
		kinds[e.Name] = e.Kind
	}
	if kinds["loop"] != guestfs.KindSymlink || kinds["d"] != guestfs.KindDirectory || kinds["dangling"] != guestfs.KindRegular {
		t.Errorf("%v", kinds)
	}
	if d := cmp.Diff([]guestfs.FileInfo{{Name: "dangling", Size: 4}}, m.Files()); d != "" {
		t.Error(d)
	}

	for target, want := range map[string]guestfs.Errno{
		"": guestfs.ENOENT, "/": guestfs.EPERM, "/work/x": guestfs.EPERM, "a\x00b": guestfs.EINVAL, "\xff": guestfs.EILSEQ,
		strings.Repeat("x", 4097): guestfs.ENAMETOOLONG, strings.Repeat("x/", 256): guestfs.ENAMETOOLONG,
	} {
		do(want, m.Symlink(target, "new"))
	}
	do(guestfs.EINVAL, m.Symlink("x", "../new"))
	do(guestfs.EEXIST, m.Symlink("x", "."))
	do(guestfs.ENOENT, m.Symlink("x", "none/new"))
	do(guestfs.ENOTDIR, m.Symlink("x", "dangling/new"))
	do(guestfs.ENAMETOOLONG, m.Symlink("x", strings.Repeat("x", 256)))
}

// Forty links are followed for a name, and no more.
func TestMemorySymlinkChain(t *testing.T) {
	m := guestfs.NewMemory(guestfs.Limits{})
	musttest.Do(t, m.WriteFile("0", []byte("end")))
	do := errnos(t)
	for i := range guestfs.MaxLinks + 1 {
		do(0, m.Symlink(strconv.Itoa(i), strconv.Itoa(i+1)))
	}
	if got, err := m.ReadFile("40"); err != nil || string(got) != "end" {
		t.Errorf("%q, %v", got, err)
	}
	_, errno := m.Open("41", 0)
	do(guestfs.ELOOP, errno)
	if end, links, errno := m.Resolve("40", true); end != "0" || links != 40 || errno != 0 {
		t.Errorf("%q after %d links, %v", end, links, errno)
	}
	if end, links, errno := m.Resolve("40", false); end != "40" || links != 0 || errno != 0 {
		t.Errorf("%q after %d links, %v", end, links, errno)
	}
	// Each link of a folder into itself counts, however it is written.
	do(0, m.Symlink(".", "here"))
	_, errno = m.Open(strings.Repeat("here/", 40)+"0", 0)
	do(0, errno)
	_, errno = m.Open(strings.Repeat("here/", 41)+"0", 0)
	do(guestfs.ELOOP, errno)
	// A doubling of targets ends as soon.
	do(0, m.Symlink("x1/x1", "x0"))
	for i := 1; i < 30; i++ {
		next := "x" + strconv.Itoa(i+1)
		do(0, m.Symlink(next+"/"+next, "x"+strconv.Itoa(i)))
	}
	do(0, m.Symlink(".", "x30"))
	_, errno = m.Open("x0", 0)
	do(guestfs.ELOOP, errno)
}

// A link costs as a file does, with its text, and counts for each of its names.
func TestMemorySymlinkCounts(t *testing.T) {
	m := guestfs.NewMemory(guestfs.Limits{Bytes: 4 * 612, Files: 5, Depth: 3})
	do := errnos(t)
	target := strings.Repeat("x", 100)
	for _, name := range []string{"a", "b", "c"} {
		do(0, m.Symlink(target, name))
	}
	if used := m.Used(); used != 3*612 {
		t.Errorf("%d bytes used by three links", used)
	}
	do(0, m.Link("a", "d"))
	if st, errno := m.Stat("d", false); errno != 0 || st.Kind != guestfs.KindSymlink || st.Links != 2 {
		t.Errorf("%+v, %v", st, errno)
	}
	do(guestfs.ENOSPC, m.Symlink("x", "e"))
	do(0, m.Unlink("a"))
	do(guestfs.ENOSPC, m.Symlink(target+"x", "e"))
	do(0, m.Symlink("x", "e"))
	for _, name := range []string{"b", "c", "d", "e"} {
		do(0, m.Unlink(name))
	}
	if m.Used() != 0 || !m.Empty() {
		t.Errorf("%d bytes used by nothing", m.Used())
	}
	// Without links nothing is resolved, and names stay as they are.
	if end, links, errno := m.Resolve("no/such/name", true); end != "no/such/name" || links != 0 || errno != 0 {
		t.Errorf("%q, %d, %v", end, links, errno)
	}

	m = guestfs.NewMemory(guestfs.Limits{Files: 5, Depth: 3})
	for _, name := range []string{"1", "2", "3", "4"} {
		do(0, m.Symlink(".", name))
	}
	// Depth is that of the folder, whatever it takes to write it.
	do(0, m.Mkdir("1/2/3/4/d"))
	if _, errno := m.Stat("d", false); errno != 0 {
		t.Error(errno)
	}
	do(guestfs.ENOSPC, m.Symlink("x", "5"))
	for _, name := range []string{"3", "4"} {
		do(0, m.Unlink(name))
	}
	do(0, m.Mkdir("1/d/e"))
	do(0, m.Mkdir("1/d/e/f"))
	do(0, m.Unlink("1"))
	do(guestfs.ENAMETOOLONG, m.Mkdir("2/d/e/f/g"))
}

func TestMemorySavedWithSymlinks(t *testing.T) {
	m := guestfs.NewMemory(guestfs.Limits{})
	musttest.Do(t, m.WriteFile("a", []byte("one")))
	do := errnos(t)
	do(0, m.Symlink("a", "b"))
	do(0, m.Link("b", "c"))
	s, ok := m.Save()
	if !ok {
		t.Fatal("nothing is open, and it cannot be saved")
	}
	used := m.Used()
	for range 2 {
		for _, name := range []string{"a", "b", "c"} {
			do(0, m.Unlink(name))
		}
		do(0, m.Symlink("MARK", "b"))
		do(0, m.Symlink("MARK", "d"))
		m.Restore(s)
		if got, errno := m.Readlink("b"); got != "a" || errno != 0 {
			t.Errorf("it leads to %q, %v", got, errno)
		}
		if end, links, errno := m.Resolve("c", true); end != "a" || links != 1 || errno != 0 {
			t.Errorf("%q, %d, %v", end, links, errno)
		}
		_, errno := m.Stat("d", false)
		do(guestfs.ENOENT, errno)
		if m.Used() != used {
			t.Errorf("%d bytes used, want %d", m.Used(), used)
		}
	}
	m.Reset()
	do(0, m.Mkdir("d"))
	if end, links, errno := m.Resolve("d", true); end != "d" || links != 0 || errno != 0 || m.Used() != 512 {
		t.Errorf("%q, %d, %v; %d bytes", end, links, errno, m.Used())
	}
}

// Links of a mount stay in the mount.
func TestTreeSymlinks(t *testing.T) {
	work, other := guestfs.NewMemory(guestfs.Limits{}), guestfs.NewMemory(guestfs.Limits{})
	tr := tree(t,
		guestfs.Mount{Path: "/data", FS: openDir(t, folder(t, sample))},
		guestfs.Mount{Path: "/work", FS: work}, guestfs.Mount{Path: "/other", FS: other})
	do := errnos(t)
	do(0, tr.Mkdir("work/d"))
	do(0, tr.Mkdir("other/d"))
	for name, target := range map[string]string{"work/l": "d", "work/top": ".", "work/data": "../data/a.txt", "work/other": "../other", "other/work": "../work/d", "work/twice": "l/../other/d"} {
		do(0, tr.Symlink(target, name))
	}
	do(guestfs.EPERM, tr.Symlink("/data/a.txt", "work/absolute"))
	do(guestfs.EROFS, tr.Symlink("a.txt", "data/new"))
	do(guestfs.EXDEV, tr.Link("work/l", "other/l"))
	do(guestfs.EXDEV, tr.Rename("work/l", "other/l"))
	for name, want := range map[string]guestfs.Errno{"work/l": 0, "work/top/l": 0, "work/data": guestfs.EPERM, "work/other": guestfs.EPERM, "other/work": guestfs.EPERM, "work/twice": guestfs.EPERM} {
		_, errno := tr.Stat(name, true)
		do(want, errno)
		_, errno = tr.Open(name, 0)
		do(want, errno)
	}
	follow := func(bool) bool { return true }
	for _, c := range []struct {
		base, path, want string
		work             int
		errno            guestfs.Errno
	}{
		{".", "work/l", "work/d", 1, 0},
		{".", "work/l/", "work/d", 1, 0},
		{".", "work/l/x", "work/d/x", 1, 0},
		{".", "work/top", "work", 1, 0},
		{".", "work/top/../data/a.txt", "data/a.txt", 2, 0},
		{".", "work/l/../l/../l", "work/d", 5, 0},
		{".", "work/none/../l", "work/d", 2, 0},
		{".", "work/l/..", "work", 2, 0},
		{".", "work/l/...", "work/d/...", 1, 0},
		{".", "work/..", ".", 1, 0},
		{".", "work/../..", "", 2, guestfs.EPERM},
		{".", "work/data/../x", "", 2, guestfs.EPERM},
		{".", "work/data", "", 1, guestfs.EPERM},
		{".", "data/sub/../a.txt", "data/a.txt", 1, 0},
		{".", "none", "none", 0, 0},
		{".", "/x", "", 0, guestfs.EPERM},
		{".", "", "", 0, guestfs.ENOENT},
		{"work", "l", "work/d", 1, 0},
		{"work", "l/../top/l/x", "work/d/x", 4, 0},
		{"work", "l/../..", "", 3, guestfs.EPERM},
		{"work/d", "../l", "", 0, guestfs.EPERM},
	} {
		p, errno := guestfs.Lookup(tr, c.base, c.path, follow)
		if errno != c.errno || p.Work != c.work || errno == 0 && p.Name != c.want {
			t.Errorf("%s from %s: %+v, %v; want %q, work %d, %v", c.path, c.base, p, errno, c.want, c.work, c.errno)
		}
	}
	// A folder's descriptor is for what is below it, by links as by "..".
	do(0, tr.Symlink("../top", "work/d/up"))
	if p, errno := guestfs.Lookup(tr, "work/d", "up", follow); errno != guestfs.EPERM {
		t.Errorf("%+v, %v", p, errno)
	}
	if p, errno := guestfs.Lookup(tr, "work", "d/up", follow); errno != 0 || p.Name != "work" {
		t.Errorf("%+v, %v", p, errno)
	}
	// Forty, not forty for each "..".
	path := strings.Repeat("work/l/../../", 40)
	if p, errno := guestfs.Lookup(tr, ".", path+"work/d", follow); errno != 0 || p.Name != "work/d" {
		t.Errorf("forty links: %+v, %v", p, errno)
	}
	if p, errno := guestfs.Lookup(tr, ".", path+"work/l", follow); errno != guestfs.ELOOP {
		t.Errorf("one more: %+v, %v", p, errno)
	}
}
