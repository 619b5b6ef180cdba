package community

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"openskill/internal/musttest"
)

// The packages that docs/packages.md lists do what it says, in the versions that it names.
func TestPackagesThatWereTried(t *testing.T) {
	if testing.Short() {
		t.Skip("short: compiling runtimes takes seconds")
	}
	text := musttest.Get(os.ReadFile(filepath.Join("..", "..", "..", "..", "..", "docs", "packages.md")))(t)
	rows := regexp.MustCompile("(?m)^\\| `((python|npm):([^`]+))` \\| ([^ |]+) \\| `([^`]+)` \\| `([^`]+)` \\|$").FindAllStringSubmatch(string(text), -1)
	if len(rows) < 29 {
		t.Fatalf("docs/packages.md has %d packages that were tried", len(rows))
	}
	together := map[string][]string{} // one folder for all of an ecosystem
	for _, row := range rows {
		together[row[2]] = append(together[row[2]], row[1])
	}
	s := newSandbox(t)
	for _, row := range rows {
		name, ecosystem, pkg, version, line, want := row[1], row[2], row[3], row[4], row[5], row[6]
		if !everything() && sha256.Sum256([]byte(name))[0] >= 64 {
			continue // a quarter of them, always the same
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &kase{of: &collection{}, Script: "try.mjs", Packages: together[ecosystem], Files: map[string]string{
				"SKILL.md": "", "try.mjs": "import * as all from '" + pkg + "';\nconst p = all.default ?? all;\nconsole.log(" + line + ");\n",
			}}
			if ecosystem == "python" {
				k.Script = "try.py"
				k.Files["try.py"] = "import " + module(pkg) + "\nprint(" + line + ")\n"
			}
			o := s.run(t, k, t.TempDir())
			if got := strings.TrimSpace(string(o.stdout)); o.failed != "" || o.exit != 0 || got != want {
				t.Errorf("it prints %q, exit code %d, %s; want %q\n%s", got, o.exit, o.failed, want, o.stderr)
			}
			for _, p := range s.packagesOf(t, k).lock.Packages {
				if p.Name == pkg && p.Version != version {
					t.Errorf("version %s, and the page says %s", p.Version, version)
				}
			}
		})
	}
}

// module is what a package of Python is imported by.
func module(pkg string) string {
	if other, ok := map[string]string{"python-dotenv": "dotenv", "pyjwt": "jwt", "python-slugify": "slugify"}[pkg]; ok {
		return other
	}
	return pkg
}
