package agentskills

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

var quiet = slog.New(slog.DiscardHandler)

// write makes files below a folder; a name that ends with / is a folder.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		musttest.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if strings.HasSuffix(name, "/") {
			musttest.Do(t, os.MkdirAll(path, 0o700))
			continue
		}
		musttest.Do(t, os.WriteFile(path, []byte(content), 0o600))
	}
}

// settled looks until the clock is past the tick in which the last file was written, and
// gives what the look found.
func settled(t testing.TB, src *FileSource) []Skill {
	t.Helper()
	for {
		list := skillsOf(t, src)
		young := false
		src.mu.Lock()
		for _, k := range src.known {
			young = young || k.young
		}
		src.mu.Unlock()
		if !young {
			return list
		}
	}
}

func md(name, description string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n---\n\nInstructions of " + name + ".\n"
}

func source(t testing.TB, o *FileOptions, paths ...string) *FileSource {
	t.Helper()
	if o == nil {
		o = &FileOptions{}
	}
	o.Log = quiet
	return musttest.Get(NewFolders(o, paths...))(t)
}

func skillsOf(t testing.TB, s Source) []Skill {
	t.Helper()
	return musttest.Get(s.Skills(t.Context()))(t)
}

func namesOf(list []Skill) []string {
	names := []string{}
	for _, s := range list {
		names = append(names, s.Frontmatter().Name)
	}
	return names
}

func infoNames(list []skill.AgentFile) []string {
	names := []string{}
	for _, f := range list {
		names = append(names, f.Name)
	}
	return names
}

func TestFolder(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{
		"demo/SKILL.md": md("demo", "D"), "demo/skill.yaml": "id: demo\n", "demo/README.md": "x",
		"demo/references/b.JSON": "{}", "demo/references/deep/er/a.csv": "1", "demo/assets/logo.png": "\x89PNG", "demo/LICENSE": "x",
		"demo/scripts/run.py": "print(1)", "demo/scripts/run.sh": "echo", "demo/top.js": "1", "demo/scripts/data.txt": "x",
		"demo/.hidden.md": "x", "demo/.git/config.txt": "x", "demo/node_modules/a/README.md": "x", "demo/__pycache__/x.txt": "x", "demo/empty/": "",
	})
	list := skillsOf(t, source(t, nil, root))
	if len(list) != 1 {
		t.Fatal(namesOf(list))
	}
	s := list[0].(*FileSkill)
	want := []string{"LICENSE", "README.md", "assets/logo.png", "references/b.JSON", "references/deep/er/a.csv", "scripts/data.txt"}
	if diff := cmp.Diff(want, infoNames(resourceInfos(s))); diff != "" {
		t.Error("resources: (-want +got)\n" + diff)
	}
	if diff := cmp.Diff([]string{"scripts/run.py", "scripts/run.sh", "top.js"}, infoNames(scriptInfos(s))); diff != "" {
		t.Error("scripts: (-want +got)\n" + diff)
	}
	if got := s.Resources()[1].Info(); got.MediaType != "text/markdown" || got.Size != 1 {
		t.Errorf("%+v", got)
	}
	digest, err := manifest.Digest(filepath.Join(root, "demo"))
	if err != nil || s.Digest() != digest {
		t.Errorf("digest %s, that of the registry is %s, %v", s.Digest(), digest, err)
	}
	if !strings.Contains(s.Content(), "Instructions of demo.") || s.Trust() != skill.Trusted || s.Owner() != "" {
		t.Errorf("%q %v %q", s.Content(), s.Trust(), s.Owner())
	}
	b, err := s.Resources()[3].Read(t.Context())
	if err != nil || string(b) != "{}" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestExtensions(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{"demo/SKILL.md": md("demo", "D"), "demo/a.md": "x", "demo/a.html": "x", "demo/a.rb": "x", "demo/a.py": "x"})
	s := skillsOf(t, source(t, &FileOptions{ResourceExtensions: []string{".HTML"}, ScriptExtensions: []string{".rb"}}, root))[0]
	if diff := cmp.Diff([]string{"a.html"}, infoNames(resourceInfos(s))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a.rb"}, infoNames(scriptInfos(s))); diff != "" {
		t.Error(diff)
	}
	for _, wrong := range []string{"", "md", ".", ".tar.gz", "./x", "*.md"} {
		if _, err := NewFolders(&FileOptions{ResourceExtensions: []string{wrong}}, root); err == nil {
			t.Errorf("%q is taken for an extension", wrong)
		}
	}
	if _, err := NewFolders(&FileOptions{MaxFiles: -1}, root); err == nil {
		t.Error("a negative limit is taken")
	}
	if _, err := NewFileSource([]Root{{Path: root}}, nil); err == nil || !strings.Contains(err.Error(), "no owner") {
		t.Errorf("community skills without an owner: %v", err)
	}
	if _, err := NewFileSource([]Root{{Trust: skill.Trusted}}, nil); err == nil {
		t.Error("a root without a path is taken")
	}
}

