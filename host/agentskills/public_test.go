package agentskills

import (
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/manifest"
	"openskill/internal/musttest"
)

var update = flag.Bool("update", false, "write testdata/public anew")

// values are what differs between warnings of one kind.
var values = regexp.MustCompile(`"[^"]*"|\d+`)

// What others have published loads as it is, but for folders without a description or
// without a frontmatter. testdata/public has the counts of each package, the kinds of
// warnings, and what does not load and why.
func TestLoadsPublicSkills(t *testing.T) {
	t.Parallel()
	for name, folders := range map[string]int{"ai-labs": 23, "bmad": 50, "ecc": 676, "eliza": 34, "specweave": 51} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.EvalSymlinks(filepath.Join("..", "..", ".openskill", "public-skills", name))
			if err != nil {
				t.Skipf("no Agent Skills of others (make public-skills): %v", err)
			}
			if dir, err = filepath.Abs(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(dir + ".ready"); err != nil {
				t.Skipf("no Agent Skills of others (make public-skills): %v", err)
			}
			list, _ := Folders(dir)
			if len(list) != folders {
				t.Errorf("%d folders with a SKILL.md are found, want %d", len(list), folders)
			}
			source := musttest.Get(NewFolders(&FileOptions{Log: slog.New(slog.DiscardHandler)}, dir))(t)
			loaded := musttest.Get(source.Skills(t.Context()))(t)
			got := account(dir, len(list), loaded, source.Problems())
			for line := range strings.Lines(got) {
				if what, ok := strings.CutPrefix(line, "not loaded: "); ok && !strings.Contains(what, "three hyphens") && !strings.Contains(what, "description") {
					t.Errorf("does not load for another reason: %s", line)
				}
			}
			golden := filepath.Join("testdata", "public", name+".txt")
			if *update {
				musttest.Do(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want := musttest.Get(os.ReadFile(golden))(t)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// account tells how many folders load, how many of those with a warning, and what does not.
func account(dir string, folders int, loaded []Skill, problems []manifest.Problem) string {
	ok := map[string]bool{}
	for _, s := range loaded {
		ok[s.(*FileSkill).path] = true
	}
	var not []string
	kinds, warned := map[string]int{}, map[string]bool{}
	for _, p := range problems {
		folder := filepath.Dir(p.File)
		if ok[folder] {
			kinds[values.ReplaceAllString(p.Message, "…")]++
			warned[folder] = true
			continue
		}
		p.File = filepath.ToSlash(strings.TrimPrefix(p.File, dir+string(filepath.Separator)))
		not = append(not, "not loaded: "+p.String()+"\n")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d folders: %d load, %d of them with a warning; %d do not\n", folders, len(loaded), len(warned), folders-len(loaded))
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(&b, "%d warnings: %s\n", kinds[k], k)
	}
	return b.String() + strings.Join(not, "")
}
