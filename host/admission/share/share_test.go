package share

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/admission"
	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(s[:])
}

// What is pushed is what is pulled elsewhere: the same files, the same digest, by the same
// manifest whoever pushes it.
func TestShareRoundTrip(t *testing.T) {
	t.Parallel()
	w, k := newWorld(t), key(t)
	folder := w.folder("greeter", "0.1.0", "hello")
	w.sign(folder, k)
	first := w.push(folder, "acme/greeter")
	if !first.Changed || first.Reference != w.host+"/acme/greeter:0.1.0" {
		t.Errorf("%+v", first)
	}
	copied := filepath.Join(t.TempDir(), "other")
	musttest.Do(t, os.CopyFS(copied, os.DirFS(folder)))
	musttest.Do(t, os.Rename(folder+SignatureExt, copied+SignatureExt))
	if again := w.push(copied, "acme/greeter"); again.Changed || again.Manifest != first.Manifest {
		t.Errorf("pushed again: %+v, want the manifest %s", again, first.Manifest)
	}
	got := musttest.Get(w.pull("acme/greeter", by(key(t), k)))(t)
	want := musttest.Get(manifest.Digest(folder))(t)
	is, err := manifest.Digest(filepath.Join(w.dir, "greeter"))
	if err != nil || is != want || got.Digest != want || got.Key != k.Public().String() || got.Trust != skill.Community || !got.Changed {
		t.Errorf("%s, %v, %+v; want %s", is, err, got, want)
	}
	f := musttest.Get(manifest.ReadLock(w.dir))(t)
	if diff := cmp.Diff(map[skill.ID]*manifest.LockEntry{"greeter": {
		Version: "0.1.0", Digest: want, Reference: first.Reference, Manifest: first.Manifest, Key: k.Public().String(),
	}}, f.Skills); diff != "" {
		t.Error(diff)
	}
	// Once more changes nothing, and by its digest it is the same.
	before := tree(t, w.dir)
	for _, from := range []string{"acme/greeter:0.1.0", "acme/greeter"} {
		if got, err := w.pull(from, by(k)); err != nil || got.Changed {
			t.Errorf("%s again: %+v, %v", from, got, err)
		}
	}
	if diff := cmp.Diff(before, tree(t, w.dir)); diff != "" {
		t.Error(diff)
	}
	if _, err := w.pull("acme/greeter@"+first.Manifest, by(k)); err != nil {
		t.Error(err)
	}
	found, err := w.carrier.Verify(t.Context(), filepath.Join(w.dir, "greeter"), t.TempDir(), by(k))
	if err != nil || found.Digest != want || !found.Signed {
		t.Errorf("%+v, %v", found, err)
	}
}

// What does not travel is not in the digest, and is named.
func TestShareLeavesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	folder := w.folder("greeter", "0.1.0", "hello")
	bare := w.pack(folder)
	write(t, folder, map[string]string{".env": "KEY=1", ".git/config": "x", "target/debug/x": "x", "lib/__pycache__/a.pyc": "x", "b.pyc": "x", "node_modules/a/b.js": "x"})
	musttest.Do(t, os.Symlink("/etc/passwd", filepath.Join(folder, ".link")))
	p := w.pack(folder)
	if p.Statement != bare.Statement || p.Manifest() != bare.Manifest() {
		t.Errorf("%+v, want %+v", p.Statement, bare.Statement)
	}
	if diff := cmp.Diff([]string{".env", ".git/", ".link", "b.pyc", "lib/__pycache__/", "node_modules/", "target/"}, p.LeftOut); diff != "" {
		t.Error(diff)
	}
	musttest.Do(t, os.Symlink("main.mjs", filepath.Join(folder, "lib", "link.mjs")))
	_, err := w.carrier.Pack(t.Context(), folder, t.TempDir())
	wantCode(t, "a link", err, skill.ArchiveRejected, "link")
}

