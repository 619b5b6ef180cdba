package backup_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/admission/admissiontest"
	"openskill/internal/backup"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// tree reads the files of a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		all[filepath.ToSlash(rel)] = string(b)
		return err
	})
	musttest.Do(t, err)
	return all
}

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		musttest.Write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
}

var some = map[string]string{"openskill.db": "records", "skills/acme/x/state.json": "{}", "skills/acme/x/1.0.0@aa/skill.yaml": "id: x", "approvals/record": ""}

// archive is a backup of some files.
func archive(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, some)
	musttest.Do(t, os.Symlink("/etc/passwd", filepath.Join(dir, "skills", "link")))
	var b bytes.Buffer
	x := &backup.Index{Program: "1.2.3", Made: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Database: "sqlite", Schema: 7}
	err := backup.Write(t.Context(), &b, x, []backup.Part{
		{Name: "openskill.db", From: filepath.Join(dir, "openskill.db")},
		{Name: "skills", From: filepath.Join(dir, "skills")},
		{Name: "approvals", From: filepath.Join(dir, "approvals")},
		{Name: "nothing", From: filepath.Join(dir, "nothing")},
	})
	musttest.Do(t, err)
	return b.Bytes()
}

func TestThereAndBack(t *testing.T) {
	for name, make := range map[string]func(string) error{
		"a new folder":     func(string) error { return nil },
		"an empty folder":  func(dir string) error { return os.Mkdir(dir, 0o700) },
		"a folder of none": func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", "state")
			if name != "a folder of none" {
				musttest.Do(t, os.Mkdir(filepath.Dir(dir), 0o700))
			}
			musttest.Do(t, make(dir))
			var seen map[string]string
			x, err := backup.Restore(t.Context(), bytes.NewReader(archive(t)), dir, func(_ context.Context, staged string, _ *backup.Index) error {
				seen = tree(t, staged)
				if _, err := os.ReadDir(dir); name == "a new folder" && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("it is there before it was checked: %v", err)
				}
				return nil
			})
			musttest.Do(t, err)
			if diff := cmp.Diff(some, tree(t, dir)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(some, seen); diff != "" {
				t.Error(diff)
			}
			if x.Program != "1.2.3" || x.Schema != 7 || len(x.Files) != len(some) || x.Bytes() != int64(len("records{}id: x")) {
				t.Errorf("%+v", x)
			}
			if entries, _ := os.ReadDir(filepath.Dir(dir)); len(entries) != 1 {
				t.Errorf("beside it there are %v", entries)
			}
		})
	}
}

// rewrite makes another archive of one: change is asked for each entry, and gives those
// that stand in its place.
func rewrite(t *testing.T, from []byte, change func(h *tar.Header, b []byte) []entry) []byte {
	t.Helper()
	z := musttest.Get(gzip.NewReader(bytes.NewReader(from)))(t)
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	tr, tw := tar.NewReader(z), tar.NewWriter(zw)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		musttest.Do(t, err)
		b := musttest.Get(io.ReadAll(tr))(t)
		for _, e := range change(h, b) {
			e.h.Size = int64(len(e.b))
			musttest.Do(t, tw.WriteHeader(e.h))
			musttest.Get(tw.Write(e.b))(t)
		}
	}
	musttest.Do(t, errors.Join(tw.Close(), zw.Close()))
	return out.Bytes()
}

type entry struct {
	h *tar.Header
	b []byte
}

