package share

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// A bundle has the entries of its layout, each once and no larger than what is accepted.
func TestRefusesForeignEntriesOfBundles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var good bytes.Buffer
	musttest.Do(t, Export(&good, []*Parcel{w.pack(w.folder("a", "0.1.0", "hello"))}))
	const blob = "blobs/sha256/0000000000000000000000000000000000000000000000000000000000000000"
	file := func(name string, size int64) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size}
	}
	for what, h := range map[string]tar.Header{
		"above":          file("../a", 1),
		"absolute":       file("/etc/a", 1),
		"of another use": file("a", 1),
		"short":          file(blob[:70], 1),
		"twice":          file("index.json", 1),
		"a link":         {Typeflag: tar.TypeSymlink, Name: blob, Linkname: "/etc/passwd"},
		"a hard link":    {Typeflag: tar.TypeLink, Name: blob, Linkname: "index.json"},
		"a device":       {Typeflag: tar.TypeChar, Name: blob},
		"a folder":       {Typeflag: tar.TypeDir, Name: blob},
		"huge":           file(blob, 1<<40),
	} {
		var b bytes.Buffer
		t1, t2 := tar.NewReader(bytes.NewReader(good.Bytes())), tar.NewWriter(&b)
		for {
			entry, err := t1.Next()
			if err != nil {
				break
			}
			musttest.Do(t, t2.WriteHeader(entry))
			musttest.Get(io.Copy(t2, t1))(t)
		}
		musttest.Do(t, t2.WriteHeader(&h))
		_, _ = t2.Write(make([]byte, min(h.Size, 1)))
		name := filepath.Join(t.TempDir(), "bundle.tar")
		musttest.Do(t, os.WriteFile(name, append(b.Bytes(), make([]byte, 2048)...), 0o600))
		want := skill.ArchiveRejected
		if what == "huge" {
			want = skill.PayloadTooLarge
		}
		_, err := w.carrier.OpenBundle(name)
		if skill.CodeOf(err) != want || !strings.Contains(err.Error(), "entry") && what != "huge" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
