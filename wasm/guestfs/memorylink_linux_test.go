package guestfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
)

// The kernel is the model: what a [guestfs.Memory] answers, and what is there in the
// end, is what a folder of the host has after the same calls. Where a link leads out
// of the folder, which the kernel allows, [os.Root] is.

// names and targets that are likely to meet.
var (
	modelNames   = []string{"a", "b", "c", "d", "a/a", "a/b", "b/a", "b/c", "c/d", "d/d", "a/a/a", "a/b/c", "b/a/d", "c/c/c", "a/b/a/b"}
	modelTargets = []string{"a", "b", "c", "d", "a/b", "b/a", ".", "./a", "..", "../b", "../c/d", "a/..", "b/../a", "c//d", "d/", "a/./b/", "../../a", "x", "a/x", "a/b/../../d"}
)

// kernel is a folder of the host.
type kernel struct {
	dir  string
	root *os.Root
}

func newKernel(tb testing.TB) *kernel {
	tb.Helper()
	// Deep enough for the targets, whose way out must not leave the test's own folder.
	dir := filepath.Join(tb.TempDir(), "1/2/3/4/5/6")
	musttest.Do(tb, os.MkdirAll(dir, 0o700))
	root := musttest.Get(os.OpenRoot(dir))(tb)
	tb.Cleanup(func() { root.Close() })
	return &kernel{dir, root}
}

// clear takes away what is in the folder.
func (k *kernel) clear(t *testing.T) {
	t.Helper()
	entries := musttest.Get(os.ReadDir(k.dir))(t)
	for _, e := range entries {
		musttest.Do(t, os.RemoveAll(filepath.Join(k.dir, e.Name())))
	}
}

// errnoOf is what a guest is told of an error of the host.
func errnoOf(t *testing.T, err error) guestfs.Errno {
	t.Helper()
	if err == nil {
		return 0
	}
	var number syscall.Errno
	if !errors.As(err, &number) {
		t.Fatalf("%T %v", err, err)
	}
	known := map[syscall.Errno]guestfs.Errno{
		syscall.ENOENT: guestfs.ENOENT, syscall.EEXIST: guestfs.EEXIST, syscall.ENOTDIR: guestfs.ENOTDIR,
		syscall.EISDIR: guestfs.EISDIR, syscall.ELOOP: guestfs.ELOOP, syscall.EINVAL: guestfs.EINVAL,
		syscall.ENOTEMPTY: guestfs.ENOTEMPTY, syscall.EPERM: guestfs.EPERM,
	}
	errno, ok := known[number]
	if !ok {
		t.Fatalf("%d %v", number, number)
	}
	return errno
}

// op is one call on both.
type op struct {
	what  string
	names []string // those that must not lead out, and how
	ours  func(m *guestfs.Memory) guestfs.Errno
	host  func(path func(name string) string) error
	last  bool // the last link of the first name is followed
}

