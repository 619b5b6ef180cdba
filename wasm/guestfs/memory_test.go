package guestfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
)

const readWrite = guestfs.Write

func mustOpen(tb testing.TB, m guestfs.FS, name string, flags guestfs.OpenFlag) guestfs.File {
	tb.Helper()
	f, errno := m.Open(name, flags)
	if errno != 0 {
		tb.Fatalf("open %s: %v", name, errno)
	}
	tb.Cleanup(func() { f.Close() })
	return f
}

func TestMemoryOpen(t *testing.T) {
	m := guestfs.NewMemory(guestfs.Limits{})
	musttest.Do(t, m.WriteFile("f", []byte("text")))
	if errno := m.Mkdir("d"); errno != 0 {
		t.Fatal(errno)
	}
	for _, tc := range []struct {
		name  string
		flags guestfs.OpenFlag
		want  guestfs.Errno
	}{
		{"f", 0, 0},
		{"none", 0, guestfs.ENOENT},
		{"none", guestfs.Write, guestfs.ENOENT},
		{"none", guestfs.Trunc, guestfs.ENOENT},
		{"f", guestfs.Create | guestfs.Excl, guestfs.EEXIST},
		{"d", guestfs.Create | guestfs.Excl, guestfs.EEXIST},
		{"f", guestfs.Directory, guestfs.ENOTDIR},
		{"d", guestfs.Directory, 0},
		{"d", 0, 0},
		{"d", guestfs.Write, guestfs.EISDIR},
		{"d", guestfs.Trunc, guestfs.EISDIR},
		{"new", guestfs.Create | guestfs.Directory, guestfs.EINVAL},
		{"f/x", guestfs.Create, guestfs.ENOTDIR},
		{"none/x", guestfs.Create, guestfs.ENOENT},
		{"../x", guestfs.Create, guestfs.EINVAL},
		{"/x", guestfs.Create, guestfs.EINVAL},
		{".", guestfs.Create, guestfs.EISDIR},
		{strings.Repeat("x", 255), guestfs.Create, 0},
		{strings.Repeat("x", 256), guestfs.Create, guestfs.ENAMETOOLONG},
	} {
		f, errno := m.Open(tc.name, tc.flags)
		if errno != tc.want {
			t.Errorf("open %.20q with %b: %v, want %v", tc.name, tc.flags, errno, tc.want)
		}
		if errno == 0 {
			f.Close()
		}
	}
	reader := mustOpen(t, m, "f", 0)
	if _, errno := reader.WriteAt([]byte("x"), 0); errno != guestfs.EBADF {
		t.Errorf("write to what is open for reading: %v", errno)
	}
	if errno := reader.Truncate(0); errno != guestfs.EBADF {
		t.Errorf("truncate: %v", errno)
	}
}

func TestMemoryNames(t *testing.T) {
	m := guestfs.NewMemory(guestfs.Limits{})
	do := func(want, got guestfs.Errno) {
		t.Helper()
		if got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	file := func(name, text string) {
		t.Helper()
		musttest.Do(t, m.WriteFile(name, []byte(text)))
	}
	do(0, m.Mkdir("d"))
	do(guestfs.EEXIST, m.Mkdir("d"))
	do(guestfs.EEXIST, m.Mkdir("."))
	do(guestfs.ENOENT, m.Mkdir("none/d"))
	do(0, m.Mkdir("d/e"))
	file("f", "f")
	file("d/g", "g")
	do(guestfs.EEXIST, m.Mkdir("f"))
	do(guestfs.ENOTEMPTY, m.Rmdir("d"))
	do(guestfs.ENOTDIR, m.Rmdir("f"))
	do(guestfs.ENOENT, m.Rmdir("none"))
	do(guestfs.EBUSY, m.Rmdir("."))
	do(guestfs.EISDIR, m.Unlink("d"))
	do(guestfs.ENOENT, m.Unlink("none"))
	do(guestfs.EINVAL, m.Unlink("../f"))
	do(guestfs.ENOTDIR, m.Unlink("f/x"))

	do(guestfs.ENOENT, m.Rename("none", "x"))
	do(guestfs.EINVAL, m.Rename("d", "d/e/d"))
	do(guestfs.EISDIR, m.Rename("f", "d"))
	do(guestfs.ENOTDIR, m.Rename("d", "f"))
	do(guestfs.EBUSY, m.Rename(".", "x"))
	do(guestfs.EBUSY, m.Rename("d", "."))
	do(0, m.Mkdir("full"))
	file("full/x", "")
	do(guestfs.ENOTEMPTY, m.Rename("d", "full"))
	do(guestfs.ENAMETOOLONG, m.Rename("f", strings.Repeat("x", 256)))
	do(0, m.Rename("f", "f"))
	do(0, m.Rename("d", "moved"))
	do(0, m.Rename("moved/g", "f")) // replaces
	if data, err := m.ReadFile("f"); err != nil || string(data) != "g" {
		t.Errorf("%q, %v", data, err)
	}
	do(0, m.Mkdir("empty"))
	do(0, m.Rename("moved", "empty"))
	if got := list(t, mustOpen(t, m, ".", 0), 10); !slices.Equal(got, []string{"empty", "f", "full"}) {
		t.Errorf("left: %q", got)
	}
	if diff := cmp.Diff([]guestfs.FileInfo{{"f", 1}}, m.Files()); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]guestfs.Errno{"none": guestfs.ENOENT, "full": guestfs.EISDIR} {
		if _, err := m.ReadFile(name); !errors.Is(err, want) {
			t.Errorf("read %s: %v", name, err)
		}
	}
}

