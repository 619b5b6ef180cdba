package share

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/admission"
	"openskill/host/admission/admissiontest"
	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// noModules is for tests without modules of WebAssembly.
type noModules struct{}

func (noModules) Check(context.Context, skill.Kind, *skill.Spec, *time.Duration) (json.RawMessage, error) {
	return nil, &skill.Error{Code: skill.InvalidModule, Message: "this test has no modules"}
}

// world is a registry on loopback, and folders on both sides of it.
type world struct {
	t       *testing.T
	carrier *Carrier
	remote  *Remote
	host    string
	dir     string                                        // where skills are pulled to
	wrap    func(http.ResponseWriter, *http.Request) bool // answers before the registry does; nil: never
}

func newWorld(t *testing.T, o ...func(*RemoteOptions)) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	inner := admissiontest.New()
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.wrap == nil || !w.wrap(rw, r) {
			inner.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(s.Close)
	w.host = strings.TrimPrefix(s.URL, "http://")
	options := RemoteOptions{Idle: 20 * time.Second}
	for _, set := range o {
		set(&options)
	}
	w.remote = NewRemote(options)
	t.Cleanup(w.remote.Close)
	w.carrier = newCarrier(t)
	return w
}

func newCarrier(t *testing.T) *Carrier {
	t.Helper()
	limits := skill.Limits{Timeout: time.Second, Memory: 1 << 20, Fuel: 1000, Output: 1000, Scratch: 1000}
	a := musttest.Get(admission.New(admission.Options{Registry: manifest.Options{Defaults: limits, Caps: limits}, Checker: noModules{}, MaxArchive: 1 << 20}))(t)
	return musttest.Get(New(Options{Admission: a, MaxArchive: 1 << 20}))(t)
}

// folder makes a skill. text makes it another one.
func (w *world) folder(id, version, text string) string {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), id)
	write(w.t, dir, map[string]string{
		"skill.yaml":   fmt.Sprintf("id: %s\nversion: %s\ndescription: Says %s.\ntype: wasm\nruntime: javascript\nentry: lib/main.mjs\n", id, version, text),
		"lib/main.mjs": "// " + text + "\n",
	})
	return dir
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		musttest.Write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
}

// key makes a pair of keys.
func key(t *testing.T) PrivateKey {
	t.Helper()
	return musttest.Get(GenerateKey())(t)
}

// sign signs what is in a folder.
func (w *world) sign(folder string, k PrivateKey) {
	w.t.Helper()
	p := musttest.Get(w.carrier.PackFiles(w.t.Context(), folder, w.t.TempDir()))(w.t)
	sig, err := Sign(k, p.Statement)
	if err == nil {
		err = os.WriteFile(folder+SignatureExt, sig, 0o600)
	}
	musttest.Do(w.t, err)
}

func (w *world) ref(text string) Reference {
	w.t.Helper()
	ref := musttest.Get(ParseReference(w.host + "/" + text))(w.t)
	return ref
}

// pack packs a folder, with its signature.
func (w *world) pack(folder string) *Parcel {
	w.t.Helper()
	p := musttest.Get(w.carrier.Pack(w.t.Context(), folder, w.t.TempDir()))(w.t)
	return p
}

// push pushes a folder.
func (w *world) push(folder, to string) *Pushed {
	w.t.Helper()
	done := musttest.Get(w.carrier.Push(w.t.Context(), w.remote, w.ref(to), w.pack(folder), PushOptions{}))(w.t)
	return done
}

func (w *world) pull(from string, p *Policy) (*Pulled, error) {
	w.t.Helper()
	return w.carrier.Pull(w.t.Context(), w.remote, w.ref(from), PullOptions{Dir: w.dir, Policy: p})
}

// refused wants a pull that is refused with a code and changes nothing.
func (w *world) refused(what string, code skill.Code, says string, do func() error) {
	w.t.Helper()
	before := tree(w.t, w.dir)
	err := do()
	wantCode(w.t, what, err, code, says)
	if diff := cmp.Diff(before, tree(w.t, w.dir)); diff != "" {
		w.t.Errorf("%s: the folder changed:\n%s", what, diff)
	}
}

func wantCode(t *testing.T, what string, err error, code skill.Code, says string) {
	t.Helper()
	switch e, ok := errors.AsType[*skill.Error](err); {
	case !ok || e.Code != code:
		t.Errorf("%s: %v, want %s", what, err, code)
	case !strings.Contains(e.Message, says) || e.Message == "" || len(e.Message) > skill.MaxMessage || strings.ContainsAny(e.Message, "\x1b\n"):
		t.Errorf("%s: the message is %q, want %q in it", what, e.Message, says)
	}
}

// tree is all that a folder holds, with its modes.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		if d.Type().IsRegular() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			text = string(b)
		}
		rel, err := filepath.Rel(dir, p)
		all[rel] = info.Mode().String() + " " + text
		return err
	})
	musttest.Do(t, err)
	return all
}

// by accepts the skills of a key.
func by(keys ...PrivateKey) *Policy {
	var public []PublicKey
	for _, k := range keys {
		public = append(public, k.Public())
	}
	return OfKeys(public, false)
}

var unsigned = OfKeys(nil, true)

// served answers requests for one path below a repository with what it is told.
func served(method, path string, answer http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != method || !strings.Contains(r.URL.Path, path) {
			return false
		}
		answer(w, r)
		return true
	}
}

// manifests answers every request for a manifest with these bytes, as they should be.
func manifests(mediaType string, b []byte) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Docker-Content-Digest", sum(b))
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
		return true
	}
}
