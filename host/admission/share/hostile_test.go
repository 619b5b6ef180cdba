package share

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// A registry that is hostile, or broken, ends a pull with a code, within bounds, and with
// nothing installed.
func TestShareHostileRegistry(t *testing.T) {
	t.Parallel()
	// manifest changes the manifest of a good skill.
	manifest := func(change func(*ocispec.Manifest)) func(*world, *Parcel) {
		return func(w *world, p *Parcel) {
			var m ocispec.Manifest
			musttest.Do(w.t, json.Unmarshal(p.manifest, &m))
			change(&m)
			b := musttest.Get(json.Marshal(m))(w.t)
			w.wrap = manifests(ocispec.MediaTypeImageManifest, b)
		}
	}
	raw := func(mediaType string, b string) func(*world, *Parcel) {
		return func(w *world, _ *Parcel) { w.wrap = manifests(mediaType, []byte(b)) }
	}
	blob := func(answer func(w *world, p *Parcel) http.HandlerFunc) func(*world, *Parcel) {
		return func(w *world, p *Parcel) {
			w.wrap = served(http.MethodGet, "/blobs/"+p.layers[0].Digest.String(), answer(w, p))
		}
	}
	endless := func(rw http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 32<<10)
		for {
			if _, err := rw.Write(chunk); err != nil {
				return
			}
		}
	}
	const image = ocispec.MediaTypeImageManifest
	for name, c := range map[string]struct {
		do   func(*world, *Parcel)
		code skill.Code
		says string
	}{
		"an index":                 {raw(ocispec.MediaTypeImageIndex, `{"schemaVersion":2,"manifests":[]}`), skill.ArchiveRejected, "an index of several"},
		"a manifest of Docker":     {raw("application/vnd.docker.distribution.manifest.v2+json", `{"schemaVersion":2}`), skill.ArchiveRejected, "not a skill"},
		"not JSON":                 {raw(image, `hello`), skill.ArchiveRejected, "not valid JSON"},
		"a key twice":              {raw(image, `{"schemaVersion":2,"schemaVersion":2}`), skill.ArchiveRejected, "not valid JSON"},
		"a key in capitals":        {raw(image, `{"schemaVersion":2,"Layers":[]}`), skill.ArchiveRejected, "unknown key"},
		"deep JSON":                {raw(image, `{"config":`+strings.Repeat("[", 5000)+`}`), skill.ArchiveRejected, "not valid JSON"},
		"a list":                   {raw(image, `[]`), skill.ArchiveRejected, "not valid JSON"},
		"other types":              {raw(image, `{"schemaVersion":"2"}`), skill.ArchiveRejected, "not an OCI manifest"},
		"a container image":        {manifest(func(m *ocispec.Manifest) { m.ArtifactType = "" }), skill.ArchiveRejected, "not a skill"},
		"another artifact":         {manifest(func(m *ocispec.Manifest) { m.ArtifactType = "application/x\x1b[2J" }), skill.ArchiveRejected, "not a skill"},
		"no layers":                {manifest(func(m *ocispec.Manifest) { m.Layers = nil }), skill.ArchiveRejected, "0 layers"},
		"three layers":             {manifest(func(m *ocispec.Manifest) { m.Layers = append(m.Layers, m.Layers[0], m.Layers[0]) }), skill.ArchiveRejected, "3 layers"},
		"10,000 layers":            {manifest(func(m *ocispec.Manifest) { m.Layers = make([]ocispec.Descriptor, 10_000) }), skill.PayloadTooLarge, "manifest"},
		"a layer of another type":  {manifest(func(m *ocispec.Manifest) { m.Layers[0].MediaType = ocispec.MediaTypeImageLayerGzip }), skill.ArchiveRejected, "layer 0"},
		"the archive twice":        {manifest(func(m *ocispec.Manifest) { m.Layers = append(m.Layers, m.Layers[0]) }), skill.ArchiveRejected, "layer 1"},
		"a huge layer":             {manifest(func(m *ocispec.Manifest) { m.Layers[0].Size = 10 << 30 }), skill.PayloadTooLarge, "10737418240 bytes"},
		"a negative size":          {manifest(func(m *ocispec.Manifest) { m.Layers[0].Size = -1 }), skill.ArchiveRejected, "layer 0"},
		"a layer that is too long": {manifest(func(m *ocispec.Manifest) { m.Layers[0].Size-- }), "", ""},
		"a digest of MD5":          {manifest(func(m *ocispec.Manifest) { m.Layers[0].Digest = "md5:0123" }), skill.ArchiveRejected, "layer 0"},
		"a digest that is a path":  {manifest(func(m *ocispec.Manifest) { m.Layers[0].Digest = "sha256:../../x" }), skill.ArchiveRejected, "layer 0"},
		"a layer elsewhere":        {manifest(func(m *ocispec.Manifest) { m.Layers[0].URLs = []string{"http://169.254.169.254/"} }), skill.ArchiveRejected, "foreign address"},
		"a huge signature": {manifest(func(m *ocispec.Manifest) {
			m.Layers = append(m.Layers, ocispec.Descriptor{MediaType: SignatureType, Digest: m.Layers[0].Digest, Size: 5000})
		}), skill.PayloadTooLarge, "layer 1"},
		"a signature that is none": {manifest(func(m *ocispec.Manifest) {
			m.Layers = append(m.Layers, m.Layers[0])
			m.Layers[1].MediaType = SignatureType
		}), skill.SignatureInvalid, "not a minisign signature"},
		"a subject":                 {manifest(func(m *ocispec.Manifest) { m.Subject = &m.Layers[0] }), skill.ArchiveRejected, "subject"},
		"a config":                  {manifest(func(m *ocispec.Manifest) { m.Config.Digest = m.Layers[0].Digest }), skill.ArchiveRejected, "config"},
		"no name":                   {manifest(func(m *ocispec.Manifest) { delete(m.Annotations, ocispec.AnnotationTitle) }), skill.ArchiveRejected, "does not name its skill"},
		"a name that is a path":     {manifest(func(m *ocispec.Manifest) { m.Annotations[ocispec.AnnotationTitle] = "../../etc" }), skill.ArchiveRejected, "does not name its skill"},
		"no version":                {manifest(func(m *ocispec.Manifest) { m.Annotations[ocispec.AnnotationVersion] = "latest" }), skill.ArchiveRejected, "does not name its skill"},
		"another name":              {manifest(func(m *ocispec.Manifest) { m.Annotations[ocispec.AnnotationTitle] = "other" }), skill.SignatureInvalid, "its files are greeter"},
		"another digest":            {manifest(func(m *ocispec.Manifest) { m.Annotations[AnnotationDigest] = sum(nil) }), skill.SignatureInvalid, "its files are greeter"},
		"a layer that is not there": {manifest(func(m *ocispec.Manifest) { m.Layers[0].Digest = ocispec.DescriptorEmptyJSON.Digest[:70] + "0" }), skill.NotFound, ""},
		"a changed byte": {blob(func(w *world, p *Parcel) http.HandlerFunc {
			b := musttest.Get(os.ReadFile(p.archive))(w.t)
			b[len(b)/2] ^= 1
			return func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(b) }
		}), skill.ArchiveRejected, "digest mismatch"},
		"an endless layer": {blob(func(*world, *Parcel) http.HandlerFunc { return endless }), skill.ArchiveRejected, "digest mismatch"},
		"a layer cut off": {blob(func(_ *world, p *Parcel) http.HandlerFunc {
			return func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Length", fmt.Sprint(p.Size()))
				_, _ = rw.Write(make([]byte, p.Size()/2))
			}
		}), skill.ToolInvocationError, "interrupted"},
		"a layer that is short": {blob(func(_ *world, p *Parcel) http.HandlerFunc {
			return func(rw http.ResponseWriter, _ *http.Request) {
				_, _ = rw.Write(make([]byte, p.Size()/2))
				if f, ok := rw.(http.Flusher); ok {
					f.Flush()
				}
			}
		}), skill.ToolInvocationError, "interrupted"},
		"a connection that breaks": {blob(func(*world, *Parcel) http.HandlerFunc {
			return func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		}), skill.ToolInvocationError, "cannot use"},
		"redirects without end": {blob(func(*world, *Parcel) http.HandlerFunc {
			return func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, r.URL.Path, http.StatusFound) }
		}), skill.NetworkDenied, "too many redirects"},
		"a redirect without TLS": {blob(func(*world, *Parcel) http.HandlerFunc {
			return func(rw http.ResponseWriter, r *http.Request) {
				http.Redirect(rw, r, "http://registry.example.com/x?token=secret", http.StatusTemporaryRedirect)
			}
		}), skill.NetworkDenied, "without TLS"},
		"an error with colours": {blob(func(*world, *Parcel) http.HandlerFunc {
			return func(rw http.ResponseWriter, _ *http.Request) {
				rw.WriteHeader(http.StatusTeapot)
				_, _ = rw.Write([]byte(`{"errors":[{"code":"X","message":"` + strings.Repeat(`\u001b[31m`, 500) + `"}]}`))
			}
		}), skill.ToolInvocationError, "status 418"},
		"an endless manifest": {func(w *world, _ *Parcel) { w.wrap = served(http.MethodGet, "/manifests/", endless) }, skill.ToolInvocationError, ""},
		"a manifest of another digest": {func(w *world, p *Parcel) {
			w.wrap = served(http.MethodGet, "/manifests/", func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", image)
				_, _ = rw.Write([]byte(strings.Repeat(" ", len(p.manifest))))
			})
		}, skill.ArchiveRejected, "digest mismatch"},
		"a digest that is not the tag's": {func(w *world, p *Parcel) {
			w.wrap = served(http.MethodHead, "/manifests/", func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", image)
				rw.Header().Set("Docker-Content-Digest", "sha256:../../../etc")
				rw.Header().Set("Content-Length", fmt.Sprint(len(p.manifest)))
			})
		}, skill.ToolInvocationError, ""},
		"headers without end": {func(w *world, _ *Parcel) {
			w.wrap = func(rw http.ResponseWriter, _ *http.Request) bool {
				rw.Header().Set("X-Long", strings.Repeat("x", 1<<20))
				return true
			}
		}, skill.ToolInvocationError, ""},
		"authentication required": {func(w *world, _ *Parcel) { w.wrap = status(http.StatusUnauthorized) }, skill.Unauthorized, "authentication required"},
		"not allowed":             {func(w *world, _ *Parcel) { w.wrap = status(http.StatusForbidden) }, skill.Forbidden, ""},
		"too many requests":       {func(w *world, _ *Parcel) { w.wrap = status(http.StatusTooManyRequests) }, skill.RateLimited, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			folder := w.folder("greeter", "0.1.0", "hello")
			p := w.pack(folder)
			w.push(folder, "greeter")
			c.do(w, p)
			if c.code == "" { // a size that is one too small: whichever side notices
				before := tree(t, w.dir)
				if _, err := w.pull("greeter:0.1.0", unsigned); err == nil || len(tree(t, w.dir)) != len(before) {
					t.Error("it was installed")
				}
				return
			}
			w.refused(name, c.code, c.says, func() error { _, err := w.pull("greeter:0.1.0", unsigned); return err })
		})
	}
}