// Only what a host would accept is packed.
func TestSharePackRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	empty, wrong, unbuilt := t.TempDir(), w.folder("a", "0.1.0", "x"), w.folder("b", "0.1.0", "x")
	write(t, wrong, map[string]string{"skill.yaml": "id: a\n"})
	write(t, unbuilt, map[string]string{"skill.yaml": "id: b\nversion: 0.1.0\ndescription: B.\ntype: wasm\nruntime: wasi\nentry: b.wasm\n"})
	damaged := w.folder("c", "0.1.0", "x")
	write(t, damaged, map[string]string{"skill.yaml": "id: c\nversion: 0.1.0\ndescription: C.\ntype: wasm\nruntime: wasi\nentry: c.wasm\n", "c.wasm": "no module"})
	for folder, code := range map[string]skill.Code{
		empty: skill.ArchiveRejected, wrong: skill.InvalidManifest, unbuilt: skill.InvalidManifest, damaged: skill.InvalidModule,
		filepath.Join(empty, "none"): skill.InvalidArgument, filepath.Join(wrong, "skill.yaml"): skill.InvalidArgument,
	} {
		_, err := w.carrier.Pack(t.Context(), folder, t.TempDir())
		wantCode(t, folder, err, code, "")
	}
	folder := w.folder("d", "0.1.0", "x")
	musttest.Do(t, os.Mkdir(folder+SignatureExt, 0o700))
	_, err := w.carrier.Pack(t.Context(), folder, t.TempDir())
	wantCode(t, "a signature that is a folder", err, skill.SignatureInvalid, "file")
}

// A version does not change but by force, and does not lose its signature.
func TestSharePushConflicts(t *testing.T) {
	t.Parallel()
	w, k := newWorld(t), key(t)
	ctx := t.Context()
	first, other := w.folder("greeter", "1.0.0+linux", "hello"), w.folder("greeter", "1.0.0+linux", "good bye")
	if done := w.push(first, "g"); done.Tags[0] != "1.0.0_linux" {
		t.Errorf("%+v", done)
	}
	_, err := w.carrier.Push(ctx, w.remote, w.ref("g"), w.pack(other), PushOptions{})
	wantCode(t, "other files", err, skill.Conflict, "--force")
	w.sign(first, k) // which is no other version
	if done := w.push(first, "g"); !done.Changed {
		t.Errorf("%+v", done)
	}
	musttest.Do(t, os.Remove(first+SignatureExt))
	_, err = w.carrier.Push(ctx, w.remote, w.ref("g"), w.pack(first), PushOptions{})
	wantCode(t, "without its signature", err, skill.Conflict, "signature")
	done, err := w.carrier.Push(ctx, w.remote, w.ref("g"), w.pack(other), PushOptions{Force: true, Tags: []string{"latest"}})
	if err != nil || !done.Changed || !cmp.Equal(done.Tags, []string{"1.0.0_linux", "latest"}) {
		t.Errorf("%+v, %v", done, err)
	}
	if got, err := w.pull("g:latest", unsigned); err != nil || got.Version != "1.0.0+linux" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, tags := range [][]string{{""}, {"a b"}, {"2.0.0"}, {"../x"}, make([]string, 21)} {
		_, err := w.carrier.Push(ctx, w.remote, w.ref("g"), w.pack(other), PushOptions{Force: true, Tags: tags})
		wantCode(t, "tags", err, skill.InvalidArgument, "tag")
	}
	_, err = w.carrier.Push(ctx, w.remote, w.ref("g:2.0.0"), w.pack(other), PushOptions{})
	wantCode(t, "another version in the reference", err, skill.InvalidArgument, "1.0.0+linux")
}

