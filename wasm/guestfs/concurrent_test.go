package guestfs_test

import (
	"fmt"
	"sync"
	"testing"

	"openskill/wasm/guestfs"
)

// One tree serves many guests at once.
func TestManyGuestsAtOnce(t *testing.T) {
	dir := folder(t, sample)
	work := guestfs.NewMemory(guestfs.Limits{})
	tr := tree(t,
		guestfs.Mount{Path: "/data", FS: openDir(t, dir)},
		guestfs.Mount{Path: "/zip", FS: guestfs.FromFS(archive(t, sample))},
		guestfs.Mount{Path: "/one", FS: guestfs.Bytes([]byte("alpha"))},
		guestfs.Mount{Path: "/work", FS: work})
	var guests sync.WaitGroup
	for i := range 8 {
		guests.Go(func() {
			mine := fmt.Sprintf("work/%d", i)
			for range 50 {
				for _, name := range []string{"data/sub/b.txt", "zip/sub/b.txt"} {
					if got := readAll(tr, name); got != "beta" {
						t.Errorf("%s is %q", name, got)
					}
				}
				if got := readAll(tr, "one"); got != "alpha" {
					t.Errorf("one is %q", got)
				}
				f, errno := tr.Open(mine, guestfs.Create|guestfs.Write)
				if errno != 0 {
					t.Error(errno)
					return
				}
				if _, errno := f.WriteAt([]byte(mine), 0); errno != 0 {
					t.Error(errno)
				}
				f.Close()
				if got := readAll(tr, mine); got != mine {
					t.Errorf("%s is %q", mine, got)
				}
				if errno := tr.Unlink(mine); errno != 0 {
					t.Error(errno)
				}
				tr.Stat("work", true)
			}
		})
	}
	guests.Wait()
	if !work.Empty() || work.Used() != 0 {
		t.Errorf("%d bytes left", work.Used())
	}
}

// readAll is for goroutines that must not end the test.
func readAll(fsys guestfs.FS, name string) string {
	f, errno := fsys.Open(name, 0)
	if errno != 0 {
		return errno.String()
	}
	defer f.Close()
	buf := make([]byte, 100)
	n, errno := f.ReadAt(buf, 0)
	if errno != 0 {
		return errno.String()
	}
	return string(buf[:n])
}