func status(code int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(code)
		return true
	}
}

// A registry that says nothing is given up, and so is a pull that is interrupted, at once.
func TestShareSilentRegistry(t *testing.T) {
	t.Parallel()
	hang := func(w *world, method, path string) (asked <-chan struct{}) {
		seen, end := make(chan struct{}), make(chan struct{})
		var once sync.Once
		w.t.Cleanup(func() { close(end) })
		w.wrap = served(method, path, func(rw http.ResponseWriter, _ *http.Request) {
			if f, ok := rw.(http.Flusher); ok && method == http.MethodGet {
				_, _ = rw.Write([]byte("PK"))
				f.Flush()
			}
			once.Do(func() { close(seen) })
			<-end
		})
		return seen
	}
	t.Run("idle", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, func(o *RemoteOptions) { o.Idle = 300 * time.Millisecond })
		w.push(w.folder("greeter", "0.1.0", "hello"), "greeter")
		hang(w, http.MethodGet, "/blobs/")
		w.refused("a body that does not come", skill.Timeout, "is unreachable", func() error { _, err := w.pull("greeter", unsigned); return err })
		hang(w, http.MethodHead, "/manifests/")
		w.refused("an answer that does not come", skill.Timeout, "is unreachable", func() error { _, err := w.pull("greeter", unsigned); return err })
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.push(w.folder("greeter", "0.1.0", "hello"), "greeter")
		asked := hang(w, http.MethodGet, "/blobs/")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		w.refused("interrupted", skill.Cancelled, "interrupted", func() error {
			_, err := w.carrier.Pull(ctx, w.remote, w.ref("greeter"), PullOptions{Dir: w.dir, Policy: unsigned})
			return err
		})
	})
	t.Run("out of time", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.push(w.folder("greeter", "0.1.0", "hello"), "greeter")
		hang(w, http.MethodGet, "/blobs/")
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		w.refused("out of time", skill.Timeout, "", func() error {
			_, err := w.carrier.Pull(ctx, w.remote, w.ref("greeter"), PullOptions{Dir: w.dir, Policy: unsigned})
			return err
		})
	})
}

