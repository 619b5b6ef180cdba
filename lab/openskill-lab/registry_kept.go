package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// keptRegistry keeps the manifests of a registry in files: the blobs are already, and the
// registry itself has only memory for manifests. What it was told is told to it again at
// the next start.
type keptRegistry struct {
	blobs, manifests string // folders
	next             http.Handler
}

// maxKept is the size in bytes of the largest manifest that is kept.
const maxKept = 4 << 20

// keptManifest is a file: the request by which a manifest came.
type keptManifest struct {
	Path string `json:"path"`
	Type string `json:"type"`
	Body []byte `json:"body"`
}

func openKept(dir string) (*keptRegistry, error) {
	k := &keptRegistry{blobs: filepath.Join(dir, "blobs"), manifests: filepath.Join(dir, "manifests")}
	for _, d := range []string{k.blobs, k.manifests} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, plain(err)
		}
	}
	return k, nil
}

// name is the file of a manifest: any path makes one name.
func (k *keptRegistry) name(path string) string {
	return filepath.Join(k.manifests, url.QueryEscape(path)+".json")
}

// ServeHTTP implements http.Handler.
func (k *keptRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	change := r.Method == http.MethodPut || r.Method == http.MethodDelete
	if !change || !strings.Contains(r.URL.Path, "/manifests/") {
		k.next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxKept))
	if err != nil || len(r.URL.Path) > 200 {
		http.Error(w, "the manifest or its name is too long", http.StatusRequestEntityTooLarge)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := &heldAnswer{header: http.Header{}, status: http.StatusOK}
	k.next.ServeHTTP(answer, r)
	// It is on the disk before it is acknowledged.
	if answer.status < 300 {
		if r.Method == http.MethodPut {
			err = k.keep(keptManifest{r.URL.Path, r.Header.Get("Content-Type"), body})
		} else if err = os.Remove(k.name(r.URL.Path)); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		if err != nil {
			http.Error(w, "the manifest cannot be kept", http.StatusInternalServerError)
			return
		}
	}
	maps.Copy(w.Header(), answer.header)
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body.Bytes()) // who has left learns nothing
}

func (k *keptRegistry) keep(m keptManifest) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(k.manifests, ".kept-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), k.name(m.Path))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// replay tells the registry what it knew: indexes last, which name others.
func (k *keptRegistry) replay() error {
	files, err := fs.Glob(os.DirFS(k.manifests), "*.json")
	if err != nil {
		return err
	}
	var later []keptManifest
	for _, name := range files {
		b, err := os.ReadFile(filepath.Join(k.manifests, name))
		var m keptManifest
		if err == nil {
			err = json.Unmarshal(b, &m)
		}
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", quote(name), plain(err))
		}
		if strings.Contains(m.Type, "index") || strings.Contains(m.Type, "list") {
			later = append(later, m)
		} else if err := k.tell(m); err != nil {
			return err
		}
	}
	for _, m := range later {
		if err := k.tell(m); err != nil {
			return err
		}
	}
	return nil
}

func (k *keptRegistry) tell(m keptManifest) error {
	answer := &heldAnswer{header: http.Header{}}
	k.next.ServeHTTP(answer, &http.Request{
		Method: http.MethodPut, URL: &url.URL{Path: m.Path}, Header: http.Header{"Content-Type": {m.Type}},
		Body: io.NopCloser(bytes.NewReader(m.Body)), ContentLength: int64(len(m.Body)),
	})
	if answer.status >= 300 {
		return fmt.Errorf("%s: the registry does not take its own manifest again (status %d)", quote(m.Path), answer.status)
	}
	return nil
}

// heldAnswer is an answer that nobody has been given yet.
type heldAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *heldAnswer) Header() http.Header { return r.header }

func (r *heldAnswer) Write(b []byte) (int, error) { return r.body.Write(b) }

func (r *heldAnswer) WriteHeader(status int) { r.status = status }