// Sparse writes and sizes never take memory beyond the cap, and what is freed can
// be used again.
func TestMemoryBytes(t *testing.T) {
	const limit = 64 << 10
	m := guestfs.NewMemory(guestfs.Limits{Bytes: limit})
	f := mustOpen(t, m, "f", guestfs.Create|readWrite)
	for _, off := range []int64{limit, 1 << 40, math.MaxInt64 - 1} {
		if n, errno := f.WriteAt([]byte("x"), off); n != 0 || errno != guestfs.ENOSPC {
			t.Errorf("write at %d: %d, %v", off, n, errno)
		}
		if errno := f.Truncate(off + 1); errno != guestfs.ENOSPC {
			t.Errorf("truncate to %d: %v", off+1, errno)
		}
	}
	if _, errno := f.WriteAt(nil, math.MaxInt64); errno != 0 {
		t.Errorf("an empty write: %v", errno)
	}
	if _, errno := f.WriteAt([]byte("x"), -1); errno != guestfs.EINVAL {
		t.Errorf("write at -1: %v", errno)
	}
	if errno := f.Truncate(-1); errno != guestfs.EINVAL {
		t.Errorf("truncate to -1: %v", errno)
	}
	for range 3 {
		if errno := f.Truncate(limit - 4096); errno != 0 {
			t.Fatalf("up to the cap: %v", errno)
		}
		if _, errno := f.WriteAt([]byte("x"), limit-4096); errno != guestfs.ENOSPC {
			t.Fatalf("over the cap: %v", errno)
		}
		other, errno := m.Open("other", guestfs.Create|readWrite)
		if errno != 0 {
			t.Fatal(errno)
		}
		other.Close()
		if errno := m.Unlink("other"); errno != 0 {
			t.Fatal(errno)
		}
		if errno := f.Truncate(0); errno != 0 {
			t.Fatal(errno)
		}
	}
	if used := m.Used(); used != 512 {
		t.Errorf("%d bytes used by an empty file", used)
	}
	// A shrunk file shows zeros when it grows again.
	f.WriteAt(bytes.Repeat([]byte("x"), 5000), 0)
	f.Truncate(10)
	f.Truncate(5000)
	if data, _ := m.ReadFile("f"); !bytes.Equal(data, append(bytes.Repeat([]byte("x"), 10), make([]byte, 4990)...)) {
		t.Error("old bytes are back")
	}
}

func TestMemoryCounts(t *testing.T) {
	m := guestfs.NewMemory(guestfs.Limits{Files: 5, Depth: 3})
	names := []string{"a", "b", "c", "d", "e"}
	for _, name := range names {
		musttest.Do(t, m.WriteFile(name, nil))
	}
	if err := m.WriteFile("f", nil); !errors.Is(err, guestfs.ENOSPC) {
		t.Errorf("one file too many: %v", err)
	}
	if errno := m.Mkdir("f"); errno != guestfs.ENOSPC {
		t.Errorf("one folder too many: %v", errno)
	}
	// An unlinked file counts as long as it is open.
	f := mustOpen(t, m, "a", readWrite)
	if errno := m.Unlink("a"); errno != 0 {
		t.Fatal(errno)
	}
	if err := m.WriteFile("f", nil); !errors.Is(err, guestfs.ENOSPC) {
		t.Errorf("with an unlinked open file: %v", err)
	}
	f.Close()
	f.Close()
	if err := m.WriteFile("f", nil); err != nil {
		t.Errorf("after it was closed: %v", err)
	}
	for _, name := range []string{"b", "c", "d", "e", "f"} {
		if errno := m.Unlink(name); errno != 0 {
			t.Fatal(errno)
		}
	}
	if !m.Empty() || m.Used() != 0 {
		t.Errorf("not empty: %d bytes", m.Used())
	}

	for _, name := range []string{"1", "1/2", "1/2/3"} {
		if errno := m.Mkdir(name); errno != 0 {
			t.Fatal(errno)
		}
	}
	if errno := m.Mkdir("1/2/3/4"); errno != guestfs.ENAMETOOLONG {
		t.Errorf("too deep: %v", errno)
	}
	m.Mkdir("x")
	if errno := m.Rename("1", "x/1"); errno != guestfs.ENAMETOOLONG {
		t.Errorf("moved too deep: %v", errno)
	}
	if errno := m.Rename("1/2", "x/2"); errno != 0 {
		t.Errorf("moved: %v", errno)
	}
}