// Credentials go to the registry that they are for, and to nobody else.
func TestShareCredentials(t *testing.T) {
	t.Parallel()
	var told atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			told.Store(true)
		}
		rw.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(elsewhere.Close)
	w := newWorld(t, func(o *RemoteOptions) { o.Username, o.Password = "ada", "secret-1" })
	ask := func(next func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
		return func(rw http.ResponseWriter, r *http.Request) bool {
			name, word, ok := r.BasicAuth()
			if !ok || name != "ada" || word != "secret-1" {
				rw.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				rw.WriteHeader(http.StatusUnauthorized)
				return true
			}
			return next(rw, r)
		}
	}
	w.wrap = ask(func(http.ResponseWriter, *http.Request) bool { return false })
	w.push(w.folder("greeter", "0.1.0", "hello"), "greeter")
	musttest.Get(w.pull("greeter", unsigned))(t)
	w.dir = t.TempDir()
	w.wrap = ask(served(http.MethodGet, "/blobs/", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, elsewhere.URL+"/blob", http.StatusTemporaryRedirect)
	}))
	w.refused("led elsewhere", skill.NotFound, "", func() error { _, err := w.pull("greeter", unsigned); return err })
	if told.Load() {
		t.Error("the other host was given the credentials")
	}
	wrong := NewRemote(RemoteOptions{Username: "ada", Password: "secret-2"})
	defer wrong.Close()
	_, err := w.carrier.Pull(t.Context(), wrong, w.ref("greeter"), PullOptions{Dir: w.dir, Policy: unsigned})
	wantCode(t, "a wrong password", err, skill.Unauthorized, "authentication required")
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the error tells the password: %v", err)
	}
}

