package wasm_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/wasmtest"
)

const secret = "the secret outside of the folder"

// hostileFolder is a data folder beside a secret, with all that people plant in
// such folders (F02, F04). It gives the folder and the names in it that must not
// be readable.
func hostileFolder(t *testing.T) (dir string, closed []string) {
	t.Helper()
	top := t.TempDir()
	dir = filepath.Join(top, "data")
	must := func(err error) {
		t.Helper()
		musttest.Do(t, err)
	}
	must(os.MkdirAll(filepath.Join(dir, "sub"), 0o755))
	must(os.MkdirAll(filepath.Join(top, "other"), 0o755))
	must(os.WriteFile(filepath.Join(top, "secret"), []byte(secret), 0o666))
	must(os.WriteFile(filepath.Join(top, "other", "secret"), []byte(secret), 0o666))
	must(os.WriteFile(filepath.Join(dir, "a.txt"), []byte("alpha"), 0o666))
	must(os.WriteFile(filepath.Join(dir, "sub", "b.txt"), []byte("beta"), 0o666))
	for name, target := range map[string]string{
		"absolute": filepath.Join(top, "secret"), "relative": "../secret", "sub/deep": "../../secret", "folder": "../other",
		"root": "/", "proc": "/proc/self/environ", "dangling": "nothing", "loop": "loop", "loop1": "loop2", "loop2": "loop1",
		"zigzag": "sub/../../secret",
	} {
		must(os.Symlink(target, filepath.Join(dir, name)))
		closed = append(closed, name)
	}
	closed = append(closed, "folder/secret", "root/etc/passwd", "root/"+strings.TrimPrefix(top, "/")+"/secret")
	must(os.Symlink("../secret", filepath.Join(dir, "chain0")))
	for i := range 41 {
		must(os.Symlink(fmt.Sprint("chain", i), filepath.Join(dir, fmt.Sprint("chain", i+1))))
	}
	closed = append(closed, "chain0", "chain41")
	must(os.Link(filepath.Join(top, "secret"), filepath.Join(dir, "hard")))
	must(syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o666))
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	must(err)
	t.Cleanup(func() { l.Close() })
	return dir, append(closed, "hard", "fifo", "socket")
}

// fingerprint is a hash of all that a folder is: names, modes, times, targets and
// contents, of what lies in it and of what lies beside it.
func fingerprint(t testing.TB, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(filepath.Dir(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(h, path, info.Mode(), info.ModTime().UnixNano(), info.Size())
		switch {
		case info.Mode().IsRegular():
			b, err := os.ReadFile(path)
			fmt.Fprintf(h, "%q\n", b)
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			fmt.Fprintln(h, target)
			return err
		}
		return nil
	})
	musttest.Do(t, err)
	return hex.EncodeToString(h.Sum(nil))
}

// TestHostileFiles has a Go guest try what a program can with files (F01 to F04,
// F06), and holds that it learns nothing and changes nothing.
func TestHostileFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a guest")
	}
	oneGoroutine(t)
	e := open(t, nil)
	m := compile(t, e, goGuest(t, "testdata/files"))
	dir, closed := hostileFolder(t)
	before := fingerprint(t, dir)
	root := dataRoot(t, dir)
	guest := func(args ...string) *wasm.Outcome {
		t.Helper()
		out := musttest.Get(m.Run(context.Background(), &wasm.Run{Args: append([]string{"files"}, args...), Files: root, Limits: long}))(t)
		text := string(out.Stdout) + string(out.Stderr)
		text = strings.ReplaceAll(text, args[1], "") // what it was told, it may repeat
		if strings.Contains(text, secret) || strings.Contains(text, "root:x:") || strings.Contains(text, filepath.Dir(dir)) {
			t.Errorf("%q learned %q", args, text)
		}
		return out
	}
	for _, good := range []string{"/data/a.txt", "data/a.txt", "./data/./a.txt", "/data/sub/../a.txt", "/data//a.txt"} {
		if out := guest("read", good); string(out.Stdout) != "alpha" {
			t.Errorf("read %s: %q %q", good, out.Stdout, out.Stderr)
		}
	}
	bad := []string{
		"/data/../secret", "/data/../../secret", "../secret", "/etc/passwd", "/proc/self/environ", "/data/a.txt/", "/data/a.txt/..",
		"/data/sub/../../secret", "/data/..", "/data/..\\secret", "/data/%2e%2e/secret",
		"/data/" + strings.Repeat("../", 100) + "etc/passwd", "/data/" + strings.Repeat("a/", 3000), "/data/" + strings.Repeat("n", 300),
		"/data/\xff\xfe", "", ".", "/", "//etc/passwd", "/dev/null", "/data/sub", "/data/․․/secret", filepath.Join(dir, "a.txt"),
	}
	for _, name := range closed {
		bad = append(bad, "/data/"+name)
	}
	for _, path := range bad {
		if out := guest("read", path); out.ExitCode == 0 || len(out.Stdout) > 0 {
			t.Errorf("read %q: %v %q", path, out.Ended, out.Stdout)
		}
	}
	for _, path := range append(bad, "/data/a.txt", "/data/sub/b.txt", "/data/new", "/data/sub/new", "/data/fifo", "/data") {
		if strings.HasPrefix(path, "/data") {
			if out := guest("change", path); len(out.Stdout) > 0 {
				t.Errorf("change %q: %s", path, out.Stdout)
			}
		}
	}
	want := strings.Repeat("0 EOF\n0 <nil>\n", 5) + "<nil> true\ntrue\n"
	if out := guest("offsets", "/data/a.txt"); string(out.Stdout) != want {
		t.Errorf("offsets: %q %q", out.Stdout, out.Stderr)
	}
	if now := fingerprint(t, dir); now != before {
		t.Error("the folder is not what it was")
	}
	canary(t, e)
}

