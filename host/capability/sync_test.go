package capability_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"openskill/host/capability"
	"openskill/host/pyast"
)

// counted counts the programs that are read.
type counted struct {
	*pyast.Analyzer
	n atomic.Int64
}

func (c *counted) Analyze(ctx context.Context, tenant string, source []byte) (*pyast.Module, error) {
	c.n.Add(1)
	return c.Analyzer.Analyze(ctx, tenant, source)
}

// What did not change is not looked at again; what did is made anew, also where a file
// beside it did.
func TestSync(t *testing.T) {
	read := &counted{Analyzer: analyzer(t)}
	mk := capability.New(capability.Options{Analyzer: read})
	src, dir := t.TempDir(), filepath.Join(t.TempDir(), "made")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(src, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one.py", "import beside\ndef one(): return beside.value")
	write("beside.py", "value = 1")
	write("bad.py", "def bad(x: print): ...")
	files := []string{filepath.Join(src, "one.py"), filepath.Join(src, "bad.py"), filepath.Join(src, "missing.py")}
	sync := func(looks bool) []string {
		t.Helper()
		before := read.n.Load()
		folders, problems, err := mk.Sync(t.Context(), dir, files)
		if err != nil || len(folders) != 2 || len(problems) != 2 {
			t.Fatal(folders, problems, err)
		}
		if p := problems[0].String(); !strings.HasPrefix(p, filepath.Join(src, "bad.py")+":1: the parameter x") {
			t.Error(p)
		}
		if p := problems[1].String(); !strings.Contains(p, "there is no such file") {
			t.Error(p)
		}
		if looked := read.n.Load() > before; looked != looks {
			t.Errorf("looked at the code: %v, want %v", looked, looks)
		}
		return folders
	}
	first := sync(true)
	if second := sync(false); second[0] != first[0] {
		t.Error("the folder changed, and the code did not")
	}
	if got, said := call(t, loaded(t, first[0], "one"), "{}"); got != `{"result": 1}` {
		t.Errorf("%s, %v", got, said)
	}
	write("beside.py", "value = 2")
	third := sync(true)
	if got, said := call(t, loaded(t, third[0], "one"), "{}"); got != `{"result": 2}` {
		t.Errorf("%s, %v", got, said)
	}
	// What is not asked for any more goes after a day, and not before.
	if _, err := os.Stat(first[0]); err != nil {
		t.Errorf("it is gone at once: %v", err)
	}
	old := time.Now().Add(-25 * time.Hour)
	for _, folder := range []string{first[0], third[0]} {
		if err := os.Chtimes(folder, old, old); err != nil {
			t.Fatal(err)
		}
	}
	sync(false)
	if _, err := os.Stat(first[0]); err == nil {
		t.Error("what nobody asks for is still there")
	}
	if _, err := os.Stat(third[0]); err != nil {
		t.Error("what is asked for is gone")
	}
}

// Several hosts may make the same at once, and one that is cut off leaves nothing half
// made under a name that counts.
func TestSyncAtOnce(t *testing.T) {
	mk := maker(t)
	src, dir := t.TempDir(), t.TempDir()
	file := filepath.Join(src, "f.py")
	if err := os.WriteFile(file, []byte("def f(): return 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, _, err := mk.Sync(ended, dir, []string{file}); err == nil {
		t.Error("a call that was ended gives something")
	}
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			folders, problems, err := mk.Sync(t.Context(), dir, []string{file})
			if err != nil || len(folders) != 1 || len(problems) != 0 {
				t.Error(folders, problems, err)
			}
		})
	}
	all.Wait()
	out := t.TempDir()
	made, _, err := mk.Make(t.Context(), &capability.Source{File: "f.py", Code: []byte("def f(): return 1")})
	if err != nil {
		t.Fatal(err)
	}
	for range 8 {
		all.Go(func() {
			if _, err := made.Write(out); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	loaded(t, out, "f")
	for _, d := range []string{dir, out} {
		entries, err := os.ReadDir(d)
		if err != nil || len(entries) != 1 {
			t.Errorf("%v, %v: something half made is left", entries, err)
		}
	}
}
