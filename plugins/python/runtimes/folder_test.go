package runtimes

import (
	"archive/zip"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"openskill/internal/musttest"
)

func packed(t *testing.T, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.zip")
	musttest.Do(t, os.WriteFile(file, data, 0o600))
	return file
}

func TestFolder(t *testing.T) {
	l := library{"a.py": []byte("x = 1"), "p/__init__.py": nil, "p/q/r.txt": bytes.Repeat([]byte("0123456789"), 1000), "b": []byte("b")}
	data := musttest.Get(l.store())(t)
	if again, _ := l.store(); !bytes.Equal(data, again) {
		t.Error("the same files give two archives")
	}
	d := musttest.Get(openFolder(packed(t, data)))(t)
	if err := fstest.TestFS(d, "a.py", "p/__init__.py", "p/q/r.txt", "b"); err != nil {
		t.Error(err)
	}
	f := musttest.Get(d.Open("p/q/r.txt"))(t)
	part := make([]byte, 4)
	if n, err := f.(io.ReaderAt).ReadAt(part, 9998); n != 2 || err != io.EOF || string(part[:2]) != "89" {
		t.Errorf("%q, %d, %v", part, n, err)
	}
	if _, err := fs.ReadFile(d, "../a.py"); err == nil {
		t.Error("it leads out of itself")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("twice: %v", err)
	}
}

func TestFolderRefuses(t *testing.T) {
	write := func(method uint16, names ...string) []byte {
		var out bytes.Buffer
		w := zip.NewWriter(&out)
		for _, name := range names {
			m := musttest.Get(w.CreateHeader(&zip.FileHeader{Name: name, Method: method}))(t)
			if !strings.HasSuffix(name, "/") {
				_, _ = m.Write([]byte("some text"))
			}
		}
		musttest.Do(t, w.Close())
		return out.Bytes()
	}
	for name, data := range map[string][]byte{
		"no archive": []byte("x"), "compressed": write(zip.Deflate, "a"), "absolute": write(zip.Store, "/a"),
		"out of it": write(zip.Store, "../a"), "twice": write(zip.Store, "a", "a"), "a folder": write(zip.Store, "a/"),
		"below a file": write(zip.Store, "a", "a/b"),
	} {
		if d, err := openFolder(packed(t, data)); err == nil {
			t.Errorf("%s: opened", name)
			_ = d.Close()
		}
	}
	if _, err := openFolder(filepath.Join(t.TempDir(), "nothing")); err == nil {
		t.Error("opened what is not there")
	}
}