// U10: each reason to refuse has its code, and changes nothing: a signature that is missing,
// by another key, of other files, replayed with an older version.
func TestShareRefusals(t *testing.T) {
	t.Parallel()
	w, k := newWorld(t), key(t)
	plain, good := w.folder("plain", "0.1.0", "unsigned"), w.folder("greeter", "0.2.0", "hello")
	w.sign(good, k)
	w.push(plain, "plain")
	w.push(good, "greeter")
	pull := func(from string, p *Policy) func() error {
		return func() error { _, err := w.pull(from, p); return err }
	}
	w.refused("nobody is accepted", skill.SignatureInvalid, "not accepted here", pull("greeter", nil))
	w.refused("missing", skill.SignatureMissing, "not signed", pull("plain", by(k)))
	w.refused("missing, no policy", skill.SignatureMissing, "not signed", pull("plain", nil))
	w.refused("wrong key", skill.SignatureInvalid, "not accepted here", pull("greeter", by(key(t))))
	one := func(of Publisher) *Policy {
		of.Name, of.Keys = "acme", []PublicKey{k.Public()}
		return &Policy{Publishers: []Publisher{of}}
	}
	w.refused("another id", skill.PublisherDenied, "may only publish acme-*, not greeter", pull("greeter", one(Publisher{Skills: []string{"acme-*"}})))
	w.refused("from elsewhere", skill.PublisherDenied, "not accepted from", pull("greeter", one(Publisher{Skills: []string{"*"}, Registries: []string{"registry.example.com/*"}})))
	w.refused("not there", skill.NotFound, "", pull("nothing", by(k)))
	w.refused("no such version", skill.NotFound, "", pull("greeter:9.9.9", by(k)))

	// The signature of other files, which is what a registry can put there.
	stolen := w.folder("greeter", "0.3.0", "evil")
	text, err := os.ReadFile(good + SignatureExt)
	if err == nil {
		err = os.WriteFile(stolen+SignatureExt, text, 0o600)
	}
	musttest.Do(t, err)
	wantCode(t, "it is not pushed by accident", w.pack(stolen).Fits(nil), skill.SignatureInvalid, "sign it again")
	wantCode(t, "nor with a key", w.pack(stolen).Fits([]PublicKey{k.Public()}), skill.SignatureInvalid, "changed after")
	w.push(stolen, "stolen")
	w.refused("another's signature", skill.SignatureInvalid, "changed after signing", pull("stolen", by(k)))

	// An artifact that says it is what was signed, and holds other files.
	lying := w.pack(stolen)
	is := w.pack(good)
	lying.Statement, lying.Signature = is.Statement, is.Signature
	musttest.Do(t, lying.seal(t.Context()))
	musttest.Get(w.carrier.Push(t.Context(), w.remote, w.ref("lying"), lying, PushOptions{}))(t)
	w.refused("other files than were signed", skill.SignatureInvalid, "its files are greeter 0.3.0", pull("lying", by(k)))

	musttest.Get(w.pull("greeter", by(k)))(t)
	older := w.folder("greeter", "0.1.9", "hello")
	w.sign(older, k)
	w.push(older, "greeter")
	w.refused("an older version", skill.DowngradeRefused, "--allow-downgrade", pull("greeter:0.1.9", by(k)))
	changed := w.folder("greeter", "0.2.0", "something else")
	w.sign(changed, k)
	w.push(changed, "mirror/greeter")
	w.refused("the same version, changed", skill.Conflict, "versions do not change", pull("mirror/greeter", by(k)))
	next := w.folder("greeter", "0.4.0", "unsigned")
	w.push(next, "next/greeter")
	w.refused("a signature that is gone", skill.SignatureMissing, "was signed", pull("next/greeter", unsigned))
	w.refused("a version of which a part does not count", skill.DowngradeRefused, "not higher", func() error {
		same := w.folder("greeter", "0.2.0+2", "hello")
		w.sign(same, k)
		w.push(same, "build/greeter")
		_, err := w.pull("build/greeter", by(k))
		return err
	})
	if got, err := w.carrier.Pull(t.Context(), w.remote, w.ref("greeter:0.1.9"), PullOptions{Dir: w.dir, Policy: by(k), Downgrade: true}); err != nil || got.Version != "0.1.9" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := w.pull("greeter", by(k)); err != nil || got.Version != "0.2.0" {
		t.Errorf("the newest is %+v, %v", got, err)
	}
}

