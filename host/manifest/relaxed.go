package manifest

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"openskill/internal/safeyaml"
	"openskill/sdk/skill"
)

// noVersion is the version of a skill whose manifest has none.
const noVersion = "0.0.0"

// relaxed is what a manifest in the operator's own folders may say besides, and what it may
// leave out: the form that skill hosts with a folder of scripts have. Manifests of strangers
// are read by the strict rules alone.
type relaxed struct {
	timeout     uint64
	timeoutLine int
	root        string // "data" or a path below it
	rootLine    int
}

// keys adds the keys to the known ones, and gives those that are still required.
func (r *relaxed) keys(p *parser, known map[string]func(*yaml.Node), required []string) []string {
	known["timeout_ms"] = func(n *yaml.Node) {
		r.timeoutLine = n.Line
		var l skill.LimitsJSON
		for _, f := range l.Fields() {
			if f.Name == "timeout_ms" {
				r.timeout = p.whole(n, f.Name, f.Most)
			}
		}
	}
	known["allowed_root"] = func(n *yaml.Node) {
		r.rootLine = n.Line
		var s string
		if !p.text(n, "allowed_root", &s) {
			return
		}
		if r.root = path.Clean(s); !InData(s) {
			p.report(n.Line, "allowed_root %s must be ./data or a folder below it: it narrows the data folder, which the operator sets with OPENSKILL_ALLOWED_ROOT", safeyaml.Quote(s))
		}
	}
	if _, list := known["name"]; list {
		return required
	}
	return slices.DeleteFunc(required, func(key string) bool { return key == "version" || key == "description" })
}

// apply puts what was read into the manifest.
func (r *relaxed) apply(p *parser, m *manifest, given map[string]bool) {
	if !p.files {
		return
	}
	if r.timeoutLine > 0 {
		if own := m.limits.TimeoutMS; given["limits"] && own != 0 && own != r.timeout {
			p.report(r.timeoutLine, "timeout_ms and limits.timeout_ms differ; keep one")
		}
		m.limits.TimeoutMS = r.timeout
	}
	if r.rootLine > 0 && r.root != "" {
		switch {
		case m.permissions == nil: // who names the folder that it may read asks for it
			m.permissions = &skill.Permissions{Data: true, Scratch: !Sandboxed(m.primary.Kind)}
		case !m.permissions.Data:
			p.report(r.rootLine, "allowed_root needs permissions.data: read")
		}
		if m.permissions.AllowedRoot = r.root; r.root == "data" {
			m.permissions.AllowedRoot = "" // all of it
		}
	}
	if m.version == "" && !given["version"] {
		m.version = noVersion
		m.warn(p.file, "version is missing; %s is assumed", noVersion)
	}
}

func (m *manifest) warn(file, format string, args ...any) {
	m.warnings = append(m.warnings, Problem{file, m.line, fmt.Sprintf(format, args...)})
}

// describe gives a manifest without a description one: the first line of the docstring of its
// entry, where it is a Python script.
func (m *manifest) describe(folder, file string) {
	if m.description != "" {
		return
	}
	m.description = "The skill " + string(m.id) + "; its manifest has no description."
	if root, err := os.OpenRoot(folder); err == nil {
		if path.Ext(m.primary.Entry) == ".py" {
			if src, err := readSmall(root, filepath.FromSlash(m.primary.Entry), maxScriptRead); err == nil {
				if line := docLine(string(src)); line != "" {
					m.description = line
				}
			}
		}
		_ = root.Close() // opened to look only
	}
	m.warn(file, "description is missing; %s is assumed", safeyaml.Quote(m.description))
}

// maxScriptRead is how large a script may be whose docstring is looked for.
const maxScriptRead = 4 << 20

var docstring = regexp.MustCompile(`^[rRuU]?("""|'''|"|')`)

// docLine gives the first line of a module's docstring; "" if it has none.
func docLine(src string) string {
	src = strings.TrimPrefix(src, "\ufeff")
	for {
		src = strings.TrimLeft(src, " \t\r\n\f")
		if !strings.HasPrefix(src, "#") {
			break
		}
		_, src, _ = strings.Cut(src, "\n")
	}
	open := docstring.FindStringSubmatch(src)
	if open == nil {
		return ""
	}
	text, _, closed := strings.Cut(src[len(open[0]):], open[1])
	if !closed {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimLeft(text, " \t\r\n\f\\"), "\n")
	line = strings.Join(strings.Fields(line), " ")
	if _, hidden := skill.Unseen(line); hidden || !utf8.ValidString(line) || len(line) > maxDescription {
		return ""
	}
	return line
}

// inCLIFolder gives the script of the CLI folder that an entry names by the folder's own
// name, as skills_cli/calculator.py does where the CLI folder is …/skills_cli. It is for code
// outside the sandbox, which is the operator's: the digest of such a skill is that of the one
// script.
func (o *Options) inCLIFolder(t skill.Target) (name string, ok bool) {
	dir, name := path.Split(t.Entry)
	at, err := filepath.Abs(o.CLIDir)
	if o.CLIDir == "" || dir == "" || err != nil || t.Kind != skill.CLIPython && t.Kind != skill.CLIExec {
		return "", false
	}
	return name, strings.HasSuffix(filepath.ToSlash(at)+"/", "/"+dir)
}

// maxOtherCost is how many bytes of JSON the keys of cost_metadata have that nothing here reads.
const maxOtherCost = 4 << 10

// otherCost keeps the keys that are not known, and gives the map without them.
func (p *parser) otherCost(n *yaml.Node, known map[string]func(*yaml.Node), to *skill.Cost) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return n
	}
	rest := *n
	rest.Content = nil
	other := map[string]json.RawMessage{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if known[key.Value] != nil {
			rest.Content = append(rest.Content, key, value)
			continue
		}
		text, problems := safeyaml.JSON(value)
		for _, q := range problems {
			p.report(q.Line, "cost_metadata: %s", q.Message)
		}
		if len(problems) == 0 {
			other[key.Value] = text
		}
	}
	if len(other) > 0 {
		text, err := json.Marshal(other)
		if err != nil || len(text) > maxOtherCost {
			p.report(n.Line, "the additional keys of cost_metadata are too large: %d bytes as JSON, the limit is %d", len(text), maxOtherCost)
		}
		to.Other = string(text)
	}
	return &rest
}
