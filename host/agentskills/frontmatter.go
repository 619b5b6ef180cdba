package agentskills

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"openskill/host/manifest"
	"openskill/internal/safeyaml"
	"openskill/sdk/skill"
)

// FileName is the file that makes a folder an Agent Skill.
const FileName = "SKILL.md"

// The limits of the specification, in characters, and those of this package.
const (
	MaxDescription   = 1024
	MaxCompatibility = 500
	MaxLicense       = 1024      // not of the specification, which asks for a short one
	MaxContent       = 256 << 10 // bytes of a SKILL.md
)

// Frontmatter is what a skill says of itself: the head of its SKILL.md.
type Frontmatter struct {
	Name          string // 1 to 64 of a-z, 0-9 and single hyphens; of a folder: its name
	Description   string // 1 to MaxDescription characters: what it does and when to use it
	License       string
	Compatibility string   // at most MaxCompatibility characters: what it needs
	AllowedTools  []string // tools that its author wants to be allowed; this host grants nothing by it
	Metadata      map[string]string
}

// Problems says what the specification has against f, in words for its author; nil:
// nothing.
func (f *Frontmatter) Problems() (list []string) {
	if !skill.ValidAgentSkillName(f.Name) {
		list = append(list, safeyaml.Quote(f.Name)+" is not a valid skill name: use 1 to 64 of a-z, 0-9 and single -, with no - at its ends")
	}
	switch n := utf8.RuneCountInString(f.Description); {
	case n == 0:
		list = append(list, "description is empty; say in 1 to 1024 characters what the skill does and when to use it")
	case n > MaxDescription:
		list = append(list, fmt.Sprintf("description is too long: %d characters, the limit is %d", n, MaxDescription))
	}
	if n := utf8.RuneCountInString(f.Compatibility); n > MaxCompatibility {
		list = append(list, fmt.Sprintf("compatibility is too long: %d characters, the limit is %d", n, MaxCompatibility))
	}
	if n := utf8.RuneCountInString(f.License); n > MaxLicense {
		list = append(list, fmt.Sprintf("license is too long: %d characters, the limit is %d", n, MaxLicense))
	}
	return list
}

// document is a SKILL.md cut in two.
type document struct {
	text  string // the whole, without a byte order mark
	front []byte // the YAML between the lines of ---
	line  int    // of the file, on which the YAML begins
	body  string
}

// mark is the byte order mark, which some editors write.
const mark = "\xef\xbb\xbf"

// split cuts a SKILL.md in two at its lines of ---, whatever ends its lines. Lines without
// text may be before the first.
func split(text string) (*document, *safeyaml.Problem) {
	d := &document{text: text, line: 1}
	rest, more := text, true
	for opened, begin, at := false, 0, 0; more; d.line++ {
		var line string
		line, rest, more = strings.Cut(rest, "\n")
		at += len(line) + 1
		switch {
		case opened && fence(line):
			d.front, d.body = []byte(text[begin:at-len(line)-1]), rest
			d.line = 1 + strings.Count(text[:begin], "\n")
			return d, nil
		case opened || strings.TrimSpace(line) == "":
		case fence(line):
			opened, begin = true, at
		default:
			return nil, &safeyaml.Problem{Line: d.line, Message: "must begin with a line of three hyphens (---), then name and description as YAML, then another line of ---"}
		}
	}
	if strings.TrimSpace(text) == "" {
		return nil, &safeyaml.Problem{Line: 1, Message: "must begin with a line of three hyphens (---), then name and description as YAML, then another line of ---"}
	}
	return nil, &safeyaml.Problem{Line: 1, Message: "the frontmatter that begins here does not end: a second line of three hyphens (---) must close it"}
}

// fence reports whether a line opens or closes the frontmatter.
func fence(line string) bool { return strings.TrimRight(line, " \t\r") == "---" }

// invalidLine is the line of the first byte that is not UTF-8, 0 for none.
func invalidLine(src []byte) int {
	if utf8.Valid(src) {
		return 0
	}
	line := 1
	for len(src) > 0 {
		r, size := utf8.DecodeRune(src)
		if r == utf8.RuneError && size <= 1 {
			return line
		}
		if r == '\n' {
			line++
		}
		src = src[size:]
	}
	return line
}

// parsed is what reading a SKILL.md gave. With problems the skill is not served: it has no
// description, or a head that cannot be read. Remarks are what the specification has against
// it, are for its author, and keep nobody from using it.
type parsed struct {
	front             Frontmatter
	document          *document // nil: there is none that could be cut in two
	problems, remarks []manifest.Problem
}

// text is the SKILL.md, "" where it cannot be read as one.
func (p *parsed) text() string {
	if p.document == nil {
		return ""
	}
	return p.document.text
}

// lenient turns problems into remarks, and what they are about into what is valid.
func (p *parsed) lenient(folder string) {
	p.problems, p.remarks = nil, append(p.problems, p.remarks...)
	if p.front.Name == "" {
		p.front.Name = nameOf(folder)
	}
	if p.front.Description == "" {
		p.front.Description = "The skill " + p.front.Name + ", which does not say what it is for."
	}
}