// What is in the folder already and was not pulled stays.
func TestSharePullConflicts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.push(w.folder("greeter", "0.1.0", "hello"), "greeter")
	pull := func() error { _, err := w.pull("greeter", unsigned); return err }
	write(t, filepath.Join(w.dir, "greeter"), map[string]string{"mine.txt": "mine"})
	w.refused("the author's own folder", skill.Conflict, "was not pulled", pull)
	musttest.Do(t, os.RemoveAll(filepath.Join(w.dir, "greeter")))
	write(t, w.dir, map[string]string{"greeter": "a file"})
	w.refused("a file", skill.Conflict, "a file or link", pull)
	musttest.Do(t, os.Remove(filepath.Join(w.dir, "greeter")))
	write(t, w.dir, map[string]string{manifest.LockName: "{"})
	w.refused("a damaged lock file", skill.Conflict, manifest.LockName, pull)
	musttest.Do(t, os.Remove(filepath.Join(w.dir, manifest.LockName)))
	musttest.Do(t, pull())
	main := filepath.Join(w.dir, "greeter", "lib", "main.mjs")
	musttest.Do(t, errors.Join(os.Remove(main), os.WriteFile(main, []byte("edited"), 0o600)))
	w.push(w.folder("greeter", "0.2.0", "hello"), "greeter")
	w.refused("an edited folder", skill.Conflict, "changed since", pull)
	before := tree(t, w.dir)
	done, err := w.carrier.Restore(t.Context(), w.remote, PullOptions{Dir: w.dir})
	if err != nil || len(done) != 1 || !done[0].Changed || done[0].Version != "0.1.0" {
		t.Fatalf("%+v, %v", done, err)
	}
	if cmp.Equal(before, tree(t, w.dir)) {
		t.Error("the edited folder was not taken back")
	}
	if err := pull(); err != nil {
		t.Error(err)
	}
}

// The lock file gives the same skills elsewhere, and nothing else.
func TestShareRestore(t *testing.T) {
	t.Parallel()
	w, k := newWorld(t), key(t)
	for _, id := range []string{"a", "b"} {
		folder := w.folder(id, "0.1.0", "hello")
		w.sign(folder, k)
		w.push(folder, id)
		musttest.Get(w.pull(id, by(k)))(t)
		newer := w.folder(id, "0.2.0", "hello")
		w.sign(newer, k)
		w.push(newer, id)
	}
	want := tree(t, w.dir)
	text := musttest.Get(os.ReadFile(filepath.Join(w.dir, manifest.LockName)))(t)
	w.dir = t.TempDir()
	write(t, w.dir, map[string]string{manifest.LockName: string(text)})
	done, err := w.carrier.Restore(t.Context(), w.remote, PullOptions{Dir: w.dir})
	if err != nil || len(done) != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	got := tree(t, w.dir)
	delete(want, manifest.LockName) // its mode is that of the test's own
	delete(got, manifest.LockName)
	delete(want, ".")
	delete(got, ".")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// A key that is another one now, or a policy that does not have it.
	w.dir = t.TempDir()
	write(t, w.dir, map[string]string{manifest.LockName: string(bytes.ReplaceAll(text, []byte(k.Public().String()), []byte(key(t).Public().String())))})
	w.refused("another key", skill.SignatureInvalid, "not accepted here", func() error {
		_, err := w.carrier.Restore(t.Context(), w.remote, PullOptions{Dir: w.dir})
		return err
	})
	w.refused("a policy", skill.SignatureInvalid, "not accepted here", func() error {
		_, err := w.carrier.Restore(t.Context(), w.remote, PullOptions{Dir: w.dir, Policy: by(key(t))})
		return err
	})
}

