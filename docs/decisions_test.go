package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDecisions: each record is listed once, under its title, and has the four parts.
func TestDecisions(t *testing.T) {
	const folder = "docs/decisions/"
	all := pages(t)
	var want []string
	for _, name := range sorted(all) {
		file, ok := strings.CutPrefix(name, folder)
		if !ok || file == "README.md" {
			continue
		}
		title, _, _ := strings.Cut(all[name], "\n")
		number, words, ok := strings.Cut(strings.TrimPrefix(title, "# "), ". ")
		if !ok || !strings.HasPrefix(file, number+"-") {
			t.Errorf("%s: the title is %q: begin it with the number of the file", name, title)
		}
		want = append(want, "- ["+number+"]("+file+") "+words)
		parts := regexp.MustCompile(`(?m)^## .*$`).FindAllString(all[name], -1)
		if !slices.Equal(parts, []string{"## Question", "## Decision", "## Measured", "## Rejected"}) {
			t.Errorf("%s has the parts %q", name, parts)
		}
	}
	listed := regexp.MustCompile(`(?m)^- .*$`).FindAllString(all[folder+"README.md"], -1)
	if len(want) == 0 || !slices.Equal(listed, want) {
		t.Errorf("README.md of decisions lists\n%s\nand there are\n%s", strings.Join(listed, "\n"), strings.Join(want, "\n"))
	}
}
