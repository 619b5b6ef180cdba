package runtimes

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// manifestFile is written last, and says what the other files must be.
const manifestFile = "manifest.json"

// maxManifest is the size in bytes up to which a manifest is read.
const maxManifest = 64 << 10

// manifest is what manifest.json holds.
type manifest struct {
	Format     int            `json:"format"`
	Name       string         `json:"name"`
	Version    string         `json:"version"`
	Source     string         `json:"source"`
	Archive    string         `json:"archive_sha256"`
	Derivation string         `json:"derivation"`
	Files      []manifestItem `json:"files"`
}

type manifestItem struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// manifest is the one that an installed runtime must have, to the byte.
func (r *recipe) manifest() []byte {
	m := manifest{
		Format: 1, Name: r.name, Version: r.version, Source: r.source.String(),
		Archive: r.source.sha256, Derivation: r.derivation,
	}
	for _, o := range r.outputs {
		m.Files = append(m.Files, manifestItem{o.name, o.sha256, o.size})
	}
	b, _ := json.MarshalIndent(&m, "", "  ") // strings and numbers
	return append(b, '\n')
}

// The ways in which a folder is no installed runtime.
var (
	errAbsent  = errors.New("it is not installed")
	errForeign = errors.New("it is from another version of openskill")
)

// damage is a file that is not what the manifest says.
type damage struct{ file, what string }

func (d *damage) Error() string { return d.file + " " + d.what }

// present looks whether the folder is an installed runtime by its manifest and the
// sizes of its files, without reading them.
func (r *recipe) present(dir string) error {
	b, err := readFile(filepath.Join(dir, manifestFile), maxManifest)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			return errAbsent
		}
		return errForeign
	case err != nil:
		return &damage{manifestFile, "cannot be read"}
	case !bytes.Equal(b, r.manifest()):
		return errForeign
	}
	for _, o := range r.outputs {
		info, err := os.Lstat(filepath.Join(dir, o.name))
		switch {
		case err != nil:
			return &damage{o.name, "is not there"}
		case !info.Mode().IsRegular():
			return &damage{o.name, "is not a file"}
		case info.Size() != o.size:
			return &damage{o.name, fmt.Sprintf("has %d bytes, not %d", info.Size(), o.size)}
		}
	}
	return nil
}

// verify reads every file of the folder and compares it with its hash. A file that
// the manifest does not name is damage, too: a mounted folder would show it.
func (r *recipe) verify(dir string) error {
	if err := r.present(dir); err != nil {
		return err
	}
	for _, o := range r.outputs {
		if err := o.verify(dir); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return &damage{".", "cannot be read"}
	}
	for _, e := range entries {
		if e.Name() != manifestFile && r.output(e.Name()) == nil {
			return &damage{e.Name(), "does not belong to it"}
		}
	}
	return nil
}

// output finds an output by its name.
func (r *recipe) output(name string) *output {
	for i := range r.outputs {
		if r.outputs[i].name == name {
			return &r.outputs[i]
		}
	}
	return nil
}

func (o *output) verify(dir string) error {
	sum, err := hashFile(filepath.Join(dir, o.name), o.size)
	switch {
	case err != nil:
		return &damage{o.name, "cannot be read"}
	case sum != o.sha256:
		return &damage{o.name, "is damaged: its SHA-256 is " + short(sum) + ", not " + short(o.sha256)}
	}
	return nil
}

func short(sum string) string { return sum[:min(12, len(sum))] + "…" }

// hashFile is the SHA-256 of a file of at most so many bytes, in hexadecimal.
func hashFile(path string, most int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return hashReader(f, most)
}

func hashReader(r io.Reader, most int64) (string, error) {
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(r, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("more than %d bytes", most)
	}
	return hex.EncodeToString(h.Sum(nil)), err
}

func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAtMost(f, filepath.Base(path), most)
}
