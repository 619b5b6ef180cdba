package packages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// compiledBy gives a compiler that puts "of " before a module, and cannot compile those with
// the text no; it breaks at those with the text break.
func compiledBy(tag string, runs *[]string) func(context.Context, []string, [][]byte) (string, [][]byte, error) {
	return func(_ context.Context, paths []string, texts [][]byte) (string, [][]byte, error) {
		*runs = append(*runs, strings.Join(paths, " "))
		var all [][]byte
		for _, text := range texts {
			switch string(text) {
			case "break":
				return tag, all, nil
			case "no":
				all = append(all, nil)
			default:
				all = append(all, append([]byte("of "), text...))
			}
		}
		return tag, all, nil
	}
}

// compiledSet makes a set of one package and compiles it. It gives the compiled files.
func compiledSet(t *testing.T, all files, o *Options) (found files, err error) {
	t.Helper()
	work := t.TempDir()
	m, err := newSet(work, nil)
	musttest.Do(t, err)
	musttest.Do(t, m.add(t.Context(), python("a"), write(t, zipped(t, all), work, "a.whl")))
	err = m.compile(t.Context(), o)
	found = files{}
	n := 0
	_ = filepath.WalkDir(work, func(path string, d os.DirEntry, _ error) error {
		if d.IsDir() {
			return nil
		}
		if strings.HasPrefix(path, m.dir) {
			n++
		}
		if strings.HasSuffix(path, ".pyc") {
			b, _ := os.ReadFile(path)
			name, _ := filepath.Rel(m.dir, path)
			found[filepath.ToSlash(name)] = string(b)
		}
		return nil
	})
	if n != m.files {
		t.Errorf("%d files, and %d are counted", n, m.files)
	}
	return found, err
}

