package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest = regexp.MustCompile("`(Test[A-Za-z0-9]+)` \\(`([a-z]+(?:/[a-z]+)*)`\\)")
	tableRow  = regexp.MustCompile(`(?m)^\| .* \|$`)
)

// TestRequirements: requirements.md has a row for each requirement, every row names a
// test, and every test that it names is there.
func TestRequirements(t *testing.T) {
	text := page(t, "requirements.md")
	for n := range 16 {
		if row := fmt.Sprintf("\n| REQ-%03d | ", n+1); strings.Count(text, row) != 1 {
			t.Errorf("there must be one row REQ-%03d", n+1)
		}
	}
	sources := map[string]string{}
	rows := 0
	for _, row := range tableRow.FindAllString(text, -1) {
		if strings.HasPrefix(row, "| | what") || strings.HasPrefix(row, "| there |") {
			continue
		}
		rows++
		columns := strings.Split(strings.Trim(row, "|"), " | ")
		tests := namedTest.FindAllStringSubmatch(columns[len(columns)-1], -1)
		if len(tests) == 0 {
			t.Errorf("this row names no test: %s", row)
		}
		for _, m := range tests {
			test, dir := m[1], m[2]
			if sources[dir] == "" {
				sources[dir] = testsOf(t, dir)
			}
			if !strings.Contains(sources[dir], "\nfunc "+test+"(t *testing.T) {") {
				t.Errorf("%s has no %s, which this row names: %s", dir, test, row)
			}
		}
	}
	if rows < 60 {
		t.Errorf("%d rows", rows)
	}
}

// testsOf gives the source of all tests in a folder of the repository.
func testsOf(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(dir), "*_test.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s has no tests: %v", dir, err)
	}
	var all strings.Builder
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}