// Where hosts are named, no other one is spoken with, also not where a registry leads to.
func TestShareHosts(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(elsewhere.Close)
	w := newWorld(t)
	w.push(w.folder("greeter", "0.1.0", "hello"), "greeter")
	only := NewRemote(RemoteOptions{Hosts: []string{w.host}})
	defer only.Close()
	pull := func(r *Remote) error {
		_, err := w.carrier.Pull(t.Context(), r, w.ref("greeter"), PullOptions{Dir: w.dir, Policy: unsigned})
		return err
	}
	nobody := NewRemote(RemoteOptions{Hosts: []string{}})
	defer nobody.Close()
	w.refused("no host", skill.NetworkDenied, "not allowed for pulls", func() error { return pull(nobody) })
	w.wrap = served(http.MethodGet, "/blobs/", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, elsewhere.URL, http.StatusFound)
	})
	w.refused("led elsewhere", skill.NetworkDenied, "another host", func() error { return pull(only) })
	w.wrap = func(rw http.ResponseWriter, _ *http.Request) bool {
		rw.Header().Set("WWW-Authenticate", `Bearer realm="`+elsewhere.URL+`/token",service="x"`)
		rw.WriteHeader(http.StatusUnauthorized)
		return true
	}
	w.refused("a token from elsewhere", skill.NetworkDenied, "another host", func() error { return pull(only) })
	if n := asked.Load(); n != 0 {
		t.Errorf("the other host was asked %d times", n)
	}
	w.wrap = nil
	if err := pull(only); err != nil {
		t.Error(err)
	}
}