// nameOf makes a skill's name of a folder's.
func nameOf(folder string) string {
	words := strings.FieldsFunc(strings.ToLower(folder), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
	name := strings.Join(words, "-")
	if len(name) > 64 {
		name = strings.TrimRight(name[:64], "-")
	}
	if name == "" {
		return "skill"
	}
	return name
}

// parse reads a SKILL.md. file is how problems name it; folder is the one that it is in.
func parse(file, folder string, src []byte) *parsed {
	r := &reader{file: file, folder: folder}
	if len(src) > MaxContent {
		r.problem(0, "is too large: %d bytes, the limit is %d; move details into files beside it", len(src), MaxContent)
		return &r.parsed
	}
	src = bytes.TrimPrefix(src, []byte(mark))
	if line := invalidLine(src); line > 0 {
		r.remark(line, "the file is not valid UTF-8; invalid bytes are read as \uFFFD")
		src = bytes.ToValidUTF8(src, []byte("\uFFFD"))
	}
	d, broken := split(string(src))
	if broken != nil {
		r.problem(broken.Line, "%s", broken.Message)
		return &r.parsed
	}
	r.document = d
	if d.line > 2 {
		r.remark(1, "lines are before the first line of three hyphens (---); it must be the first one")
	}
	root, problems := safeyaml.Parse(d.front)
	tell := r.problem
	if len(problems) > 0 {
		if repaired, remarks := repair(d.front); repaired != nil {
			root, tell = repaired, r.remark
			if len(remarks) > 0 {
				problems = remarks
			}
		}
	}
	for _, p := range problems {
		tell(r.at(p.Line), "%s", strings.Replace(p.Message, "the file", "the frontmatter", 1))
	}
	if root != nil {
		r.root(root)
	}
	return &r.parsed
}

type reader struct {
	parsed
	file, folder string
}

// at turns a line of the YAML into one of the file.
func (r *reader) at(line int) int {
	if line == 0 {
		return 0
	}
	return r.document.line + line - 1
}

func (r *reader) problem(line int, format string, args ...any) {
	r.problems = append(r.problems, manifest.Problem{File: r.file, Line: line, Message: fmt.Sprintf(format, args...)})
}

func (r *reader) remark(line int, format string, args ...any) {
	r.remarks = append(r.remarks, manifest.Problem{File: r.file, Line: line, Message: fmt.Sprintf(format, args...)})
}

func (r *reader) root(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		r.problem(r.at(n.Line), "the frontmatter must be keys and values, such as name: and description:")
		return
	}
	lines := map[string]int{}
	known := map[string]func(*yaml.Node){
		"name":          func(v *yaml.Node) { r.text(v, "name", &r.front.Name) },
		"description":   func(v *yaml.Node) { r.text(v, "description", &r.front.Description) },
		"license":       func(v *yaml.Node) { r.text(v, "license", &r.front.License) },
		"compatibility": func(v *yaml.Node) { r.text(v, "compatibility", &r.front.Compatibility) },
		"metadata":      r.metadata,
		"allowed-tools": r.tools,
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		read, ok := known[k.Value]
		if !ok {
			r.remark(r.at(k.Line), "the key %s is not of the specification and is ignored; it knows %s, and metadata has room for others",
				safeyaml.Quote(k.Value), strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			continue
		}
		lines[k.Value] = r.at(k.Line)
		if v.ShortTag() == "!!null" && k.LineComment != "" {
			v.Tag, v.Value = "!!str", strings.TrimLeft(k.LineComment, "# \t")
			r.remark(r.at(k.Line), "%s begins with #, which YAML takes for a comment; it is read as text, as if in quotes", k.Value)
		}
		read(v)
	}
	first := r.document.line - 1
	switch {
	case lines["description"] == 0:
		r.problem(first, "the frontmatter lacks the key description")
	case r.front.Description == "":
		r.problem(lines["description"], "description is empty; say in 1 to %d characters what the skill does and when to use it", MaxDescription)
	}
	if lines["name"] == 0 {
		r.remark(first, "the frontmatter lacks the key name")
	}
	for key, text := range map[string]string{"compatibility": r.front.Compatibility, "license": r.front.License} {
		if line := lines[key]; line > 0 && text == "" && !r.told(line) {
			r.remark(line, "%s is empty; remove it, or give it a value", key)
		}
	}
	r.rules(lines)
}

// rules holds what was read against the rules, at the lines where it stands, and makes of it
// what keeps to them.
func (r *reader) rules(lines map[string]int) {
	for _, p := range r.front.Problems() {
		key, _, _ := strings.Cut(p, " ")
		if strings.HasPrefix(key, `"`) {
			key = "name" // its message begins with the value
		}
		if line := lines[key]; line > 0 && !r.told(line) {
			r.remark(line, "%s", p)
		}
	}
	if r.folder == "" && !skill.ValidAgentSkillName(r.front.Name) {
		r.problem(lines["name"], "name must be 1 to 64 of a-z, 0-9 and single -, and is %s", safeyaml.Quote(r.front.Name))
	}
	if line := lines["name"]; line > 0 && r.folder != "" && r.front.Name != r.folder && !r.told(line) {
		r.remark(line, "the name %s and the folder %s must be equal", safeyaml.Quote(r.front.Name), safeyaml.Quote(r.folder))
	}
	if !skill.ValidAgentSkillName(r.front.Name) {
		r.front.Name = nameOf(cmp.Or(r.front.Name, r.folder))
	}
	r.front.Description = cut(r.front.Description, MaxDescription)
	r.front.Compatibility = cut(r.front.Compatibility, MaxCompatibility)
	r.front.License = cut(r.front.License, MaxLicense)
}

// cut gives so many characters of a text, the last of which says that there are more.
func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:most-1])) + "…"
}