// A folder that was not there is not there after a refusal either.
func TestShareFolderIsMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.push(w.folder("greeter", "0.1.0", "hello"), "greeter")
	top := w.dir
	w.dir = filepath.Join(top, "deep", "er")
	_, err := w.pull("greeter", nil)
	wantCode(t, "refused", err, skill.SignatureMissing, "")
	if all := tree(t, top); len(all) != 1 {
		t.Errorf("left behind: %v", all)
	}
	if _, err := w.pull("greeter", unsigned); err != nil {
		t.Error(err)
	}
}

// Many who pull into one folder at once wait for each other; what a killed one has left is
// gone.
func TestShareAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := []string{"a", "b", "c", "d"}
	for _, id := range ids {
		w.push(w.folder(id, "0.1.0", "hello"), id)
	}
	write(t, w.dir, map[string]string{stagingPrefix + "123/half/file": "x"})
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			if _, err := w.pull(ids[i%len(ids)], unsigned); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	f, err := manifest.ReadLock(w.dir)
	if err != nil || len(f.Skills) != len(ids) {
		t.Fatalf("%v, %v", f, err)
	}
	for _, id := range ids {
		if is, err := manifest.Digest(filepath.Join(w.dir, id)); err != nil || is != f.Skills[skill.ID(id)].Digest {
			t.Errorf("%s: %s, %v", id, is, err)
		}
	}
	entries, err := os.ReadDir(w.dir)
	if err != nil || len(entries) != len(ids)+1 {
		t.Errorf("%v, %v", entries, err)
	}
	// Who does not get the folder in time is told so.
	unlock := musttest.Get(alone(t.Context(), w.dir))(t)
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = w.carrier.Pull(ctx, w.remote, w.ref("a"), PullOptions{Dir: w.dir, Policy: unsigned})
	wantCode(t, "the folder is taken", err, skill.Cancelled, "another change")
}

// A trusted publisher may have what runs outside of the sandbox; nobody else.
func TestShareTrust(t *testing.T) {
	t.Parallel()
	w, k := newWorld(t), key(t)
	folder := w.folder("native", "0.1.0", "hello")
	write(t, folder, map[string]string{
		"skill.yaml": "id: native\nversion: 0.1.0\ndescription: N.\ntype: cli\nruntime: python\nentry: n.py\n", "n.py": "print()\n",
	})
	w.sign(folder, k)
	w.push(folder, "native")
	trusted := &Policy{Publishers: []Publisher{{Name: "us", Keys: []PublicKey{k.Public()}, Skills: []string{"*"}, Trust: skill.Trusted}}}
	for what, p := range map[string]*Policy{"community": by(k), "unsigned": unsigned} {
		w.refused(what, skill.InvalidManifest, "only for trusted skills", func() error { _, err := w.pull("native", p); return err })
	}
	got, err := w.pull("native", trusted)
	if err != nil || got.Trust != skill.Trusted || got.Publisher != "us" {
		t.Errorf("%+v, %v", got, err)
	}
}

// An artifact of another maker cannot hold what Verify would not look at.
func TestShareHiddenFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	folder := w.folder("greeter", "0.1.0", "hello")
	for _, name := range []string{".env", "lib/.x/y", "target/x", "a/node_modules/b", "x.pyc"} {
		dirty := filepath.Join(t.TempDir(), "greeter")
		musttest.Do(t, os.CopyFS(dirty, os.DirFS(folder)))
		write(t, dirty, map[string]string{name: "x"})
		p := w.pack(dirty)
		f, err := os.Create(p.archive)
		if err == nil {
			err = admission.Pack(f, dirty)
		}
		if err == nil {
			err = f.Close()
		}
		if err == nil {
			p.Digest, err = manifest.Digest(dirty)
		}
		if err == nil {
			err = p.seal(t.Context())
		}
		if err == nil {
			_, err = w.carrier.Push(t.Context(), w.remote, w.ref("greeter"), p, PushOptions{Force: true})
		}
		musttest.Do(t, err)
		w.refused(name, skill.ArchiveRejected, "the artifact has "+name, func() error { _, err := w.pull("greeter", unsigned); return err })
	}
}