// Entries that are removed or added while a folder is read do not make the reader
// skip or repeat others.
func TestMemoryReadDirWhileItChanges(t *testing.T) {
	m := guestfs.NewMemory(guestfs.Limits{})
	var want []string
	for c := 'a'; c <= 'z'; c++ {
		want = append(want, string(c))
		musttest.Do(t, m.WriteFile(string(c), nil))
	}
	dir := mustOpen(t, m, ".", 0)
	var got []string
	for {
		entries, errno := dir.ReadDir(3)
		if errno != 0 {
			t.Fatal(errno)
		}
		if len(entries) == 0 {
			break
		}
		for _, e := range entries {
			got = append(got, e.Name)
			if errno := m.Unlink(e.Name); errno != 0 {
				t.Fatal(errno)
			}
		}
	}
	if !slices.Equal(got, want) || !m.Empty() {
		t.Errorf("%q", got)
	}
}

func TestMemoryTimes(t *testing.T) {
	now := time.Unix(100, 0)
	m := guestfs.NewMemory(guestfs.Limits{Now: func() time.Time { return now }})
	f := mustOpen(t, m, "f", guestfs.Create|readWrite)
	mtime := func() int64 { st, _ := f.Stat(); return st.Mtime.Unix() }
	if mtime() != 100 {
		t.Errorf("created at %d", mtime())
	}
	now = time.Unix(200, 0)
	f.WriteAt([]byte("x"), 0)
	if mtime() != 200 {
		t.Errorf("written at %d", mtime())
	}
	then := time.Unix(50, 0)
	if errno := m.SetTimes("f", true, nil, &then); errno != 0 || mtime() != 50 {
		t.Errorf("%v, set to %d", errno, mtime())
	}
	if errno := m.SetTimes("f", true, &now, nil); errno != 0 || mtime() != 50 {
		t.Errorf("%v, left at %d", errno, mtime())
	}
	if st, _ := f.Stat(); !st.Atime.Equal(now) {
		t.Errorf("time of access %v", st.Atime)
	}
	if errno := m.SetTimes("none", true, nil, nil); errno != guestfs.ENOENT {
		t.Errorf("of nothing: %v", errno)
	}
}

// After a Reset nothing of before can be read, listed, or written to.
func TestMemoryReset(t *testing.T) {
	m := guestfs.NewMemory(guestfs.Limits{Bytes: 8192})
	root := mustOpen(t, m, ".", 0)
	m.Mkdir("d")
	m.WriteFile("d/secret", []byte("secret"))
	f, dir := mustOpen(t, m, "d/secret", readWrite), mustOpen(t, m, "d", 0)
	list(t, root, 10)
	m.Reset()
	if n, errno := f.ReadAt(make([]byte, 10), 0); n != 0 || errno != guestfs.EIO {
		t.Errorf("read: %d, %v", n, errno)
	}
	if _, errno := f.WriteAt(make([]byte, 8000), 0); errno != guestfs.EIO {
		t.Errorf("write: %v", errno)
	}
	if errno := f.Truncate(8000); errno != guestfs.EIO {
		t.Errorf("truncate: %v", errno)
	}
	if _, errno := f.Stat(); errno != guestfs.EIO {
		t.Errorf("stat: %v", errno)
	}
	if _, errno := dir.ReadDir(10); errno != guestfs.EIO {
		t.Errorf("list: %v", errno)
	}
	root.Rewind()
	if got := list(t, root, 10); len(got) != 0 {
		t.Errorf("the root has %q", got)
	}
	f.Close()
	dir.Close()
	if !m.Empty() || m.Used() != 0 {
		t.Errorf("%d bytes used", m.Used())
	}
	// Inode numbers start again, as for a new one.
	m.WriteFile("x", nil)
	if st, _ := m.Stat("x", true); st.Inode != 2 {
		t.Errorf("inode %d", st.Inode)
	}
}

