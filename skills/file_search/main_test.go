package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"testing"

	"openskill/internal/musttest"
)

// TestUnpacksNoMoreThanItMay holds a search to what it may still unpack.
func TestUnpacksNoMoreThanItMay(t *testing.T) {
	t.Chdir(t.TempDir())
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	musttest.Get(z.Write(make([]byte, 100)))(t)
	musttest.Do(t, z.Close())
	musttest.Do(t, os.WriteFile("x.gz", b.Bytes(), 0o600))
	s := &search{unpack: 250}
	for i, want := range []string{binaryFile, binaryFile, unpackLimit, unpackLimit} {
		if _, why := s.read("x.gz"); why != want {
			t.Errorf("read %d: %s, want %s", i, why, want)
		}
	}
	if s.unpack != 0 {
		t.Errorf("%d bytes are left", s.unpack)
	}
}