// told reports whether something was said of a line already: one that is no text is not
// too short as well.
func (r *reader) told(line int) bool {
	on := func(p manifest.Problem) bool { return p.Line == line }
	return slices.ContainsFunc(r.problems, on) || slices.ContainsFunc(r.remarks, on)
}

// text takes a single value of any kind as the text that it was written as, and the texts of
// a list with commas between them.
func (r *reader) text(n *yaml.Node, key string, to *string) {
	var texts []string
	for _, v := range append([]*yaml.Node{n}, n.Content...) {
		if v.Kind == yaml.ScalarNode && v.ShortTag() != "!!null" {
			texts = append(texts, v.Value)
		}
	}
	if n.Kind == yaml.MappingNode {
		texts = nil
	}
	*to = strings.TrimSpace(strings.Join(texts, ", "))
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" && *to != "" {
		r.remark(r.at(n.Line), "%s must be text; put it in quotes if it looks like a number or a list", key)
	}
}

// metadata takes single values of any kind as the text that they were written as.
func (r *reader) metadata(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		r.remark(r.at(n.Line), "metadata must be keys with text, each on a line of its own")
		return
	}
	m := make(map[string]string, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if v.Kind == yaml.ScalarNode {
			m[k.Value] = v.Value
			continue
		}
		b, problems := safeyaml.JSON(v)
		if len(problems) > 0 {
			r.remark(r.at(problems[0].Line), "metadata %s: %s", safeyaml.Quote(k.Value), problems[0].Message)
			continue
		}
		m[k.Value] = string(b)
		r.remark(r.at(k.Line), "metadata %s is not text as the specification requires; it is stored as JSON", safeyaml.Quote(k.Value))
	}
	if len(m) > 0 {
		r.front.Metadata = m
	}
}

func (r *reader) tools(n *yaml.Node) {
	switch {
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str":
		r.front.AllowedTools = toolNames(n.Value)
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
	case n.Kind == yaml.SequenceNode:
		for _, c := range n.Content {
			if c.Kind != yaml.ScalarNode || c.ShortTag() != "!!str" {
				r.remark(r.at(c.Line), "allowed-tools must be text, with spaces between the tools, or a list of text")
				return
			}
			r.front.AllowedTools = append(r.front.AllowedTools, strings.TrimSpace(c.Value))
		}
	default:
		r.remark(r.at(n.Line), "allowed-tools must be text, with spaces between the tools, or a list of text")
	}
}

// toolNames cuts a list of tools at spaces, and at the commas that many write, but not
// within the parentheses of one, as in Bash(git add:*).
func toolNames(s string) []string {
	depth := 0
	return strings.FieldsFunc(s, func(c rune) bool {
		switch c {
		case '(':
			depth++
		case ')':
			depth = max(depth-1, 0)
		}
		return depth == 0 && (c == ',' || unicode.IsSpace(c))
	})
}

// render writes the SKILL.md of a skill that has no file. Quoted as JSON, text is YAML.
func render(f *Frontmatter, instructions string) string {
	var b strings.Builder
	put := func(indent, key, value string) {
		b.WriteString(indent + key + ": " + quoted(value) + "\n")
	}
	b.WriteString("---\nname: " + f.Name + "\n")
	put("", "description", f.Description)
	if f.License != "" {
		put("", "license", f.License)
	}
	if f.Compatibility != "" {
		put("", "compatibility", f.Compatibility)
	}
	if len(f.AllowedTools) > 0 {
		b.WriteString("allowed-tools:\n")
		for _, t := range f.AllowedTools {
			b.WriteString("  - " + quoted(t) + "\n")
		}
	}
	if len(f.Metadata) > 0 {
		b.WriteString("metadata:\n")
		for _, k := range slices.Sorted(maps.Keys(f.Metadata)) {
			put("  ", quoted(k), f.Metadata[k])
		}
	}
	b.WriteString("---\n\n" + strings.TrimSpace(instructions) + "\n")
	return b.String()
}

func quoted(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // text and what was read as JSON always encode
	return strings.TrimSuffix(b.String(), "\n")
}
