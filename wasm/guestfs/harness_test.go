package guestfs_test

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func folder(tb testing.TB, files map[string]string) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		musttest.Do(tb, os.MkdirAll(filepath.Dir(path), 0o755))
		musttest.Do(tb, os.WriteFile(path, []byte(content), 0o644))
	}
	return dir
}

func archive(tb testing.TB, files map[string]string) *zip.Reader {
	tb.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for name, content := range files {
		w := musttest.Get(z.Create(name))(tb)
		musttest.Get(io.WriteString(w, content))(tb)
	}
	musttest.Do(tb, z.Close())
	return musttest.Get(zip.NewReader(bytes.NewReader(buf.Bytes()), int64(buf.Len())))(tb)
}

func openDir(tb testing.TB, path string) *guestfs.Dir {
	tb.Helper()
	d := musttest.Get(guestfs.OpenDir(path))(tb)
	tb.Cleanup(func() { d.Close() })
	return d
}

// read reads a whole file.
func read(tb testing.TB, fsys guestfs.FS, name string) string {
	tb.Helper()
	f, errno := fsys.Open(name, 0)
	if errno != 0 {
		tb.Fatalf("open %s: %v", name, errno)
	}
	defer f.Close()
	var out []byte
	buf := make([]byte, 7)
	for {
		n, errno := f.ReadAt(buf, int64(len(out)))
		if errno != 0 {
			tb.Fatalf("read %s: %v", name, errno)
		}
		if n == 0 {
			return string(out)
		}
		out = append(out, buf[:n]...)
	}
}

// list lists a folder, n entries at a time.
func list(tb testing.TB, f guestfs.File, n int) (names []string) {
	tb.Helper()
	for {
		entries, errno := f.ReadDir(n)
		if errno != 0 {
			tb.Fatal(errno)
		}
		if len(entries) == 0 {
			return names
		}
		if len(entries) > n {
			tb.Fatalf("%d entries, asked for %d", len(entries), n)
		}
		for _, e := range entries {
			names = append(names, e.Name)
		}
	}
}
