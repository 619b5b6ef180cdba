package preflight

import (
	"fmt"
	"path"
	"strings"

	"openskill/host/pysource"
)

// uses looks at what a script calls, by the names that things were imported as.
func (c *check) uses(file string, f *source, m *pysource.Module) {
	soft := map[string]bool{}  // modules whose import may fail: what is done with them may too
	taken := map[string]bool{} // by from … import, where what is missing was found already
	for i := range m.Imports {
		im := &m.Imports[i]
		if im.Optional {
			top, _, _ := strings.Cut(im.Module, ".")
			soft[top] = true
		}
		for _, n := range im.Names {
			taken[im.Module+"."+n.Name] = true
		}
	}
	asked := map[string]bool{} // names that the script looks for before it takes them
	for i := range m.Uses {
		if u := &m.Uses[i]; u.Name == "hasattr" {
			asked[second(u)] = true
		}
	}
	told := map[string]bool{}
	for i := range m.Uses {
		u := &m.Uses[i]
		c.path(file, u)
		r, ok := ruleOf(u.Name)
		if !ok || r.call && !u.Call || r.word != nil && !r.word(second(u)) || r.small && c.o.Large[f.runtime] {
			continue
		}
		if r == absent && taken[u.Name] {
			continue
		}
		// Once a function is enough: a script that reads 40 variables needs no 40 lines.
		key := r.what + "\x00" + u.Name + "\x00" + u.Function
		if r.once {
			key = r.what
		}
		if told[key] {
			continue
		}
		told[key] = true
		severity := r.severity
		top, _, _ := strings.Cut(u.Name, ".")
		if severity == CannotRun && (soft[top] || r == absent && asked[u.Name[strings.LastIndexByte(u.Name, '.')+1:]]) {
			severity = MayDiffer
		}
		c.find(file, u.Line, severity, r.kind, r.said(u), r.instead)
	}
}

// second is the second argument of a call, or that of the name that both functions with
// such a rule give it, if it is a text.
func second(u *pysource.Use) string {
	for _, name := range []string{"features", "locale"} {
		if text, ok := u.Keywords[name]; ok {
			return text
		}
	}
	if len(u.Args) > 1 {
		return u.Args[1]
	}
	return ""
}

// said is what a finding says of a use.
func (r *rule) said(u *pysource.Use) string {
	if !strings.Contains(r.what, "%s") {
		return r.what
	}
	return fmt.Sprintf(r.what, u.Name)
}

// ruleOf finds the rule of a name: its own, or that of the longest name in front of it.
func ruleOf(name string) (*rule, bool) {
	for n := name; ; {
		if r, ok := rules[n]; ok {
			return r, r != nil
		}
		if missing()[n] {
			return absent, true
		}
		i := strings.LastIndexByte(n, '.')
		if i < 0 {
			return nil, false
		}
		n = n[:i]
	}
}

// path looks at literal paths that lead out of the folder.
func (c *check) path(file string, u *pysource.Use) {
	if !u.Call {
		return
	}
	most, ok := pathCalls[u.Name]
	if !ok {
		return
	}
	for _, p := range u.Args[:min(most, len(u.Args))] {
		switch {
		case strings.HasPrefix(p, "~"):
			c.find(file, u.Line, MayDiffer, KindFile, fmt.Sprintf("%s(%q): there is no home folder of a user", u.Name, p), insteadFiles)
		case p == "/dev/null" || p == "/" || p == "":
		case p == "/dev/stdin":
			c.find(file, u.Line, CannotRun, KindInput, `there is no "/dev/stdin"`, "read sys.stdin, or open descriptor 0")
		case p == "/tmp" || strings.HasPrefix(p, "/tmp/"):
			c.find(file, u.Line, MayDiffer, KindFile, fmt.Sprintf("%s(%q): files of other programs in /tmp are not there, and nothing stays", u.Name, p), "write into the working folder: new files there come back as artifacts")
		case (path.Dir(p) == "/usr/bin" || path.Dir(p) == "/bin") && c.has(path.Base(p)):
		case strings.HasPrefix(p, "/") && asks[u.Name]:
			c.find(file, u.Line, MayDiffer, KindFile, fmt.Sprintf("%s(%q): the sandbox shows the skill's folder alone, so the answer is no", u.Name, p), "")
		case strings.HasPrefix(p, "/"):
			c.find(file, u.Line, CannotRun, KindFile, fmt.Sprintf("%s(%q): the sandbox shows the skill's folder alone", u.Name, p), insteadFiles)
		case strings.HasPrefix(path.Clean(p), "../") || path.Clean(p) == "..":
			c.find(file, u.Line, MayDiffer, KindFile, fmt.Sprintf("%s(%q): it may lead out of the skill's folder, and the sandbox shows that alone", u.Name, p), insteadFiles)
		}
	}
}

const insteadFiles = "put the file into the skill's folder, or give its text as an argument or on standard input"