// TestListsFoldersWithSpecialFiles: a pipe, a socket or a device hides nothing of what is
// beside it from programs that ask of each entry what it is.
func TestListsFoldersWithSpecialFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a guest")
	}
	oneGoroutine(t)
	dir := t.TempDir()
	for _, name := range []string{"a.txt", "z.txt"} {
		musttest.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("four"), 0o600))
	}
	musttest.Do(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	l := musttest.Get(net.Listen("unix", filepath.Join(dir, "socket")))(t)
	defer l.Close()
	want := "a.txt -rw------- 4\nfifo Srw------- 0\nsocket Srw------- 0\nz.txt -rw------- 4\n"
	if err := syscall.Mknod(filepath.Join(dir, "null"), syscall.S_IFCHR|0o600, 1<<8|3); err == nil { // only root can make one
		want = strings.Replace(want, "socket", "null Dcrw------- 0\nsocket", 1)
	}
	e := open(t, nil)
	out := run(t, e, goGuest(t, "testdata/files"), &wasm.Run{Args: []string{"files", "list", "/data"}, Files: dataRoot(t, dir), Limits: long})
	if string(out.Stdout) != want || out.ExitCode != 0 {
		t.Errorf("%s%s; want\n%s", out.Stdout, out.Stderr, want)
	}
}

// TestHugeFolder walks a folder of ten thousand files (F06).
func TestHugeFolder(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a guest")
	}
	oneGoroutine(t)
	dir := t.TempDir()
	for i := range 10_000 {
		f := musttest.Get(os.Create(filepath.Join(dir, fmt.Sprintf("file-%05d", i))))(t)
		musttest.Do(t, f.Close())
	}
	e := open(t, nil)
	out := run(t, e, goGuest(t, "testdata/files"), &wasm.Run{Args: []string{"files", "walk", "/data"}, Files: dataRoot(t, dir), Limits: long})
	if string(out.Stdout) != "10001" || out.ExitCode != 0 {
		t.Errorf("%+v", out)
	}
}

// TestSwappedFile swaps a file for symbolic and hard links to the secret and back, as
// fast as it can, while a guest reads it (F07). Every now and then the file stays for
// some ticks of the kernel's clock, without which it is not opened. Package guestfs
// has the same without a guest, a million times.
func TestSwappedFile(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a guest")
	}
	top := t.TempDir()
	dir := filepath.Join(top, "data")
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(top, "secret"), []byte(secret), 0o600),
	} {
		musttest.Do(t, err)
	}
	e := open(t, nil)
	m := compile(t, e, goGuest(t, "testdata/files"))
	root := dataRoot(t, dir)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 1; ; i++ {
			var err error
			switch i % 4 {
			case 0, 2:
				err = os.WriteFile(path("next"), []byte("alpha"), 0o600)
			case 1:
				err = os.Symlink("../secret", path("next"))
			case 3:
				err = os.Link(filepath.Join(top, "secret"), path("next"))
			}
			if err == nil {
				err = os.Rename(path("next"), path("a.txt"))
			}
			if err != nil {
				t.Error(err)
				return
			}
			pause := time.Duration(0)
			if i%100 == 0 {
				pause = 30 * time.Millisecond
			}
			select {
			case <-stop:
				return
			case <-time.After(pause):
			}
		}
	})
	read := false
	for i := 0; i < 5 || !read && i < 100; i++ {
		out := musttest.Get(m.Run(context.Background(), &wasm.Run{Args: []string{"files", "spin", "/data/a.txt", "300"}, Files: root, Limits: long}))(t)
		text := string(out.Stdout) + string(out.Stderr)
		if strings.Contains(text, secret) {
			t.Error("read the secret")
			break
		}
		read = read || strings.Contains(text, "alpha")
	}
	close(stop)
	wg.Wait()
	if !read {
		t.Error("never read what may be read, so nothing was tested")
	}
}

