package guestfs_test

import (
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
)

func TestNull(t *testing.T) {
	tree := musttest.Get(guestfs.NewTree(guestfs.Mount{Path: "/dev/null", FS: guestfs.Null{}}))(t)
	f, errno := tree.Open("dev/null", guestfs.Write|guestfs.Create|guestfs.Trunc)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer f.Close()
	if n, errno := f.WriteAt([]byte("gone"), 1<<40); n != 4 || errno != 0 {
		t.Error(n, errno)
	}
	if n, errno := f.ReadAt(make([]byte, 9), 0); n != 0 || errno != 0 {
		t.Error(n, errno)
	}
	if st, errno := f.Stat(); st.Size != 0 || st.Kind != guestfs.KindCharDevice || errno != 0 {
		t.Error(st, errno)
	}
	if read(t, tree, "dev/null") != "" {
		t.Error("something was kept")
	}
	plain, errno := tree.Open("dev/null", 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer plain.Close()
	if _, errno := plain.WriteAt([]byte("x"), 0); errno != guestfs.EBADF {
		t.Errorf("written though it was opened to read: %v", errno)
	}
	for name, errno := range map[string]guestfs.Errno{
		"unlink": tree.Unlink("dev/null"), "rename": tree.Rename("dev/null", "dev/x"), "mkdir": tree.Mkdir("dev/null/x"),
	} {
		if errno == 0 {
			t.Errorf("%s: no error", name)
		}
	}
	if _, errno := tree.Open("dev/null", guestfs.Create|guestfs.Excl); errno != guestfs.EEXIST {
		t.Errorf("made anew: %v", errno)
	}
}
