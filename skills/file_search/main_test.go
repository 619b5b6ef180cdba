package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"testing"
)

// TestUnpacksNoMoreThanItMay holds a search to what it may still unpack.
func TestUnpacksNoMoreThanItMay(t *testing.T) {
	t.Chdir(t.TempDir())
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("x.gz", b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
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