// T706: compiled modules stand beside their sources, and nowhere else, whatever the compiler
// says; what cannot be compiled stays source.
func TestCompilesModules(t *testing.T) {
	long := strings.Repeat("m", 245) + ".py"
	for _, c := range []struct {
		name, tag string
		all       files
		want      string
		runs      int
	}{
		{"modules", "cpython-315", files{"a.py": "1", "b/c.py": "2", "b/d.txt": "3"}, "map[python/__pycache__/a.cpython-315.pyc:of 1 python/b/__pycache__/c.cpython-315.pyc:of 2]", 1},
		{"one of old Python", "cpython-315", files{"a.py": "no", "b.py": "2"}, "map[python/__pycache__/b.cpython-315.pyc:of 2]", 1},
		{"one that breaks the compiler", "cpython-315", files{"a.py": "1", "b.py": "break", "c.py": "3"}, "map[python/__pycache__/a.cpython-315.pyc:of 1 python/__pycache__/c.cpython-315.pyc:of 3]", 2},
		{"many that break it", "cpython-315", files{"a.py": "break", "b.py": "break", "c.py": "break", "d.py": "break", "e.py": "5"}, "map[]", 4},
		{"a long name", "cpython-315", files{long: "1"}, "map[]", 1},
		{"one that is too large", "cpython-315", files{"a.py": strings.Repeat("x", maxModule+1), "b.py": "2"}, "map[python/__pycache__/b.cpython-315.pyc:of 2]", 1},
		{"more than one run gets", "cpython-315", files{"a.py": strings.Repeat("x", maxModule), "b.py": "no"}, "", 2},
		{"no tag", "", files{"a.py": "1"}, "map[]", 1},
		{"a tag that is a path", "cpython-315/../../x", files{"a.py": "1"}, "map[]", 1},
		{"nothing of Python", "cpython-315", files{"a.txt": "1"}, "map[]", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var runs []string
			found, err := compiledSet(t, c.all, &Options{Compile: compiledBy(c.tag, &runs)})
			if got := fmt.Sprint(found); err != nil || c.want != "" && got != c.want {
				t.Errorf("got %s, %v, want %s", got, err, c.want)
			}
			if len(runs) != c.runs {
				t.Errorf("%d runs, want %d: %.200q", len(runs), c.runs, runs)
			}
		})
	}
	if found, err := compiledSet(t, files{"a.py": "1"}, &Options{}); err != nil || len(found) != 0 {
		t.Errorf("without a compiler: %v, %v", found, err)
	}
	if _, err := compiledSet(t, files{"a.py": "1"}, &Options{Compile: func(context.Context, []string, [][]byte) (string, [][]byte, error) {
		return "", nil, context.Canceled
	}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if found, err := compiledSet(t, files{"a.py": "1"}, &Options{Compile: func(context.Context, []string, [][]byte) (string, [][]byte, error) {
		return "cpython-315", [][]byte{[]byte("1"), []byte("2")}, nil
	}}); err != nil || len(found) != 1 {
		t.Errorf("more than was asked for: %v, %v", found, err)
	}
}

// T705: compiled files that a wheel brings are never loaded.
func TestForeignCompiledFiles(t *testing.T) {
	var runs []string
	found, err := compiledSet(t, files{
		"a.py": "1", "b.py": "no", "__pycache__/a.cpython-315.pyc": "theirs", "__pycache__/b.cpython-315.pyc": "theirs", "c.pyc": "theirs", "d/e.PYC": "theirs",
		"f/__PyCache__/b.cpython-315.pyc/x.py": "theirs", "d/__pycache__/f.py": "theirs", "a-1.0.data/purelib/__pycache__/a.cpython-315.pyc": "theirs",
	}, &Options{Compile: compiledBy("cpython-315", &runs)})
	if want := "map[python/__pycache__/a.cpython-315.pyc:of 1]"; err != nil || fmt.Sprint(found) != want {
		t.Errorf("got %v, %v, want %s", found, err, want)
	}
}

// T706: compiled modules count towards the limits of a set. When a limit is reached, the
// remaining modules stay source.
func TestCompiledModulesHaveLimits(t *testing.T) {
	oldFiles, oldBytes := maxSetFiles, maxSetBytes
	defer func() { maxSetFiles, maxSetBytes = oldFiles, oldBytes }()
	for _, c := range []struct {
		files int
		bytes int64
		want  int
	}{{6, 100, 3}, {5, 100, 2}, {3, 100, 0}, {6, 3 + 3*4, 3}, {6, 3 + 3*4 - 1, 2}} {
		maxSetFiles, maxSetBytes = c.files, c.bytes
		var runs []string
		found, err := compiledSet(t, files{"a.py": "1", "b.py": "2", "c.py": "3"}, &Options{Compile: compiledBy("cpython-315", &runs)})
		if err != nil || len(found) != c.want {
			t.Errorf("%d files, %d bytes: %v, %v, want %d", c.files, c.bytes, found, err, c.want)
		}
	}
}

// The digest of a set is that of all its files, compiled ones too; a change that is interrupted
// while it compiles changes nothing, and the next one removes what it left.
func TestCompiledSets(t *testing.T) {
	needsPip(t)
	state, folder, o := t.TempDir(), t.TempDir(), options(shelf(t))
	s := New(state)
	ctx, stop := context.WithCancel(t.Context())
	o.Compile = func(context.Context, []string, [][]byte) (string, [][]byte, error) {
		stop()
		return "", nil, ctx.Err()
	}
	if _, err := s.Add(ctx, folder, asks(t, "top"), o); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if l, err := s.Of(folder); l != nil || err != nil {
		t.Fatalf("%+v, %v", l, err)
	}
	musttest.Do(t, os.MkdirAll(filepath.Join(s.dir, workPrefix+"killed", "set"), 0o700))
	var runs []string
	o.Compile = compiledBy("cpython-315", &runs)
	both := make(chan string, 2)
	for _, folder := range []string{folder, t.TempDir()} {
		go func() {
			c, err := New(state).Add(t.Context(), folder, asks(t, "top"), o)
			if err != nil {
				both <- err.Error()
				return
			}
			both <- c.Lock.Set
		}()
	}
	one, two := <-both, <-both
	if one != two || !strings.HasPrefix(one, "sha256:") {
		t.Fatalf("two at once: %s, %s", one, two)
	}
	if left, _ := fs.Glob(os.DirFS(s.dir), workPrefix+"*"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	set, _, err := New(state).Use(folder)
	musttest.Do(t, err)
	file := filepath.Join(set, "python", "__pycache__", "base.cpython-315.pyc")
	if b, err := os.ReadFile(file); err != nil || string(b) != "of x = 1\n" {
		t.Fatalf("%q, %v", b, err)
	}
	write(t, []byte("theirs"), file)
	if _, _, err := New(state).Use(folder); skill.CodeOf(err) != skill.ToolInvocationError {
		t.Errorf("a compiled file was changed: %v", err)
	}
}
