package packages

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"openskill/internal/musttest"
)

// files are the files of an archive, by name.
type files map[string]string

// wheel gives a wheel of a package in pure Python with these files.
func wheel(t testing.TB, name, version string, more files, needs ...string) []byte {
	t.Helper()
	dist := name + "-" + version + ".dist-info/"
	metadata := "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n"
	for _, n := range needs {
		metadata += "Requires-Dist: " + n + "\n"
	}
	all := files{
		dist + "METADATA": metadata,
		dist + "WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		dist + "RECORD":   "",
	}
	maps.Copy(all, more)
	return zipped(t, all)
}

func zipped(t testing.TB, all files) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err == nil {
			_, err = w.Write([]byte(all[name]))
		}
		musttest.Do(t, err)
	}
	musttest.Do(t, z.Close())
	return b.Bytes()
}

// tarball gives a tarball as npm packs one.
func tarball(t testing.TB, all files) []byte {
	t.Helper()
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	w := tar.NewWriter(g)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(all[name])), Typeflag: tar.TypeReg})
		if err == nil {
			_, err = w.Write([]byte(all[name]))
		}
		musttest.Do(t, err)
	}
	musttest.Do(t, w.Close())
	musttest.Do(t, g.Close())
	return b.Bytes()
}

func write(t testing.TB, b []byte, path ...string) string {
	t.Helper()
	file := filepath.Join(path...)
	musttest.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
	musttest.Do(t, os.WriteFile(file, b, 0o600))
	return file
}

// needsTool skips a test where pip or npm is not on this machine, and keeps its own settings
// out of it.
func needsTool(t testing.TB, args ...string) {
	t.Helper()
	if err := exec.Command(args[0], args[1:]...).Run(); err != nil {
		t.Skip(args[0] + " is not there, or without pip")
	}
	t.Setenv("PIP_FIND_LINKS", "")
	t.Setenv("PIP_CONFIG_FILE", os.DevNull)
	t.Setenv("PIP_NO_CACHE_DIR", "1")
}

func needsPip(t testing.TB) {
	t.Helper()
	needsTool(t, "python3", "-m", "pip", "--version")
}

func asks(t testing.TB, list ...string) []Requirement {
	t.Helper()
	var all []Requirement
	for _, text := range list {
		r := musttest.Get(ParseRequirement(text, Python))(t)
		all = append(all, r)
	}
	return all
}

// names are the packages of a lock, in its order.
func names(l *Lock) (list []string) {
	for i := range l.Packages {
		list = append(list, l.Packages[i].String())
	}
	return list
}
