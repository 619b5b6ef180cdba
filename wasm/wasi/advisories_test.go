package wasi_test

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
	"openskill/wasm/wasi"
)

// allocated returns how many bytes the host allocates while do runs.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Eryx GHSA-8h84-8vq7-j6cv: a small write at a far offset allocated the gap.
func TestEryxGHSA8h84RefusesSparseWrites(t *testing.T) {
	root, work := worldRoot(t, dataFolder(t))
	g := newGuest(t, wasi.Config{Root: root})
	fd := g.mustOpen("work/f", oCreate, rightRead|rightWrite)
	ptr, n := g.iovs(atData, 1)
	got := allocated(func() {
		for _, far := range []uint64{1 << 32, 1 << 40} {
			g.want(guestfs.ENOSPC, "fd_pwrite", fd, ptr, n, far, atResult)
			g.want(0, "fd_seek", fd, far, 0, atResult)
			g.want(guestfs.ENOSPC, "fd_write", fd, ptr, n, atResult)
			g.want(guestfs.ENOSPC, "fd_filestat_set_size", fd, far)
			if errno := g.call("fd_allocate", fd, 0, far); errno == 0 {
				t.Errorf("fd_allocate of %d bytes succeeds", far)
			}
		}
	})
	if got > 1<<20 {
		t.Errorf("the host allocates %d bytes", got)
	}
	if data, err := work.ReadFile("f"); err != nil || len(data) != 0 {
		t.Errorf("the file has %d bytes, %v", len(data), err)
	}
}

// Eryx GHSA-8h84-8vq7-j6cv: the host allocated as many bytes as a read asked for.
func TestEryxGHSA8h84RefusesReadsOfAnySize(t *testing.T) {
	root, _ := worldRoot(t, dataFolder(t))
	g := newGuest(t, wasi.Config{Root: root})
	fd := g.mustOpen("data/a.txt", 0, rightRead)
	dir := g.mustOpen("data", oDirectory, 0)
	ptr, n := g.iovs(atData, math.MaxUint32, atData, math.MaxUint32)
	got := allocated(func() {
		g.want(guestfs.EFAULT, "fd_read", fd, ptr, n, atResult)
		g.want(guestfs.EFAULT, "fd_pread", fd, ptr, n, 0, atResult)
		g.want(guestfs.EFAULT, "random_get", atData, math.MaxUint32)
		g.want(guestfs.EFAULT, "fd_readdir", dir, atData, 1<<31, 0, atResult)
	})
	if got > 1<<20 {
		t.Errorf("the host allocates %d bytes", got)
	}
}

// Wasmtime GHSA-vqjp-4c8c-hfgg and GHSA-f2pq-268w-886c: paths with slashes at the end
// or drive prefixes named files outside the folder.
func TestWasmtimeGHSAvqjpAndGHSAf2pqRefusePaths(t *testing.T) {
	root, work := worldRoot(t, dataFolder(t))
	musttest.Do(t, work.WriteFile("f", []byte("kept")))
	g := newGuest(t, wasi.Config{Root: root})
	for _, path := range []string{
		"work/f/", "work/f//", "work/f/.", "work/f//.", "work/f/..//../../f", "../", "..//", "/", "//",
		"C:/", "C:/f", "C:\\f", "//?/C:/f", "\\\\?\\C:\\f", "work/C:/f", "work/C:\\..\\f",
	} {
		if _, errno := g.open(path, 0, rightRead, 0); errno == 0 {
			t.Errorf("path_open %q succeeds", path)
		}
		p, n := g.put(atPath, path)
		q, m := g.put(atPath2, "work/g")
		for call, args := range map[string][]uint64{
			"path_filestat_get": {3, 1, p, n, atResult},
			"path_unlink_file":  {3, p, n},
			"path_rename":       {3, p, n, 3, q, m},
			"path_link":         {3, 0, p, n, 3, q, m},
		} {
			if errno := g.call(call, args...); errno == 0 {
				t.Errorf("%s %q succeeds", call, path)
			}
		}
	}
	// The same through links that the guest makes.
	for link, target := range map[string]string{"work/file": "f", "work/out": "../..", "work/drive": "C:/"} {
		if errno := g.symlink(target, link); errno != 0 {
			t.Errorf("path_symlink %q to %q: %v", link, target, errno)
		}
	}
	if errno := g.symlink("/etc", "work/abs"); errno != guestfs.EPERM {
		t.Errorf("path_symlink to an absolute path: %v", errno)
	}
	for _, path := range []string{"work/file/", "work/file//", "work/file/.", "work/out//etc/passwd", "work/out/", "work/drive//f", "work/drive/"} {
		if _, errno := g.open(path, 0, rightRead, 0); errno == 0 {
			t.Errorf("path_open %q succeeds", path)
		}
	}
	if data, err := work.ReadFile("f"); err != nil || string(data) != "kept" {
		t.Errorf("%q, %v", data, err)
	}
}

