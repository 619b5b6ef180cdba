package guestfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"openskill/internal/musttest"
)

// swapTries is how often a swapped file is opened, by each attack: half a second's
// worth, or what OPENSKILL_SWAP_TRIES says. The race that there was let one in a few
// million through.
func swapTries(t *testing.T) int {
	t.Helper()
	if v := os.Getenv("OPENSKILL_SWAP_TRIES"); v != "" {
		return musttest.Get(strconv.Atoi(v))(t)
	}
	return 50_000
}

// swapWorld is a folder that a guest sees, and secrets outside of it.
type swapWorld struct {
	dir, out  string
	reads     atomic.Int64 // of what may be read
	current   atomic.Int64 // what the attacker is about
	done      atomic.Bool
	shown     sync.RWMutex // held while a file that may be read is at the name
	attackers sync.WaitGroup
}

func (w *swapWorld) in(name string) string { return filepath.Join(w.dir, name) }
func (w *swapWorld) secret(i int) string   { return filepath.Join(w.out, strconv.Itoa(i)) }

func (w *swapWorld) plain(t *testing.T, n int) {
	t.Helper()
	w.write(t, w.in(fmt.Sprintf("plain%d", n)), "alpha")
}

func (w *swapWorld) write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
}

// show leaves a file that may be read at the name, until it was read.
func (w *swapWorld) show(t *testing.T, name string) {
	t.Helper()
	w.shown.Lock()
	defer w.shown.Unlock()
	w.plain(t, 0)
	if err := os.Rename(w.in("plain0"), w.in(name)); err != nil {
		t.Error(err)
		w.done.Store(true)
	}
	for seen := w.reads.Load(); !w.done.Load() && w.reads.Load() == seen; {
		runtime.Gosched()
	}
}

// swapNames is how many names an attack uses at most; those it opens are "a0", "a1", and so on.
const swapNames = 64

// attacks put links to secrets into the folder. Each runs until w.done.
var attacks = []struct {
	name string
	run  []func(t *testing.T, w *swapWorld)
}{
	// The same link comes and goes without pause, and with a pause for a file that
	// may be read.
	{"link and unlink", []func(*testing.T, *swapWorld){
		func(t *testing.T, w *swapWorld) {
			for !w.done.Load() {
				_ = os.Remove(w.in("a0"))
				for range 2000 {
					_ = unix.Link(w.secret(0), w.in("a0"))
					_ = unix.Unlink(w.in("a0"))
				}
				w.show(t, "a0")
			}
		},
		func(_ *testing.T, w *swapWorld) { // the other name comes and goes as well
			for !w.done.Load() {
				_ = unix.Link(w.secret(0), filepath.Join(w.out, "other"))
				_ = unix.Unlink(filepath.Join(w.out, "other"))
			}
		},
	}},
	{"rename over", []func(*testing.T, *swapWorld){
		func(t *testing.T, w *swapWorld) {
			for !w.done.Load() {
				for range 50 {
					_ = unix.Link(w.secret(0), w.in("a0"))
					w.plain(t, 1)
					_ = unix.Rename(w.in("plain1"), w.in("a0"))
					_ = unix.Unlink(w.in("a0"))
				}
				w.show(t, "a0")
			}
		},
		func(_ *testing.T, w *swapWorld) {
			for !w.done.Load() {
				w.shown.RLock()
				_ = unix.Link(w.secret(0), w.in("next"))
				_ = unix.Rename(w.in("next"), w.in("a0"))
				w.shown.RUnlock()
			}
		},
	}},
	// Links that have been there for more than a tick go one after the other, each
	// while it is being opened: nothing else of the file changes then.
	{"old links", []func(*testing.T, *swapWorld){
		func(t *testing.T, w *swapWorld) {
			runtime.LockOSThread()
			for !w.done.Load() {
				for i := range swapNames {
					_ = unix.Link(w.secret(i), w.in("a"+strconv.Itoa(i)))
				}
				time.Sleep(15 * time.Millisecond) // the age of the links, not a wait
				for i := range swapNames {
					w.current.Store(int64(i))
					for n := range 400 + 37*i { // until the reader is about it
						_ = n
					}
					_ = unix.Unlink(w.in("a" + strconv.Itoa(i)))
				}
				w.current.Store(0)
				w.show(t, "a0")
				_ = os.Remove(w.in("a0"))
			}
		},
		func(t *testing.T, w *swapWorld) { // the folder is never quiet
			for !w.done.Load() {
				w.plain(t, 2)
				_ = os.Remove(w.in("plain2"))
			}
		},
	}},
}

