// This file is a registry of OCI artifacts in memory, for tests.

package admissiontest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Registry serves the distribution protocol: blobs and manifests by digest, tags, and the list of
// repositories. Like most registries it has no list of referrers.
type Registry struct {
	mu           sync.Mutex
	uploads      int
	blobs        map[string][]byte              // by repository@digest
	repositories map[string]map[string]manifest // by tag or digest
}

type manifest struct {
	mediaType string
	body      []byte
}

// New makes an empty registry.
func New() *Registry {
	return &Registry{blobs: map[string][]byte{}, repositories: map[string]map[string]manifest{}}
}

var route = regexp.MustCompile(`^/v2/(.+)/(blobs|manifests|tags)/(.+)$`)

func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "BLOB_UPLOAD_INVALID")
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m := route.FindStringSubmatch(strings.TrimSuffix(req.URL.Path, "/"))
	switch {
	case req.URL.Path == "/v2/":
	case req.URL.Path == "/v2/_catalog":
		answer(w, map[string]any{"repositories": slices.Sorted(maps.Keys(r.repositories))})
	case m == nil:
		refuse(w, http.StatusNotFound, "NOT_FOUND")
	case m[2] == "tags":
		r.tags(w, m[1])
	case m[2] == "manifests":
		r.manifest(w, req, m[1], m[3], body)
	case strings.HasPrefix(m[3], "uploads"):
		r.upload(w, req, m[1], body)
	default:
		blob, ok := r.blobs[m[1]+"@"+m[3]]
		if !ok {
			refuse(w, http.StatusNotFound, "BLOB_UNKNOWN")
			return
		}
		give(w, req, m[3], "application/octet-stream", blob)
	}
}

// upload takes a blob in one request after the one that begins it.
func (r *Registry) upload(w http.ResponseWriter, req *http.Request, repository string, body []byte) {
	if req.Method == http.MethodPost {
		r.uploads++
		w.Header().Set("Location", fmt.Sprintf("/v2/%s/blobs/uploads/%d", repository, r.uploads))
		w.WriteHeader(http.StatusAccepted)
		return
	}
	digest := req.URL.Query().Get("digest")
	if req.Method != http.MethodPut || digest != digestOf(body) {
		refuse(w, http.StatusBadRequest, "DIGEST_INVALID")
		return
	}
	r.blobs[repository+"@"+digest] = body
	w.WriteHeader(http.StatusCreated)
}

func (r *Registry) manifest(w http.ResponseWriter, req *http.Request, repository, reference string, body []byte) {
	if req.Method == http.MethodPut {
		if r.repositories[repository] == nil {
			r.repositories[repository] = map[string]manifest{}
		}
		m := manifest{req.Header.Get("Content-Type"), body}
		r.repositories[repository][reference], r.repositories[repository][digestOf(body)] = m, m
		w.Header().Set("Docker-Content-Digest", digestOf(body))
		w.WriteHeader(http.StatusCreated)
		return
	}
	m, ok := r.repositories[repository][reference]
	if !ok {
		refuse(w, http.StatusNotFound, "MANIFEST_UNKNOWN")
		return
	}
	give(w, req, digestOf(m.body), m.mediaType, m.body)
}

func (r *Registry) tags(w http.ResponseWriter, repository string) {
	list, ok := r.repositories[repository]
	if !ok {
		refuse(w, http.StatusNotFound, "NAME_UNKNOWN")
		return
	}
	tags := slices.DeleteFunc(slices.Sorted(maps.Keys(list)), func(name string) bool { return strings.Contains(name, ":") })
	answer(w, map[string]any{"name": repository, "tags": tags})
}

func give(w http.ResponseWriter, req *http.Request, digest, mediaType string, body []byte) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.Header().Set("Docker-Content-Digest", digest)
	if req.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []map[string]string{{"code": code, "message": code}}})
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
