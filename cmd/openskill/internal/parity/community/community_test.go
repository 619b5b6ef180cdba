// Package community compares runs of scripts that others have published with how they ran
// natively: standard output and error, exit code, and the files they wrote.
//
// make public-skills fetches the packages. testdata has the cases of each, and the digests of
// what the scripts did natively, recorded in bubblewrap by -update on a machine with
// Debian 12's Python 3.11, bash 5.2, and Node 20. The tests run the sandbox's side alone: a
// tenth of the cases, or all where OPENSKILL_TEST_COMMUNITY is set.
package community

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

var (
	update = flag.Bool("update", false, "run the cases natively, too, and record how they ended")
	only   = flag.String("only", "", "run the cases of this expression alone, all of them")
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == servingArg {
		os.Exit(serve(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func state(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("OPENSKILL_STATE_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "..", ".openskill")
	}
	dir = musttest.Get(filepath.Abs(dir))(t)
	return dir
}

// chosen reports whether a case is run: one in ten, always the same.
func (k *kase) chosen() bool {
	id := k.of.Name + "/" + k.Name
	if *only != "" {
		return regexp.MustCompile(*only).MatchString(id)
	}
	return everything() || sha256.Sum256([]byte(id))[0] < 26
}

func everything() bool { return *update || os.Getenv("OPENSKILL_TEST_COMMUNITY") != "" }

func TestScriptsRunAsNatively(t *testing.T) {
	if testing.Short() {
		t.Skip("short: compiling runtimes takes seconds")
	}
	if _, err := exec.LookPath("bwrap"); err != nil && *update {
		t.Fatal(err)
	}
	s := newSandbox(t)
	for _, c := range load(t) {
		t.Run(c.Name, func(t *testing.T) {
			dir := filepath.Join(state(t), "public-skills", c.Name)
			if _, err := os.Stat(dir + ".ready"); err != nil {
				t.Skipf("this collection is not here (make public-skills): %v", err)
			}
			var mu sync.Mutex // of what was recorded
			t.Run("cases", func(t *testing.T) {
				for _, k := range c.Cases {
					if k.chosen() {
						t.Run(k.Name, func(t *testing.T) {
							t.Parallel()
							k.compare(t, s, filepath.Join(dir, filepath.FromSlash(k.Folder)), &mu)
						})
					}
				}
			})
			if *update {
				c.write(t)
			}
		})
	}
}

func (k *kase) compare(t *testing.T, s *sandbox, folder string, mu *sync.Mutex) {
	t.Helper()
	text := musttest.Get(os.ReadFile(filepath.Join(folder, filepath.FromSlash(k.Script))))(t)
	script := sumOf(text).SHA256
	var outside *outcome
	if *update {
		outside = s.natively(t, k, folder)
		then := k.recorded(outside)
		if d := differences(then, k.recorded(s.natively(t, k, folder))); d != nil {
			t.Fatalf("natively it is not twice the same:\n%s", strings.Join(d, "\n"))
		}
		then.Script = script
		mu.Lock()
		k.of.native[k.Name] = then
		mu.Unlock()
	}
	mu.Lock()
	native := k.of.native[k.Name]
	mu.Unlock()
	if native == nil || native.Script != script {
		t.Fatal("this script was not recorded; run with -update")
	}
	o := s.run(t, k, folder)
	now := k.recorded(o)
	all := differences(native, now)
	if o.failed != "" {
		all = append(all, o.failed)
	}
	switch {
	case len(all) > 0 && k.Differs == "":
		t.Errorf("%s\n%s", strings.Join(all, "\n"), k.shown(outside, o))
	case len(all) == 0 && k.Differs != "" && everything():
		t.Errorf("it runs as natively now: remove its line differs (%s)", k.Differs)
	}
}

// shown is what a person wants to see of two runs that differ; without a native one, the
// sandbox's.
func (k *kase) shown(native, o *outcome) string {
	if native == nil {
		return "standard error: " + string(o.stderr[:min(len(o.stderr), 2000)])
	}
	text := cmp.Diff(string(k.plain(native.stdout)), string(k.plain(o.stdout))) + "\nstandard error\n" + cmp.Diff(string(k.plain(native.stderr)), string(k.plain(o.stderr)))
	for name, data := range native.files {
		if got, ok := o.files[name]; ok {
			text += "\n" + name + "\n" + cmp.Diff(string(k.plain(data)), string(k.plain(got)))
		}
	}
	return text
}

// write keeps what was recorded, of cases that are still there.
func (c *collection) write(t *testing.T) {
	t.Helper()
	kept := map[string]*recorded{}
	for _, k := range c.Cases {
		if r := c.native[k.Name]; r != nil {
			kept[k.Name] = r
		}
	}
	text := musttest.Get(json.MarshalIndent(kept, "", " "))(t)
	musttest.Do(t, os.WriteFile(c.record(), append(text, '\n'), 0o600))
}