// ops reads calls out of bytes, three or four for each.
func ops(input []byte) (all []op) {
	next := func(n int) int {
		if len(input) == 0 {
			return 0
		}
		b := input[0]
		input = input[1:]
		return int(b) % n
	}
	for len(input) > 0 {
		kind := next(12)
		name, other := modelNames[next(len(modelNames))], modelNames[next(len(modelNames))]
		o := op{what: fmt.Sprint(kind, " ", name), names: []string{name}}
		switch kind {
		case 0, 1:
			target := modelTargets[next(len(modelTargets))]
			o.what = fmt.Sprintf("symlink %s -> %s", name, target)
			o.ours = func(m *guestfs.Memory) guestfs.Errno { return m.Symlink(target, name) }
			o.host = func(path func(string) string) error { return syscall.Symlink(target, path(name)) }
		case 2, 3:
			o.what = "mkdir " + name
			o.ours = func(m *guestfs.Memory) guestfs.Errno { return m.Mkdir(name) }
			o.host = func(path func(string) string) error { return syscall.Mkdir(path(name), 0o700) }
		case 4, 5:
			flags := []struct {
				ours guestfs.OpenFlag
				host int
			}{
				{0, 0},
				{guestfs.Create | guestfs.Write, syscall.O_CREAT | syscall.O_RDWR},
				{guestfs.Create | guestfs.Excl | guestfs.Write, syscall.O_CREAT | syscall.O_EXCL | syscall.O_RDWR},
				{guestfs.Trunc | guestfs.Write, syscall.O_TRUNC | syscall.O_RDWR},
				{guestfs.Directory, syscall.O_DIRECTORY},
				{guestfs.NoFollow, syscall.O_NOFOLLOW},
				{guestfs.NoFollow | guestfs.Create | guestfs.Write, syscall.O_NOFOLLOW | syscall.O_CREAT | syscall.O_RDWR},
			}[next(7)]
			o.what = fmt.Sprintf("open %s %b", name, flags.ours)
			o.last = flags.ours&(guestfs.NoFollow|guestfs.Excl) == 0
			o.ours = func(m *guestfs.Memory) guestfs.Errno {
				f, errno := m.Open(name, flags.ours)
				if errno == 0 {
					if flags.ours&guestfs.Write != 0 {
						_, errno = f.WriteAt([]byte(other), 0)
					}
					f.Close()
				}
				return errno
			}
			o.host = func(path func(string) string) error {
				fd, err := syscall.Open(path(name), flags.host|syscall.O_CLOEXEC, 0o600)
				if err == nil {
					if flags.ours&guestfs.Write != 0 {
						_, err = syscall.Pwrite(fd, []byte(other), 0)
					}
					syscall.Close(fd)
				}
				return err
			}
		case 6:
			o.what = "unlink " + name
			o.ours = func(m *guestfs.Memory) guestfs.Errno { return m.Unlink(name) }
			o.host = func(path func(string) string) error { return syscall.Unlink(path(name)) }
		case 7:
			o.what = "rmdir " + name
			o.ours = func(m *guestfs.Memory) guestfs.Errno { return m.Rmdir(name) }
			o.host = func(path func(string) string) error { return syscall.Rmdir(path(name)) }
		case 8, 9:
			o.what, o.names = "rename "+name+" "+other, []string{name, other}
			o.ours = func(m *guestfs.Memory) guestfs.Errno { return m.Rename(name, other) }
			o.host = func(path func(string) string) error { return syscall.Rename(path(name), path(other)) }
		case 10:
			o.what, o.names = "link "+name+" "+other, []string{name, other}
			o.ours = func(m *guestfs.Memory) guestfs.Errno { return m.Link(name, other) }
			o.host = func(path func(string) string) error { return syscall.Link(path(name), path(other)) }
		case 11:
			o.what, o.last = "resolve "+name, true
			o.ours = func(m *guestfs.Memory) guestfs.Errno {
				_, stat := m.Stat(name, true)
				end, _, errno := m.Resolve(name, true)
				if errno != 0 {
					return errno // which is Stat's as well
				}
				_, again := m.Stat(end, false)
				if stat != again {
					panic(fmt.Sprintf("%s is %v, and what it resolves to, %s, is %v", name, stat, end, again))
				}
				return stat
			}
			o.host = func(path func(string) string) error {
				var st syscall.Stat_t
				return syscall.Stat(path(name), &st)
			}
		}
		all = append(all, o)
	}
	return all
}

// state lists all that is there, told in one way by both.
func state(t *testing.T, walk func(add func(name, what string))) []string {
	t.Helper()
	var all []string
	walk(func(name, what string) { all = append(all, name+" "+what) })
	slices.Sort(all)
	return all
}

func (k *kernel) state(t *testing.T) []string {
	t.Helper()
	return state(t, func(add func(name, what string)) {
		err := filepath.WalkDir(k.dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name, _ := filepath.Rel(k.dir, path)
			info, err := d.Info()
			if err != nil {
				return err
			}
			links := uint64(info.Sys().(*syscall.Stat_t).Nlink) //nolint:unconvert // 32 bits on some machines
			switch {
			case d.IsDir():
				add(name, "folder")
			case d.Type()&fs.ModeSymlink != 0:
				target, err := os.Readlink(path)
				add(name, fmt.Sprintf("-> %s, %d", target, links))
				return err
			default:
				data, err := os.ReadFile(path)
				add(name, fmt.Sprintf("%q, %d", data, links))
				return err
			}
			return nil
		})
		musttest.Do(t, err)
	})
}

// bases lists a folder and leaves nothing open.
func bases(t *testing.T, m *guestfs.Memory, dir string) []string {
	t.Helper()
	f, errno := m.Open(dir, guestfs.Directory|guestfs.NoFollow)
	if errno != 0 {
		t.Fatal(dir, errno)
	}
	defer f.Close()
	return list(t, f, 3)
}

