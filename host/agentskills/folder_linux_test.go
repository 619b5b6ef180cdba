package agentskills

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// A pipe in a skill's folder, or in the place of a file of it, makes nobody wait.
func TestPipes(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{"demo/SKILL.md": md("demo", "D"), "demo/a.md": "x"})
	if err := syscall.Mkfifo(filepath.Join(root, "demo", "pipe.md"), 0o600); err != nil {
		t.Skip("no pipes here")
	}
	src := source(t, nil, root)
	done := make(chan struct{})
	go func() {
		defer close(done)
		list := skillsOf(t, src)
		if len(list) != 1 || len(src.Problems()) != 1 || !strings.Contains(src.Problems()[0].Message, "not a regular file") {
			t.Errorf("%v %v", namesOf(list), src.Problems())
			return
		}
		path := filepath.Join(root, "demo", "a.md")
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Error(err)
		}
		if _, err := list[0].Resources()[0].Read(t.Context()); skill.CodeOf(err) != skill.ForbiddenPath {
			t.Errorf("a pipe is read: %v", err)
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("a pipe is waited for")
	}
}

// A hard link that takes the place of a listed file is not read: its other name may be anywhere.
func TestRefusesHardLinksInThePlaceOfFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{"demo/SKILL.md": md("demo", "D"), "demo/a.md": "x", "secret": "hush"})
	list := skillsOf(t, source(t, nil, root))
	path := filepath.Join(root, "demo", "a.md")
	musttest.Do(t, os.Remove(path))
	musttest.Do(t, os.Link(filepath.Join(root, "secret"), path))
	if b, err := list[0].Resources()[0].Read(t.Context()); skill.CodeOf(err) != skill.ForbiddenPath {
		t.Errorf("%q is read, %v", b, err)
	}
}

// A name with an end of line would be more than one name to whoever reads a list.
func TestRefusesNamesWithControlCharacters(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{"demo/SKILL.md": md("demo", "D"), "demo/a\nb.md": "x", "demo/c\x1b[2J.py": "x", "demo/\xff.md": "x", "demo/good.md": "x"})
	s := skillsOf(t, source(t, nil, root))[0]
	if got := append(infoNames(resourceInfos(s)), infoNames(scriptInfos(s))...); len(got) != 1 || got[0] != "good.md" {
		t.Errorf("%q are listed", got)
	}
}
