package manifest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
)

// TestDigest computes the documented scheme by hand, so that it cannot drift.
func TestDigest(t *testing.T) {
	dir := t.TempDir()
	files := []struct{ path, text string }{ // in the order of their bytes
		{".hidden", ""}, {"a-b", "1"}, {"a/b", "22"}, {"a/c/d", "333"}, {"skill.yaml", "id: x\n"},
	}
	h := sha256.New()
	h.Write([]byte("openskill folder 1\n"))
	for i := len(files) - 1; i >= 0; i-- {
		musttest.Write(t, filepath.Join(dir, files[i].path), files[i].text)
	}
	for _, f := range files {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(f.path))))
		h.Write([]byte(f.path))
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(f.text))))
		sum := sha256.Sum256([]byte(f.text))
		h.Write(sum[:])
	}
	want := "sha256:" + hex.EncodeToString(h.Sum(nil))
	digest := func() string {
		t.Helper()
		return musttest.Get(Digest(dir))(t)
	}
	if got := digest(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	// What does not count.
	musttest.Do(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	musttest.Do(t, os.Chtimes(filepath.Join(dir, "a-b"), time.Unix(1, 0), time.Unix(1, 0)))
	if got := digest(); got != want {
		t.Error("a folder or a time changed the digest")
	}
	// What counts.
	musttest.Write(t, filepath.Join(dir, "a-b"), "2")
	if digest() == want {
		t.Error("another content has the same digest")
	}
	musttest.Write(t, filepath.Join(dir, "a-b"), "1")
	musttest.Write(t, filepath.Join(dir, "empty", "f"), "")
	if digest() == want {
		t.Error("another file has the same digest")
	}
}

func TestDigestCaps(t *testing.T) {
	dir := t.TempDir()
	musttest.Write(t, filepath.Join(dir, "a"), "123")
	musttest.Write(t, filepath.Join(dir, "b"), "45")
	for _, c := range []struct {
		files int
		bytes int64
		want  string
	}{
		{2, 5, ""},
		{1, 5, "the limit is 1"},
		{2, 4, "the limit is 4 bytes"},
		{2, 2, "the limit is 2 bytes"},
	} {
		_, err := digestFolder(dir, c.files, c.bytes, func(string, [32]byte) {})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d files, %d bytes: %v", c.files, c.bytes, err)
		}
	}
}