// TestShareLeadsNear: a registry that is elsewhere leads nobody to services of this machine,
// which answer whoever reaches them: not by a redirect, not by the address of its tokens.
func TestShareLeadsNear(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	local := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(local.Close)
	w := newWorld(t)
	w.push(w.folder("greeter", "0.1.0", "hello"), "greeter")
	const remote = "registry.example"
	away := NewRemote(RemoteOptions{PlainHTTP: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasPrefix(address, remote) {
			address = w.host
		} else if !Loopback(address) {
			return nil, errors.New("the network of this test is loopback alone")
		}
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}})
	defer away.Close()
	ref := musttest.Get(ParseReference(remote + strings.TrimPrefix(w.ref("greeter").String(), w.host)))(t)
	pull := func() error {
		_, err := w.carrier.Pull(t.Context(), away, ref, PullOptions{Dir: w.dir, Policy: unsigned})
		return err
	}
	for _, to := range []string{local.URL, strings.Replace(local.URL, "127.0.0.1", "localhost", 1), "http://169.254.169.254", "http://[fe80::1]", "http://0.0.0.0:1"} {
		w.wrap = served(http.MethodGet, "/blobs/", func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, to, http.StatusFound)
		})
		w.refused("led to "+to, skill.NetworkDenied, "another host", pull)
		w.wrap = func(rw http.ResponseWriter, _ *http.Request) bool {
			rw.Header().Set("WWW-Authenticate", `Bearer realm="`+to+`/token",service="x"`)
			rw.WriteHeader(http.StatusUnauthorized)
			return true
		}
		w.refused("a token from "+to, skill.ToolInvocationError, "", pull) // oras looks at that itself
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("a service of this machine was asked %d times", n)
	}
	w.wrap = nil
	if err := pull(); err != nil {
		t.Error(err)
	}
}

func TestShareLoopback(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "localhost:5000": true, "LOCALHOST:1": true, "127.0.0.1:5000": true, "127.8.9.1": true, "[::1]:5000": true, "[::1]": true,
		"[::ffff:127.0.0.1]:1": true, "registry.example.com": false, "10.0.0.1:5000": false, "localhost.example.com": false, "127.0.0.1.example.com": false, "": false, "0.0.0.0:1": false,
	} {
		if got := Loopback(host); got != want {
			t.Errorf("%s: %t", host, got)
		}
	}
}

func TestShareReferences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"localhost:5000/acme/greeter":       "localhost:5000/acme/greeter ",
		"localhost:5000/acme/greeter:0.1.0": "localhost:5000/acme/greeter 0.1.0",
		"r.example.com/g@" + sum(nil):       "r.example.com/g " + sum(nil),
		"[::1]:5000/g:latest":               "[::1]:5000/g latest",
		"greeter":                           "",
		"":                                  "",
		"localhost:5000/Acme/greeter":       "",
		"localhost:5000/../greeter":         "",
		"http://localhost:5000/greeter":     "",
		"user:pass@localhost/greeter":       "",
		"localhost/greeter@sha512:" + strings.Repeat("0", 128): "",
		"localhost/greeter:" + strings.Repeat("x", 200):        "",
		"localhost/" + strings.Repeat("x/", 600) + "x":         "",
		"local host/x": "", "localhost/x?y": "", "localhost/x#y": "", "localhost\x00/x": "",
	} {
		ref, err := ParseReference(text)
		got := ""
		if err == nil {
			got = ref.Place() + " " + ref.Version()
		} else {
			wantCode(t, text, err, skill.InvalidArgument, "")
		}
		if got != want {
			t.Errorf("%.60q: %q, want %q", text, got, want)
		}
	}
}

