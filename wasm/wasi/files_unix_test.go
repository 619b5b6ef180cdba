//go:build unix

package wasi_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
	"openskill/wasm/wasi"
)

// F02: links that somebody planted in the folder.
func TestF02Symlinks(t *testing.T) {
	outside := t.TempDir()
	musttest.Do(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	data := dataFolder(t)
	link := func(target, name string) {
		t.Helper()
		musttest.Do(t, os.Symlink(target, filepath.Join(data, name)))
	}
	link(filepath.Join(outside, "secret"), "absolute")
	link("../"+filepath.Base(outside)+"/secret", "relative")
	link(outside, "folder")
	link("..", "up")
	link("sub/../../"+filepath.Base(outside)+"/secret", "detour")
	link(filepath.Join(data, "a.txt"), "absolute-inside")
	link("missing", "dangling")
	link("loop", "loop")
	link("ping", "pong")
	link("pong", "ping")
	link("a.txt", "inside")
	link("sub", "inside-folder")
	link("/proc/self/environ", "environ")
	link("/dev/zero", "zero")
	link("a.txt", "chain0")
	for i := range 41 {
		link("chain"+strconv.Itoa(i), "chain"+strconv.Itoa(i+1))
	}
	root, _ := worldRoot(t, data)
	g := newGuest(t, wasi.Config{Root: root})
	for path, want := range map[string]guestfs.Errno{
		"absolute": guestfs.EPERM, "relative": guestfs.EPERM, "folder/secret": guestfs.EPERM, "folder": guestfs.EPERM,
		"up": guestfs.EPERM, "up/x": guestfs.EPERM, "detour": guestfs.EPERM, "absolute-inside": guestfs.EPERM,
		"environ": guestfs.EPERM, "zero": guestfs.EPERM,
		"dangling": guestfs.ENOENT, "loop": guestfs.ELOOP, "ping": guestfs.ELOOP, "chain41": guestfs.ELOOP,
		"inside": 0, "inside-folder/b.txt": 0, "chain3": 0,
	} {
		fd, errno := g.open("data/"+path, 0, rightRead, 0)
		if errno != want {
			t.Errorf("open %s: %v, want %v", path, errno, want)
		}
		if errno == 0 {
			if got := g.read(fd, 10); got != "alpha" && got != "beta" {
				t.Errorf("%s reads %q", path, got)
			}
		}
		ptr, n := g.put(atPath, "data/"+path)
		if got := g.call("path_filestat_get", 3, 1, ptr, n, atResult); got != want {
			t.Errorf("stat %s: %v, want %v", path, got, want)
		}
		// What is refused must not be readable as a link either, if it is one.
		got := g.call("path_readlink", 3, ptr, n, atData, 4096, atResult)
		if got == 0 && strings.HasPrefix(g.text(atData, g.u32(atResult)), "/") {
			t.Errorf("readlink %s tells %q", path, g.text(atData, g.u32(atResult)))
		}
	}
	// Without following, a link is a link.
	ptr, n := g.put(atPath, "data/absolute")
	g.want(0, "path_filestat_get", 3, 0, ptr, n, atResult)
	if kind := g.text(atResult+16, 1); kind != "\x07" {
		t.Errorf("kind %q", kind)
	}
	g.want(guestfs.ELOOP, "path_open", 3, 0, ptr, n, 0, rightRead, 0, 0, atResult)
	g.want(guestfs.EPERM, "path_readlink", 3, ptr, n, atData, 4096, atResult)
	ptr, n = g.put(atPath, "data/inside")
	g.want(guestfs.ELOOP, "path_open", 3, 0, ptr, n, 0, rightRead, 0, 0, atResult)
	g.want(0, "path_readlink", 3, ptr, n, atData, 4096, atResult)
	if got := g.text(atData, g.u32(atResult)); got != "a.txt" {
		t.Errorf("readlink tells %q", got)
	}
	g.want(0, "path_readlink", 3, ptr, n, atData, 2, atResult)
	if got := g.text(atData, g.u32(atResult)); got != "a." {
		t.Errorf("readlink with little room tells %q", got)
	}
}

// F04: what is neither a folder nor a plain file is refused, at once, and stat tells its
// kind only.
func TestF04SpecialFiles(t *testing.T) {
	data := dataFolder(t)
	musttest.Do(t, syscall.Mkfifo(filepath.Join(data, "fifo"), 0o600))
	socket, err := net.Listen("unix", filepath.Join(data, "s"))
	if err != nil {
		t.Skipf("no unix sockets here: %v", err)
	}
	defer socket.Close()
	musttest.Do(t, os.Link(filepath.Join(data, "sub/b.txt"), filepath.Join(data, "hard")))
	names := []string{"fifo", "s", "hard", "sub/b.txt"}
	kinds := map[string]guestfs.Kind{"fifo": guestfs.KindSocket, "s": guestfs.KindSocket, "null": guestfs.KindCharDevice}
	if err := syscall.Mknod(filepath.Join(data, "null"), syscall.S_IFCHR|0o600, 1<<8|3); err == nil {
		names = append(names, "null") // only root can make one
	}
	root, _ := worldRoot(t, data)
	g := newGuest(t, wasi.Config{Root: root})
	for _, name := range names {
		if _, errno := g.open("data/"+name, 0, rightRead, 0); errno != guestfs.EACCES {
			t.Errorf("open %s: %v, want EACCES", name, errno)
		}
		ptr, n := g.put(atPath, "data/"+name)
		got := g.call("path_filestat_get", 3, 1, ptr, n, atResult)
		if kind := kinds[name]; kind == 0 {
			if got != guestfs.EACCES {
				t.Errorf("stat %s: %v, want EACCES", name, got)
			}
		} else if told, size, at := g.text(atResult+16, 1), g.u64(atResult+32), g.u64(atResult+48); got != 0 || told[0] != byte(kind) || size != 0 || at != 0 {
			t.Errorf("stat %s: %v, kind %d, size %d, time %d; want kind %d, and nothing else", name, got, told[0], size, at, kind)
		}
	}
	// They are listed, so that a guest can say what it skipped.
	if got := strings.Join(g.listDir(g.mustOpen("data", oDirectory, 0), 4096), " "); !strings.Contains(got, "fifo") || !strings.Contains(got, "hard") {
		t.Errorf("listed: %s", got)
	}
	// A trusted folder may have hard links, and still nothing else.
	trusted := musttest.Get(guestfs.OpenDirWith(data, guestfs.DirOptions{HardLinks: true}))(t)
	defer trusted.Close()
	g = newGuest(t, wasi.Config{Root: trusted})
	if got := g.read(g.mustOpen("hard", 0, rightRead), 10); got != "beta" {
		t.Errorf("read %q", got)
	}
	if _, errno := g.open("fifo", 0, rightRead, 0); errno != guestfs.EACCES {
		t.Errorf("FIFO in a trusted folder: %v", errno)
	}
}

// F07: a file that is swapped for a link, a FIFO or a hard link again and again is
// only ever read as itself.
func TestF07Swap(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	musttest.Do(t, os.WriteFile(outside, []byte("secret"), 0o600))
	data := dataFolder(t)
	target := filepath.Join(data, "swap")
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			tmp := filepath.Join(data, "tmp")
			os.Remove(tmp)
			switch i % 6 {
			case 0, 2, 4:
				os.WriteFile(tmp, []byte("alpha"), 0o600)
			case 1:
				os.Symlink(outside, tmp)
			case 3:
				syscall.Mkfifo(tmp, 0o600)
			case 5:
				os.Link(outside, tmp)
			}
			os.Rename(tmp, target)
			if i%120 == 0 { // without a pause of some ticks it would not be opened
				time.Sleep(30 * time.Millisecond)
			}
		}
	})
	root, _ := worldRoot(t, data)
	g := newGuest(t, wasi.Config{Root: root})
	opened := 0
	for i := 0; i < 3000 || opened == 0 && i < 1_000_000; i++ {
		fd, errno := g.open("data/swap", 0, rightRead, 0)
		switch errno {
		case 0:
			opened++
			if got := g.read(fd, 10); got != "alpha" && got != "" {
				t.Fatalf("read %q", got)
			}
			g.want(0, "fd_close", fd)
		case guestfs.EPERM, guestfs.EACCES, guestfs.ENOENT, guestfs.ELOOP, guestfs.EBUSY:
		default:
			t.Fatalf("open: %v", errno)
		}
	}
	close(stop)
	done.Wait()
	if opened == 0 {
		t.Error("the file was never seen as itself")
	}
}
