package preflight

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"openskill/sdk/skill"
)

// Declared is a package that a file of a folder says that its scripts need.
type Declared struct {
	Ecosystem string // python or npm
	Text      string // as it is written, such as requests>=2 or chalk@^5
	File      string // relative to the folder, with /
	Line      int    // 1 is the first; 0: not known
}

// What is looked at of a folder.
const (
	maxDeclarations = 500
	maxDeclaring    = 1 << 20 // bytes of a file
	maxDeclarers    = 5000    // files
)

// Declarations are the packages that the files of a folder declare: requirements.txt, blocks
// of PEP 723 in scripts, the dependencies of pyproject.toml and package.json. What they say
// is not checked.
func Declarations(root *os.Root) ([]Declared, error) {
	var all []Declared
	err := Files(root, func(name string) {
		read := declaring(path.Base(name))
		if read == nil || len(all) >= maxDeclarations {
			return
		}
		f, err := root.Open(name)
		if err != nil {
			return // who runs the scripts is told
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, maxDeclaring))
		if err != nil {
			return
		}
		for _, d := range read(b) {
			d.File, d.Text = skill.CleanText(name, 200), skill.CleanText(d.Text, 200)
			all = append(all, d)
		}
	})
	return all[:min(len(all), maxDeclarations)], err
}

var (
	beforeVersions = regexp.MustCompile(`^[A-Za-z0-9._-]+`)
	betweenWords   = regexp.MustCompile(`[-_.]+`)
)

// indexName is how an index writes the name of a package.
func indexName(name string) string {
	return strings.ToLower(betweenWords.ReplaceAllString(name, "-"))
}

// DeclaredNames are the packages of Python that the files of a folder declare, as an index writes
// them. Of a folder that cannot be read they are those found before.
func DeclaredNames(root *os.Root) map[string]bool {
	all := map[string]bool{}
	declared, _ := Declarations(root)
	for _, d := range declared {
		if d.Ecosystem == "python" {
			all[indexName(beforeVersions.FindString(d.Text))] = true
		}
	}
	return all
}

// Files calls with the path of each file of a folder that may be a script or declare packages.
func Files(root *os.Root, each func(name string)) error {
	files := 0
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if d.IsDir() {
			if base == "node_modules" || len(base) > 1 && base[0] == '.' || strings.Count(name, "/") > 4 {
				return fs.SkipDir
			}
			return nil
		}
		if files++; files > maxDeclarers {
			return fs.SkipAll
		}
		if d.Type().IsRegular() {
			each(name)
		}
		return nil
	})
}

// declaring gives what reads the declarations of a file; nil: it has none.
func declaring(base string) func([]byte) []Declared {
	switch {
	case base == "requirements.txt":
		return requirementLines
	case base == "pyproject.toml":
		return pyproject
	case base == "package.json":
		return packageJSON
	case strings.HasSuffix(base, ".py"):
		return scriptBlock
	}
	return nil
}

var requirementEnd = regexp.MustCompile(`\s+(#|--hash=|;).*$|;.*$`)

// requirementLines reads requirements.txt: options, paths and addresses are left out.
func requirementLines(b []byte) (all []Declared) {
	for i, line := range strings.Split(string(b), "\n") {
		text := strings.TrimSpace(requirementEnd.ReplaceAllString(strings.TrimSuffix(strings.TrimSpace(line), `\`), ""))
		if text == "" || strings.HasPrefix(text, "#") || strings.HasPrefix(text, "-") || strings.ContainsAny(text, "/@") {
			continue
		}
		all = append(all, Declared{Ecosystem: "python", Text: text, Line: i + 1})
	}
	return all
}

// scriptBlock reads the block of a script that PEP 723 defines.
func scriptBlock(b []byte) []Declared {
	at := bytes.Index(b, []byte("# /// script\n"))
	if at < 0 || at > 0 && b[at-1] != '\n' {
		return nil
	}
	line := bytes.Count(b[:at], []byte("\n")) + 2
	var toml strings.Builder
	for text := range strings.SplitSeq(string(b[at+len("# /// script\n"):]), "\n") {
		if text = strings.TrimSuffix(text, "\r"); text == "# ///" || !strings.HasPrefix(text, "#") {
			break
		}
		toml.WriteString(strings.TrimPrefix(text[1:], " ") + "\n")
	}
	return dependencies(toml.String(), line)
}

// pyproject reads the dependencies of a project.
func pyproject(b []byte) []Declared {
	text := "\n" + string(b)
	at := strings.Index(text, "\n[project]")
	if at < 0 {
		return nil
	}
	table := text[at+1:]
	first, rest, _ := strings.Cut(table, "\n")
	if end := strings.Index(rest, "\n["); end >= 0 {
		rest = rest[:end+1]
	}
	return dependencies(rest, strings.Count(text[:at+1], "\n")+strings.Count(first, "\n")+1)
}

var dependencyArray = regexp.MustCompile(`(?m)^\s*dependencies\s*=\s*\[`)

// dependencies reads the array of strings of that name in TOML; line is that of its first.
func dependencies(toml string, line int) (all []Declared) {
	at := dependencyArray.FindStringIndex(toml)
	if at == nil {
		return nil
	}
	line += strings.Count(toml[:at[1]], "\n")
	for rest := toml[at[1]:]; rest != ""; {
		switch c := rest[0]; c {
		case ']':
			return all
		case '"', '\'':
			end := strings.IndexByte(rest[1:], c)
			if end < 0 {
				return all
			}
			text, _, _ := strings.Cut(rest[1:1+end], ";")
			if text = strings.TrimSpace(text); text != "" && !strings.ContainsAny(text, "/@\n") {
				all = append(all, Declared{Ecosystem: "python", Text: text, Line: line})
			}
			rest = rest[end+2:]
		case '#':
			_, rest, _ = strings.Cut(rest, "\n")
			line++
		default:
			if c == '\n' {
				line++
			}
			rest = rest[1:]
		}
	}
	return all
}

// packageJSON reads the dependencies of a package.json.
func packageJSON(b []byte) (all []Declared) {
	var p struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if json.Unmarshal(b, &p) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.Dependencies)) {
		text := name
		if spec := p.Dependencies[name]; spec != "" && spec != "*" && spec != "latest" {
			text += "@" + spec
		}
		all = append(all, Declared{Ecosystem: "npm", Text: text})
	}
	return all
}