func TestShareVersions(t *testing.T) {
	t.Parallel()
	list := versions([]string{"latest", "1.10.0", "1.9.0", "2.0.0-rc.1", "1.0.0_linux", "v1.0.0", "1.2", "01.2.3", "1.0.0-rc.1", "1.0.0"})
	if got := strings.Join(list, " "); got != "1.0.0-rc.1 1.0.0 1.0.0+linux 1.9.0 1.10.0 2.0.0-rc.1" || newest(list) != "1.10.0" {
		t.Errorf("%s, %s", got, newest(list))
	}
	if newest(versions([]string{"1.0.0-a", "1.0.0-b"})) != "1.0.0-b" || newest(nil) != "" {
		t.Error("the newest of previews, and of none")
	}
}

// A registry is searched by its list; what is not a skill is passed over.
func TestShareSearch(t *testing.T) {
	t.Parallel()
	w, k := newWorld(t), key(t)
	for _, version := range []string{"0.1.0", "0.2.0"} {
		folder := w.folder("greeter", version, "hello "+version)
		w.sign(folder, k)
		w.push(folder, "acme/greeter")
	}
	w.push(w.folder("counter", "1.0.0", "numbers"), "acme/counter")
	w.push(w.folder("other", "1.0.0", "things"), "elsewhere/other")
	search := func(prefix string, words ...string) (ids []string) {
		found, more, err := w.carrier.Search(t.Context(), w.remote, w.host, prefix, words)
		if err != nil || more {
			t.Fatalf("%v, %t", err, more)
		}
		for _, f := range found {
			ids = append(ids, fmt.Sprintf("%s %s %t", f.ID, strings.Join(f.Versions, ","), f.Signed))
		}
		return ids
	}
	for _, c := range []struct {
		prefix string
		words  []string
		want   string
	}{
		{"", nil, "counter 1.0.0 false; greeter 0.1.0,0.2.0 true; other 1.0.0 false"},
		{"acme", nil, "counter 1.0.0 false; greeter 0.1.0,0.2.0 true"},
		{"acm", nil, ""},
		{"", []string{"SAYS", "numbers"}, "counter 1.0.0 false"},
		{"", []string{"nothing"}, ""},
	} {
		if got := strings.Join(search(c.prefix, c.words...), "; "); got != c.want {
			t.Errorf("%q %q: %s, want %s", c.prefix, c.words, got, c.want)
		}
	}
	w.wrap = func(rw http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "elsewhere") {
			rw.WriteHeader(http.StatusInternalServerError)
			return true
		}
		return false
	}
	if found, more, err := w.carrier.Search(t.Context(), w.remote, w.host, "", nil); err != nil || !more || len(found) != 2 {
		t.Errorf("with one that is broken: %v, %t, %v", found, more, err)
	}
	w.wrap = served(http.MethodGet, "/_catalog", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNotFound) })
	_, _, err := w.carrier.Search(t.Context(), w.remote, w.host, "", nil)
	wantCode(t, "no list", err, skill.NotFound, "has no catalogue")
	pages := 0
	w.wrap = served(http.MethodGet, "/_catalog", func(rw http.ResponseWriter, _ *http.Request) {
		pages++
		rw.Header().Set("Link", `</v2/_catalog?last=x>; rel="next"`)
		_, _ = rw.Write([]byte(`{"repositories":["none"]}`))
	})
	if found, more, err := w.carrier.Search(t.Context(), w.remote, w.host, "", nil); err != nil || !more || len(found) != 0 || pages != maxPages {
		t.Errorf("a list without an end: %v, %t, %v after %d pages", found, more, err, pages)
	}
	w.wrap = served(http.MethodGet, "/_catalog", func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = rw.Write([]byte(`{"repositories":["` + strings.Repeat("x", 2<<20) + `"]}`))
	})
	_, _, err = w.carrier.Search(t.Context(), w.remote, w.host, "", nil)
	wantCode(t, "a page that is too large", err, skill.ToolInvocationError, "")
	_, _, err = w.carrier.Search(t.Context(), w.remote, "no host", "", nil)
	wantCode(t, "no host", err, skill.InvalidArgument, "")
}

