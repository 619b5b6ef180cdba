package share

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// trusted are the skills that a host would trust in a folder of skills of the operator's.
func trusted(t testing.TB, dir string) []string {
	t.Helper()
	one := skill.Limits{Timeout: 1, Memory: 1, Fuel: 1, Output: 1, Scratch: 1}
	r := musttest.Get(manifest.Open(manifest.Options{Roots: []manifest.Root{{Path: dir, Trust: skill.Trusted}}, Defaults: one, Caps: one}))(t)
	var list []string
	for _, id := range r.IDs() {
		if s, err := r.Get(id, ""); err != nil || s.Descriptor.Trust != skill.Community {
			list = append(list, string(id))
		}
	}
	return list
}

// The steps of an installation, in their order.
var steps = []string{"write " + manifest.MarkFile, "write " + replacingPrefix + "greeter", "write " + manifest.LockName, "write greeter" + SignatureExt, "exchange"}

// An installation that fails at a step leaves what was there, and no skill that is trusted.
func TestFailedInstallationsLeaveNoTrust(t *testing.T) {
	t.Parallel()
	w, k := newWorld(t), key(t)
	for _, version := range []string{"0.1.0", "0.2.0"} {
		folder := w.folder("greeter", version, "hello "+version)
		w.sign(folder, k)
		w.push(folder, "greeter")
	}
	full := errors.New("no space left on device")
	for _, at := range steps {
		for _, from := range []string{"", "0.1.0"} {
			if from == "" && strings.Contains(at, replacingPrefix) {
				continue // nothing is replaced
			}
			for _, broken := range []bool{false, true} { // whether the undoing fails too
				w.dir = t.TempDir()
				if from != "" {
					musttest.Get(w.pull("greeter:"+from, by(k)))(t)
				}
				before, failed := tree(t, w.dir), false
				w.carrier.step = func(s string) error {
					if s == at && !failed || broken && failed {
						failed = true
						return full
					}
					return nil
				}
				what := fmt.Sprintf("%s, from %q, broken %t", at, from, broken)
				_, err := w.pull("greeter:0.2.0", by(k))
				wantCode(t, what, err, skill.Internal, "cannot change")
				if got := trusted(t, w.dir); len(got) > 0 {
					t.Errorf("%s: %v is trusted", what, got)
				}
				after := tree(t, w.dir)
				if !broken {
					if diff := cmp.Diff(before, after); diff != "" {
						t.Errorf("%s: the folder changed:\n%s", what, diff)
					}
				}
				w.carrier.step = func(string) error { return nil }
				if got, err := w.pull("greeter:0.2.0", by(k)); err != nil || !got.Changed {
					t.Errorf("%s: and then: %+v, %v", what, got, err)
				}
			}
		}
	}
}

// A copy and a renamed folder of a pulled skill stay a stranger's, as does one whose lock file
// is lost; the mark is no part of what was pulled.
func TestMarkTravelsWithTheFolder(t *testing.T) {
	t.Parallel()
	w, k := newWorld(t), key(t)
	folder := w.folder("greeter", "0.1.0", "hello")
	w.sign(folder, k)
	w.push(folder, "greeter")
	got := musttest.Get(w.pull("greeter", by(k)))(t)
	if is, err := manifest.Digest(got.Path); err != nil || is != got.Digest {
		t.Errorf("the digest is %s, %v; want %s", is, err, got.Digest)
	}
	packed := w.pack(got.Path)
	if packed.Manifest() != got.Manifest || len(packed.LeftOut) > 0 {
		t.Errorf("packed again it is %s without %v; it was %s", packed.Manifest(), packed.LeftOut, got.Manifest)
	}
	// The advice of a refusal.
	write(t, got.Path, map[string]string{"more": "x"})
	newer := w.folder("greeter", "0.2.0", "hello")
	w.sign(newer, k)
	w.push(newer, "greeter")
	w.refused("changed", skill.Conflict, "move it away", func() error { _, err := w.pull("greeter:0.2.0", by(k)); return err })
	musttest.Do(t, os.Rename(got.Path, got.Path+".bak"))
	if got := trusted(t, w.dir); len(got) > 0 {
		t.Errorf("moved away: %v is trusted", got)
	}
	musttest.Do(t, os.Rename(got.Path+".bak", got.Path))
	musttest.Do(t, os.Remove(filepath.Join(w.dir, manifest.LockName)))
	if got := trusted(t, w.dir); len(got) > 0 {
		t.Errorf("with a lost lock file: %v is trusted", got)
	}
	elsewhere := filepath.Join(t.TempDir(), "greeter")
	musttest.Do(t, os.CopyFS(elsewhere, os.DirFS(got.Path)))
	if got := trusted(t, elsewhere); len(got) > 0 {
		t.Errorf("copied: %v is trusted", got)
	}
}

