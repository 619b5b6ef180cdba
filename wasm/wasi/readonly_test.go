package wasi_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
	"openskill/wasm/wasi"
)

// fingerprint is what there is to know about a folder of the host.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(h, path, info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintln(h, len(data))
			h.Write(data)
		}
		return nil
	})
	musttest.Do(t, err)
	return fmt.Sprintf("%x", h.Sum(nil))
}

type readOnlyRow struct {
	words []string
	want  string
}

func readOnlyRows(t *testing.T) (rows []readOnlyRow) {
	t.Helper()
	data := musttest.Get(os.ReadFile("testdata/readonly.md"))(t)
	_, table, ok := strings.Cut(string(data), "|---|---|---|\n")
	if !ok {
		t.Fatal("no table")
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			t.Fatalf("row %q has %d cells", line, len(cells))
		}
		rows = append(rows, readOnlyRow{strings.Fields(cells[1]), strings.TrimSpace(cells[2])})
	}
	if len(rows) < 30 {
		t.Fatalf("%d rows", len(rows))
	}
	return rows
}

// refused carries one row out and returns what came of it.
func (g *guest) refused(words []string, paths map[string]string) guestfs.Errno {
	g.t.Helper()
	path := func(i int, at uint32) (uint64, uint64) { return g.put(at, paths[words[i]]) }
	switch words[0] {
	case "open":
		var oflags, rights, fdflags uint64
		for _, w := range words[2:] {
			switch w {
			case "create":
				oflags |= oCreate
			case "directory":
				oflags |= oDirectory
			case "excl":
				oflags |= oExcl
			case "trunc":
				oflags |= oTrunc
			case "append":
				fdflags |= 1
			case "read":
				rights |= rightRead
			case "write":
				rights |= rightWrite
			default:
				g.t.Fatalf("unknown flag %q", w)
			}
		}
		fd, errno := g.open(paths[words[1]], oflags, rights, fdflags)
		if errno == 0 {
			g.want(0, "fd_close", fd)
		}
		return errno
	case "mkdir", "rmdir", "unlink":
		call := map[string]string{"mkdir": "path_create_directory", "rmdir": "path_remove_directory", "unlink": "path_unlink_file"}
		p, n := path(1, atPath)
		return g.call(call[words[0]], 3, p, n)
	case "rename":
		p, n := path(1, atPath)
		p2, n2 := path(2, atPath2)
		return g.call("path_rename", 3, p, n, 3, p2, n2)
	case "link":
		p, n := path(1, atPath)
		p2, n2 := path(2, atPath2)
		return g.call("path_link", 3, 0, p, n, 3, p2, n2)
	case "symlink":
		p, n := path(1, atPath)
		p2, n2 := path(2, atPath2)
		return g.call("path_symlink", p, n, 3, p2, n2)
	case "times":
		p, n := path(1, atPath)
		return g.call("path_filestat_set_times", 3, 1, p, n, 1, 1, 5)
	case "fd":
		fd := g.mustOpen(paths["$"], 0, rightRead)
		defer g.call("fd_close", fd)
		p, n := g.iovs(atData, 1)
		switch words[1] {
		case "write":
			return g.call("fd_write", fd, p, n, atResult)
		case "pwrite":
			return g.call("fd_pwrite", fd, p, n, 0, atResult)
		case "allocate":
			return g.call("fd_allocate", fd, 0, 1)
		case "set_size":
			return g.call("fd_filestat_set_size", fd, 0)
		case "set_times":
			return g.call("fd_filestat_set_times", fd, 1, 1, 5)
		case "sync":
			return g.call("fd_sync", fd)
		case "renumber":
			other := g.mustOpen(paths["$"], 0, rightRead)
			return g.call("fd_renumber", other, fd)
		}
	}
	g.t.Fatalf("unknown call %q", words)
	return 0
}

// F03: every row of testdata/readonly.md, and nothing of the host changes.
func TestReadOnly(t *testing.T) {
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for _, name := range []string{"a.txt", "sub/b.txt"} {
		w := musttest.Get(z.Create(name))(t)
		fmt.Fprint(w, "zipped")
	}
	musttest.Do(t, z.Close())
	zipped := musttest.Get(zip.NewReader(bytes.NewReader(archive.Bytes()), int64(archive.Len())))(t)
	data := dataFolder(t)
	root, err := guestfs.NewTree(
		guestfs.Mount{Path: "/data", FS: openDir(t, data)},
		guestfs.Mount{Path: "/zip", FS: guestfs.FromFS(zipped)},
		guestfs.Mount{Path: "/etc/one.txt", FS: guestfs.Bytes([]byte("alpha"))})
	musttest.Do(t, err)
	before := fingerprint(t, data)
	rows := readOnlyRows(t)
	for mount, paths := range map[string]map[string]string{
		"folder":  {"$": "data/a.txt", "$dir": "data/sub", "$new": "data/new"},
		"archive": {"$": "zip/a.txt", "$dir": "zip/sub", "$new": "zip/new"},
		"file":    {"$": "etc/one.txt", "$dir": "etc", "$new": "etc/new"},
		"root":    {"$": "data/a.txt", "$dir": "data", "$new": "new"},
	} {
		t.Run(mount, func(t *testing.T) {
			g := newGuest(t, wasi.Config{Root: root})
			for _, row := range rows {
				got := g.refused(row.words, paths)
				// Between the root and a mount there is no moving either.
				if mount == "root" && got == guestfs.EXDEV && len(row.words) == 3 {
					continue
				}
				if got.String() != row.want {
					t.Errorf("%v: %v, want %s", row.words, got, row.want)
				}
			}
		})
	}
	if after := fingerprint(t, data); after != before {
		t.Error("the host folder has changed")
	}
}
