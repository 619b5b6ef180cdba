package wasi_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
	"openskill/wasm/wasi"
)

// F01: paths that try to get out, and paths that are only odd.
func TestF01Paths(t *testing.T) {
	data := dataFolder(t)
	musttest.Do(t, os.WriteFile(filepath.Join(filepath.Dir(data), "secret"), []byte("secret"), 0o600))
	root, _ := worldRoot(t, data)
	for path, want := range map[string]guestfs.Errno{
		"data/a.txt":                              0,
		"./data/a.txt":                            0,
		"data//a.txt":                             0,
		"data/./sub/../a.txt":                     0,
		"data/sub/b.txt":                          0,
		"/data/a.txt":                             guestfs.EPERM,
		"..":                                      guestfs.EPERM,
		"../secret":                               guestfs.EPERM,
		"data/../../secret":                       guestfs.EPERM,
		"data/../secret":                          guestfs.ENOENT,
		"data/sub/../../../secret":                guestfs.EPERM,
		"data/..\\secret":                         guestfs.ENOENT,
		"data/a.txt\x00.jpg":                      guestfs.EINVAL,
		"data/\xff":                               guestfs.EILSEQ,
		"data/a.txt/":                             guestfs.ENOTDIR,
		"data/a.txt/.":                            guestfs.ENOTDIR,
		"data/a.txt/x":                            guestfs.ENOTDIR,
		"data/" + strings.Repeat("x", 255):        guestfs.ENOENT,
		"data/" + strings.Repeat("x", 256):        guestfs.ENAMETOOLONG,
		"./data/" + strings.Repeat("x", 256):      guestfs.ENAMETOOLONG,
		strings.Repeat("x/", 255) + "x":           guestfs.ENOENT,
		strings.Repeat("x/", 256) + "x":           guestfs.ENAMETOOLONG,
		"./" + strings.Repeat("x/", 256) + "x":    guestfs.ENAMETOOLONG,
		strings.Repeat("./", 2043) + "data/a.txt": 0,
		strings.Repeat("./", 2044) + "data/a.txt": guestfs.ENAMETOOLONG,
		"proc/self/environ":                       guestfs.ENOENT,
		"DATA/a.txt":                              guestfs.ENOENT,
		"":                                        guestfs.ENOENT,
	} {
		g := newGuest(t, wasi.Config{Root: root})
		fd, errno := g.open(path, 0, rightRead, 0)
		if errno != want {
			t.Errorf("open %.60q: %v, want %v", path, errno, want)
		}
		if errno == 0 {
			if got := g.read(fd, 10); got != "alpha" && got != "beta" {
				t.Errorf("%.60q reads %q", path, got)
			}
		}
	}
	// A folder's descriptor reaches what is below it only.
	g := newGuest(t, wasi.Config{Root: root})
	sub := g.mustOpen("data/sub", oDirectory, 0)
	for path, want := range map[string]guestfs.Errno{"b.txt": 0, "deep/../b.txt": 0, "../a.txt": guestfs.EPERM, "deep/../../a.txt": guestfs.EPERM, ".": 0} {
		ptr, n := g.put(atPath, path)
		if got := g.call("path_open", sub, 1, ptr, n, 0, rightRead, 0, 0, atResult); got != want {
			t.Errorf("open %q below a folder: %v, want %v", path, got, want)
		}
	}
}