// What a registry says is read without harm, whatever it is.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":"` + ArtifactType + `","config":{},"layers":[{}]}`))
	f.Add([]byte(`{"layers":[{"size":-1,"digest":"sha256:x","urls":["a"]}],"annotations":{"a":"b"}}`))
	c := &Carrier{o: Options{MaxArchive: 1 << 20}}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := c.readManifest(b)
		if err != nil {
			wantCode(t, "a manifest", err, skill.CodeOf(err), "")
			return
		}
		if !Version(p.Version) || len(p.layers) == 0 || len(p.layers) > 2 || p.Size() <= 0 || p.Size() > c.o.MaxArchive {
			t.Errorf("%+v", p)
		}
	})
}

// What a pull that was killed has left is made whole by the next one: killed between the
// folder and the lock file, or with no folder there at all.
func TestShareKilled(t *testing.T) {
	t.Parallel()
	w, k := newWorld(t), key(t)
	for _, version := range []string{"0.1.0", "0.2.0"} {
		folder := w.folder("greeter", version, "hello "+version)
		w.sign(folder, k)
		w.push(folder, "greeter")
		musttest.Get(w.pull("greeter", by(k)))(t)
	}
	want := tree(t, w.dir)
	older := musttest.Get(w.carrier.Pull(t.Context(), w.remote, w.ref("greeter:0.1.0"), PullOptions{Dir: w.dir, Policy: by(k), Downgrade: true}))(t)
	// The folder is the new one, and the rest is as it was.
	musttest.Do(t, os.RemoveAll(older.Path))
	write(t, older.Path, map[string]string{})
	fresh := t.TempDir()
	other, err := w.carrier.Pull(t.Context(), w.remote, w.ref("greeter:0.2.0"), PullOptions{Dir: fresh, Policy: by(k)})
	if err == nil {
		err = os.Rename(other.Path, older.Path)
	}
	musttest.Do(t, err)
	if _, err := w.carrier.Verify(t.Context(), older.Path, t.TempDir(), by(k)); skill.CodeOf(err) != skill.SignatureInvalid {
		t.Errorf("half of a pull is verified: %v", err)
	}
	if got, err := w.pull("greeter", by(k)); err != nil || !got.Changed || got.Version != "0.2.0" {
		t.Errorf("%+v, %v", got, err)
	}
	if diff := cmp.Diff(want, tree(t, w.dir)); diff != "" {
		t.Error(diff)
	}
	musttest.Do(t, os.RemoveAll(older.Path))
	if got, err := w.pull("greeter", by(k)); err != nil || !got.Changed {
		t.Errorf("%+v, %v", got, err)
	}
	if diff := cmp.Diff(want, tree(t, w.dir)); diff != "" {
		t.Error(diff)
	}
	// Where a file system cannot exchange two folders.
	a, b := filepath.Join(fresh, "a"), filepath.Join(fresh, "b")
	write(t, a, map[string]string{"new": "1"})
	write(t, b, map[string]string{"old": "1"})
	musttest.Do(t, exchangeSlowly(a, b, filepath.Join(fresh, "aside")))
	if _, err := os.Stat(filepath.Join(b, "new")); err != nil {
		t.Error(err)
	}
	if err := exchangeSlowly(filepath.Join(fresh, "none"), b, filepath.Join(fresh, "aside2")); err == nil {
		t.Error("nothing was put there, and no error")
	}
	if _, err := os.Stat(filepath.Join(b, "new")); err != nil {
		t.Errorf("what was there is gone: %v", err)
	}
}