// TestSwappedHardLinks opens files while hard links to secrets are swapped in: no
// secret is ever opened, and what may be read still can be (F07).
func TestSwappedHardLinks(t *testing.T) {
	for _, attack := range attacks {
		t.Run(attack.name, func(t *testing.T) {
			top := t.TempDir()
			w := &swapWorld{dir: filepath.Join(top, "data"), out: filepath.Join(top, "out")}
			for _, dir := range []string{w.dir, w.out} {
				musttest.Do(t, os.Mkdir(dir, 0o700))
			}
			for i := range swapNames {
				w.write(t, w.secret(i), "secret")
			}
			d := musttest.Get(OpenDir(w.dir))(t)
			defer d.Close()
			d.patience = 0 // a wait would only make fewer tries
			for _, run := range attack.run {
				w.attackers.Go(func() { run(t, w) })
			}
			told := make(map[Errno]int)
			buf := make([]byte, 8)
			tries := swapTries(t)
			n := 0
			for ; n < tries || w.reads.Load() == 0 && n < 100*tries; n++ {
				f, errno := d.Open("a"+strconv.FormatInt(w.current.Load(), 10), 0)
				told[errno]++
				switch errno {
				case 0:
					// An empty file is one that is being written.
					if got, errno := f.ReadAt(buf, 0); errno != 0 || got > 0 && string(buf[:got]) != "alpha" {
						t.Errorf("read %q after %d tries, %v", buf[:got], n, errno)
					} else {
						w.reads.Add(1)
					}
					f.Close()
				case EBUSY, EACCES, ENOENT:
				default:
					t.Errorf("open: %v", errno)
				}
				if t.Failed() {
					break
				}
			}
			w.done.Store(true)
			w.attackers.Wait()
			t.Logf("%d tries: %v", n, told)
			if w.reads.Load() == 0 {
				t.Error("never read what may be read, so nothing was tested")
			}
		})
	}
}

// A file opens while somebody appends to it without pause, and while files come and
// go in its folder without pause.
func TestBusyFolder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	log := musttest.Get(os.Create(path))(t)
	defer log.Close()
	d := musttest.Get(OpenDir(dir))(t)
	defer d.Close()
	for name, change := range map[string]func() error{
		"the file": func() error { _, err := log.WriteAt([]byte("line"), 0); return err },
		"the folder": func() error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "x"), 0o700), os.Remove(filepath.Join(dir, "x")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var done atomic.Bool
			var busy sync.WaitGroup
			started := make(chan struct{})
			busy.Go(func() {
				for i := 0; !done.Load(); i++ {
					if err := change(); err != nil {
						t.Error(err)
						done.Store(true)
					}
					if i == 0 {
						close(started)
					}
				}
			})
			<-started
			for range 200 {
				f, errno := d.Open("log", 0)
				if errno != 0 {
					t.Errorf("open: %v", errno)
					break
				}
				f.Close()
			}
			done.Store(true)
			busy.Wait()
		})
	}
}