// F05: descriptors are capped, and closing one makes room for one.
func TestF05OpenFiles(t *testing.T) {
	root, _ := worldRoot(t, dataFolder(t))
	g := newGuest(t, wasi.Config{Root: root, MaxOpenFiles: 10})
	for fd := uint64(4); fd < 10; fd++ {
		if got := g.mustOpen("data/a.txt", 0, rightRead); got != fd {
			t.Fatalf("descriptor %d, want %d", got, fd)
		}
	}
	for range 1000 {
		if _, errno := g.open("data/a.txt", 0, rightRead, 0); errno != guestfs.EMFILE {
			t.Fatalf("%v, want EMFILE", errno)
		}
	}
	g.want(0, "fd_close", 6)
	g.want(0, "fd_close", 5)
	if got := g.mustOpen("data", 0, rightRead); got != 5 {
		t.Errorf("descriptor %d, want the lowest free", got)
	}
	g = newGuest(t, wasi.Config{Root: root})
	n := 4
	for ; ; n++ {
		if _, errno := g.open("data/a.txt", 0, rightRead, 0); errno != 0 {
			break
		}
	}
	if n != wasi.DefaultMaxOpenFiles {
		t.Errorf("%d descriptors by default", n)
	}
}

// listDir reads a folder with a buffer of a given size, as libc does.
func (g *guest) listDir(fd uint64, size uint32) (names []string) {
	g.t.Helper()
	cookie := uint64(0)
	for {
		g.want(0, "fd_readdir", fd, atData, uint64(size), cookie, atResult)
		used := g.u32(atResult)
		if used > size {
			g.t.Fatalf("%d bytes used of %d", used, size)
		}
		b := []byte(g.text(atData, used))
		progress := false
		for len(b) >= 24 {
			n := int(binary.LittleEndian.Uint32(b[16:]))
			if len(b) < 24+n {
				break
			}
			names = append(names, string(b[24:24+n]))
			cookie = binary.LittleEndian.Uint64(b)
			b = b[24+n:]
			progress = true
		}
		if used < size {
			return names
		}
		if !progress {
			g.t.Fatal("no progress")
		}
	}
}