// A file without an ending is a script if its first line names a program of one.
func TestFirstLine(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{
		"demo/SKILL.md": md("demo", "D"), "demo/scripts/deploy": "#!/usr/bin/env bash\necho\n", "demo/tool": "#!/usr/bin/python3 -u\n",
		"demo/LICENSE": "MIT\n", "demo/rake": "#!/usr/bin/env ruby\n", "demo/short": "#!", "demo/a.md": "#!/bin/sh\n", "demo/empty": "",
		"demo/long": "#!" + strings.Repeat("/x", 1<<10) + "/sh\n", "demo/binary": "#!\x00\xff/bin/sh",
	})
	s := skillsOf(t, source(t, nil, root))[0]
	got := map[string]string{}
	for _, script := range s.Scripts() {
		f := script.(*FileScript)
		got[f.Path()] = f.Ending() + " " + f.Info().MediaType
	}
	if diff := cmp.Diff(map[string]string{"scripts/deploy": ".sh text/x-shellscript", "tool": ".py text/x-python"}, got); diff != "" {
		t.Error(diff)
	}
	want := []string{"LICENSE", "a.md", "binary", "empty", "long", "rake", "short"}
	if diff := cmp.Diff(want, infoNames(resourceInfos(s))); diff != "" {
		t.Error(diff)
	}
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{
		"b/SKILL.md": md("b", "D"), "a/SKILL.md": md("a", "D"), "a/inner/SKILL.md": md("inner", "D"),
		"group/c/SKILL.md": md("c", "D"), "group/deep/er/d/SKILL.md": md("d", "D"), "group/deep/er/still/f/SKILL.md": md("f", "D"),
		".hidden/SKILL.md": md(".hidden", "D"), "node_modules/e/SKILL.md": md("e", "D"),
		"broken/SKILL.md": "# no frontmatter\n", "wrong/SKILL.md": md("other", "D"), "lower/skill.md": md("lower", "D"),
		"none/readme.md": "x", "file.md": "x",
	})
	src := source(t, nil, root)
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "other"}, namesOf(skillsOf(t, src))); diff != "" {
		t.Error(diff)
	}
	var told []string
	for _, p := range src.Problems() {
		rel := musttest.Get(filepath.Rel(root, p.File))(t)
		told = append(told, fmt.Sprintf("%s:%d", filepath.ToSlash(rel), p.Line))
	}
	if diff := cmp.Diff([]string{"broken/SKILL.md:1", "lower/skill.md:0", "wrong/SKILL.md:2"}, told); diff != "" {
		t.Error(diff)
	}
	// A root may be one skill, a missing one is a problem unless it may be missing, and a
	// deeper look finds more.
	if diff := cmp.Diff([]string{"a"}, namesOf(skillsOf(t, source(t, nil, filepath.Join(root, "a"))))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "f", "other"}, namesOf(skillsOf(t, source(t, &FileOptions{Depth: 5}, root)))); diff != "" {
		t.Error(diff)
	}
	gone := filepath.Join(root, "gone")
	src = source(t, nil, gone)
	if list := skillsOf(t, src); len(list) != 0 || len(src.Problems()) != 1 || src.Problems()[0].File != gone {
		t.Errorf("%v %v", list, src.Problems())
	}
	optional := musttest.Get(NewFileSource([]Root{{Path: gone, Trust: skill.Trusted, Optional: true}}, &FileOptions{Log: quiet}))(t)
	if list := skillsOf(t, optional); len(list) != 0 || len(optional.Problems()) != 0 {
		t.Errorf("%v %v", list, optional.Problems())
	}
	write(t, gone, map[string]string{"late/SKILL.md": md("late", "D")})
	if diff := cmp.Diff([]string{"late"}, namesOf(skillsOf(t, optional))); diff != "" {
		t.Error(diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := optional.Skills(ctx); err == nil {
		t.Error("a look goes on after its caller has left")
	}
}

// A root that is one skill's folder may have another name; one that is lenient is used
// whatever is in it.
func TestLenient(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	long := strings.Repeat("d", 2000)
	for folder, c := range map[string]struct {
		skillMD string
		strict  string // the name, "" for skipped
		lenient string
		remarks int
	}{
		"fine":          {md("fine", "D"), "fine", "fine", 0},
		"copy-7":        {md("original", "D"), "original", "original", 1},
		"SEO Optimizer": {md("SEO Optimizer", "D"), "seo-optimizer", "seo-optimizer", 1},
		"no-front":      {"# Text\n", "", "no-front", 1},
		"no-yaml":       {"---\ndescription: a: b\n---\n", "no-yaml", "no-yaml", 2},
		"long":          {md("long", long), "long", "long", 1},
		"no-file":       {"", "", "no-file", 1},
		"017_漢":         {"---\n---\n", "", "017", 1},
		"漢":             {"---\n---\n", "", "skill", 1},
	} {
		dir := filepath.Join(root, folder)
		write(t, dir, map[string]string{"run.py": "1"})
		if c.skillMD != "" {
			write(t, dir, map[string]string{"SKILL.md": c.skillMD})
		}
		if got := strings.Join(namesOf(skillsOf(t, source(t, nil, dir))), ","); got != c.strict {
			t.Errorf("%s: %q, want %q", folder, got, c.strict)
		}
		src := musttest.Get(NewFileSource([]Root{{Path: dir, Trust: skill.Trusted, Lenient: true}}, &FileOptions{Log: quiet}))(t)
		list := skillsOf(t, src)
		if len(list) != 1 || list[0].Frontmatter().Name != c.lenient || len(src.Problems()) != c.remarks || len(list[0].Scripts()) != 1 {
			t.Errorf("%s: %v, %q; want %s and %d remarks", folder, namesOf(list), lines(src.Problems()), c.lenient, c.remarks)
			continue
		}
		f := list[0].Frontmatter()
		if p := f.Problems(); len(p) > 0 {
			t.Errorf("%s: %q", folder, p)
		}
	}
}

func TestFolders(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{"b/SKILL.md": "x", "g/a/SKILL.md": "x", "x/y.md": "x"})
	want := []string{filepath.Join(root, "b"), filepath.Join(root, "g", "a")}
	for path, want := range map[string][]string{root: want, want[0]: want[:1]} {
		found, problems := Folders(path)
		if diff := cmp.Diff(want, found); diff != "" || len(problems) > 0 {
			t.Error(diff, problems)
		}
	}
	write(t, root, map[string]string{"low/skill.md": "x"})
	if found, problems := Folders(root); len(found) != 2 || len(problems) != 1 || problems[0].Message != "must be written SKILL.md" {
		t.Error(found, problems)
	}
}

