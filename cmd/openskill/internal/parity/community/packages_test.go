package community

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"openskill/host/packages"
	"openskill/host/pysource"
	"openskill/internal/musttest"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

// installed are the packages of a list, from the wheels and tarballs that make public-skills
// has fetched: for the sandbox as openskill packages add makes them, for native runs unpacked
// by the tools of the machine.
type installed struct {
	once sync.Once
	err  error
	set  string         // of the sandbox
	lock *packages.Lock // it names the archives

	unpacking    sync.Once
	python, node string // natively; see unpack
}

// packagesOf adds the packages that a case names, once for all cases of the same names.
func (s *sandbox) packagesOf(t *testing.T, k *kase) *installed {
	t.Helper()
	names := slices.Sorted(slices.Values(k.Packages))
	key := strings.Join(names, " ")
	s.mu.Lock()
	in := s.packages[key]
	if in == nil {
		in = &installed{}
		s.packages[key] = in
	}
	s.mu.Unlock()
	in.once.Do(func() { in.err = in.add(t, s, names) })
	if in.err != nil {
		t.Fatal(in.err)
	}
	return in
}

func (in *installed) add(t *testing.T, s *sandbox, names []string) error {
	t.Helper()
	folder, err := os.MkdirTemp(s.dir, "skill-") //nolint:usetesting // other tests use it, too
	if err != nil {
		return err
	}
	from := filepath.Join(state(t), "public-skills", "packages")
	if _, err := os.Stat(from + ".ready"); err != nil {
		t.Skipf("packages of public scripts are not here (make public-skills): %v", err)
	}
	library, had, err := runtimes.New(state(t)).Modules("slim")
	if err != nil {
		return err
	}
	python := pysource.New(pysource.Options{Runner: s.runners[skill.WasmPython], Dir: s.dir})
	o := &packages.Options{
		Python: "python3", PythonVersion: "3.15.0", From: from, Library: map[string]bool{},
		Compile: func(ctx context.Context, paths []string, texts [][]byte) (string, [][]byte, error) {
			c, err := python.Compile(ctx, "test", paths, texts)
			if err != nil {
				return "", nil, err
			}
			return c.Tag, c.Files, nil
		},
	}
	for _, m := range library {
		o.Library[m] = true
	}
	for _, p := range had {
		o.Had = append(o.Had, packages.Had{Name: p.Name, Version: p.Version})
	}
	var asked []packages.Requirement
	for _, name := range names {
		r, err := packages.ParseRequirement(name, "")
		if err != nil {
			return err
		}
		asked = append(asked, r)
	}
	store := packages.New(s.dir)
	c, err := store.Add(t.Context(), folder, asked, o)
	if err != nil {
		return err
	}
	in.lock = c.Lock
	in.set, _, err = store.Use(folder)
	return err
}

// unpack makes the folders of the packages natively, of Python and of Node, once.
func (in *installed) unpack(t *testing.T, store string) {
	t.Helper()
	dir := musttest.Get(os.MkdirTemp(store, "native-"))(t) //nolint:usetesting // other tests use it, too
	in.python, in.node = filepath.Join(dir, "python"), filepath.Join(dir, "node_modules")
	for _, p := range in.lock.Packages {
		if p.Digest == "" {
			continue // a runtime has it: see OPENSKILL_TEST_PACKAGES
		}
		archive := filepath.Join(packages.Dir(store), "archives", strings.TrimPrefix(p.Digest, "sha256:"))
		cmd := exec.CommandContext(t.Context(), "python3", "-m", "zipfile", "-e", archive, in.python)
		if p.At != "" {
			at := filepath.Join(dir, filepath.FromSlash(p.At))
			musttest.Do(t, os.MkdirAll(at, 0o700))
			cmd = exec.CommandContext(t.Context(), "tar", "xzf", archive, "--no-same-owner", "--strip-components=1", "-C", at)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", p.String(), err, out)
		}
	}
}
