package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"openskill/sdk/skill"
)

// section gives what stands below a heading of a page.
func section(t *testing.T, name, heading string) string {
	t.Helper()
	_, text, ok := strings.Cut("\n"+page(t, name), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no %q", name, heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// rows gives the cells of the rows of a table, without its head.
func rows(table string) (all [][]string) {
	for line := range strings.Lines(table) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "| ") {
			all = append(all, strings.Split(strings.Trim(line, "| "), " | "))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[1:]
}

// TestGlossaryRows: each word has one row, in order, that says in a sentence or two what
// it means, and where to look. TestLinks holds that there is something to see.
func TestGlossaryRows(t *testing.T) {
	last := ""
	all := rows(section(t, "glossary.md", "# The words"))
	if len(all) < 50 {
		t.Fatalf("only %d words", len(all))
	}
	for _, row := range all {
		word := strings.ToLower(row[0])
		if word <= last {
			t.Errorf("%q stands behind %q", row[0], last)
		}
		last = word
		if len(row) != 3 || strings.Count(row[1], ". ") > 1 || !strings.HasSuffix(row[1], ".") {
			t.Errorf("%q: want | word | a sentence or two. | where |", row[0])
			continue
		}
		if !link.MatchString(row[2]) && !inRepo.MatchString(row[2]) {
			t.Errorf("%q: no place where it is enforced or seen", row[0])
		}
	}
}

// constants gives the values of the string constants of a type in a file.
func constants(t *testing.T, file, of string) (values []string) {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(repo(t), filepath.FromSlash(file)), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range tree.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, s := range gen.Specs {
			v, ok := s.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 {
				continue
			}
			id, ok := v.Type.(*ast.Ident)
			lit, isLit := v.Values[0].(*ast.BasicLit)
			if !ok || id.Name != of || !isLit {
				continue
			}
			value, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
	}
	return values
}

// TestGlossaryNames: the names that programs see are those of the code, in its order, and
// every error code is in one family.
func TestGlossaryNames(t *testing.T) {
	var trust, limits []string
	for degree := skill.Community; !strings.HasPrefix(degree.String(), "trust("); degree++ {
		trust = append(trust, degree.String())
	}
	for _, f := range new(skill.LimitsJSON).Fields() {
		limits = append(limits, f.Name)
	}
	want := map[string][]string{
		"runners":                     constants(t, "sdk/skill/skill.go", "Kind"),
		"trust, lowest first":         trust,
		"types of principals":         constants(t, "sdk/skill/principal.go", "PrincipalType"),
		"scopes":                      skill.Scopes(),
		"statuses of executions":      constants(t, "host/audit/record.go", "Status"),
		"states of uploaded versions": constants(t, "sdk/skill/skill.go", "State"),
		"states of approvals":         constants(t, "host/approval/approval.go", "State"),
		"limits":                      limits,
	}
	var codes []string
	for _, row := range rows(section(t, "glossary.md", "## Names that programs see")) {
		var names []string
		for _, m := range quoted.FindAllStringSubmatch(row[1], -1) {
			names = append(names, m[1])
		}
		if strings.HasPrefix(row[0], "codes: ") {
			codes = append(codes, names...)
			continue
		}
		if !slices.Equal(names, want[row[0]]) {
			t.Errorf("%s: the page has %q, the code %q", row[0], names, want[row[0]])
		}
		delete(want, row[0])
	}
	for _, name := range sorted(want) {
		t.Errorf("there is no row %q for %q", name, want[name])
	}
	published := skill.Codes()
	for _, name := range codes {
		if _, ok := published[skill.Code(name)]; !ok {
			t.Errorf("%s is no code, or is in two families of codes", name)
		}
		delete(published, skill.Code(name))
	}
	for _, code := range slices.Sorted(maps.Keys(published)) {
		t.Errorf("%s is in no family of codes of glossary.md", code)
	}
}

// notSaid gives the words that the glossary leaves out, and what is said instead.
func notSaid(t *testing.T) map[string]string {
	t.Helper()
	words := map[string]string{}
	for _, row := range rows(section(t, "glossary.md", "## Words that are not used")) {
		for _, word := range strings.Split(row[0], ", ") {
			words[word], words[word+"s"] = row[1], row[1]
		}
	}
	if len(words) < 10 {
		t.Fatalf("only %v", words)
	}
	return words
}

var (
	inline = regexp.MustCompile("`[^`\n]+`|\\]\\([^)]*\\)|\"[^\"\n]*\"")
	apart  = regexp.MustCompile(`[\s,;:!?()\[\]{}<>|*"'…]+`)
)

// wordsOf gives the words of a text as they are read: what belongs to a name, such as
// plugin.wasm or wasi_snapshot_preview1, is none.
func wordsOf(text string) []string {
	words := apart.Split(strings.ToLower(text), -1)
	for i, w := range words {
		words[i] = strings.TrimRight(w, ".")
	}
	return words
}

// TestOneVoice: neither pages nor what a program says use a word for which the glossary
// has another one.
func TestOneVoice(t *testing.T) {
	not := notSaid(t)
	check := func(where, text string) {
		for _, word := range wordsOf(text) {
			if but, found := not[word]; found {
				t.Errorf("%s says %q; the glossary has %s", where, word, but)
			}
		}
	}
	for name, text := range pages(t) {
		if name != "docs/glossary.md" {
			check(name, inline.ReplaceAllString(code.ReplaceAllString(text, "\n"), ""))
		}
	}
	root, files := repo(t), 0
	for _, top := range []string{"cmd", "host", "plugins", "sdk", "wasm"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(p string, d fs.DirEntry, err error) error {
			rel, relErr := filepath.Rel(root, p)
			rel = filepath.ToSlash(rel)
			switch {
			case err != nil || relErr != nil:
				return nil
			case d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || strings.HasSuffix(d.Name(), "test")):
				return filepath.SkipDir
			case rel == "host/httpapi/openapi.yaml":
				b, err := os.ReadFile(p)
				check(rel, string(b))
				return err
			case !strings.HasSuffix(p, ".go"), strings.HasSuffix(p, "_test.go"), rel == "plugins/python/runtimes/modules.go": // names of modules
				return nil
			}
			files++
			return eachMessage(p, func(line int, text string) { check(fmt.Sprintf("%s:%d", rel, line), text) })
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 400 {
		t.Errorf("only %d files were looked at", files)
	}
}

// eachMessage gives do the string literals of a Go file that people may read: those with
// a space in them, tags of fields among them.
func eachMessage(file string, do func(line int, text string)) error {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(text, " ") {
				do(set.Position(lit.Pos()).Line, text)
			}
		}
		return true
	})
	return nil
}
