package guestfs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
)

// conform is what every read-only file system with a.txt ("alpha") and sub/b.txt
// ("beta") does.
func conform(t *testing.T, fsys guestfs.FS) {
	t.Helper()
	if got := read(t, fsys, "a.txt"); got != "alpha" {
		t.Errorf("a.txt is %q", got)
	}
	if got := read(t, fsys, "sub/b.txt"); got != "beta" {
		t.Errorf("sub/b.txt is %q", got)
	}
	for name, want := range map[string]guestfs.Errno{
		"none": guestfs.ENOENT, "sub/none": guestfs.ENOENT, "../a.txt": guestfs.EINVAL, "/a.txt": guestfs.EINVAL, "": guestfs.EINVAL, "sub/": guestfs.EINVAL, "./a.txt": guestfs.EINVAL,
	} {
		if _, errno := fsys.Open(name, 0); errno != want {
			t.Errorf("open %q: %v, want %v", name, errno, want)
		}
		if _, errno := fsys.Stat(name, true); errno != want {
			t.Errorf("stat %q: %v, want %v", name, errno, want)
		}
	}
	if st, errno := fsys.Stat("a.txt", true); errno != 0 || st.Kind != guestfs.KindRegular || st.Size != 5 || st.Links != 1 || st.Inode == 0 {
		t.Errorf("stat: %+v, %v", st, errno)
	}
	if st, errno := fsys.Stat(".", false); errno != 0 || st.Kind != guestfs.KindDirectory || st.Size != 0 {
		t.Errorf("stat of the root: %+v, %v", st, errno)
	}
	if _, errno := fsys.Open("a.txt", guestfs.Directory); errno != guestfs.ENOTDIR {
		t.Errorf("a file as a folder: %v", errno)
	}
	if _, errno := fsys.Readlink("a.txt"); errno != guestfs.EINVAL {
		t.Errorf("readlink: %v", errno)
	}
	// Changes, of what exists and what does not, and with names of no sense.
	for _, name := range []string{"a.txt", "sub", "none", ".", "../x"} {
		for flags := guestfs.OpenFlag(1); flags < 1<<6; flags++ {
			if flags&(guestfs.Write|guestfs.Create|guestfs.Excl|guestfs.Trunc) == 0 {
				continue
			}
			if _, errno := fsys.Open(name, flags); errno != guestfs.EROFS {
				t.Errorf("open %q with %b: %v, want EROFS", name, flags, errno)
			}
		}
		now := time.Now()
		for what, errno := range map[string]guestfs.Errno{
			"mkdir": fsys.Mkdir(name), "rmdir": fsys.Rmdir(name), "unlink": fsys.Unlink(name), "rename": fsys.Rename(name, "y"),
			"link": fsys.Link(name, "y"), "symlink": fsys.Symlink("y", name), "times": fsys.SetTimes(name, true, &now, nil),
		} {
			if errno != guestfs.EROFS {
				t.Errorf("%s %q: %v, want EROFS", what, name, errno)
			}
		}
	}
	f, errno := fsys.Open("a.txt", 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	if _, errno := f.WriteAt([]byte("x"), 0); errno != guestfs.EROFS {
		t.Errorf("write: %v", errno)
	}
	if errno := f.Truncate(0); errno != guestfs.EROFS {
		t.Errorf("truncate: %v", errno)
	}
	if errno := f.SetTimes(nil, nil); errno != guestfs.EROFS {
		t.Errorf("times: %v", errno)
	}
	if _, errno := f.ReadDir(10); errno != guestfs.ENOTDIR {
		t.Errorf("a file is listed: %v", errno)
	}
	if errno := f.Rewind(); errno != guestfs.ENOTDIR {
		t.Errorf("a file is rewound: %v", errno)
	}
	if _, errno := f.ReadAt(make([]byte, 1), -1); errno != guestfs.EINVAL {
		t.Errorf("read at -1: %v", errno)
	}
	if n, errno := f.ReadAt(make([]byte, 1), 1<<40); n != 0 || errno != 0 {
		t.Errorf("read past the end: %d, %v", n, errno)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	dir, errno := fsys.Open(".", guestfs.Directory)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer dir.Close()
	for _, n := range []int{1, 100} {
		got := list(t, dir, n)
		slices.Sort(got)
		if !slices.Equal(got, []string{"a.txt", "sub"}) {
			t.Errorf("listed %d at a time: %q", n, got)
		}
		if errno := dir.Rewind(); errno != 0 {
			t.Fatal(errno)
		}
	}
	if _, errno := dir.ReadAt(make([]byte, 1), 0); errno != guestfs.EISDIR {
		t.Errorf("read of a folder: %v", errno)
	}
}

var sample = map[string]string{"a.txt": "alpha", "sub/b.txt": "beta"}

func TestReadOnlyFileSystems(t *testing.T) {
	t.Run("folder", func(t *testing.T) { conform(t, openDir(t, folder(t, sample))) })
	t.Run("archive", func(t *testing.T) { conform(t, guestfs.FromFS(archive(t, sample))) })
	t.Run("memory of the host", func(t *testing.T) {
		conform(t, guestfs.FromFS(fstest.MapFS{"a.txt": {Data: []byte("alpha")}, "sub/b.txt": {Data: []byte("beta")}}))
	})
}

func TestOpenDirWhatIsNone(t *testing.T) {
	dir := folder(t, sample)
	for _, path := range []string{filepath.Join(dir, "none"), filepath.Join(dir, "a.txt")} {
		if d, err := guestfs.OpenDir(path); err == nil {
			d.Close()
			t.Errorf("%s was opened as a folder", filepath.Base(path))
		}
	}
}

func TestDirOutlivesRenameAndClose(t *testing.T) {
	parent := t.TempDir()
	old := filepath.Join(parent, "old")
	musttest.Do(t, os.CopyFS(old, os.DirFS(folder(t, sample))))
	d := openDir(t, old)
	musttest.Do(t, os.Rename(old, filepath.Join(parent, "new")))
	if got := read(t, d, "a.txt"); got != "alpha" {
		t.Errorf("%q after a rename of the folder", got)
	}
	f, errno := d.Open("a.txt", 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer f.Close()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, errno := d.Open("a.txt", 0); errno != guestfs.EBADF {
		t.Errorf("open after Close: %v", errno)
	}
	if n, errno := f.ReadAt(make([]byte, 9), 0); n != 5 || errno != 0 {
		t.Errorf("an open file after Close: %d, %v", n, errno)
	}
}

func TestSingle(t *testing.T) {
	fsys := guestfs.Bytes([]byte("alpha"))
	if got := read(t, fsys, "."); got != "alpha" {
		t.Errorf("%q", got)
	}
	if st, errno := fsys.Stat(".", true); errno != 0 || st.Size != 5 || st.Kind != guestfs.KindRegular {
		t.Errorf("%+v, %v", st, errno)
	}
	if _, errno := fsys.Open(".", guestfs.Directory); errno != guestfs.ENOTDIR {
		t.Errorf("as a folder: %v", errno)
	}
	if _, errno := fsys.Open("x", 0); errno != guestfs.ENOTDIR {
		t.Errorf("below it: %v", errno)
	}
	if _, errno := fsys.Open(".", guestfs.Write); errno != guestfs.EROFS {
		t.Errorf("for writing: %v", errno)
	}
}

// A file of an archive is unpacked once, up to the cap.
func TestUnpackedIsCapped(t *testing.T) {
	big := string(make([]byte, guestfs.MaxUnpacked/2+1))
	fsys := guestfs.FromFS(archive(t, map[string]string{"one": big, "two": big, "small": "x"}))
	size := func(name string) (int, guestfs.Errno) {
		f, errno := fsys.Open(name, 0)
		if errno != 0 {
			t.Fatal(errno)
		}
		defer f.Close()
		return f.ReadAt(make([]byte, 10), int64(len(big))-3)
	}
	for range 2 { // the second time it is there already
		if n, errno := size("one"); n != 3 || errno != 0 {
			t.Fatalf("%d, %v", n, errno)
		}
	}
	if _, errno := size("two"); errno != guestfs.ENOMEM {
		t.Errorf("beyond the cap: %v", errno)
	}
	if got := read(t, fsys, "small"); got != "x" {
		t.Errorf("a small one after it: %q", got)
	}
}

func TestFromFSRefusesOtherKinds(t *testing.T) {
	fsys := guestfs.FromFS(fstest.MapFS{"pipe": {Mode: fs.ModeNamedPipe}, "device": {Mode: fs.ModeDevice}})
	for _, name := range []string{"pipe", "device"} {
		if _, errno := fsys.Open(name, 0); errno != guestfs.EACCES {
			t.Errorf("open %s: %v", name, errno)
		}
		if _, errno := fsys.Stat(name, true); errno != guestfs.EACCES {
			t.Errorf("stat %s: %v", name, errno)
		}
	}
}

func TestErrnoNames(t *testing.T) {
	for errno, want := range map[guestfs.Errno]string{0: "ESUCCESS", 8: "EBADF", 28: "EINVAL", 44: "ENOENT", 58: "ENOTSUP", 63: "EPERM", 69: "EROFS", 76: "ENOTCAPABLE", 77: "EUNKNOWN"} {
		if got := errno.Error(); got != want {
			t.Errorf("%d is %s, want %s", uint16(errno), got, want)
		}
	}
}
