package guestfs

import (
	"bytes"
	"testing"
	"time"

	"openskill/internal/musttest"
)

func TestMemorySaved(t *testing.T) {
	m := NewMemory(Limits{})
	for name, data := range map[string]string{"a": "one", "b": "two"} {
		musttest.Do(t, m.WriteFile(name, []byte(data)))
	}
	if errno := m.Mkdir("d"); errno != 0 {
		t.Fatal(errno)
	}
	musttest.Do(t, m.WriteFile("d/c", []byte("three")))
	s, ok := m.Save()
	if !ok {
		t.Fatal("nothing is open, and it cannot be saved")
	}
	used := m.Used()
	for range 3 { // what is restored is a copy too
		f, errno := m.Open("a", Write)
		if errno != 0 {
			t.Fatal(errno)
		}
		if _, errno := f.WriteAt([]byte("XXXXXXXX"), 0); errno != 0 {
			t.Fatal(errno)
		}
		m.Unlink("b")
		m.Unlink("d/c")
		m.Rmdir("d")
		musttest.Do(t, m.WriteFile("new", make([]byte, 10000)))
		if _, ok := m.Save(); ok {
			t.Error("a file is open, and it can be saved")
		}
		m.Restore(s)
		if _, errno := f.WriteAt([]byte("YYY"), 0); errno != EIO {
			t.Errorf("a handle of before: %v, want EIO", errno)
		}
		f.Close()
		for name, want := range map[string]string{"a": "one", "b": "two", "d/c": "three"} {
			if got, err := m.ReadFile(name); err != nil || !bytes.Equal(got, []byte(want)) {
				t.Errorf("%s: %q, %v; want %q", name, got, err, want)
			}
		}
		if _, err := m.ReadFile("new"); err == nil {
			t.Error("a file of after is there")
		}
		if m.Used() != used {
			t.Errorf("%d bytes used, want %d", m.Used(), used)
		}
	}
}

func TestMemorySavedEmpty(t *testing.T) {
	m := NewMemory(Limits{})
	root, errno := m.Open(".", Directory)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer root.Close()
	s, ok := m.Save()
	if !ok {
		t.Fatal("only the root is open, and it cannot be saved")
	}
	musttest.Do(t, m.WriteFile("x", nil))
	m.Restore(s)
	if !m.Empty() {
		t.Error("not empty")
	}
}

// The root is never taken away, so what was set of it has to be: its times are a
// place for a mark, and the number of the next file counts what was made.
func TestMemorySavedRoot(t *testing.T) {
	m := NewMemory(Limits{})
	s, ok := m.Save()
	if !ok {
		t.Fatal("it cannot be saved")
	}
	for name, back := range map[string]func(){"Reset": m.Reset, "Restore": func() { m.Restore(s) }} {
		mark := time.Unix(1234, 0)
		if errno := m.SetTimes(".", true, &mark, &mark); errno != 0 {
			t.Fatal(errno)
		}
		musttest.Do(t, m.WriteFile("new", nil))
		back()
		st, errno := m.Stat(".", true)
		if errno != 0 || st.Atime.Equal(mark) || st.Mtime.Equal(mark) {
			t.Errorf("%s: times %v and %v, %v", name, st.Atime, st.Mtime, errno)
		}
		musttest.Do(t, m.WriteFile("next", nil))
		if st, _ := m.Stat("next", true); st.Inode != 2 {
			t.Errorf("%s: the first file has number %d", name, st.Inode)
		}
		m.Reset()
	}
}
