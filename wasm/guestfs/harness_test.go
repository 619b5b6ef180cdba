package guestfs_test

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"openskill/wasm/guestfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func archive(t testing.TB, files map[string]string) *zip.Reader {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for name, content := range files {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(buf.Bytes()), int64(buf.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func openDir(t testing.TB, path string) *guestfs.Dir {
	t.Helper()
	d, err := guestfs.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// read reads a whole file.
func read(t testing.TB, fsys guestfs.FS, name string) string {
	t.Helper()
	f, errno := fsys.Open(name, 0)
	if errno != 0 {
		t.Fatalf("open %s: %v", name, errno)
	}
	defer f.Close()
	var out []byte
	buf := make([]byte, 7)
	for {
		n, errno := f.ReadAt(buf, int64(len(out)))
		if errno != 0 {
			t.Fatalf("read %s: %v", name, errno)
		}
		if n == 0 {
			return string(out)
		}
		out = append(out, buf[:n]...)
	}
}

// list lists a folder, n entries at a time.
func list(t testing.TB, f guestfs.File, n int) (names []string) {
	t.Helper()
	for {
		entries, errno := f.ReadDir(n)
		if errno != 0 {
			t.Fatal(errno)
		}
		if len(entries) == 0 {
			return names
		}
		if len(entries) > n {
			t.Fatalf("%d entries, asked for %d", len(entries), n)
		}
		for _, e := range entries {
			names = append(names, e.Name)
		}
	}
}