// Random operations give what a plain byte slice gives.
func TestMemoryAgainstSlice(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const limit = 100_000
	m := guestfs.NewMemory(guestfs.Limits{Bytes: limit * 2})
	f := mustOpen(t, m, "f", guestfs.Create|readWrite)
	var model []byte
	grow := func(size int) {
		if size > len(model) {
			model = append(model, make([]byte, size-len(model))...)
		}
	}
	for range 3000 {
		off, n := random.IntN(limit/2), random.IntN(10_000)
		switch random.IntN(4) {
		case 0:
			p := make([]byte, n)
			for i := range p {
				p[i] = byte(random.Uint32())
			}
			if got, errno := f.WriteAt(p, int64(off)); got != n || errno != 0 {
				t.Fatal(got, errno)
			}
			if n > 0 {
				grow(off + n)
				copy(model[off:], p)
			}
		case 1:
			if errno := f.Truncate(int64(off)); errno != 0 {
				t.Fatal(errno)
			}
			grow(off)
			model = append([]byte(nil), model[:off]...)
		default:
			p := bytes.Repeat([]byte{0xee}, n)
			got, errno := f.ReadAt(p, int64(off))
			if errno != 0 {
				t.Fatal(errno)
			}
			want := model[min(off, len(model)):min(off+n, len(model))]
			if !bytes.Equal(p[:got], want) {
				t.Fatalf("read %d at %d: %d bytes differ from %d", n, off, got, len(want))
			}
		}
	}
	if data, err := m.ReadFile("f"); err != nil || !bytes.Equal(data, model) {
		t.Errorf("the file differs at the end, %v", err)
	}
}

// TestMemoryWasLarge holds that files which were large once take no memory for it.
func TestMemoryWasLarge(t *testing.T) {
	const most = 256 << 20
	m := guestfs.NewMemory(guestfs.Limits{Bytes: most + 1<<20})
	before := heap()
	for i := range 60 {
		f := mustOpen(t, m, fmt.Sprint(i), guestfs.Write|guestfs.Create)
		for _, size := range []int64{most, 4096, most / 2, int64(i%2) * 100} {
			if errno := f.Truncate(size); errno != 0 {
				t.Fatal(errno)
			}
		}
	}
	if took := heap() - before; took > 8<<20 {
		t.Errorf("%d MiB for files of no size", took>>20)
	}
	if m.Used() > 60*(512+4096) {
		t.Errorf("%d bytes are used", m.Used())
	}
}

func heap() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// TestMemoryHold: whoever keeps the memory of a run is asked before files grow.
func TestMemoryHold(t *testing.T) {
	m := guestfs.NewMemory(guestfs.Limits{})
	var told, most int64 = 0, 16 << 10
	m.SetHold(func(used int64) bool {
		if used > most && used > told {
			return false
		}
		told = used
		return true
	})
	musttest.Do(t, m.WriteFile("a", make([]byte, 8<<10)))
	if told != m.Used() {
		t.Errorf("told of %d bytes, %d are used", told, m.Used())
	}
	f := mustOpen(t, m, "a", readWrite)
	defer f.Close()
	before := m.Used()
	if errno := f.Truncate(1 << 20); errno != guestfs.ENOSPC {
		t.Errorf("a hole beyond the limit: %v", errno)
	}
	if err := m.WriteFile("b", make([]byte, 8<<10)); !errors.Is(err, guestfs.ENOSPC) {
		t.Errorf("a file beyond the limit: %v", err)
	}
	if errno := m.Unlink("b"); errno != 0 && errno != guestfs.ENOENT {
		t.Fatal(errno)
	}
	if m.Used() != before || told != before {
		t.Errorf("what was refused counts: %d bytes, told of %d, before %d", m.Used(), told, before)
	}
	most = 0 // what is there stays, and may shrink
	if errno := f.Truncate(1); errno != 0 {
		t.Error(errno)
	}
	if told != m.Used() || told >= before {
		t.Errorf("told of %d bytes, %d are used, before %d", told, m.Used(), before)
	}
	m.SetHold(nil)
	if errno := f.Truncate(1 << 20); errno != 0 {
		t.Errorf("nobody is asked: %v", errno)
	}
}