// Whatever happens in a folder is seen by the next look, and a folder in which nothing
// happened is the same value.
func TestRescan(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{
		"demo/SKILL.md": md("demo", "First."), "demo/scripts/a.py": "1", "demo/deep/er/x.md": "1", "other/SKILL.md": md("other", "D"),
	})
	src := source(t, nil, root)
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	must := func(err error) {
		t.Helper()
		musttest.Do(t, err)
	}
	last := settled(t, src)
	digests := map[string]bool{last[0].(*FileSkill).Digest(): true}
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"SKILL.md is written", func() { write(t, root, map[string]string{"demo/SKILL.md": md("demo", "Other.")}) }},
		{"a script is written", func() { write(t, root, map[string]string{"demo/scripts/a.py": "2"}) }},
		{"a file is added", func() { write(t, root, map[string]string{"demo/deep/y.md": "1"}) }},
		{"a hidden file is added", func() { write(t, root, map[string]string{"demo/deep/er/.y": "1"}) }},
		{"a file is taken away", func() { must(os.Remove(at("demo/deep/y.md"))) }},
		{"a file is renamed", func() { must(os.Rename(at("demo/deep/er/x.md"), at("demo/deep/er/z.md"))) }},
		{"a file is replaced", func() {
			write(t, root, map[string]string{"new.py": "3"})
			must(os.Chtimes(at("new.py"), time.Unix(1, 0), time.Unix(1, 0)))
			must(os.Rename(at("new.py"), at("demo/scripts/a.py")))
		}},
	} {
		same := skillsOf(t, src)
		if same[0] != last[0] || same[1] != last[1] {
			t.Errorf("before %s: other values without a change", step.what)
		}
		step.do()
		now := skillsOf(t, src)
		if now[0] == last[0] {
			t.Errorf("after %s: the same value", step.what)
		}
		if now[1] != last[1] {
			t.Errorf("after %s: the other skill is another value", step.what)
		}
		d := now[0].(*FileSkill).Digest()
		if digests[d] {
			t.Errorf("after %s: a digest that was there before", step.what)
		}
		digests[d] = true
		last = settled(t, src)
	}
	must(os.RemoveAll(at("demo")))
	if diff := cmp.Diff([]string{"other"}, namesOf(skillsOf(t, src))); diff != "" {
		t.Error(diff)
	}
}