// Bundles are the same bytes for the same skills, and are held to the same rules.
func TestShareBundles(t *testing.T) {
	t.Parallel()
	w, k := newWorld(t), key(t)
	a, b := w.folder("a", "0.1.0", "hello"), w.folder("b", "0.1.0", "hello")
	w.sign(a, k)
	w.sign(b, k)
	w.push(a, "a")
	pa := musttest.Get(w.carrier.FetchParcel(t.Context(), w.remote, w.ref("a"), t.TempDir()))(t)
	pb := w.pack(b)
	bundle := func(parcels ...*Parcel) string {
		f, err := os.Create(filepath.Join(t.TempDir(), "bundle.tar"))
		if err == nil {
			err = Export(f, parcels)
		}
		if err == nil {
			err = f.Close()
		}
		musttest.Do(t, err)
		return f.Name()
	}
	file := bundle(pa, pb)
	one, err1 := os.ReadFile(file)
	two, err2 := os.ReadFile(bundle(pb, w.pack(a)))
	if err1 != nil || err2 != nil || string(one) != string(two) {
		t.Errorf("two bundles of the same skills differ: %v %v", err1, err2)
	}
	wantCode(t, "twice", Export(os.Stderr, []*Parcel{pa, pa}), skill.Conflict, "listed twice")
	load := func(name string, o PullOptions) ([]*Pulled, error) {
		opened, err := w.carrier.OpenBundle(name)
		if err != nil {
			return nil, err
		}
		o.Dir = w.dir
		return w.carrier.Import(t.Context(), opened, o)
	}
	w.refused("nobody is accepted", skill.SignatureInvalid, "", func() error { _, err := load(file, PullOptions{}); return err })
	done, err := load(file, PullOptions{Policy: by(k)})
	if err != nil || len(done) != 2 || done[1].ID != "b" || done[0].Reference != "bundle" {
		t.Fatalf("%+v, %v", done, err)
	}
	// If one is refused, none is installed.
	newer, older := w.folder("a", "0.2.0", "hello"), w.folder("b", "0.0.9", "hello")
	w.sign(newer, k)
	w.sign(older, k)
	w.refused("one is older", skill.DowngradeRefused, "b 0.1.0", func() error {
		_, err := load(bundle(w.pack(newer), w.pack(older)), PullOptions{Policy: by(k)})
		return err
	})
	w.refused("one twice", skill.Conflict, "two versions", func() error {
		_, err := load(bundle(w.pack(newer), pa), PullOptions{Policy: by(k), Downgrade: true})
		return err
	})
	// What is imported from a file cannot be had from anywhere again.
	musttest.Do(t, os.RemoveAll(filepath.Join(w.dir, "a")))
	_, err = w.carrier.Restore(t.Context(), w.remote, PullOptions{Dir: w.dir})
	wantCode(t, "restored", err, skill.NotFound, "import it again")
	// Another registry gets the same manifest.
	opened := musttest.Get(w.carrier.OpenBundle(file))(t)
	all, err := w.carrier.Parcels(t.Context(), opened, t.TempDir())
	if err != nil || len(all) != 2 || all[0].Manifest() != pa.Manifest() {
		t.Errorf("%v, %v", all, err)
	}
	for i := range 40 { // cut off, or a byte changed, anywhere
		damaged := filepath.Join(t.TempDir(), "damaged.tar")
		text := append([]byte(nil), one...)
		if at := len(text) * i / 40; i%2 == 0 {
			text = text[:at]
		} else {
			text[at] ^= 0x41
		}
		musttest.Do(t, os.WriteFile(damaged, text, 0o600))
		fresh := newWorld(t)
		if opened, err := w.carrier.OpenBundle(damaged); err == nil {
			_, err = w.carrier.Import(t.Context(), opened, PullOptions{Dir: fresh.dir, Policy: by(k)})
			if err != nil && len(tree(t, fresh.dir)) != 1 {
				t.Errorf("damaged at %d/40: %v, and something is installed", i, err)
			}
			if code := skill.CodeOf(err); code == skill.Internal {
				t.Errorf("damaged at %d/40: %v", i, err)
			}
		}
	}
}
