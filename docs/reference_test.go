package docs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"openskill/host/app/config"
	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

var update = flag.Bool("update", false, "write the tables that are made from the code")

// page gives one page of docs/.
func page(t *testing.T, name string) string {
	t.Helper()
	b := musttest.Get(os.ReadFile(name))(t)
	return string(b)
}

// TestSettings: the table in operations.md is the one of the code.
func TestSettings(t *testing.T) {
	var b strings.Builder
	b.WriteString("| setting | flag | key | default | accepted | what it is for | reload |\n|---|---|---|---|---|---|---|\n")
	for _, s := range config.Table() {
		def := "none"
		if s.Default != "" {
			def = "`" + s.Default + "`"
		}
		flag := "none"
		if s.Flag != "" {
			flag = "`--" + s.Flag + "`"
		}
		reload := "restart"
		if s.Reloads {
			reload = "SIGHUP"
		}
		names := "`" + strings.Join(append([]string{s.Env}, s.Shorthand...), "`, `") + "`"
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s | %s | %s | %s |\n", names, flag, s.Key, def, s.Accepts, s.Doc, reload)
	}
	const begin, end = "<!-- settings: made by go test ./docs -update -->\n", "<!-- end of settings -->"
	text := page(t, "operations.md")
	before, rest, ok := strings.Cut(text, begin)
	have, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("operations.md has no place for the settings")
	}
	if have == b.String() {
		return
	}
	if *update {
		musttest.Do(t, os.WriteFile("operations.md", []byte(before+begin+b.String()+end+after), 0o644))
		return
	}
	t.Errorf("the settings are others now; run go test ./docs -update\nhave:\n%s\nwant:\n%s", have, b.String())
}

// TestErrorCodes: callers.md has a row for every published code, with its status,
// and no other.
func TestErrorCodes(t *testing.T) {
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| (\\d+) \\| .{20,} \\|$").FindAllStringSubmatch(page(t, "callers.md"), -1) {
		if _, twice := rows[m[1]]; twice {
			t.Errorf("%s has two rows", m[1])
		}
		rows[m[1]] = m[2]
	}
	for code, status := range skill.Codes() {
		if rows[string(code)] != fmt.Sprint(status) {
			t.Errorf("callers.md lacks the row | `%s` | %d | what it means |; it has status %q", code, status, rows[string(code)])
		}
		delete(rows, string(code))
	}
	for code := range rows {
		t.Errorf("callers.md has a row for %s, which is no code", code)
	}
}

// keys asks the reader of manifests for the keys that it knows in one place: a
// wrong one is answered with the list.
func keys(t *testing.T, file string) []string {
	t.Helper()
	dir := t.TempDir()
	musttest.Do(t, os.WriteFile(filepath.Join(dir, manifest.ManifestFile), []byte(file), 0o600))
	problems, _ := manifest.Validate(dir, manifest.Options{Packages: runtimes.CheckRequires})
	_, strict := manifest.ReadTarget([]byte(file), manifest.Options{}) // where a trusted manifest may have any key
	problems = append(problems, strict...)
	for _, p := range problems {
		if strings.Contains(p.Message, `"no_such_key"`) {
			_, list, ok := strings.Cut(p.Message, "accepted are ")
			if ok {
				return strings.Split(list, ", ")
			}
		}
	}
	t.Fatalf("no problem of this manifest lists keys:\n%s", file)
	return nil
}

// TestManifestKeys: authors.md has a row for every key that a manifest may have,
// and no other.
func TestManifestKeys(t *testing.T) {
	known := map[string]bool{}
	for _, key := range keys(t, "no_such_key: 1\n") {
		known[key] = true
	}
	for _, key := range []string{"fallback", "limits", "permissions", "build", "cost_metadata"} {
		for _, inner := range keys(t, key+": {no_such_key: 1}\n") {
			known[key+"."+inner] = true
		}
	}
	if len(known) < 30 {
		t.Fatalf("only %d keys were found: %v", len(known), sorted(known))
	}
	rows := map[string]bool{}
	_, section, _ := strings.Cut(page(t, "authors.md"), "\n## The manifest\n")
	section, _, _ = strings.Cut(section, "\n### ")
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\|").FindAllStringSubmatch(section, -1) {
		rows[m[1]] = true
	}
	for _, key := range sorted(known) {
		if !rows[key] {
			t.Errorf("authors.md lacks a row for the key %s", key)
		}
	}
	for _, key := range sorted(rows) {
		if !known[key] {
			t.Errorf("authors.md has a row for %s, which is no key", key)
		}
	}
}

// TestLimits: callers.md and authors.md name every limit.
func TestLimits(t *testing.T) {
	callers, authors := page(t, "callers.md"), page(t, "authors.md")
	for _, f := range new(skill.LimitsJSON).Fields() {
		if !strings.Contains(callers, "`"+f.Name+"`") {
			t.Errorf("callers.md does not name the limit %s of a call", f.Name)
		}
		if !strings.Contains(authors, "\n| `"+f.Name+"` |") {
			t.Errorf("authors.md has no row for what happens at the limit %s", f.Name)
		}
	}
}

