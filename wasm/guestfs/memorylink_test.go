package guestfs_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
)

func TestMemoryLink(t *testing.T) {
	m := guestfs.NewMemory(guestfs.Limits{Depth: 3})
	do := func(want, got guestfs.Errno) {
		t.Helper()
		if got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	is := func(name, want string, links uint64) {
		t.Helper()
		data, err := m.ReadFile(name)
		st, errno := m.Stat(name, true)
		if err != nil || errno != 0 || string(data) != want || st.Links != links {
			t.Errorf("%s: %q with %d links, %v, %v; want %q with %d", name, data, st.Links, err, errno, want, links)
		}
	}
	musttest.Do(t, errors.Join(m.WriteFile("f", []byte("one")), m.WriteFile("other", nil)))
	do(0, m.Mkdir("d"))
	do(guestfs.ENOENT, m.Link("none", "g"))
	do(guestfs.ENOENT, m.Link("f", "none/g"))
	do(guestfs.ENOTDIR, m.Link("f", "other/g"))
	do(guestfs.EEXIST, m.Link("f", "other"))
	do(guestfs.EEXIST, m.Link("f", "f"))
	do(guestfs.EPERM, m.Link("d", "g"))
	do(guestfs.EPERM, m.Link(".", "g"))
	do(guestfs.EINVAL, m.Link("f", "../g"))
	do(0, m.Mkdir("d/d"))
	do(0, m.Mkdir("d/d/d"))
	do(guestfs.ENAMETOOLONG, m.Link("f", "d/d/d/g"))
	do(0, m.Rmdir("d/d/d"))
	do(0, m.Link("f", "d/d/g"))
	is("f", "one", 2)
	musttest.Do(t, m.WriteFile("d/d/g", []byte("changed")))
	is("f", "changed", 2)
	a, _ := m.Stat("f", true)
	b, _ := m.Stat("d/d/g", true)
	if a.Inode != b.Inode {
		t.Error("the names of a file have two inodes")
	}

	// Renaming one name to the other leaves both.
	do(0, m.Rename("f", "d/d/g"))
	is("f", "changed", 2)
	// Replacing one leaves the other.
	do(0, m.Rename("other", "f"))
	is("f", "", 1)
	is("d/d/g", "changed", 1)

	// The content lives as long as a name or a handle does.
	do(0, m.Link("d/d/g", "g"))
	file := mustOpen(t, m, "g", readWrite)
	do(0, m.Unlink("g"))
	do(0, m.Unlink("d/d/g"))
	got := make([]byte, 7)
	if n, errno := file.ReadAt(got, 0); errno != 0 || string(got[:n]) != "changed" {
		t.Errorf("of an open file without a name: %q, %v", got[:n], errno)
	}
	file.Close()
	do(0, m.Unlink("f"))
	do(0, m.Rmdir("d/d"))
	do(0, m.Rmdir("d"))
	if !m.Empty() || m.Used() != 0 {
		t.Errorf("not empty: %d bytes", m.Used())
	}
}

// Every name counts in full, so that what is read by name is never more than the cap.
func TestMemoryLinksCount(t *testing.T) {
	const page = 4096
	m := guestfs.NewMemory(guestfs.Limits{Bytes: 10 * page, Files: 4})
	musttest.Do(t, m.WriteFile("a", make([]byte, 2*page)))
	one := m.Used()
	for i, name := range []string{"b", "c"} {
		if errno := m.Link("a", name); errno != 0 || m.Used() != one*int64(i+2) {
			t.Fatalf("%v, %d bytes used; one name is %d", errno, m.Used(), one)
		}
	}
	if errno := m.Link("a", "d"); errno != 0 {
		t.Fatal(errno)
	}
	if errno := m.Link("a", "e"); errno != guestfs.ENOSPC {
		t.Errorf("one name too many: %v", errno)
	}
	f := mustOpen(t, m, "a", readWrite)
	if errno := f.Truncate(3 * page); errno != guestfs.ENOSPC {
		t.Errorf("four times three pages in ten: %v", errno)
	}
	if errno := m.Unlink("d"); errno != 0 {
		t.Fatal(errno)
	}
	if errno := f.Truncate(3 * page); errno != 0 {
		t.Errorf("three times three pages in ten: %v", errno)
	}
	if errno := m.Link("a", "d"); errno != guestfs.ENOSPC {
		t.Errorf("a name that costs more than is left: %v", errno)
	}
	var all int64
	for _, info := range m.Files() {
		all += info.Size
	}
	if all > 10*page {
		t.Errorf("all files together have %d bytes", all)
	}
	// What is given back can be used again.
	for _, name := range []string{"a", "b", "c"} {
		m.Unlink(name)
	}
	if used := m.Used(); used != 3*page+512 {
		t.Errorf("an open file without a name uses %d bytes", used)
	}
	f.Close()
	if m.Used() != 0 || !m.Empty() {
		t.Errorf("%d bytes used", m.Used())
	}
}

func TestMemorySavedWithLinks(t *testing.T) {
	m := guestfs.NewMemory(guestfs.Limits{})
	musttest.Do(t, m.WriteFile("a", []byte("one")))
	if errno := m.Link("a", "b"); errno != 0 {
		t.Fatal(errno)
	}
	s, ok := m.Save()
	if !ok {
		t.Fatal("nothing is open, and it cannot be saved")
	}
	used := m.Used()
	for range 2 {
		m.Unlink("a")
		m.Restore(s)
		musttest.Do(t, m.WriteFile("a", []byte("two")))
		got, err := m.ReadFile("b")
		if d := cmp.Diff("two", string(got)); err != nil || d != "" {
			t.Errorf("the two names are two files: %v\n%s", err, d)
		}
		if m.Used() != used {
			t.Errorf("%d bytes used, want %d", m.Used(), used)
		}
	}
	m.Restore(s)
	if got, err := m.ReadFile("b"); err != nil || string(got) != "one" {
		t.Errorf("restored: %q, %v", got, err)
	}
	if f := mustOpen(t, m, "b", 0); f == nil {
		t.Fatal("no file")
	}
	m.Unlink("b")
	if _, ok := m.Save(); ok {
		t.Error("a file is open by a name that is gone, and it can be saved")
	}
}