func memoryState(t *testing.T, m *guestfs.Memory) []string {
	t.Helper()
	return state(t, func(add func(name, what string)) {
		var walk func(dir string)
		walk = func(dir string) {
			add(dir, "folder")
			for _, base := range bases(t, m, dir) {
				name := strings.TrimPrefix(dir+"/"+base, "./")
				st, errno := m.Stat(name, false)
				if errno != 0 {
					t.Fatal(errno)
				}
				switch st.Kind {
				case guestfs.KindDirectory:
					walk(name)
				case guestfs.KindSymlink:
					target, errno := m.Readlink(name)
					if errno != 0 {
						t.Fatal(errno)
					}
					add(name, fmt.Sprintf("-> %s, %d", target, st.Links))
				default:
					data := musttest.Get(m.ReadFile(name))(t)
					add(name, fmt.Sprintf("%q, %d", data, st.Links))
				}
			}
		}
		walk(".")
	})
}

// againstKernel makes the same calls on both. It gives how many did something.
func againstKernel(t *testing.T, k *kernel, input []byte) (done int) {
	t.Helper()
	k.clear(t)
	m := guestfs.NewMemory(guestfs.Limits{})
	var log []string
	for _, o := range ops(input) {
		ours := o.ours(m)
		log = append(log, fmt.Sprintf("%s: %v", o.what, ours))
		if ours == guestfs.EPERM && k.leads(t, o) {
			continue // out of the folder, where only the kernel would go
		}
		theirs := errnoOf(t, o.host(func(name string) string { return filepath.Join(k.dir, name) }))
		if ours != 0 && theirs == guestfs.EISDIR && strings.HasPrefix(o.what, "open ") {
			continue // to be made by a link whose text ends in a slash: refused both ways
		}
		if ours != theirs {
			t.Fatalf("the kernel says %v:\n%s", theirs, strings.Join(log, "\n"))
		}
		if ours == 0 {
			done++
		}
	}
	if d := cmp.Diff(k.state(t), memoryState(t, m)); d != "" {
		t.Fatalf("the kernel has, and we have:\n%s\n%s", d, strings.Join(log, "\n"))
	}
	for _, e := range memoryState(t, m) {
		if name, _, _ := strings.Cut(e, " "); name != "." {
			remove(t, m, name)
		}
	}
	if used := m.Used(); used != 0 || !m.Empty() {
		t.Fatalf("%d bytes used by nothing:\n%s", used, strings.Join(log, "\n"))
	}
	return done
}

// leads reports whether one of the names does lead out.
func (k *kernel) leads(t *testing.T, o op) bool {
	t.Helper()
	for _, name := range o.names {
		look := k.root.Lstat
		if o.last {
			look = k.root.Stat
		}
		_, err := look(name)
		var number syscall.Errno
		if err != nil && !errors.As(err, &number) { // it has no number: os.Root's own
			return true
		}
	}
	return false
}

// remove takes away a name and what is below it.
func remove(t *testing.T, m *guestfs.Memory, name string) {
	t.Helper()
	st, errno := m.Stat(name, false)
	switch {
	case errno == guestfs.ENOENT:
		return
	case errno != 0:
		t.Fatal(errno)
	case st.Kind != guestfs.KindDirectory:
		errno = m.Unlink(name)
	default:
		for _, base := range bases(t, m, name) {
			remove(t, m, name+"/"+base)
		}
		errno = m.Rmdir(name)
	}
	if errno != 0 {
		t.Fatalf("%s: %v", name, errno)
	}
}

func TestMemoryAgainstKernel(t *testing.T) {
	k := newKernel(t)
	random := rand.New(rand.NewPCG(5, 6))
	done := 0
	for range 800 {
		input := make([]byte, 160)
		for i := range input {
			input[i] = byte(random.Uint32())
		}
		done += againstKernel(t, k, input)
	}
	if done < 4000 {
		t.Errorf("%d calls did something: too few to show much", done)
	}
}

// FuzzMemory is the same with any input.
func FuzzMemory(f *testing.F) {
	k := newKernel(f)
	f.Add([]byte{3, 0, 0, 0, 1, 0, 0, 4, 1, 0, 1, 11, 5, 0, 8, 1, 4})
	f.Fuzz(func(t *testing.T, input []byte) { againstKernel(t, k, input[:min(len(input), 1000)]) })
}