// What was pulled before there were marks has one after the next pull, whatever becomes of it.
func TestOlderPullsAreMarked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.push(w.folder("greeter", "0.1.0", "hello"), "greeter")
	got, err := w.pull("greeter", unsigned)
	if err == nil {
		err = os.Remove(filepath.Join(got.Path, manifest.MarkFile))
	}
	musttest.Do(t, err)
	if _, err := w.pull("nothing", unsigned); skill.CodeOf(err) != skill.NotFound {
		t.Fatal(err)
	}
	if !manifest.Marked(got.Path) {
		t.Error("it has no mark")
	}
}

// Nobody who looks while skills are pulled finds one that is trusted.
func TestListingsBesidePullsTrustNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.push(w.folder("greeter", "0.1.0", "hello"), "greeter")
	top := t.TempDir()
	var done atomic.Bool
	var all sync.WaitGroup
	defer all.Wait()
	defer done.Store(true)
	seen := 0
	all.Go(func() {
		for !done.Load() {
			entries, err := os.ReadDir(top)
			if err != nil {
				t.Error(err)
				return
			}
			for _, e := range entries {
				if got := trusted(t, filepath.Join(top, e.Name())); len(got) > 0 {
					t.Errorf("%v is trusted in %s", got, e.Name())
					return
				}
				seen++
			}
		}
	})
	for i := range 40 {
		w.dir = filepath.Join(top, fmt.Sprint(i))
		musttest.Get(w.pull("greeter", unsigned))(t)
		if i > 2 {
			// Removed where it is looked at, a folder would lose its records before its files.
			if err := os.Rename(filepath.Join(top, fmt.Sprint(i-2)), filepath.Join(t.TempDir(), "old")); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
	done.Store(true)
	all.Wait()
	if seen == 0 {
		t.Error("nobody looked")
	}
}

// killedAt is the step before which a process of TestKilledInstallationsLeaveNoTrust dies.
const killedAt = "OPENSKILL_TEST_SHARE_KILLED_AT"

// A pull that is killed before any of its steps leaves no skill that is trusted, and the same
// pull again makes it whole.
func TestKilledInstallationsLeaveNoTrust(t *testing.T) {
	t.Parallel()
	w, k := newWorld(t), key(t)
	if at := os.Getenv(killedAt); at != "" { // the process that dies: it pulls what its parent serves
		w.host, w.dir = os.Getenv(killedAt+"_HOST"), os.Getenv(killedAt+"_DIR")
		w.carrier.step = func(s string) error {
			if s == at {
				p, err := os.FindProcess(os.Getpid())
				if err == nil {
					err = p.Kill()
				}
				if err == nil {
					select {}
				}
				return err
			}
			return nil
		}
		_, err := w.pull("greeter:0.2.0", unsigned)
		t.Fatalf("it is alive: %v", err)
	}
	for _, version := range []string{"0.1.0", "0.2.0"} {
		folder := w.folder("greeter", version, "hello "+version)
		w.sign(folder, k)
		w.push(folder, "greeter")
	}
	for _, at := range steps {
		for _, from := range []string{"", "0.1.0"} {
			if from == "" && strings.Contains(at, replacingPrefix) {
				continue // nothing is replaced
			}
			w.dir = t.TempDir()
			if from != "" {
				musttest.Get(w.pull("greeter:"+from, unsigned))(t)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestKilledInstallationsLeaveNoTrust$")
			cmd.Env = append(os.Environ(), killedAt+"="+at, killedAt+"_HOST="+w.host, killedAt+"_DIR="+w.dir)
			out, err := cmd.CombinedOutput()
			if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.ExitCode() >= 0 {
				t.Fatalf("%s: it was not killed: %v\n%s", at, err, out)
			}
			if got := trusted(t, w.dir); len(got) > 0 {
				t.Errorf("%s, from %q: %v is trusted", at, from, got)
			}
			if got, err := w.pull("greeter:0.2.0", unsigned); err != nil || !got.Changed {
				t.Errorf("%s, from %q: and then: %+v, %v", at, from, got, err)
			}
			entries, err := os.ReadDir(w.dir)
			if err != nil || len(entries) != 3 {
				t.Errorf("%s, from %q: it left %v, %v", at, from, entries, err)
			}
		}
	}
}