// opener opens a path for reading as often as times says, or, if that is 0, with
// every set of flags and with all rights and few, and then writes to what it got, and changes it in every way by name. It
// exits with how often that seemed to work.
func opener(path string, times int64) []byte {
	type c = wasmtest.Code
	b := wasmtest.New()
	open, write, size := b.Import("path_open"), b.Import("fd_write"), b.Import("fd_filestat_set_size")
	allocate, setTimes := b.Import("fd_allocate"), b.Import("fd_filestat_set_times")
	unlink, rmdir, mkdir := b.Import("path_unlink_file"), b.Import("path_remove_directory"), b.Import("path_create_directory")
	pathTimes, rename, exit := b.Import("path_filestat_set_times"), b.Import("path_rename"), b.Import("proc_exit")
	b.Memory(1)
	b.Data(0, path)
	b.Data(4096, "\x00\x20\x00\x00\x01\x00\x00\x00x")
	n := int64(len(path))
	name := wasmtest.I32(3) + wasmtest.I32(0) + wasmtest.I32(n)
	i32, get := wasmtest.I32, wasmtest.Get
	count := wasmtest.Eqz + get(2) + wasmtest.Add + wasmtest.Set(2) // of calls that answered 0
	fd := i32(4200) + wasmtest.Load
	tryOpen := func(lookup, rights int64, oflags, fdflags c) c {
		return i32(3) + i32(lookup) + i32(0) + i32(n) + oflags + wasmtest.I64(rights) + wasmtest.I64(rights) + fdflags + i32(4200) + wasmtest.Call(open)
	}
	const read, all = 1 << 1, 1<<29 - 1
	if times > 0 {
		b.Command(wasmtest.Times(times, 0, tryOpen(1, read, i32(0), i32(0))+count) + get(2) + wasmtest.Call(exit))
		return b.Bytes()
	}
	use := fd + i32(4096) + i32(1) + i32(4300) + wasmtest.Call(write) + count +
		fd + wasmtest.I64(0) + wasmtest.Call(size) + count +
		fd + wasmtest.I64(0) + wasmtest.I64(4096) + wasmtest.Call(allocate) + count +
		fd + wasmtest.I64(0) + wasmtest.I64(0) + i32(10) + wasmtest.Call(setTimes) + count
	var body c
	for lookup := range int64(2) {
		for _, rights := range []int64{0, read, all} {
			body += wasmtest.Times(16, 0, wasmtest.Times(32, 1,
				tryOpen(lookup, rights, get(0)+i32(1)+wasmtest.Sub, get(1)+i32(1)+wasmtest.Sub)+wasmtest.Eqz+wasmtest.If(use)))
		}
	}
	b.Command(body + name + wasmtest.Call(unlink) + count + name + wasmtest.Call(rmdir) + count + name + wasmtest.Call(mkdir) + count +
		i32(3) + i32(1) + i32(0) + i32(n) + wasmtest.I64(0) + wasmtest.I64(0) + i32(10) + wasmtest.Call(pathTimes) + count +
		name + name + wasmtest.Call(rename) + count + get(2) + wasmtest.Call(exit))
	return b.Bytes()
}

// TestAllFlags opens with every set of flags and all rights (F03).
func TestAllFlags(t *testing.T) {
	e := open(t, nil)
	dir, closed := hostileFolder(t)
	before := fingerprint(t, dir)
	root := dataRoot(t, dir)
	for _, path := range append(closed, "a.txt", "sub", "sub/b.txt", "new", "sub/new", ".", "..", "../secret") {
		out := run(t, e, opener("data/"+path, 0), &wasm.Run{Files: root, Limits: wasm.Limits{Files: 2000}})
		if out.Ended != wasm.Exited || out.ExitCode != 0 {
			t.Errorf("%s: %v, %d changes seemed to work", path, out.Ended, out.ExitCode)
		}
	}
	if now := fingerprint(t, dir); now != before {
		t.Error("the folder is not what it was")
	}
	// The same program does change what it may: otherwise it would prove nothing.
	for _, path := range []string{"work/new", "work/other"} {
		if out := run(t, e, opener(path, 0), &wasm.Run{Files: root, Limits: wasm.Limits{Files: 2000}}); out.ExitCode == 0 {
			t.Errorf("%s: %+v", path, out)
		}
	}
}

// TestMillionOpens opens a file a million times and closes it never (F05).
func TestMillionOpens(t *testing.T) {
	e := open(t, nil)
	dir := t.TempDir()
	musttest.Do(t, os.WriteFile(filepath.Join(dir, "a.txt"), nil, 0o600))
	root := dataRoot(t, dir)
	m := compile(t, e, opener("data/a.txt", 1_000_000))
	before := measure()
	out, err := m.Run(context.Background(), &wasm.Run{Files: root, Limits: long})
	if err != nil || out.Ended != wasm.Exited || out.ExitCode != 128-4 {
		t.Errorf("%+v, %v", out, err)
	}
	before.back(t)
	if out, err = m.Run(context.Background(), &wasm.Run{Files: root, Limits: wasm.Limits{Fuel: 1_000_000, Files: 1 << 20}}); err != nil || out.Ended != wasm.OutOfFuel {
		t.Errorf("%+v, %v", out, err)
	}
	before.back(t)
	if out, err = m.Run(context.Background(), &wasm.Run{Limits: long}); err != nil || out.ExitCode != 0 { // no files at all
		t.Errorf("%+v, %v", out, err)
	}
}