// A file that is written twice within one tick of the file system's clock is noticed.
func TestRescanInOneTick(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{"demo/SKILL.md": md("demo", "D"), "demo/a.md": "1"})
	src := source(t, nil, root)
	for i := range 20 {
		write(t, root, map[string]string{"demo/a.md": fmt.Sprint(i % 10)})
		b, err := skillsOf(t, src)[0].Resources()[0].Read(t.Context())
		want, digestErr := manifest.Digest(filepath.Join(root, "demo"))
		if got := skillsOf(t, src)[0].(*FileSkill).Digest(); err != nil || digestErr != nil || string(b) != fmt.Sprint(i%10) || got != want {
			t.Fatalf("%d: %q, digest %s, want %s, %v, %v", i, b, got, want, err, digestErr)
		}
	}
}

// Links of both kinds are named and never read; the skill is there all the same.
func TestLinks(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"secret.md": "secret", "other.md": "secret", "dir/x.md": "secret"})
	write(t, root, map[string]string{"demo/SKILL.md": md("demo", "D"), "demo/references/real.md": "x"})
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(root, "demo", filepath.FromSlash(name))); err != nil {
			t.Skip("no links here")
		}
	}
	link(filepath.Join(outside, "secret.md"), "references/absolute.md")
	link("../../../"+filepath.Base(outside)+"/secret.md", "references/relative.md")
	link("real.md", "references/inner.md")
	link(filepath.Join(outside, "dir"), "dir")
	link("nowhere.md", "dangling.md")
	link("loop.md", "loop.md")
	src := source(t, nil, root)
	want := []string{"references/real.md"}
	if err := os.Link(filepath.Join(outside, "other.md"), filepath.Join(root, "demo", "hard.md")); err != nil {
		t.Skip("no hard links here")
	}
	s := skillsOf(t, src)[0].(*FileSkill)
	if runtime.GOOS != "linux" {
		want = append([]string{"hard.md"}, want...) // other systems do not tell how many names a file has
	}
	if diff := cmp.Diff(want, infoNames(resourceInfos(s))); diff != "" {
		t.Error(diff)
	}
	if runtime.GOOS == "linux" && len(src.Problems()) != 7 {
		t.Errorf("%d problems: %v", len(src.Problems()), src.Problems())
	}
	p := provide(t, src, nil)
	for _, name := range []string{"references/absolute.md", "references/relative.md", "references/inner.md", "dir", "dir/x.md", "dangling.md", "loop.md", "hard.md"} {
		if name == "hard.md" && runtime.GOOS != "linux" {
			continue
		}
		r, err := p.ReadResource(t.Context(), skill.Local(), "demo", name)
		if skill.CodeOf(err) != skill.ForbiddenPath || r.Data != nil || strings.Contains(err.Error(), outside) {
			t.Errorf("%s: %q, %v", name, r.Data, err)
		}
	}
	// Where a link leads is part of the digest.
	before := s.Digest()
	musttest.Do(t, os.Remove(filepath.Join(root, "demo", "dangling.md")))
	link("elsewhere.md", "dangling.md")
	if after := skillsOf(t, src)[0].(*FileSkill).Digest(); after == before {
		t.Error("the digest does not count where a link leads")
	}
}