func TestArchivesThatAreRefused(t *testing.T) {
	good := archive(t)
	extra := func(h *tar.Header, b []byte) func(*tar.Header, []byte) []entry {
		return func(own *tar.Header, text []byte) []entry {
			if own.Name == "openskill.db" {
				return []entry{{own, text}, {h, b}}
			}
			return []entry{{own, text}}
		}
	}
	index := func(change func(x map[string]any)) func(*tar.Header, []byte) []entry {
		return func(h *tar.Header, b []byte) []entry {
			if h.Name == "backup.json" {
				x := map[string]any{}
				_ = json.Unmarshal(b, &x)
				change(x)
				b, _ = json.Marshal(x)
			}
			return []entry{{h, b}}
		}
	}
	file := func(name string) *tar.Header { return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600} }
	same := func(h *tar.Header, b []byte) []entry { return []entry{{h, b}} }
	for name, c := range map[string]struct {
		archive []byte
		want    string
	}{
		"nothing":     {nil, "not a gzip file"},
		"a text":      {[]byte("hello"), "not a gzip file"},
		"another tar": {rewrite(t, good, func(h *tar.Header, b []byte) []entry { return same(h, b)[:min(1, strings.Count(h.Name, ".db"))] }), "backup.json is missing"},
		"a damaged file": {rewrite(t, good, func(h *tar.Header, b []byte) []entry {
			return same(h, bytes.Replace(b, []byte("records"), []byte("recordz"), 1))
		}), "openskill.db is missing or damaged"},
		"a missing file": {rewrite(t, good, func(h *tar.Header, b []byte) []entry {
			if h.Name == "openskill.db" {
				return nil
			}
			return same(h, b)
		}), "openskill.db is missing or damaged"},
		"a file too much":  {rewrite(t, good, extra(file("skills/evil"), nil)), "files that are not listed in backup.json"},
		"a file twice":     {rewrite(t, good, extra(file("openskill.db"), nil)), "duplicate entry openskill.db"},
		"a way out":        {rewrite(t, good, extra(file("../evil"), nil)), "unexpected entry"},
		"an absolute path": {rewrite(t, good, extra(file("/tmp/evil"), nil)), "unexpected entry"},
		"a backslash":      {rewrite(t, good, extra(file(`..\evil`), nil)), "unexpected entry"},
		"a drive":          {rewrite(t, good, extra(file("c:evil"), nil)), "unexpected entry"},
		"a NUL":            {rewrite(t, good, extra(file("a\u202eb"), nil)), "unexpected entry"},
		"a link":           {rewrite(t, good, extra(&tar.Header{Typeflag: tar.TypeSymlink, Name: "skills/l", Linkname: "/etc"}, nil)), "unexpected entry"},
		"a hard link":      {rewrite(t, good, extra(&tar.Header{Typeflag: tar.TypeLink, Name: "skills/l", Linkname: "openskill.db"}, nil)), "unexpected entry"},
		"a device":         {rewrite(t, good, extra(&tar.Header{Typeflag: tar.TypeFifo, Name: "skills/p"}, nil)), "unexpected entry"},
		"a file with holes": {admissiontest.Tar{Blocks: []admissiontest.Block{
			admissiontest.PAX("GNU.sparse.major", "0", "GNU.sparse.minor", "1", "GNU.sparse.name", "skills/b", "GNU.sparse.size", "1000000", "GNU.sparse.numblocks", "1", "GNU.sparse.map", "0,1"),
			{Name: "x", Body: []byte("x")},
		}}.Bytes(), "unexpected entry"},
		"a later format": {rewrite(t, good, index(func(x map[string]any) { x["format"] = 2 })), "unsupported format 2"},
		"no format":      {rewrite(t, good, index(func(x map[string]any) { delete(x, "format") })), "unsupported format 0"},
		"a list":         {rewrite(t, good, index(func(x map[string]any) { x["files"] = "none" })), "not as a host writes it"},
		"a file named twice": {rewrite(t, good, index(func(x map[string]any) {
			x["files"] = append(x["files"].([]any), x["files"].([]any)[0])
		})), "is missing or damaged"},
		"something behind": {rewrite(t, good, func(h *tar.Header, b []byte) []entry {
			if h.Name == "backup.json" {
				return []entry{{h, b}, {file("z"), nil}}
			}
			return same(h, b)
		}), "has data after"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			_, err := backup.Restore(t.Context(), bytes.NewReader(c.archive), dir, nil)
			if skill.CodeOf(err) != skill.InvalidArgument || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if entries, _ := os.ReadDir(filepath.Dir(dir)); len(entries) > 0 {
				t.Errorf("it left %v", entries)
			}
		})
	}
	t.Run("cut off anywhere", func(t *testing.T) {
		dir := t.TempDir()
		for n := 0; n < len(good); n += 11 { // each waits for the disk
			if _, err := backup.Restore(t.Context(), bytes.NewReader(good[:n]), filepath.Join(dir, "state"), nil); skill.CodeOf(err) != skill.InvalidArgument {
				t.Fatalf("cut off after %d bytes: %v", n, err)
			}
		}
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Errorf("it left %v", entries)
		}
	})
	t.Run("a bit turned anywhere", func(t *testing.T) {
		dir := t.TempDir()
		for n := 0; n < len(good); n += 7 {
			bad := slices.Clone(good)
			bad[n] ^= 1
			x, err := backup.Restore(t.Context(), bytes.NewReader(bad), filepath.Join(dir, "state"), nil)
			if err == nil { // the head of gzip has what nobody reads, and some bits of its codes are the same as others
				if diff := cmp.Diff(some, tree(t, filepath.Join(dir, "state"))); diff != "" || x == nil {
					t.Fatalf("byte %d: %s", n, diff)
				}
				_ = os.RemoveAll(filepath.Join(dir, "state"))
			}
		}
	})
}

func TestNothingIsReplaced(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"mine": "x"})
	file := filepath.Join(dir, "mine")
	for _, where := range []string{dir, file} {
		if _, err := backup.Restore(t.Context(), bytes.NewReader(archive(t)), where, nil); skill.CodeOf(err) != skill.Conflict {
			t.Errorf("%s: %v", where, err)
		}
	}
	// Somebody who begins meanwhile keeps what they made.
	late := filepath.Join(t.TempDir(), "state")
	_, err := backup.Restore(t.Context(), bytes.NewReader(archive(t)), late, func(context.Context, string, *backup.Index) error {
		put(t, late, map[string]string{"theirs": "y"})
		return nil
	})
	if skill.CodeOf(err) != skill.Conflict {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]string{"theirs": "y"}, tree(t, late)); diff != "" {
		t.Error(diff)
	}
	if entries, _ := os.ReadDir(filepath.Dir(late)); len(entries) != 1 {
		t.Errorf("it left %v", entries)
	}
}

func TestACheckThatRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	no := errors.New("no")
	if _, err := backup.Restore(t.Context(), bytes.NewReader(archive(t)), dir, func(context.Context, string, *backup.Index) error { return no }); !errors.Is(err, no) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := backup.Restore(ctx, bytes.NewReader(archive(t)), dir, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := backup.Write(ctx, io.Discard, &backup.Index{}, []backup.Part{{Name: "x", From: filepath.Dir(dir)}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(dir)); len(entries) > 0 {
		t.Errorf("it left %v", entries)
	}
}