// Wasmtime GHSA-4ch3-9j33-3pmj: a file of a read-only folder that had a second name in
// a writable folder could be written to.
func TestWasmtimeGHSA4ch3RefusesSecondNames(t *testing.T) {
	data := dataFolder(t)
	before := fingerprint(t, data)
	root, _ := worldRoot(t, data)
	g := newGuest(t, wasi.Config{Root: root})
	p, n := g.put(atPath, "data/a.txt")
	q, m := g.put(atPath2, "work/a.txt")
	for call, args := range map[string][]uint64{
		"path_rename": {3, p, n, 3, q, m},
		"path_link":   {3, 0, p, n, 3, q, m},
	} {
		if errno := g.call(call, args...); errno == 0 {
			t.Errorf("%s into the writable folder succeeds", call)
		}
	}
	if _, errno := g.open("work/a.txt", 0, rightWrite, 0); errno != guestfs.ENOENT {
		t.Errorf("the second name: %v", errno)
	}
	if fingerprint(t, data) != before {
		t.Error("the read-only folder changed")
	}
}

// Bashkit #2281: ".." that was left in a path chose a folder by its spelling, and was
// joined to that folder's path on the host.
func TestBashkit2281ChoosesMountsByMeaning(t *testing.T) {
	data := dataFolder(t)
	musttest.Do(t, os.WriteFile(filepath.Join(filepath.Dir(data), "f"), []byte("outside"), 0o600))
	before := fingerprint(t, data)
	root, err := guestfs.NewTree(
		guestfs.Mount{Path: "/data", FS: openDir(t, data)},
		guestfs.Mount{Path: "/data/own", FS: guestfs.NewMemory(guestfs.Limits{})},
		guestfs.Mount{Path: "/work", FS: guestfs.NewMemory(guestfs.Limits{})})
	musttest.Do(t, err)
	g := newGuest(t, wasi.Config{Root: root})
	g.file("work/f", "of work")
	g.file("data/own/f", "of own")
	for path, want := range map[string]string{
		"data/../work/f":           "of work",
		"data/own/../../work/f":    "of work",
		"work/../data/own/f":       "of own",
		"work/.././data//own/./f":  "of own",
		"data/own/../a.txt":        "alpha",
		"data/sub/../own/../a.txt": "alpha",
		"data/../f":                "ENOENT",
		"data/own/../f":            "ENOENT",
		"data/../../f":             "EPERM",
		"work/../../f":             "EPERM",
		"data/own/../../../f":      "EPERM",
	} {
		if got := g.content(path); got != want {
			t.Errorf("%s reads %q, want %q", path, got, want)
		}
	}
	// What may not be written may not be written by another spelling.
	for _, path := range []string{"data/a.txt", "data/own/../a.txt", "work/../data/a.txt", "work/../data/own/../sub/new"} {
		if _, errno := g.open(path, oCreate, rightWrite, 0); errno == 0 {
			t.Errorf("%s can be written", path)
		}
		if errno := g.two("path_rename", "work/f", path); errno == 0 {
			t.Errorf("a file moves to %s", path)
		}
	}
	if fingerprint(t, data) != before {
		t.Error("the read-only folder changed")
	}
}