// F06: a huge folder is listed once and whole with any buffer, at a bounded cost of
// memory, and any cookie works.
func TestF06HugeFolder(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i := range 3000 {
		name := fmt.Sprintf("file-%06d", i)
		want = append(want, name)
		musttest.Do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	root, _ := worldRoot(t, dir)
	var units uint64
	g := newGuest(t, wasi.Config{Root: root, Charge: func(n uint64) { units += n }})
	fd := g.mustOpen("data", oDirectory, 0)
	var order []string
	for _, size := range []uint32{300, 4096, 60000} {
		got := g.listDir(fd, size)
		if got[0] != "." || got[1] != ".." {
			t.Fatalf("the first entries are %q", got[:2])
		}
		got = got[2:]
		if order == nil {
			order = slices.Clone(got)
		} else if !slices.Equal(order, got) {
			t.Error("the order has changed")
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("%d entries with a buffer of %d, want %d", len(got), size, len(want))
		}
	}
	// Going back and forth, far and near.
	for _, cookie := range []uint64{2, 3001, 2500, 2, 1, 0, 1500, 1024, 1025, 1026, 1027} {
		g.want(0, "fd_readdir", fd, atData, 200, cookie, atResult)
		entry := g.text(atData+24, g.u32(atData+16))
		name := "..."[:min(cookie+1, 2)]
		if cookie >= 2 {
			name = order[cookie-2]
		}
		if next := g.u64(atData); entry != name || next != cookie+1 {
			t.Errorf("entry %d is %q and the next %d, want %q", cookie, entry, next, name)
		}
	}
	for _, cookie := range []uint64{3002, 1 << 40, math.MaxUint64} {
		g.want(0, "fd_readdir", fd, atData, 200, cookie, atResult)
		if n := g.u32(atResult); n != 0 {
			t.Errorf("%d bytes after the end, at %d", n, cookie)
		}
	}
	if units < 3*3000*16 {
		t.Errorf("%d units for 9,000 entries", units)
	}
}

func TestReaddirIsSortedAndFresh(t *testing.T) {
	root, work := worldRoot(t, dataFolder(t))
	g := newGuest(t, wasi.Config{Root: root})
	if got := g.listDir(3, 4096); !slices.Equal(got, []string{".", "..", "data", "work"}) {
		t.Errorf("the root has %q", got)
	}
	fd := g.mustOpen("work", oDirectory, 0)
	musttest.Do(t, work.WriteFile("b", nil))
	if got := g.listDir(fd, 4096); !slices.Equal(got, []string{".", "..", "b"}) {
		t.Errorf("/work has %q", got)
	}
	musttest.Do(t, work.WriteFile("a", nil))
	if got := g.listDir(fd, 4096); !slices.Equal(got, []string{".", "..", "a", "b"}) {
		t.Errorf("/work has %q after another file", got)
	}
}

// Offsets up to the end of their range, on files of both kinds.
func TestOffsets(t *testing.T) {
	root, _ := worldRoot(t, dataFolder(t))
	g := newGuest(t, wasi.Config{Root: root})
	file := g.mustOpen("data/a.txt", 0, rightRead)
	work := g.mustOpen("work/w", oCreate, rightRead|rightWrite)
	for _, fd := range []uint64{file, work} {
		for _, offset := range []uint64{1000, 1 << 40, math.MaxInt64 - 1, math.MaxInt64} {
			g.want(0, "fd_seek", fd, offset, 0, atResult)
			if got := g.read(fd, 10); got != "" {
				t.Errorf("read %q at %d", got, offset)
			}
			g.want(0, "fd_tell", fd, atResult)
			if got := g.u64(atResult); got != offset {
				t.Errorf("at %d, want %d", got, offset)
			}
		}
	}
	ptr, n := g.iovs(atData, 10)
	g.want(guestfs.EFBIG, "fd_write", work, ptr, n, atResult)
	g.want(0, "fd_seek", work, 1<<62, 0, atResult)
	g.want(guestfs.ENOSPC, "fd_write", work, ptr, n, atResult)
	// Relative to the current place and to the end.
	for _, tc := range []struct {
		delta  int64
		whence uint64
		want   uint64
	}{{2, 0, 2}, {2, 1, 4}, {-1, 1, 3}, {-5, 2, 0}, {0, 2, 5}, {10, 2, 15}} {
		g.want(0, "fd_seek", file, uint64(tc.delta), tc.whence, atResult)
		if got := g.u64(atResult); got != tc.want {
			t.Errorf("seek %+v is at %d", tc, got)
		}
	}
	g.want(guestfs.EINVAL, "fd_seek", file, uint64(math.MaxUint64-5), 2, atResult) // before the start
}

func TestScratch(t *testing.T) {
	root, work := worldRoot(t, dataFolder(t))
	now := time.Unix(1_700_000_000, 0)
	g := newGuest(t, wasi.Config{Root: root, Wall: func() time.Time { return now }})
	fd := g.mustOpen("work/f", oCreate|oExcl, rightRead|rightWrite)
	g.write(fd, "hello")
	g.put(atData, "J")
	ptr, n := g.iovs(atData, 1)
	g.want(0, "fd_pwrite", fd, ptr, n, 0, atResult)
	if errno := g.write(fd, " there"); errno != 0 {
		t.Fatal(errno)
	}
	g.want(0, "fd_filestat_set_times", fd, 0, 0, 8) // now
	g.want(0, "fd_filestat_get", fd, atResult)
	if size, mtime := g.u64(atResult+32), g.u64(atResult+48); size != 11 || mtime != uint64(now.UnixNano()) {
		t.Errorf("size %d, time %d", size, mtime)
	}
	// Appending ignores the offset.
	add, errno := g.open("work/f", 0, rightWrite, 1)
	if errno != 0 {
		t.Fatal(errno)
	}
	g.want(0, "fd_seek", add, 0, 0, atResult)
	g.write(add, "!")
	if data, err := work.ReadFile("f"); err != nil || string(data) != "Jello there!" {
		t.Errorf("%q, %v", data, err)
	}
	if _, errno := g.open("work/f", oCreate|oExcl, rightWrite, 0); errno != guestfs.EEXIST {
		t.Errorf("%v, want EEXIST", errno)
	}
	// Opened for reading with TRUNC: emptied, and still not to be written to.
	g.mustOpen("work/f", oTrunc, rightRead)
	if data, _ := work.ReadFile("f"); len(data) != 0 {
		t.Errorf("%q after TRUNC", data)
	}
	// A file that is unlinked lives until it is closed.
	p, l := g.put(atPath, "work/f")
	g.want(0, "path_unlink_file", 3, p, l)
	g.want(0, "fd_seek", fd, 0, 0, atResult)
	if errno := g.write(fd, "ghost"); errno != 0 {
		t.Error(errno)
	}
	g.want(0, "fd_close", fd)
	// The scratch is capped.
	fd = g.mustOpen("work/big", oCreate, rightWrite)
	g.want(guestfs.ENOSPC, "fd_filestat_set_size", fd, 17<<20)
	g.want(0, "fd_filestat_set_size", fd, 8<<20)
}

// A run that goes on from a saved state sees nothing of the run before.
func TestSavedStateIsClean(t *testing.T) {
	root, work := worldRoot(t, dataFolder(t))
	g := newGuest(t, wasi.Config{Root: root, Stdin: strings.NewReader("warm-up")})
	file := g.mustOpen("data/a.txt", 0, rightRead)
	dir := g.mustOpen("work", oDirectory, 0)
	if got := g.read(file, 2); got != "al" {
		t.Fatal(got)
	}
	g.listDir(3, 4096)
	saved := g.w.Save()

	for run := range 3 {
		// What the hostile run before has left.
		var out strings.Builder
		musttest.Do(t, g.w.Restore(saved, wasi.Config{Stdin: strings.NewReader(fmt.Sprint("input", run)), Stdout: &out, Args: []string{"x"}}))
		work.Reset()
		if stop := g.w.Stopped(); stop != nil {
			t.Fatalf("stopped: %v", stop)
		}
		if o, e := g.w.Written(); o != 0 || e != 0 {
			t.Fatalf("written %d, %d", o, e)
		}
		if got := g.read(0, 10); got != fmt.Sprint("input", run) {
			t.Fatalf("input %q", got)
		}
		if got := g.read(file, 10); got != "pha" {
			t.Fatalf("run %d reads %q of the open file, want the rest", run, got)
		}
		g.want(0, "fd_fdstat_get", 1, atResult)
		if flags := g.u32(atResult) >> 16; flags != 0 {
			t.Fatalf("flags %d", flags)
		}
		if got := g.listDir(dir, 4096); !slices.Equal(got, []string{".", ".."}) {
			t.Fatalf("run %d: /work has %q", run, got)
		}
		g.want(0, "fd_readdir", dir, atData, 4096, 2, atResult) // a cookie of the run before
		if n := g.u32(atResult); n != 0 {
			t.Fatalf("run %d: %d bytes of an old listing", run, n)
		}
		for fd := dir + 1; fd < 20; fd++ {
			g.want(guestfs.EBADF, "fd_close", fd)
		}
		// Now mark all that can be marked.
		mark := g.mustOpen("work/mark", oCreate, rightWrite)
		g.write(mark, "mark")
		g.listDir(dir, 4096)
		g.write(1, "said")
		g.want(0, "fd_fdstat_set_flags", 1, 5)
		g.want(0, "fd_renumber", mark, 2)
		g.want(0, "fd_close", file)
		g.want(0, "fd_close", 3)
		if out.String() != "said" {
			t.Fatalf("output %q", out.String())
		}
		g.wantStop(wasi.ReasonExit, "proc_exit", 3)
	}
	if err := saved.Release(); err != nil {
		t.Error(err)
	}
	if err := saved.Release(); err != nil {
		t.Error(err)
	}
}

func TestSavedClockGoesOn(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	saved := g.w.Save()
	time.Sleep(30 * time.Millisecond) // the clock is the real one: time must pass
	musttest.Do(t, g.w.Restore(saved, wasi.Config{}))
	g.want(0, "clock_time_get", 1, 0, atResult)
	if got := time.Duration(g.u64(atResult)) - time.Second; got >= 30*time.Millisecond {
		t.Errorf("the clock shows %v, so it did not go back", got)
	}
}

// A path that ends in a slash names a folder, in every call.
func TestTrailingSlash(t *testing.T) {
	root, work := worldRoot(t, dataFolder(t))
	musttest.Do(t, work.WriteFile("f", nil))
	g := newGuest(t, wasi.Config{Root: root})
	path := func(call, path string) guestfs.Errno {
		ptr, n := g.put(atPath, path)
		return g.call(call, 3, ptr, n)
	}
	rename := func(from, to string) guestfs.Errno {
		a, n := g.put(atPath, from)
		b, m := g.put(atPath2, to)
		return g.call("path_rename", 3, a, n, 3, b, m)
	}
	stat := func(path string) guestfs.Errno {
		ptr, n := g.put(atPath, path)
		return g.call("path_filestat_get", 3, 1, ptr, n, atResult)
	}
	create := func(path string) guestfs.Errno { _, errno := g.open(path, oCreate, rightWrite, 0); return errno }
	for i, tc := range []struct{ got, want guestfs.Errno }{
		{path("path_create_directory", "work/d/"), 0},
		{path("path_create_directory", "work/f/"), guestfs.EEXIST},
		{path("path_unlink_file", "work/f/"), guestfs.ENOTDIR},
		{path("path_unlink_file", "work/d/"), guestfs.EISDIR},
		{path("path_unlink_file", "work/none/"), guestfs.ENOENT},
		{path("path_remove_directory", "work/f/"), guestfs.ENOTDIR},
		{stat("work/f/"), guestfs.ENOTDIR},
		{stat("work/d/"), 0},
		{rename("work/f/", "work/g"), guestfs.ENOTDIR},
		{rename("work/f", "work/g/"), guestfs.ENOTDIR},
		{rename("work/d/", "work/e/"), 0},
		{create("work/new/"), guestfs.EISDIR},
		{create("data/new/"), guestfs.EROFS},
		{path("path_remove_directory", "work/e/"), 0},
	} {
		if tc.got != tc.want {
			t.Errorf("row %d: %v, want %v", i, tc.got, tc.want)
		}
	}
}

// listed counts the entries that the host reads of its folders.
type listed struct {
	guestfs.FS
	entries int
}

func (l *listed) Open(name string, flags guestfs.OpenFlag) (guestfs.File, guestfs.Errno) {
	f, errno := l.FS.Open(name, flags)
	return &listedFile{f, l}, errno
}

type listedFile struct {
	guestfs.File
	of *listed
}

func (f *listedFile) ReadDir(n int) ([]guestfs.Dirent, guestfs.Errno) {
	out, errno := f.File.ReadDir(n)
	f.of.entries += len(out)
	return out, errno
}

// TestF06ReadsOneWindow holds that a call which has room for few entries of a huge folder
// does not have the host read all of them.
func TestF06ReadsOneWindow(t *testing.T) {
	work := guestfs.NewMemory(guestfs.Limits{Files: 5000})
	for i := range 4000 {
		musttest.Do(t, work.WriteFile(fmt.Sprintf("file-%06d", i), nil))
	}
	root := &listed{FS: work}
	g := newGuest(t, wasi.Config{Root: root})
	for range 2 {
		root.entries = 0
		g.want(0, "fd_readdir", 3, atData, 4096, 0, atResult)
		if root.entries == 0 || root.entries > 1024 {
			t.Errorf("the host reads %d entries for a buffer of 4 KiB", root.entries)
		}
	}
}