// A skill that is itself a link, or whose SKILL.md is one, is skipped.
func TestLinkedSkills(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"linked/SKILL.md": md("linked", "D"), "demo.md": md("demo", "D")})
	write(t, root, map[string]string{"demo/a.md": "x"})
	if os.Symlink(filepath.Join(outside, "linked"), filepath.Join(root, "linked")) != nil ||
		os.Symlink(filepath.Join(outside, "demo.md"), filepath.Join(root, "demo", "SKILL.md")) != nil {
		t.Skip("no links here")
	}
	src := source(t, nil, root)
	if list := skillsOf(t, src); len(list) != 0 || len(src.Problems()) != 3 {
		t.Errorf("%v %v", namesOf(list), lines(src.Problems()))
	}
	// The operator's own link to the root is followed.
	musttest.Do(t, os.Symlink(filepath.Join(outside), filepath.Join(root, "way")))
	if diff := cmp.Diff([]string{"linked"}, namesOf(skillsOf(t, source(t, nil, filepath.Join(root, "way"))))); diff != "" {
		t.Error(diff)
	}
}

// A file that becomes something else between the look and the read is not read.
func TestSwapped(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"secret.md": "secret"})
	write(t, root, map[string]string{"demo/SKILL.md": md("demo", "D"), "demo/a.md": "x"})
	r := skillsOf(t, source(t, nil, root))[0].Resources()[0]
	path := filepath.Join(root, "demo", "a.md")
	musttest.Do(t, os.Remove(path))
	if _, err := r.Read(t.Context()); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("gone: %v", err)
	}
	if err := os.Symlink(filepath.Join(outside, "secret.md"), path); err != nil {
		t.Skip("no links here")
	}
	if b, err := r.Read(t.Context()); skill.CodeOf(err) != skill.ForbiddenPath || b != nil {
		t.Errorf("a link: %q, %v", b, err)
	}
	musttest.Do(t, os.Remove(path))
	write(t, path, map[string]string{"x": "y"})
	if b, err := r.Read(t.Context()); skill.CodeOf(err) != skill.ForbiddenPath || b != nil {
		t.Errorf("a folder: %q, %v", b, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Read(ctx); skill.CodeOf(err) != skill.Cancelled {
		t.Errorf("without a caller: %v", err)
	}
}

// A resource of a gigabyte is refused by its size, without reading it, and so is one
// byte too many.
func TestLargeResource(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{"demo/SKILL.md": md("demo", "D"), "demo/edge.txt": strings.Repeat("x", DefaultMaxResource), "demo/over.txt": strings.Repeat("x", DefaultMaxResource+1), "demo/small.txt": "12345"})
	big := filepath.Join(root, "demo", "zbig.txt")
	write(t, root, map[string]string{"demo/zbig.txt": ""})
	src := source(t, nil, root)
	before := skillsOf(t, src)[0].(*FileSkill).Digest()
	if err := os.Truncate(big, 1<<30); err != nil { // a sparse file, which is quick to make and slow to read
		t.Fatal(err)
	}
	s := skillsOf(t, src)[0]
	if len(s.Resources()) != 4 || s.(*FileSkill).Digest() == before {
		t.Errorf("%v, %s", infoNames(resourceInfos(s)), s.(*FileSkill).Digest())
	}
	digest := s.(*FileSkill).Digest()
	musttest.Do(t, os.Chtimes(big, time.Unix(1, 0), time.Unix(1, 0)))
	if s = skillsOf(t, src)[0]; s.(*FileSkill).Digest() == digest {
		t.Error("a large file that was written again has the same digest")
	}
	for i, want := range []string{"", "over.txt is too large: 1 MiB, the limit is 1 MiB", "", "zbig.txt is too large: 1 GiB, the limit is 1 MiB"} {
		begun := time.Now()
		b, err := s.Resources()[i].Read(t.Context())
		if want == "" {
			if err != nil || len(b) == 0 {
				t.Errorf("%d: %d bytes, %v", i, len(b), err)
			}
			continue
		}
		if skill.CodeOf(err) != skill.PayloadTooLarge || !strings.Contains(err.Error(), want) || b != nil {
			t.Errorf("%d: %v, want %q", i, err, want)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("%d: took %v", i, took)
		}
	}
	write(t, root, map[string]string{"demo/zbig.txt": ""})
	small := skillsOf(t, source(t, &FileOptions{MaxResource: 4}, root))[0]
	if _, err := small.Resources()[2].Read(t.Context()); skill.CodeOf(err) != skill.PayloadTooLarge {
		t.Errorf("MaxResource: %v", err)
	}
}

func TestMaxFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	files := map[string]string{"demo/SKILL.md": md("demo", "D")}
	for i := range 5 {
		files[fmt.Sprintf("demo/f%d.md", i)] = "x"
	}
	write(t, root, files)
	src := source(t, &FileOptions{MaxFiles: 3}, root)
	s := skillsOf(t, src)[0]
	if n := len(s.Resources()); n != 3 || len(src.Problems()) != 1 || !strings.Contains(src.Problems()[0].Message, "2 of them") {
		t.Errorf("%d resources, %v", n, src.Problems())
	}
}

func TestTooManyFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{"a": "", "b/c": ""})
	r := musttest.Get(os.OpenRoot(root))(t)
	defer r.Close()
	if _, err := list(r, root, 4); err != nil { // the folder itself is one
		t.Error(err)
	}
	if _, err := list(r, root, 3); err == nil || !strings.Contains(err.Error(), "more than 3 files and folders") {
		t.Error(err)
	}
	in := entries{files: make([]string, manifest.MaxFiles+1)}
	if _, err := in.digest(r); err == nil || !strings.Contains(err.Error(), "the limit is 10000") {
		t.Error(err)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{
		"good/SKILL.md": md("good", "D"), "extra/SKILL.md": "---\nname: extra\ndescription: D\nauthor: me\n---\n",
		"bad/SKILL.md": "---\nname: worse\ncompatibility: \"\"\n---\n",
	})
	for name, want := range map[string][]string{
		"good":  nil,
		"extra": {"SKILL.md:4"},
		"bad":   {"SKILL.md:1", "SKILL.md:2", "SKILL.md:3"},
		"gone":  {"gone:0"},
	} {
		var got []string
		for _, p := range Validate(filepath.Join(root, name)) {
			got = append(got, fmt.Sprintf("%s:%d", filepath.Base(p.File), p.Line))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}