// TestLogFields: operations.md names every field of the line that a call leaves in
// the log.
func TestLogFields(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the binary")
	}
	cmd := exec.Command(binary(t), "run", "no_such_skill", "--debug")
	cmd.Dir = t.TempDir()
	var log bytes.Buffer
	cmd.Stderr = &log
	var ended *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &ended) || ended.ExitCode() != 1 {
		t.Fatalf("run: %v", err)
	}
	var line map[string]any
	for text := range strings.Lines(log.String()) {
		if strings.Contains(text, `"msg":"invoke"`) && json.Unmarshal([]byte(text), &line) != nil {
			t.Fatalf("no JSON: %s", text)
		}
	}
	if len(line) < 10 {
		t.Fatalf("only %v", line)
	}
	text := page(t, "operations.md")
	for field := range line {
		if !strings.Contains(text, "| `"+field+"` |") {
			t.Errorf("operations.md lacks the field %s of the log", field)
		}
	}
}

// TestCommands: every command of the binary is shown on some page.
func TestCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the binary")
	}
	openskill := binary(t)
	var text string
	for _, p := range pages(t) {
		text += p
	}
	list := func(of string) (names []string) {
		out := musttest.Get(exec.Command(openskill, append(strings.Fields(of), "--help")...).Output())(t)
		_, rest, ok := strings.Cut(string(out), "Available Commands:\n")
		if !ok {
			return nil
		}
		for _, line := range strings.Split(rest, "\n") {
			if line == "" {
				break
			}
			if name := strings.Fields(line)[0]; name != "help" {
				names = append(names, strings.TrimSpace(of+" "+name))
			}
		}
		return names
	}
	top := list("")
	if len(top) < 5 {
		t.Fatalf("only %v", top)
	}
	for _, name := range top {
		for _, full := range append(list(name), name) {
			if !strings.Contains(text, "openskill "+full) {
				t.Errorf("no page shows openskill %s", full)
			}
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^()\s]*)\)`)
	address = regexp.MustCompile(`https?://[^\s)"'>]+`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	inRepo  = regexp.MustCompile("`((?:cmd|data|docs|examples|host|plugins|scripts|sdk|skills|tools|wasm)/[\\w./-]+|[A-Z]+\\.md|Makefile|go\\.mod)`")
	tests   = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z][A-Za-z0-9]+\b`)
	code    = regexp.MustCompile("(?s)```.*?\n```\n")
)

// anchor is the name that a heading has in a link.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		}
	}
	return b.String()
}

// nowhere are addresses that are kept for documentation (RFC 2606, RFC 5737), and the
// rule for all names.
var nowhere = regexp.MustCompile(`^https?://(([a-z*]+\.)?example\.(com|org|net)|192\.0\.2\.\d+|\*` + "`" + `)`)

// dialect is the name of a draft of JSON Schema, which nobody fetches.
var dialect = regexp.MustCompile(`^https?://json-schema\.org/draft[-/][0-9-]+/schema`)

// TestLinks: what a page points to is there, and nothing points out of the
// repository, for the pages must do without a network.
func TestLinks(t *testing.T) {
	root := repo(t)
	for name, text := range pages(t) {
		prose := code.ReplaceAllString(text, "\n")
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			file, at, _ := strings.Cut(m[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if strings.Contains(m[1], ":") || strings.HasPrefix(target, "..") {
				t.Errorf("%s: the link %s leads out of the repository", name, m[1])
				continue
			}
			b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(target)))
			if info, statErr := os.Stat(filepath.Join(root, filepath.FromSlash(target))); statErr != nil || err != nil && !info.IsDir() {
				t.Errorf("%s: the link %s leads nowhere", name, m[1])
				continue
			}
			if at != "" && !slices.ContainsFunc(heading.FindAllStringSubmatch(string(b), -1), func(h []string) bool { return anchor(h[1]) == at }) {
				t.Errorf("%s: %s has no heading %s", name, target, at)
			}
		}
		for _, m := range inRepo.FindAllStringSubmatch(prose, -1) {
			if strings.HasSuffix(m[1], ".wasm") || name == "docs/compatibility.md" {
				continue // built, or of public skills
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s: there is no %s", name, m[1])
			}
		}
		for _, a := range address.FindAllString(text, -1) {
			if name == "docs/operations.md" && slices.ContainsFunc(config.Table(), func(s config.Setting) bool { return strings.Contains(s.Default, strings.Trim(a, "`,")) }) {
				continue // where a vendor is, unless the operator says otherwise
			}
			if !strings.HasPrefix(a, "http://"+shownAddress) && !nowhere.MatchString(a) && !dialect.MatchString(a) {
				t.Errorf("%s: the address %s is not this host's", name, a)
			}
		}
	}
}

// TestNamedTests: a page that names a test as its proof names one that there is.
func TestNamedTests(t *testing.T) {
	root := repo(t)
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case d.IsDir() && p != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(p, "_test.go"):
			return nil
		}
		b, err := os.ReadFile(p)
		for _, m := range declared.FindAllStringSubmatch(string(b), -1) {
			there[m[1]] = true
		}
		return err
	})
	musttest.Do(t, err)
	named := 0
	for name, text := range pages(t) {
		for _, test := range tests.FindAllString(text, -1) {
			named++
			if !there[test] {
				t.Errorf("%s names %s, and there is no such test", name, test)
			}
		}
	}
	if named == 0 {
		t.Error("no page names a test")
	}
}

// TestPagesNameNoMachine looks for paths of the machine that a page was written on.
func TestPagesNameNoMachine(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil || len(home) < 2 {
		home = repo(t)
	}
	for name, text := range pages(t) {
		for _, place := range []string{repo(t), home + "/"} {
			if strings.Contains(text, place) {
				t.Errorf("%s holds a path of the machine that it was written on", name)
			}
		}
	}
}
