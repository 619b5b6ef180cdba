package selftest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"os"
	"path/filepath"
	"strings"

	"openskill/examples/hostile"
)

// Crash kills the process below that uses processors without pause, which is the worker
// of a loop, of those but a few. It reports whether there was one.
func (t *Tree) Crash(but []int) bool {
	pid := t.Busiest(but)
	if pid == 0 {
		return false
	}
	p, err := os.FindProcess(pid)
	return err == nil && p.Kill() == nil
}

// DataState is a digest of a planted data folder, byte by byte, but for what a case
// itself swaps from outside. "" has one too.
func DataState(dir string) (string, error) {
	h := sha256.New()
	if dir == "" {
		return hex.EncodeToString(h.Sum(nil)), nil
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || strings.HasPrefix(rel, ".") || rel == hostile.Swapped {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(h, "%q %v %d\n", rel, info.Mode(), info.ModTime().UnixNano()) // a hash takes everything
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			_, _ = fmt.Fprintf(h, "%q\n", to) // as above
			return err
		case info.Mode().IsRegular():
			b, err := os.ReadFile(path)
			_, _ = h.Write(b) // as above
			return err
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// Encode makes the form of an upload.
func Encode(u *hostile.Upload) (form []byte, contentType string, err error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part := func(name, file string, content []byte) {
		if content == nil || err != nil {
			return
		}
		var to io.Writer
		if to, err = w.CreateFormFile(name, file); err == nil {
			_, err = to.Write(content)
		}
	}
	part("archive", "skill.zip", u.Archive)
	part("manifest", "skill.yaml", u.Manifest)
	part("module", "main.wasm", u.Module)
	err = errors.Join(err, w.Close())
	return b.Bytes(), w.FormDataContentType(), err
}