// What was changed in this tick of the clock is not opened until the next, unless
// it is only one of file and folder that was.
func TestSameTick(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	musttest.Do(t, os.WriteFile(path, []byte("alpha"), 0o600))
	d := musttest.Get(OpenDir(dir))(t)
	defer d.Close()
	d.patience = 0
	changed := func(path string) unix.Timespec {
		t.Helper()
		var st unix.Stat_t
		musttest.Do(t, unix.Stat(path, &st))
		return st.Ctim
	}
	nano := func(path string) int64 { st := changed(path); return st.Nano() }
	open := func(now unix.Timespec) Errno {
		t.Helper()
		d.clock = func(int32) (unix.Timespec, error) { return now, nil }
		f, errno := d.Open("f", 0)
		if errno == 0 {
			f.Close()
		}
		return errno
	}
	later := func(than, by string) {
		t.Helper()
		for base := nano(than) + 2*int64(grain); nano(by) < base; {
			musttest.Do(t, os.Chmod(by, 0o700))
		}
	}
	later(dir, path)
	if errno := open(changed(path)); errno != 0 {
		t.Errorf("a young file in an old folder: %v", errno)
	}
	later(path, dir)
	if errno := open(changed(dir)); errno != 0 {
		t.Errorf("an old file in a young folder: %v", errno)
	}
	for changed(path).Sec != changed(dir).Sec {
		later(dir, path)
	}
	now := min(nano(path), nano(dir))
	if errno := open(unix.NsecToTimespec(now)); errno != EBUSY {
		t.Errorf("both young: %v", errno)
	}
	d.patience = time.Minute
	tries := 0
	d.clock = func(id int32) (unix.Timespec, error) {
		if id == unix.CLOCK_REALTIME_COARSE {
			tries++
		}
		return unix.NsecToTimespec(now + max(0, int64(tries-3))*int64(2*time.Second)), nil
	}
	f, errno := d.Open("f", 0)
	if errno != 0 {
		t.Fatalf("after the tick: %v", errno)
	}
	f.Close()
	if tries != 4 {
		t.Errorf("opened at try %d", tries)
	}
}

func TestQuiet(t *testing.T) {
	at := func(sec, nsec int64) unix.Timespec { return unix.NsecToTimespec(sec*1e9 + nsec) }
	const ms = 1e6
	for _, tc := range []struct {
		name                  string
		change, before, after unix.Timespec
		want                  bool
	}{
		{"an hour ago", at(1000, 1), at(4600, 0), at(4600, 1), true},
		{"a tick ago", at(1000, 496*ms), at(1000, 500*ms), at(1000, 501*ms), true},
		{"just a grain ago", at(1000, 499*ms), at(1000, 500*ms), at(1000, 501*ms), true},
		{"less than a grain ago", at(1000, 499*ms+1), at(1000, 500*ms), at(1000, 501*ms), false},
		{"in this tick", at(1000, 500*ms), at(1000, 500*ms), at(1000, 501*ms), false},
		{"meanwhile", at(1000, 501*ms), at(1000, 500*ms), at(1000, 502*ms), false},
		{"in the second before", at(999, 999*ms), at(1000, 0), at(1000, 1*ms), true},
		{"in this second, of whole seconds", at(1000, 0), at(1000, 500*ms), at(1000, 501*ms), false},
		{"in the second before, of whole seconds", at(999, 0), at(1000, 500*ms), at(1000, 501*ms), true},
		// Halves of two changes, either side of a second.
		{"the second of one, the rest of the other", at(1000, 1*ms), at(1000, 999*ms), at(1001, 2*ms), false},
		{"the other way round", at(1001, 999*ms), at(1000, 999*ms), at(1001, 2*ms), false},
		// The clock was set back after the change.
		{"in an hour", at(4600, 0), at(1000, 0), at(1000, 1), true},
		{"later in this second", at(1000, 800*ms), at(1000, 500*ms), at(1000, 501*ms), false},
	} {
		if got := quiet(tc.change, tc.before, tc.after); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

// BenchmarkDirOpen opens a file in the folder itself and one deeper down.
func BenchmarkDirOpen(b *testing.B) {
	dir := b.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "x/y"), 0o700); err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"a", "x/y/a"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("alpha"), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	d, err := OpenDir(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	for _, name := range []string{"a", "x/y/a"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f, errno := d.Open(name, 0)
				if errno != 0 {
					b.Fatal(errno)
				}
				f.Close()
			}
		})
	}
}
